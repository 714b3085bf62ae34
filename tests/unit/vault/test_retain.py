"""Letting checkpoints go: plans, what holds them up, and what happens beside others' work."""

import asyncio
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import hardsave
from hardsave import aio
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.timeline.policy import Policy
from hardsave.vault.line import Timeline
from hardsave.vault.retention import retain
from hardsave.vault.retention.history import RetentionHistory
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import SECOND, Clock, Watched

DAYS = timedelta(days=1)
DAY = 24 * 3_600 * SECOND

newest_three = Policy(max_per_timeline=3)


def numbers(line: Timeline) -> list[int]:
    return [checkpoint.seq for checkpoint in line.checkpoints(limit=1_000)]


def fill(line: Timeline, count: int) -> None:
    for n in range(count):
        line.save({"n": n})


def test_a_plan_changes_nothing_and_applying_it_does(vault: Vault, line: Timeline) -> None:
    fill(line, 5)
    plan = vault.retention.plan(newest_three)
    assert numbers(line) == [5, 4, 3, 2, 1]
    assert [choice.row.seq for choice in plan.drops] == [1, 2]
    done = vault.retention.apply(plan)
    assert (done.dropped, done.spared) == (2, 0)
    assert str(done) == "2 checkpoints dropped for good; gc gives their room back"
    assert numbers(line) == [5, 4, 3]
    assert not vault.retention.plan(newest_three)
    assert line.load() == {"n": 4}
    assert vault.store.verify().ok


def test_what_was_saved_is_counted_also_when_it_is_gone(vault: Vault, line: Timeline) -> None:
    fill(line, 5)
    line.fork(name="other").save({"n": 9})
    assert vault.store.saves() == 6
    vault.retention.apply(vault.retention.plan(newest_three))
    vault.delete(line.head or "")
    vault.timeline("other").delete()
    assert vault.store.saves() == 6


def test_what_is_kept_in_mind_of_a_checkpoint_is_little(vault: Vault, line: Timeline) -> None:
    saved = line.save({"n": 0}, name="one")._record
    history = RetentionHistory()
    tracemalloc.start()
    try:
        for seq in range(10_000):
            record = saved._replace(id=seq.to_bytes(16), seq=seq, created_at=SECOND * seq)
            history.add(record, is_head=False, stored_at=record.created_at)
        assert tracemalloc.get_traced_memory()[0] < 120 * 10_000  # 61, and what it grows into
    finally:
        tracemalloc.stop()
    (rows,) = history.lines({}, ())
    assert [row.seq for row in rows] == list(range(10_000))
    assert (rows[7].name, rows[7].kind, rows[7].created_at) == ("one", saved.kind, 7 * SECOND)


def test_by_default_age_decides_and_names_stay(vault: Vault, line: Timeline, clock: Clock) -> None:
    line.save({"n": 0})
    line.save({"n": 1}, name="keep me")
    line.save({"n": 2})
    clock.now += 29 * DAY
    assert not vault.retention.plan()
    clock.now += 2 * DAY
    line.save({"n": 3})
    vault.retention.apply(vault.retention.plan())
    assert numbers(line) == [4, 2]


def test_history_goes_on_over_what_is_gone(vault: Vault, line: Timeline) -> None:
    fill(line, 4)
    fork = line.fork("main:2", name="fork")
    fork.save({"n": "fork"})
    vault.retention.apply(vault.retention.plan(Policy(max_per_user=2)))
    assert [checkpoint.seq for checkpoint in line.ancestors()] == [2]
    assert [checkpoint.seq for checkpoint in fork.ancestors()] == [2], "undo of the fork needs it"
    line.save({"n": 5})
    assert numbers(line)[0] == 5
    assert vault.store.verify().ok


def test_dropping_is_not_an_operation_and_undo_passes_over_it(vault: Vault, line: Timeline) -> None:
    fill(line, 5)
    line.rewind("main:4")
    line.save({"n": 6})
    vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=1)))
    assert [operation.kind for operation in vault.operations()] == ["rewind"]
    assert numbers(line) == [6, 5, 4], "the rewind can be undone and done again"
    line.undo()
    assert line.load() == {"n": 4}


