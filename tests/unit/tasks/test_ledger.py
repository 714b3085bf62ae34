"""`vault.tasks`: adding, finding, changing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, LeaseLost, Misuse, NotFound, Unstorable
from hardsave.stores.base import Batch
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.sqlite import SqliteStore
from hardsave.tasks import executor, ledger, states
from tests.unit.tasks.room import AT_ONCE, START, Counter, Room


@pytest.fixture(params=["memory", "sqlite"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Room:
    if request.param == "memory":
        return Room()
    return Room(SqliteStore(tmp_path / "store.db", durability="process", backup=False))


# Adding


def test_a_new_task_is_pending_and_was_never_tried(room: Room) -> None:
    task = room.tasks.add("t1", "do it", priority=2, metadata={"by": "me"})
    assert task.is_new
    assert (task.state, task.attempts, task.max_attempts) == ("pending", 0, 3)
    assert (task.text, task.priority, task.metadata) == ("do it", 2, {"by": "me"})
    assert room.kinds("t1") == ["added"]


@pytest.mark.parametrize("year", [1, 1969, 1970])
def test_a_moment_long_ago_has_come(room: Room, year: int) -> None:
    room.tasks.add("t1", not_before=datetime(year, 1, 1))  # noqa: DTZ001 # as people write it
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["t1"]


@pytest.mark.parametrize("about", [{"priority": 2**63}, {"priority": -(2**70)}, {"key": "\udcff"}])
def test_what_no_store_can_keep_is_refused(room: Room, about: dict[str, Any]) -> None:
    with pytest.raises(Misuse):
        room.tasks.add("t1", **about)
    assert not room.tasks.find()


def test_the_same_id_again_changes_nothing(room: Room) -> None:
    first = room.tasks.add("t1", "do it")
    again = room.tasks.add("t1", "something else", priority=9)
    assert not again.is_new
    assert (again.text, again.priority) == (first.text, first.priority)
    assert len(room.tasks.find()) == 1


def test_the_same_text_is_the_same_work(room: Room) -> None:
    room.tasks.add("t1", "do it")
    assert room.tasks.add("t2", "do it").id == "t1"
    assert room.tasks.add("t3", "do it", key="another").is_new
    assert room.tasks.add("t4", "other text", key="another").id == "t3"
    assert room.tasks.add("t5").is_new
    assert room.tasks.add("t6").is_new


def test_a_completed_task_is_not_run_again_by_its_text(room: Room) -> None:
    ran = Counter()
    room.tasks.add("t1", "do it")
    room.run(lambda attempt: ran(attempt.id))
    assert room.tasks.add("t2", "do it").state == "completed"
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["t1"]


def test_the_latest_attempt_decides_whether_a_text_is_done(room: Room) -> None:
    room.tasks.add("t1", "do it")
    with room.tasks.attempt("t1"):
        pass
    with pytest.raises(ValueError, match="no"), room.tasks.attempt("t1", force=True, retry=AT_ONCE):
        raise ValueError("no")
    task = room.tasks.add("t2", "do it")
    assert (task.id, task.state) == ("t1", "pending")


def test_a_failed_task_that_is_added_again_keeps_counting_its_attempts(room: Room) -> None:
    """A new identity for every try would never reach the limit."""
    ran = Counter()

    def fails(attempt: hardsave.Attempt) -> None:
        ran(attempt.number)
        raise ValueError("no")

    never = hardsave.Retry(on=())
    for number in range(6):
        task = room.tasks.add(f"t{number}", "do it", max_attempts=3)
        assert task.id == "t0"
        room.run(fails, retry=never)
    assert ran.calls == [1, 2, 3]
    assert room.tasks.get("t0").state == "failed"


@pytest.mark.parametrize("id", ["", "two\nlines", "x" * 501, "\ud800", None, 5])
def test_ids_that_cannot_be_are_refused(id: str) -> None:
    with pytest.raises(Misuse):
        Room().tasks.add(id)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"max_attempts": "3"},
        {"priority": "high"},
        {"priority": 2**63},
        {"metadata": [1]},
        {"not_before": "tomorrow"},
        {"after": "abc"},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    tasks = Room().tasks
    for name in "abc":  # letters of a text that is meant to be one id
        tasks.add(name)
    with pytest.raises(Misuse, match=next(iter(wrong))):
        tasks.add("t", "text", **wrong)


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=-12))])
def test_the_end_of_time_never_comes(room: Room, zone: tzinfo | None) -> None:
    room.tasks.add("t", not_before=datetime.max.replace(tzinfo=zone))
    assert [task.not_before for task in room.tasks.find()] == [states.NEVER]


def test_metadata_that_cannot_be_stored_is_named(room: Room) -> None:
    with pytest.raises(Unstorable, match=r"metadata\.client"):
        room.tasks.add("t", metadata={"client": object()})
    assert not room.tasks.find()


# Finding


def test_unknown_ids_are_not_found_and_change_nothing(room: Room) -> None:
    for call in (
        room.tasks.get,
        room.tasks.history,
        room.tasks.retry,
        room.tasks.cancel,
        room.tasks.roll_back,
        room.tasks.claim,
        lambda id: room.tasks.answer(id, 1),
        lambda id: room.tasks.add("t2", after=[id]),
    ):
        with pytest.raises(NotFound, match="there is no task 'nobody'"):
            call("nobody")
    assert not room.tasks.find()


def test_tasks_are_found_by_state_and_in_pages(room: Room) -> None:
    for number in range(5):
        room.tasks.add(f"t{number}")
    with room.tasks.attempt("t2"):
        pass
    pending = room.tasks.find(state="pending")
    assert [task.id for task in pending] == ["t0", "t1", "t3", "t4"]
    first = room.tasks.find(limit=2)
    second = room.tasks.find(limit=2, after=first.next)
    assert [task.id for task in second] == ["t2", "t3"]
    assert [task.id for task in room.tasks.find(limit=2, after=second.next)] == ["t4"]
    assert room.tasks.find(limit=5).next is None
    with pytest.raises(Misuse):
        room.tasks.find(state="done")


def test_an_attempt_at_a_forgotten_task_is_refused(room: Room) -> None:
    room.tasks.add("t")
    old = room.tasks.claim("t")
    room.tasks.cancel("t")
    room.tasks.claim("t", force=True).complete("done")
    room.tasks.forget(keep_completed=0)
    with pytest.raises(LeaseLost, match="'t' does not exist any more: it was forgotten"):
        old.progress(1, 2)
    assert not room.tasks.find()


@pytest.mark.parametrize(
    "write",
    [lambda old: old.step("s", lambda: 1), lambda old: old.complete("late")],
    ids=["a step", "its end"],
)
def test_an_attempt_at_a_purged_task_writes_nothing_into_another_of_its_name(
    room: Room, write: Callable[[hardsave.Attempt], object]
) -> None:
    room.tasks.add("t", "swordfish")
    old = room.tasks.claim("t")
    room.tasks.cancel("t")
    assert room.vault.store.purge(text="swordfish").tasks == 1
    room.tasks.add("t")
    new = room.tasks.claim("t")
    with pytest.raises(LeaseLost, match="forgotten and added again"):
        write(old)
    assert room.store.journal(None, "t", 1) == []
    new.complete("on time")


def test_a_page_leads_on_though_its_last_task_was_forgotten(room: Room) -> None:
    for number in range(4):
        room.tasks.add(f"t{number}")
    with room.tasks.attempt("t1"):
        pass
    page = room.tasks.find(limit=2)
    room.tasks.forget(keep_completed=0)
    assert [task.id for task in room.tasks.find(after=page.next)] == ["t2", "t3"]
    wrong: Any
    for wrong in ("t1", "-1", "9" * 19, 1, page[0]):
        with pytest.raises(Misuse, match="after is the `next` of an earlier page"):
            room.tasks.find(after=wrong)


def test_the_counts_of_all_states_add_up(room: Room) -> None:
    for name in ("a", "b", "c", "d", "e"):
        room.tasks.add(name)
    with room.tasks.attempt("a"):
        pass
    room.tasks.cancel("b")
    room.tasks.roll_back("c")
    with room.tasks.attempt("d"):
        stats = room.tasks.stats()
    assert (stats.completed, stats.failed, stats.rolled_back) == (1, 1, 1)
    assert (stats.in_progress, stats.pending, stats.total) == (1, 1, 5)


# Order and time


def test_the_highest_priority_runs_first_then_the_oldest(room: Room) -> None:
    for name, priority in (("a", 0), ("b", 5), ("c", 5), ("d", 9)):
        room.tasks.add(name, priority=priority)
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["d", "b", "c", "a"]


def test_nothing_runs_before_its_time(room: Room) -> None:
    later = datetime.fromtimestamp(START / 1_000_000, UTC) + timedelta(hours=1)
    room.tasks.add("t1", not_before=later)
    assert room.tasks.get("t1").not_before == later
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id))
    with pytest.raises(Conflict, match="its time has not come"):
        room.tasks.claim("t1")
    room.clock.jump(3_601)
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["t1"]


def test_a_task_runs_after_those_it_needs(room: Room) -> None:
    room.tasks.add("design")
    room.tasks.add("build", after=["design"], priority=9)
    room.tasks.add("test", after=["design", "build"], priority=99)
    assert room.tasks.get("test").waits_for == "design"
    with pytest.raises(Conflict, match="waits for task 'design'"):
        room.tasks.claim("build")
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["design", "build", "test"]


def test_what_is_begun_all_the_same_waits_for_nothing_any_more(room: Room) -> None:
    room.tasks.add("design")
    room.tasks.add("build", after=["design"])
    with room.tasks.attempt("build", force=True) as build:
        with room.tasks.attempt("design"):
            pass
        build.fail("too early")
    assert room.tasks.get("build").waits_for is None


def test_a_task_that_failed_holds_up_those_that_need_it(room: Room) -> None:
    room.tasks.add("design")
    room.tasks.add("build", after=["design"])
    room.tasks.cancel("design")
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == []
    room.tasks.retry("design")
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["design", "build"]


# Changing


def test_a_cancelled_task_does_not_run_until_it_is_retried(room: Room) -> None:
    room.tasks.add("t1", "do it")
    assert room.tasks.cancel("t1").error == "cancelled"
    assert not room.tasks.add("t2", "do it").is_new
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == []
    room.tasks.retry("t1")
    room.run(lambda attempt: ran(attempt.id))
    assert ran.calls == ["t1"]


def test_a_task_that_is_cancelled_while_it_runs_cannot_write_any_more(room: Room) -> None:
    room.tasks.add("t1")
    attempt = room.tasks.claim("t1")
    room.tasks.cancel("t1")
    with pytest.raises(LeaseLost):
        attempt.step("one", lambda: 1)
    assert attempt.is_lost
    assert room.tasks.get("t1").state == "failed"


def test_a_rolled_back_task_starts_over_with_an_empty_journal(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        attempt.step("effect", effects, "one")
    assert room.tasks.roll_back("t1").state == "rolled_back"
    assert room.tasks.retry("t1").generation == 2
    with room.tasks.attempt("t1") as attempt:
        attempt.step("effect", effects, "two")
    assert effects.calls == ["one", "two"]
    assert room.tasks.get("t1").state == "completed"


def test_a_retry_of_what_is_not_over_is_refused(room: Room) -> None:
    room.tasks.add("t1")
    with pytest.raises(Conflict, match="is pending and cannot be retried"):
        room.tasks.retry("t1")
    with room.tasks.attempt("t1"):
        pass
    with pytest.raises(Conflict, match="is completed"):
        room.tasks.retry("t1")


# The limit


def test_the_limit_holds_for_claims_by_hand(room: Room) -> None:
    room.tasks.add("t1", max_attempts=2)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"), room.tasks.attempt("t1", retry=AT_ONCE):
            raise ValueError("no")
    assert room.tasks.get("t1").state == "failed"
    with pytest.raises(Conflict, match="is failed and cannot be claimed"):
        room.tasks.claim("t1")


# History


def test_every_failure_stands_in_the_history_and_success_clears_the_error(room: Room) -> None:
    room.tasks.add("t1")

    def handler(attempt: hardsave.Attempt) -> str:
        if attempt.number < 3:
            raise ValueError(f"number {attempt.number}")
        return "done"

    room.run(handler)
    task = room.tasks.get("t1")
    assert (task.state, task.error, task.result, task.attempts) == ("completed", None, "done", 3)
    failures = [each for each in room.tasks.history("t1") if each.kind == "failed"]
    assert [each.error for each in failures] == ["ValueError: number 1", "ValueError: number 2"]
    assert "in handler" in failures[0].about["traceback"]
    assert room.kinds("t1") == [
        "added",
        "claimed",
        "failed",
        "claimed",
        "failed",
        "claimed",
        "completed",
    ]


# Iterations


def test_iterations_are_counted_over_restarts(room: Room) -> None:
    assert room.tasks.iterations == 0
    assert [room.tasks.iterate() for _ in range(3)] == [1, 2, 3]
    again = hardsave.Vault(room.store, clock=room.clock)
    assert again.tasks.iterations == 3
    assert again.tasks.stats().iterations == 3


def test_two_processes_that_count_at_once_lose_no_round(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one counts after this one has looked, and before it writes."""
    other = hardsave.Vault(room.store, clock=room.clock).tasks
    commit = room.store.commit

    def overtaken(batch: Batch) -> int:
        monkeypatch.setattr(room.store, "commit", commit)
        assert other.iterate() == 1
        return commit(batch)

    monkeypatch.setattr(room.store, "commit", overtaken)
    assert room.tasks.iterate() == 2
    assert room.tasks.iterations == 2


