"""Following what happens: in order, without gaps, without repeats, from any process."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import aio
from hardsave.errors import Corrupt, Misuse
from hardsave.objects.records import CheckpointRecord, LogRecord
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.history import follow
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.stores.processes import Child
from tests.unit.vault.stage import Clock, Watched


def taken(following: Iterator[follow.Event[Any]], count: int) -> list[follow.Event[Any]]:
    return list(islice(following, count))


def numbers(events: list[follow.Event[Any]]) -> list[int]:
    return [event.number for event in events]


def test_saves_and_log_entries_come_in_the_order_of_commits(vault: Vault, line: Timeline) -> None:
    first = line.save({"n": 1}, name="one")
    other = line.fork("@", name="other")
    second = other.save({"n": 2})
    events = taken(vault.follow(after=0), 3)
    assert numbers(events) == [1, 2, 3]
    assert [event.kind for event in events] == ["checkpoint_saved", "fork", "checkpoint_saved"]
    assert [event.timeline for event in events] == ["main", "other", "other"]
    assert [event.checkpoint for event in events] == [first, None, second]
    assert events[1].data is not None
    assert events[1].data["source"] == first._record.id
    assert events[0].data is None
    assert events[0].created_at == first.created_at


def test_by_default_only_what_comes_is_told(vault: Vault, line: Timeline) -> None:
    for n in range(7):
        line.save({"n": n})
        line.fork("@", name=f"fork {n}")
    following = vault.follow()
    line.save({"n": "new"})
    assert numbers(taken(following, 1)) == [15]


@pytest.mark.parametrize("saves", [0, 1, 2, 3, 8, 33])
@pytest.mark.parametrize("forks", [0, 1, 5])
@pytest.mark.parametrize("others", [0, 1, 40])
def test_now_is_behind_everything_there_is(saves: int, forks: int, others: int) -> None:
    store = MemoryStore()
    with Vault(store, clock=Clock()) as vault:
        line = vault.timeline("main")
        for n in range(saves):
            line.save(n)
            Vault(store, user="kim").timeline("main").save(n)
        for n in range(forks if saves else 0):
            line.fork("@", name=f"fork {n}")
        for n in range(others):
            Vault(store, user="lee").timeline("main").save(n, expect=hardsave.ANY_HEAD)
        following = vault.follow()
        assert following.read() == []
        line.save("new")
        assert [event.kind for event in following.read()] == ["checkpoint_saved"]


def test_a_number_is_the_cursor_to_go_on_from(vault: Vault, line: Timeline) -> None:
    for n in range(10):
        line.save(n)
    first = taken(vault.follow(after=0), 4)
    rest = taken(vault.follow(after=first[-1].number), 6)
    assert numbers(first + rest) == list(range(1, 11))


def test_a_store_whose_numbers_went_back_is_told_once(
    vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn in range(3):
        line.save({"turn": turn})
    following, ahead = vault.follow(0), vault.follow(9)
    assert len(following.read()) == 3
    assert [(each.kind, each.number) for each in ahead.read()] == [("reload", 3)]
    assert ahead.read() == []
    store = vault._context.store
    monkeypatch.setattr(store, "generation", lambda: b"another")
    line.save({"turn": 4})
    assert [(each.kind, each.number) for each in following.read()] == [("reload", 4)]
    assert following.read() == []
    line.save({"turn": 5})
    assert [each.kind for each in following.read()] == ["checkpoint_saved"]


def test_nothing_is_told_of_other_users() -> None:
    store = MemoryStore()
    kim, lee = Vault(store, user="kim"), Vault(store, user="lee")
    for n in range(5):
        kim.timeline("main").save(n)
        lee.timeline("main").save(n)
    lee.timeline("main").fork("@", name="fork")
    events = kim.follow(after=0).read()
    assert numbers(events) == sorted({*numbers(events)})
    assert len(events) == 5
    assert {event.checkpoint.user for event in events if event.checkpoint} == {"kim"}


@pytest.mark.parametrize("options", [{"after": -1}, {"after": "3"}, {"poll_seconds": 0}])
@pytest.mark.parametrize("more", [{}, {"stop": True}, {"poll_seconds": "soon"}])
def test_odd_arguments_are_misuse(
    vault: Vault, options: dict[str, Any], more: dict[str, Any]
) -> None:
    with pytest.raises(Misuse):
        vault.follow(**{**options, **more})


def test_it_ends_when_it_is_told_to(vault: Vault, line: Timeline) -> None:
    for n in range(5):
        line.save(n)
    seen: list[int] = []
    for event in vault.follow(after=0, stop=lambda: len(seen) == 3):
        seen.append(event.number)  # noqa: PERF401 # stop looks at it
    assert seen == [1, 2, 3]


def test_it_ends_when_the_vault_is_closed(tmp_path: Path) -> None:
    vault = hardsave.open(f"sqlite:///{tmp_path}/a.db")
    vault.timeline("main").save(1)
    begun = threading.Event()
    seen: list[int] = []

    def work() -> None:
        for event in vault.follow(after=0, poll_seconds=3_600):
            seen.append(event.number)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    vault.close()
    thread.join(60)
    assert not thread.is_alive()
    assert seen == [1]


def test_a_call_on_a_store_that_somebody_else_closed_is_misuse(store: Watched) -> None:
    vault = Vault(store)
    following = vault.follow(after=0)
    store.close()
    with pytest.raises(Misuse, match="closed"):
        next(following)


def save_record(number: int) -> CheckpointRecord:
    return CheckpointRecord(number, b"", "t", number, None, 0, None, "automatic", "s", "", b"", b"")


def log_record(number: int) -> LogRecord:
    return LogRecord(number, b"", None, "k", 0, b"\x80")


@pytest.mark.parametrize(
    ("saves", "entries", "latest", "together"),
    [
        ([1, 3], [2], 3, [1, 2, 3]),
        ([1, 3], [2, 4], 3, [1, 2, 3]),  # 4 came after all were read for the first time
        ([4], [1, 2, 3], 4, [1, 2, 3]),  # a full page of entries: there may be more below 4
        ([2], [], 2, [2]),
    ],
)
def test_reads_are_merged_as_far_as_all_are_complete(
    saves: list[int], entries: list[int], latest: int, together: list[int]
) -> None:
    pages: list[Sequence[follow.Row]] = [
        list(map(save_record, saves)),
        list(map(log_record, entries)),
        [],
    ]
    found = follow.merged(pages, follow.complete_upto(pages, latest, 3))
    assert [record.number for record in found] == together


class Busy(MemoryStore):
    """Between any two reads somebody commits."""

    def __init__(self) -> None:
        super().__init__()
        self.between: Callable[[], object] = int

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        self.between()
        found = super().saved(user, after, limit)
        self.between()
        return found


@pytest.mark.parametrize("page", [1, 2, 3, 200])
def test_commits_between_two_reads_are_neither_skipped_nor_repeated(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "PAGE", page)
    store = Busy()
    vault = Vault(store, clock=Clock())
    line = vault.timeline("main")
    line.save(0)
    left = list(range(1, 40))

    def between() -> None:
        for n in [left.pop() for _ in left[:4]]:
            if n % 4 == 0:
                vault.tasks.add(f"t{n}")
            else:
                line.save(n) if n % 3 else line.fork("main:1", name=f"fork {n}")

    following = vault.follow(after=0)
    store.between = between
    told = [event for _ in range(100) for event in following.read()]
    assert numbers(told) == list(range(1, 41))


class Asked(MemoryStore):
    """Notes from where on saves are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        self.asked.append(after)
        return super().saved(user, after, limit)

    def latest_number(self, user: str | None) -> int:
        """Of all users, as in a store that numbers the commits of all of them in one sequence."""
        return max(MemoryStore.latest_number(self, each) for each in (user, "kim", "lee"))