def test_after_the_undo_window_operations_are_forgotten(
    vault: Vault, line: Timeline, clock: Clock, store: Watched
) -> None:
    fill(line, 5)
    line.rewind("main:2")
    clock.now += 31 * DAY
    line.save({"n": 6})
    done = vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=1)))
    assert (done.dropped, done.forgotten) == (5, 1)
    assert numbers(line) == [6]
    assert [entry.kind for entry in store.log(None, 0, 10)] == ["retain"]
    with pytest.raises(NotFound, match="nothing to undo"):
        line.undo()


def test_old_entries_go_even_if_no_checkpoint_does(
    vault: Vault, line: Timeline, clock: Clock, store: Watched
) -> None:
    fill(line, 2)
    line.rewind("main:1")
    clock.now += 31 * DAY
    assert vault.retention.apply(vault.retention.plan(Policy())).forgotten == 1
    before = len(store.batches)
    assert vault.retention.apply(vault.retention.plan(Policy())).forgotten == 0
    assert len(store.batches) == before, "with nothing to do nothing is written"


def test_what_was_deleted_goes_when_it_cannot_be_undone_any_more(
    vault: Vault, line: Timeline, clock: Clock
) -> None:
    fill(line, 3)
    line.save({"n": "kept for good"}, kind="feature")
    line.clear()
    clock.now += 29 * DAY
    vault.retention.apply(vault.retention.plan())
    line.undo()
    assert numbers(line) == [4, 3, 2, 1]
    line.redo()
    clock.now += 2 * DAY
    assert not vault.retention.plan(), "hidden again by the redo, two days ago"
    clock.now += 29 * DAY
    assert vault.retention.plan().totals == {"deleted": 4}
    vault.retention.apply(vault.retention.plan())
    assert len(line) == 0
    line.save({"n": "on"})
    assert numbers(line) == [5]


def test_a_deleted_timelines_checkpoints_are_found(
    vault: Vault, line: Timeline, clock: Clock, store: Watched
) -> None:
    fill(line, 3)
    line.delete()
    clock.now += 31 * DAY
    assert vault.retention.apply(vault.retention.plan()).dropped == 3
    assert store.saved(None, 0, 10) == []


@pytest.mark.parametrize("timelines", [None, ["main"]])
def test_what_is_deleted_while_the_clock_is_behind_can_be_undone_for_as_long(
    vault: Vault, line: Timeline, clock: Clock, timelines: list[str] | None
) -> None:
    policy = Policy(timelines=timelines, max_per_timeline=1)
    fill(line, 3)
    right = clock.now
    clock.now -= 60 * DAY
    line.rewind("main:2")
    line.delete()
    clock.now = right + 29 * DAY
    assert vault.retention.apply(vault.retention.plan(policy)).dropped == 0
    line.undo()
    line.undo()
    assert line.load() == {"n": 2}
    line.redo()
    line.redo()
    clock.now = right + 60 * DAY
    assert vault.retention.apply(vault.retention.plan(policy)).dropped == 3


def test_what_is_saved_while_the_clock_is_behind_is_among_the_newest(
    vault: Vault, line: Timeline, clock: Clock
) -> None:
    fill(line, 3)
    clock.now -= 60 * DAY
    other = vault.timeline("other")
    fill(other, 3)
    clock.now += 61 * DAY
    vault.retention.apply(vault.retention.plan(Policy(max_per_user=3)))
    assert (numbers(line), numbers(other)) == ([3], [3, 2, 1]), "and a head stays"


def test_a_head_of_another_timeline_stays(vault: Vault, line: Timeline, clock: Clock) -> None:
    fill(line, 3)
    fork = line.fork("main:1", name="fork")
    clock.now += 31 * DAY
    vault.retention.apply(vault.retention.plan())
    assert fork.load() == {"n": 0}
    assert numbers(line) == [3, 1]


def test_timelines_outside_the_policy_are_left_alone(vault: Vault, store: Watched) -> None:
    for name in ("mine", "theirs"):
        fill(vault.timeline(name), 5)
    policy = Policy(timelines=["mine"], max_per_timeline=2)
    vault.retention.apply(vault.retention.plan(policy))
    assert numbers(vault.timeline("mine")) == [5, 4]
    assert len(vault.timeline("theirs")) == 5