# Forgetting


def test_only_the_oldest_completed_tasks_are_forgotten(room: Room) -> None:
    for number in range(6):
        room.tasks.add(f"t{number}")
    for number in (3, 1, 0, 2):
        room.clock.jump(1)
        with room.tasks.attempt(f"t{number}"):
            pass
    room.tasks.cancel("t4")
    assert room.tasks.forget(keep_completed=2) == 2
    assert [task.id for task in room.tasks.find()] == ["t0", "t2", "t4", "t5"]
    assert room.tasks.forget(keep_completed=2) == 0


# Users


def test_nobody_sees_or_changes_the_tasks_of_others(room: Room) -> None:
    other = Room(room.store, user="ada")
    room.tasks.add("t1", "mine", metadata={"whose": "mine"})
    with pytest.raises(NotFound):
        other.tasks.get("t1")
    assert other.tasks.add("t1", "mine").is_new
    with other.tasks.attempt("t1") as attempt:
        attempt.step("a", lambda: 1)
    other.tasks.iterate()
    assert room.tasks.get("t1").state == "pending"
    assert room.tasks.iterations == 0
    assert room.store.tasks("bob", TaskQuery(9)) == []


def test_secrets_are_taken_out_of_all_that_is_stored(tmp_path: Path) -> None:
    secret = "sk-ant-" + "a1B2" * 12
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}", redact=True) as vault:
        vault.tasks.add("t1", f"use {secret}", metadata={"key": secret})
        with vault.tasks.attempt("t1", retry=AT_ONCE) as attempt:
            attempt.step("a", lambda: {"key": secret})
            attempt.fail(ValueError(secret))
        task = vault.tasks.get("t1")
        assert "[redacted" in task.text
        assert "[redacted" in str(task.error)
    stored = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert secret.encode() not in stored