def test_a_look_without_news_reads_no_page() -> None:
    store = Asked()
    with Vault(store, user="kim") as vault:
        vault.timeline("main").save(1)
        following = vault.follow(after=0)
        assert len(following.read()) == 1
        assert [following.read() for _ in range(3)] == [[], [], []]
        assert store.asked == [0]


def test_what_other_users_commit_is_passed_by_once() -> None:
    store = Asked()
    with Vault(store, user="kim") as kim, Vault(store, user="lee") as lee:
        following = kim.follow()
        for n in range(5):
            lee.timeline("main").save(n)
        assert [following.read() for _ in range(3)] == [[], [], []]
        assert store.asked == [0]
        assert following.after == 5


def test_what_was_read_can_be_gone_on_from(vault: Vault, line: Timeline) -> None:
    following = vault.follow()
    assert following.after == 0
    for n in range(3):
        line.save(n)
    assert (len(following.read()), following.after) == (3, 3)
    line.save(3)
    assert numbers(vault.follow(following.after).read()) == [4]


def test_an_event_that_cannot_be_read_is_not_skipped(
    vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = vault.follow()
    line.save(1)
    line.fork("@", name="fork")
    codec = vault._context.objects.codec

    def damaged(data: bytes) -> Any:
        raise Corrupt("a log entry is damaged")

    with monkeypatch.context() as patch:
        patch.setattr(codec, "decode", damaged)
        for _ in range(2):
            with pytest.raises(Corrupt):
                following.read()
    assert numbers(following.read()) == [1, 2]


def test_what_happens_to_tasks_is_told_with_the_rest_and_steps_are_not(
    vault: Vault, line: Timeline
) -> None:
    vault.tasks.add("t1", "some work")
    with vault.tasks.attempt("t1") as attempt:
        attempt.step("a", lambda: 1)
        line.save({"n": 1})
    vault.tasks.iterate()
    events = vault.follow(after=0).read()
    assert [(event.kind, event.task) for event in events] == [
        ("task_added", "t1"),
        ("task_claimed", "t1"),
        ("checkpoint_saved", None),
        ("task_completed", "t1"),
        ("iterated", None),
    ]
    assert events[0].data == {"text": "some work"}
    following = vault.follow()
    assert following.read() == []
    vault.tasks.add("t2")
    assert [event.task for event in following.read()] == ["t2"]


def test_many_writers_of_several_processes_are_followed_without_gap_or_repeat(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    writers, turns = 3, 40
    hardsave.open(url).close()

    def write(child: Child) -> None:
        with hardsave.open(url) as vault, hardsave.open(url, user="kim") as other:
            line = vault.timeline(f"line {os.getpid()}")
            for turn in range(turns):
                line.append({"n": [turn]})
                other.timeline("theirs").save(turn, expect=hardsave.ANY_HEAD)
                if turn % 4 == 0:
                    line.fork("@", name=f"fork {turn} of {os.getpid()}")

    def watch(child: Child) -> None:
        with hardsave.open(url) as vault:
            seen = numbers(taken(vault.follow(after=0, poll_seconds=0.001), writers * 50))
            assert seen == sorted(set(seen))
            assert seen == numbers(taken(vault.follow(after=0), writers * 50))
            assert vault.follow(after=seen[-1]).read() == []

    children = [Child(watch), *(Child(write) for _ in range(writers))]
    assert [child.end() for child in children] == [0] * 4
    with hardsave.open(url) as vault:
        assert len(vault.follow(after=0).read()) == writers * 50


def test_it_can_be_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()  # the one that sees only what comes
    read = follow.Following.read

    def noted(following: follow.Following) -> list[follow.Event[Any]]:
        if following._poll_seconds == 0.001:
            begun.set()
        return read(following)

    monkeypatch.setattr(follow.Following, "read", noted)

    async def session() -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []
        async with aio.open("memory://") as vault:
            line = await vault.timeline("main")
            await line.save(0)
            following = vault.follow(after=0)
            coming = vault.follow(poll_seconds=0.001)

            told = asyncio.Event()

            async def look() -> None:
                async for event in coming:
                    assert event.checkpoint is not None
                    seen.append((event.kind, event.checkpoint.seq))
                    told.set()

            looking = asyncio.ensure_future(look())
            first = await anext(following)
            assert first.checkpoint is not None
            assert await first.checkpoint.read() == 0
            await asyncio.to_thread(begun.wait, 60)
            await line.save(1)
            await told.wait()
        await asyncio.wait_for(looking, 60)
        return seen

    assert asyncio.run(session()) == [("checkpoint_saved", 2)]