def test_retention_of_some_timelines_forgets_their_old_operations(
    vault: Vault, line: Timeline, clock: Clock, store: Watched
) -> None:
    policy = Policy(timelines=["main"], max_per_timeline=2)
    for _ in range(3):
        fill(line, 3)
        line.clear()
    fill(line, 3)
    vault.retention.apply(vault.retention.plan(policy))
    assert [entry.kind for entry in store.log(None, 0, 100)].count("clear") == 3
    clock.now += 31 * DAY
    fill(line, 3)
    vault.retention.apply(vault.retention.plan(policy))
    assert [entry.kind for entry in store.log(None, 0, 100)] == ["retain"]


def test_retention_of_some_timelines_forgets_no_operation_of_others(
    vault: Vault, line: Timeline, clock: Clock, store: Watched
) -> None:
    policy = Policy(timelines=["main"], max_per_timeline=2, undo_window=timedelta(0))
    for _ in range(5):
        fill(line, 3)
        vault.retention.apply(vault.retention.plan(policy))
    assert len(store.log(None, 0, 100)) == 1, "of its own traces the latest is enough"
    vault.timeline("other").save({})
    vault.timeline("other").delete()
    clock.now += 31 * DAY
    fill(line, 3)
    vault.retention.apply(vault.retention.plan(policy))
    assert "delete" in [entry.kind for entry in store.log(None, 0, 100)]


def test_nobody_elses_history_is_touched(store: Watched, clock: Clock) -> None:
    ours, theirs = (Vault(store, user=user, clock=clock) for user in ("a", "b"))
    for vault in (ours, theirs):
        fill(vault.timeline("main"), 5)
    plan = ours.retention.plan(newest_three)
    assert theirs.retention.apply(plan).dropped == 0
    assert ours.retention.apply(plan).dropped == 2
    assert len(theirs.timeline("main")) == 5


# The size of the store


def test_past_its_size_the_store_is_thinned_and_says_so(
    vault: Vault, line: Timeline, clock: Clock
) -> None:
    fill(line, 10)
    clock.now += 2 * DAY
    plan = vault.retention.plan(Policy(max_store_bytes=1))
    assert plan.totals == {"store": 8}
    assert "past the store's size" in str(plan)
    vault.retention.apply(plan)
    assert numbers(line) == [10, 1]
    line.save({"n": "goes on"})
    assert not vault.retention.plan(Policy(max_store_bytes=1_000_000))


# Beside others