def test_a_server_that_runs_for_ever_does_not_grow_for_ever(tmp_path: Path) -> None:
    """Sizes after so many rounds, and after three times as many."""
    sizes = []
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url, durability="process") as vault:
        tasks = vault.tasks
        for number in range(7_500):
            tasks.iterate()
            if number % 5 == 0:
                tasks.add(f"t{number}")
                with tasks.attempt(f"t{number}"):
                    pass
            if number in (2_499, 7_499):
                sizes.append((tmp_path / "store.db").stat().st_size)
                assert tasks.stats().completed <= 110
        assert tasks.iterations == 7_500
    assert sizes[1] <= sizes[0] * 1.2


def test_what_is_begun_anew_while_old_ones_are_forgotten_stays(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        room.tasks.add(f"t{number}")
        room.tasks.claim(f"t{number}").complete()
    listed = room.store.tasks
    anew: list[hardsave.Attempt] = []

    def meanwhile(user: str | None, query: Any) -> Any:
        found = listed(user, query)
        if not anew:
            anew.append(room.tasks.claim("t1", force=True))
        return found

    monkeypatch.setattr(room.store, "tasks", meanwhile)
    assert room.tasks.forget(keep_completed=0) == 2
    anew[0].complete("done again")
    assert room.tasks.get("t1").result == "done again"


def asking(room: Room, *questions: str) -> None:
    """A task that gets on with its questions, as far as they were answered."""
    with room.tasks.attempt("t1") as attempt:
        for question in questions:
            attempt.ask(question)


def test_an_answer_is_for_the_question_that_was_read(room: Room) -> None:
    room.tasks.add("t1")
    asking(room, "read it?", "delete it?")
    read = room.tasks.get("t1").question
    room.tasks.answer("t1", "yes", question=read)  # somebody else is faster
    asking(room, "read it?", "delete it?")
    with pytest.raises(Conflict, match="asks something else by now: delete it"):
        room.tasks.answer("t1", "yes", question=read)
    assert room.tasks.get("t1").question == "delete it?"


def test_an_answer_that_comes_second_is_not_given_to_the_next_question(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is slower by a moment reads again, and finds another question."""
    room.tasks.add("t1")
    asking(room, "read it?", "delete it?")
    commit, first = room.store.commit, [True]

    def meanwhile(batch: Any) -> int:
        if batch.event.kind == "answered" and first:
            first.clear()
            room.tasks.answer("t1", "no")
            asking(room, "read it?", "delete it?")
        return int(commit(batch))

    monkeypatch.setattr(room.store, "commit", meanwhile)
    with pytest.raises(Conflict, match="asks something else"):
        room.tasks.answer("t1", "yes")
    assert room.tasks.get("t1").question == "delete it?"


def test_what_is_noted_about_the_ledger_does_not_grow_for_ever(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (ledger, executor):
        monkeypatch.setattr(module, "KEPT", 10)
    room.tasks.bookmark("kept", 7)
    for number in range(60):
        room.tasks.bookmark("reader", number)
    assert len(room.store.entries(None, None)) <= 2 * 10 + 1  # a round, and the latest of a kind
    for _ in range(30):
        with room.tasks.runner("s"):
            pass
    assert len(room.store.entries(None, None)) <= 14
    assert (room.tasks.bookmark("kept"), room.tasks.bookmark("reader")) == (7, 59)