class Meddled(MemoryStore):
    """Lets somebody else act right before a commit that drops checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: list[Callable[[], object]] = []
        self.drops: list[int] = []

    def commit(self, batch: Batch) -> int:
        if batch.changes.drop and self.meddle:
            self.meddle.pop(0)()
        number = super().commit(batch)
        if batch.changes.drop:
            self.drops.append(len(batch.changes.drop))
        return number


@pytest.fixture
def meddled() -> Meddled:
    return Meddled()


@pytest.fixture
def shared(meddled: Meddled) -> Vault:
    return Vault(meddled, clock=Clock())


def test_what_became_a_head_between_plan_and_commit_stays(shared: Vault, meddled: Meddled) -> None:
    line = shared.timeline("main")
    fill(line, 6)
    meddled.meddle = [lambda: line.rewind("main:2")]
    done = shared.retention.apply(shared.retention.plan(newest_three))
    assert (done.dropped, done.spared) == (2, 1)
    assert str(done).startswith("2 checkpoints dropped for good, 1 of the plan stay")
    assert numbers(line) == [6, 5, 4, 2]
    assert line.load() == {"n": 1}


def test_what_became_undoable_between_plan_and_commit_stays(
    shared: Vault, meddled: Meddled
) -> None:
    """Number 2 is no head any more when the commit comes, but undo leads back to it."""
    line = shared.timeline("main")
    fill(line, 6)

    def there_and_back() -> None:
        line.rewind("main:2")
        line.rewind("main:6")

    meddled.meddle = [there_and_back]
    shared.retention.apply(shared.retention.plan(newest_three))
    line.undo()
    assert line.load() == {"n": 1}


def test_what_the_plan_does_not_show_is_not_dropped(shared: Vault, meddled: Meddled) -> None:
    line = shared.timeline("main")
    fill(line, 5)
    plan = shared.retention.plan(newest_three)
    fill(line, 5)
    assert shared.retention.apply(plan).dropped == 2
    assert numbers(line) == list(range(10, 2, -1))


def test_a_plan_of_long_ago_drops_nothing_twice(vault: Vault, line: Timeline) -> None:
    fill(line, 5)
    plan = vault.retention.plan(newest_three)
    vault.retention.apply(plan)
    again = vault.retention.apply(plan)
    assert (again.dropped, again.spared) == (0, 2)


def test_large_plans_are_carried_out_in_small_commits(
    shared: Vault, meddled: Meddled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retain, "CHUNK", 4)
    line = shared.timeline("main")
    fill(line, 13)
    meddled.meddle = [lambda: None, lambda: line.fork("main:6", name="fork")]
    done = shared.retention.apply(shared.retention.plan(newest_three))
    assert (done.dropped, done.spared) == (9, 1)
    assert meddled.drops == [4, 4, 1]
    assert numbers(line) == [13, 12, 11, 6]


def test_somebody_who_is_always_faster_is_a_conflict(
    shared: Vault, meddled: Meddled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retain, "_ATTEMPTS", 3)
    line = shared.timeline("main")
    fill(line, 5)
    meddled.meddle = [
        lambda n=n: line.fork("@", name=f"fork {n}")  # type: ignore[misc] # mypy and defaults
        for n in range(3)
    ]
    with pytest.raises(Conflict, match="plan and apply again"):
        shared.retention.apply(shared.retention.plan(newest_three))
    assert len(line) == 5


# On a real file


def test_dropped_checkpoints_stay_away_after_the_file_is_opened_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as vault:
        fill(vault.timeline("main"), 700)
        assert vault.retention.apply(vault.retention.plan(Policy(max_per_user=10))).dropped == 690
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        assert numbers(line) == list(range(700, 690, -1))
        line.append({"m": 1})
        assert line.load() == {"n": 699, "m": 1}
        assert vault.store.verify().ok


def test_awaited(tmp_path: Path) -> None:
    async def session() -> int:
        async with aio.open(f"sqlite:///{tmp_path}/store.db") as vault:
            line = await vault.timeline("main")
            for n in range(5):
                await line.save({"n": n})
            return (await vault.retention.apply(await vault.retention.plan(newest_three))).dropped

    assert asyncio.run(session()) == 2


def test_wrong_calls_say_what_is_wanted(vault: Vault) -> None:
    with pytest.raises(Misuse, match=r"takes a hardsave\.Policy, not dict"):
        vault.retention.plan({"max_age": 30})  # type: ignore[arg-type] # that is the test
    with pytest.raises(Misuse, match=r"what retention\.plan made, not Policy"):
        vault.retention.apply(Policy())  # type: ignore[arg-type] # that is the test


KILLED = """
import os, signal, sys
import hardsave
from hardsave.stores.sqlite.store import SqliteStore
from hardsave.vault.retention import retain

retain.CHUNK = 7
commits = 0
commit = SqliteStore.commit

def counted(self, batch):
    global commits
    number = commit(self, batch)
    commits += 1
    if commits == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number

with hardsave.open(sys.argv[1]) as vault:
    plan = vault.retention.plan(hardsave.Policy(max_per_user=10))
    SqliteStore.commit = counted
    vault.retention.apply(plan)
"""


def test_killed_half_way_it_leaves_a_history_that_is_whole_and_can_go_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url, durability="process") as vault:
        fill(vault.timeline("main"), 60)
    done = subprocess.run([sys.executable, "-c", KILLED, url], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        assert len(line) == 60 - 3 * 7
        assert vault.store.verify().ok
        assert line.load() == {"n": 59}
        assert vault.retention.apply(vault.retention.plan(Policy(max_per_user=10))).dropped == 29
        assert numbers(line) == list(range(60, 50, -1))
