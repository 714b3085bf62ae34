"""The runner: recovery, threads, stopping."""

import logging
import math
import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import hardsave
from hardsave.errors import Misuse, Unavailable
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks import executor
from hardsave.tasks import worker_loop as loop
from hardsave.tasks.child_lock import ChildLocks, Survivors
from hardsave.tasks.worker_loop import Terms
from tests.unit.tasks.room import AT_ONCE, SECOND, Counter, Room, TimedStore


@pytest.fixture
def room() -> Room:
    return Room()


def left_behind(room: Room, *names: str, **owner: Any) -> None:
    """Tasks in progress of an owner that is dead, or as `owner` says."""
    dead = room.abandon(**owner)
    for name in names:
        room.tasks.add(name)
        room.tasks.claim(name)
        record = room.store.task(None, name)
        assert record is not None
        assert isinstance(room.store, MemoryStore)
        ledger = room.store._tenant(None).ledger
        ledger._tasks[name] = record._replace(owner=dead.id)


# Running


def test_every_task_is_run_once_by_any_number_of_threads(room: Room) -> None:
    for number in range(60):
        room.tasks.add(f"t{number}")
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id), concurrency=8)
    assert sorted(ran.calls) == sorted(f"t{number}" for number in range(60))
    assert room.tasks.stats().completed == 60


def test_an_attempt_that_fails_is_reported_with_its_traceback(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake in the program would else be tried again and again, and nothing would be seen."""

    def handle(attempt: hardsave.Attempt) -> None:
        attempt.step("act", int, "1", bass=10)

    room.tasks.add("t", max_attempts=2)
    room.run(handle)
    first, last = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert first.startswith("task 't', attempt 1: it is tried again\nTraceback (most recent call")
    assert "in handle\n" in first
    assert "TypeError" in first
    assert last.startswith("task 't', attempt 2: it has failed\nTraceback")


def test_an_error_of_ours_is_reported_as_its_sentence_alone(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    def handle(attempt: hardsave.Attempt) -> None:
        raise Unavailable("the callback has not answered; look at its server")

    room.tasks.add("t", max_attempts=1)
    with caplog.at_level(logging.WARNING):
        room.run(handle)
    assert [each.getMessage() for each in caplog.records] == [
        "task 't', attempt 1: it has failed\nthe callback has not answered; look at its server"
    ]
    assert "traceback" not in room.tasks.history("t")[-1].about


def test_every_frame_of_a_failure_is_logged_for_debugging(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.tasks.add("t", max_attempts=1)
    with caplog.at_level(logging.DEBUG, "hardsave.tasks.attempt"):
        room.run(lambda attempt: attempt.step("act", int, "one"))
    brief, every = [each.getMessage() for each in caplog.records if "attempt 1" in each.message]
    assert "in _outcome" not in brief
    assert "frames of libraries left out" in brief
    assert "in _outcome" in every


def test_handlers_really_run_at_once(room: Room) -> None:
    for number in range(4):
        room.tasks.add(f"t{number}")
    meeting = threading.Barrier(4, timeout=60)
    room.run(lambda attempt: meeting.wait(), concurrency=4)
    assert room.tasks.stats().completed == 4


def test_what_a_handler_returns_is_the_result(room: Room) -> None:
    room.tasks.add("t1")
    room.run(lambda attempt: {"found": [1, 2]})
    assert room.tasks.get("t1").result == {"found": [1, 2]}


def test_a_handler_that_always_fails_is_run_as_often_as_allowed(room: Room) -> None:
    room.tasks.add("t1", max_attempts=4)
    room.tasks.add("t2")
    ran = Counter()

    def handler(attempt: hardsave.Attempt) -> None:
        ran(attempt.id)
        if attempt.id == "t1":
            raise OSError("always")

    room.run(handler)
    room.run(handler)
    assert ran.calls.count("t1") == 4
    assert room.tasks.get("t1").state == "failed"
    assert room.tasks.get("t2").state == "completed"


def test_a_result_that_cannot_be_stored_fails_the_task_at_once(room: Room) -> None:
    room.tasks.add("t1")
    room.run(lambda attempt: {"client": object()})
    task = room.tasks.get("t1")
    assert (task.state, task.attempts) == ("failed", 1)
    assert task.error is not None
    assert "result.client" in task.error


def test_a_handler_that_exits_its_program_fails_its_task_alone(room: Room) -> None:
    room.tasks.add("t1")
    room.tasks.add("t2")

    def handler(attempt: hardsave.Attempt) -> None:
        if attempt.id == "t1":
            raise SystemExit(3)

    room.run(handler)
    assert room.tasks.get("t1").error == "SystemExit: 3"
    assert room.tasks.get("t2").state == "completed"


def test_a_task_that_fails_waits_longer_each_time(room: Room) -> None:
    room.tasks.add("t1")
    policy = hardsave.Retry(first_seconds=10, factor=3, jitter=0)

    def handler(attempt: hardsave.Attempt) -> None:
        raise OSError("away")

    with room.tasks.runner("s") as runner:
        for waited in (10, 30):
            attempts = room.tasks.get("t1").attempts
            thread = threading.Thread(target=runner.run, args=(handler,), kwargs={"retry": policy})
            thread.start()
            until(lambda before=attempts: room.tasks.get("t1").attempts > before)
            runner.stop()
            thread.join()
            record = room.store.task(None, "t1")
            assert record is not None
            assert record.due == room.clock.now + waited * SECOND
            room.clock.jump(waited)


def test_waits_without_a_limit_are_as_good_as_others(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "until_sweep", lambda runner: 0.0)
    room.tasks.add("t1")
    tried = Counter()

    def handler(attempt: hardsave.Attempt) -> None:
        tried(attempt.number)
        time.sleep(0.05)  # while it works, somebody looks for those whom a clock holds up
        if attempt.number == 1:
            raise OSError("away")

    room.run(handler, retry=hardsave.Retry(first_seconds=0, max_seconds=math.inf))
    assert tried.calls == [1, 2]


def until(is_so: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"unknown": "guess"}])
def test_terms_that_make_no_sense_are_refused(room: Room, wrong: dict[str, Any]) -> None:
    with pytest.raises(Misuse), room.tasks.runner("s") as runner:
        runner.run(lambda attempt: None, until_idle=True, **wrong)


def test_a_store_that_fails_for_a_while_costs_no_task(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "AGAIN_SECONDS", 0.01)
    failing = 6
    commit = room.store.commit

    def flaky(batch: Any) -> int:
        nonlocal failing
        if batch.event.kind in ("claimed", "completed") and failing:
            failing -= 1
            raise Unavailable("the disk is full")
        return commit(batch)

    for number in range(3):
        room.tasks.add(f"t{number}")
    monkeypatch.setattr(room.store, "commit", flaky)
    room.run(lambda attempt: None)
    assert failing == 0
    assert room.tasks.stats().completed == 3


def test_what_is_more_urgent_comes_next_however_many_were_seen_before(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardsave.tasks.worker_loop.REST", 0.0)  # a slow machine takes long to look
    for number in range(4):
        room.tasks.add(f"t{number}")
    ran = []

    def handler(attempt: hardsave.Attempt) -> None:
        ran.append(attempt.id)
        if attempt.id == "t0":
            room.tasks.add("urgent", priority=1)
            time.sleep(0.1)

    room.run(handler)
    assert ran == ["t0", "urgent", "t1", "t2", "t3"]


def test_a_handler_that_writes_nothing_learns_that_its_task_was_cancelled(room: Room) -> None:
    room.tasks.add("t1")
    seen = []

    def handler(attempt: hardsave.Attempt) -> None:
        room.tasks.cancel("t1")
        until(lambda: attempt.is_lost)
        seen.append(attempt.is_lost)

    room.run(handler)
    assert seen == [True]
    assert room.tasks.get("t1").error == "cancelled"


# Recovering


def test_a_clean_start_finds_nothing(room: Room) -> None:
    with room.tasks.runner("one") as runner:
        assert runner.report.was_clean
        assert runner.report.last_session is None
    with room.tasks.runner("two") as runner:
        assert runner.report.was_clean
        assert runner.report.last_session == "one"
        assert runner.report.last_stop is not None
        assert str(runner.report) == "clean start: 0 tasks to do, 0 failed"


def test_what_a_dead_process_has_left_is_put_back_to_work(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.tasks.iterate()
    left_behind(room, "a", "b")
    room.tasks.add("c")
    with room.tasks.runner("next") as runner:
        report = runner.report
        assert not report.was_clean
        assert [task.id for task in report.interrupted] == ["a", "b"]
        assert [task.state for task in report.interrupted] == ["in_progress", "in_progress"]
        assert (report.incomplete_count, report.failed_count, report.iterations) == (3, 0, 1)
        assert [task.id for task in report.incomplete] == ["a", "b", "c"]
        (dead,) = report.dead
        assert dead.session == "dead"
        assert "is gone" in dead.why
        assert room.tasks.get("a").attempts == 1
        ran = Counter()
        runner.run(lambda attempt: ran((attempt.id, attempt.number)), until_idle=True)
    assert ran.calls == [("a", 2), ("b", 2), ("c", 1)]
    assert room.kinds("a") == ["added", "claimed", "interrupted", "claimed", "completed"]
    assert "interrupted: a ('')" in caplog.text
    assert "attempt 1 of 3" in str(report)
    assert "nothing to do by hand" in str(report)


def test_an_unclean_stop_is_noticed_also_when_nothing_was_running(room: Room) -> None:
    room.abandon("idle server")
    with room.tasks.runner("next") as runner:
        assert not runner.report.was_clean
        assert [dead.session for dead in runner.report.dead] == ["idle server"]
        assert runner.report.interrupted == []


def test_a_runner_that_was_not_entered_or_has_ended_runs_nothing(room: Room) -> None:
    room.tasks.add("a")
    outside = room.tasks.runner("outside")
    with room.tasks.runner("ended") as ended:
        pass
    for runner in (outside, ended):
        with pytest.raises(Misuse, match="inside its block"):
            runner.run(lambda attempt: None, until_idle=True)
        with pytest.raises(Misuse, match="inside its block"):
            runner.claim("a")
    assert room.store.owners(None) == []
    assert room.tasks.get("a").attempts == 0


def test_a_stop_that_says_it_is_not_clean_is_believed(room: Room) -> None:
    room.tasks.runner("one").__enter__().close(clean=False)
    with room.tasks.runner("two") as runner:
        assert not runner.report.was_clean
        assert "was not stopped cleanly" in str(runner.report)
        assert room.tasks.recover().was_clean  # that is settled: another session has begun
    with room.tasks.runner("three") as runner:
        assert runner.report.was_clean


def test_a_death_that_a_living_session_sees_to_is_told_by_it_and_at_the_next_start(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    with room.tasks.runner("alive") as alive:
        left_behind(room, "a", "b")
        alive.recover()
        alive.recover()
        (told,) = (record.message for record in caplog.records)
        assert "session 'dead' has died: process 4194305 is gone; interrupted: 'a', 'b'" in told
        with room.tasks.runner("dead") as again:
            assert not again.report.was_clean
            (dead,) = again.report.dead
            assert (dead.session, dead.since) == ("dead", datetime.fromtimestamp(1.7e9, UTC))
            assert "put back to work" in dead.why
            assert again.report.interrupted == []
    with room.tasks.runner("next") as runner:
        assert runner.report.was_clean


def test_what_outlives_a_dead_session_is_told_once_its_task_is_put_back(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with room.tasks.runner("alive") as alive:
        left_behind(room, "a")
        monkeypatch.setattr(ChildLocks, "survivors", lambda self, tasks: {"a": Survivors((7,))})
        alive.recover()
        assert "has died" not in caplog.text
        monkeypatch.undo()
        alive.recover()
        assert "has died" in caplog.text


def test_the_living_are_left_alone(room: Room) -> None:
    room.tasks.add("t1")
    attempt = room.tasks.claim("t1")
    with room.tasks.runner("other") as runner:
        assert runner.report.was_clean
        assert runner.recover() == []
    attempt.step("still mine", lambda: 1)
    attempt.complete()


def test_a_machine_that_restarted_has_no_living_owners(room: Room) -> None:
    left_behind(room, "a", boot=b"earlier.")
    assert isinstance(room.store, TimedStore)
    room.store.time_of = b"another."
    room.store.since_boot = 1
    with room.tasks.runner("next") as runner:
        assert "restarted" in runner.report.dead[-1].why
        assert [task.id for task in runner.report.interrupted] == ["a"]


def test_a_second_machine_is_refused_unless_it_takes_over(room: Room) -> None:
    left_behind(room, "a", host="elsewhere", boot=b"theirs..", space=1, clock=b"theirs..")
    with pytest.raises(Unavailable, match=r"runs on elsewhere.*one machine.*take_over=True"):
        room.tasks.runner("here").__enter__()
    assert room.tasks.get("a").state == "in_progress"
    assert len(room.store.owners(None)) == 2  # of the attempt's own, and theirs: not the refused
    with room.tasks.runner("here", take_over=True) as runner:
        assert [task.id for task in runner.report.interrupted] == ["a"]


def test_a_task_that_killed_its_process_too_often_is_not_tried_again(room: Room) -> None:
    room.tasks.add("poison", max_attempts=2)
    for _ in range(2):
        dying = hardsave.Vault(room.store, clock=room.clock).tasks
        dying.claim("poison")
        dying.close()
        with room.tasks.runner("next"):
            pass
    task = room.tasks.get("poison")
    assert (task.state, task.attempts) == ("failed", 2)
    assert task.error is not None
    assert "its process died" in task.error


@pytest.mark.parametrize("seconds", [3_600, -3_600, 365 * 86_400, -365 * 86_400])
def test_a_clock_that_jumps_neither_kills_nor_revives(room: Room, seconds: int) -> None:
    left_behind(room, "dead")
    room.tasks.add("alive")
    attempt = room.tasks.claim("alive")
    room.clock.jump(seconds)
    with room.tasks.runner("next") as runner:
        assert [task.id for task in runner.report.interrupted] == ["dead"]
    attempt.complete("still here")
    assert room.tasks.get("alive").result == "still here"


def test_a_clock_that_is_set_back_holds_up_no_retry(room: Room) -> None:
    room.tasks.add("fails")
    later = datetime.fromtimestamp(room.clock() / 1_000_000, UTC) + timedelta(days=2)
    room.tasks.add("later", not_before=later)
    room.tasks.claim("fails", retry=hardsave.Retry(first_seconds=60)).fail("away")
    room.clock.jump(-365 * 86_400)
    with room.tasks.runner("s") as runner:
        loop = executor.begin_loop(runner, Terms(1, "retry", hardsave.Retry(max_seconds=300)))
        loop.wake_the_overslept()
        record = room.store.task(None, "fails")
        assert record is not None
        assert record.due == 0
        attempt = loop.next()
        assert attempt is not None
        assert attempt.id == "fails"
        assert loop.next() is None  # what nobody has tried keeps its own time
        attempt.complete()


def test_a_retry_behind_many_that_are_not_due_is_waited_for_and_woken(room: Room) -> None:
    """Those before it have a higher priority, and their time comes while it waits."""
    soon = datetime.fromtimestamp(room.clock() / 1_000_000, UTC) + timedelta(seconds=30)
    for number in range(600):
        room.tasks.add(f"later-{number}", priority=9, not_before=soon)
    room.tasks.add("fails")
    policy = hardsave.Retry(first_seconds=60, jitter=0)
    room.tasks.claim("fails", retry=policy).fail("away")
    with room.tasks.runner("s") as runner:
        loop = executor.begin_loop(runner, Terms(1, "retry", policy))
        assert not loop.is_idle()
        room.clock.jump(-86_400)
        assert not loop.is_idle()  # a day is longer than any retry waits: it will be woken
        loop.wake_the_overslept()
        attempt = loop.next()
        assert attempt is not None
        assert attempt.id == "fails"


# Stopping


def test_a_stop_lets_what_is_under_way_end(room: Room) -> None:
    for number in range(5):
        room.tasks.add(f"t{number}")
    with room.tasks.runner("s") as runner:

        def handler(attempt: hardsave.Attempt) -> str:
            runner.stop()
            return "ended"

        runner.run(handler)
    assert room.tasks.get("t0").result == "ended"
    assert room.tasks.stats().pending == 4
    assert room.store.owners(None) == []


def test_who_is_stopped_may_be_waited_for_without_a_limit(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.runner("s") as runner:

        def handler(attempt: hardsave.Attempt) -> str:
            runner.stop()
            time.sleep(0.1)
            return "ended"

        runner.run(handler, grace_seconds=math.inf)
    assert room.tasks.get("t1").result == "ended"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_cleanly_and_are_given_back(room: Room, number: signal.Signals) -> None:
    room.tasks.add("t1")
    before = signal.getsignal(number)

    def handler(attempt: hardsave.Attempt) -> str:
        os.kill(os.getpid(), number)
        return "ended"

    with room.tasks.runner("s") as runner:
        runner.run(handler)
    assert signal.getsignal(number) == before
    assert room.tasks.get("t1").result == "ended"
    with room.tasks.runner("next") as runner:
        assert runner.report.was_clean


def test_what_does_not_end_in_time_is_handed_back(room: Room) -> None:
    room.tasks.add("t1")
    go_on, learnt = threading.Event(), Counter()
    with room.tasks.runner("s") as runner:

        def hangs(attempt: hardsave.Attempt) -> None:
            runner.stop()
            go_on.wait(60)
            try:
                attempt.step("late", lambda: 1)
            except hardsave.LeaseLost:
                learnt("lost")
            go_on.clear()

        runner.run(hangs, grace_seconds=0.05)
    task = room.tasks.get("t1")
    assert (task.state, task.attempts) == ("pending", 0)
    go_on.set()
    until(lambda: learnt.calls == ["lost"])
    assert room.kinds("t1") == ["added", "claimed", "handed_back"]


def test_an_error_of_the_store_ends_the_run_and_is_raised(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> Any:
        raise hardsave.Corrupt("a page is damaged")

    with room.tasks.runner("s") as runner:
        monkeypatch.setattr(room.store, "due", broken)
        with pytest.raises(hardsave.Corrupt, match="a page is damaged"):
            runner.run(lambda attempt: None)


def test_a_sweep_that_fails_is_reported_and_tried_again(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    with room.tasks.runner("s") as runner:

        def broken(user: Any) -> Any:
            raise Unavailable("away")

        monkeypatch.setattr(room.store, "owners", broken)
        executor.sweep(runner, executor.begin_loop(runner, Terms(1, "retry", hardsave.Retry())))
    assert "looking for dead sessions failed" in caplog.text


def test_a_runner_that_was_not_entered_has_no_report(room: Room) -> None:
    with pytest.raises(Misuse, match="once it was entered"):
        _ = room.tasks.runner("s").report


@pytest.mark.parametrize("handler", [None, 7, "name"])
def test_what_cannot_be_called_fails_no_task(room: Room, handler: Any) -> None:
    room.tasks.add("t1")
    with room.tasks.runner("test") as runner, pytest.raises(Misuse, match="a plain function"):
        runner.run(handler, until_idle=True)
    assert room.tasks.get("t1").state == "pending"


def test_a_coroutine_is_no_handler_of_threads(room: Room) -> None:
    async def handle(attempt: hardsave.Attempt) -> None: ...

    room.tasks.add("t1")
    with room.tasks.runner("test") as runner, pytest.raises(Misuse, match=r"hardsave\.aio"):
        runner.run(handle, until_idle=True)
    assert room.tasks.get("t1").state == "pending"


# Errors that are errors themselves


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unspeakable(), "Unspeakable (and its text is RuntimeError)"),
        (ValueError("file \udcff"), r"ValueError: file \udcff"),
        (ValueError("nul \0"), "ValueError: nul \0"),
        (ValueError("x" * 50_000_000), f"ValueError: {'x' * 4_988} […] {'x' * 5_000}"),
    ],
    ids=["no-text", "no-unicode", "nul", "huge"],
)
@pytest.mark.parametrize("is_in_step", [False, True])
def test_whatever_an_error_is_it_is_recorded_and_the_runner_goes_on(
    tmp_path: Path, error: Exception, said: str, is_in_step: bool
) -> None:
    def fall() -> None:
        raise error

    def handle(attempt: hardsave.Attempt) -> None:
        if attempt.id == "bad" and is_in_step:
            attempt.step("fall", fall, unknown="fail")
        elif attempt.id == "bad":
            fall()

    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        vault.tasks.add("bad", max_attempts=1)
        vault.tasks.add("good")
        with vault.tasks.runner("test") as runner:
            runner.run(handle, until_idle=True)
        assert vault.tasks.get("bad").error == said
        assert vault.tasks.get("good").state == "completed"
        assert len(vault.tasks.history("bad")[-1].about["traceback"]) < 101_000


# Sessions by hand


def test_a_session_that_is_not_closed_cleanly_leaves_its_tasks_to_the_next(room: Room) -> None:
    room.tasks.add("t1")
    runner = room.tasks.runner("one").__enter__()
    attempt = runner.claim("t1")
    assert [owner.session for owner in room.store.owners(None)] == ["one"]
    runner.close(clean=False)
    runner.close()
    assert room.tasks.get("t1").state == "in_progress"
    with room.tasks.runner("two") as next_one:
        assert [task.id for task in next_one.report.interrupted] == ["t1"]
    with pytest.raises(hardsave.LeaseLost):
        attempt.complete()


def test_a_vault_whose_lease_cannot_be_given_back_is_closed_all_the_same(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.tasks.add("t1")
    room.tasks.claim("t1")

    def broken(user: Any, owner: Any) -> None:
        raise Unavailable("away")

    monkeypatch.setattr(room.store, "let_go", broken)
    with pytest.raises(Unavailable):
        room.vault.close()
    with pytest.raises(Misuse, match="closed"):
        room.store.task(None, "t1")


# What is wanted, and what has ended


def test_what_is_not_wanted_is_left_to_others_however_much_of_it_there_is(room: Room) -> None:
    for number in range(40):
        room.tasks.add(f"other-{number}", priority=5)
    room.tasks.add("mine")
    ran = Counter()
    room.run(lambda attempt: ran(attempt.id), wants=lambda task: task.id == "mine")
    assert ran.calls == ["mine"]
    assert room.tasks.stats().pending == 40
    assert {room.tasks.get(f"other-{number}").attempts for number in range(40)} == {0}


def test_whoever_has_looked_past_many_in_vain_rests_and_asks_of_each_once(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        room.tasks.add(f"t{number}")
    now, asked = [100.0], Counter()

    def wants(task: hardsave.Task) -> bool:
        now[0] += 0.1  # a look takes as long as there are tasks
        return bool(asked(task.id) == "mine")

    monkeypatch.setattr(loop, "monotonic", lambda: now[0])
    with room.tasks.runner("s") as runner:
        terms = Terms(1, "retry", hardsave.Retry(), wants=wants)
        crew = executor.begin_loop(runner, terms)
        assert crew.next() is None
        assert sorted(asked.calls) == sorted(f"t{number}" for number in range(40))
        room.tasks.add("mine")
        now[0] += loop.LONGEST_REST - 1  # it would be four times the look, but for that
        assert crew.next() is None
        assert len(asked.calls) == 40
        now[0] += 2
        attempt = crew.next()
        assert attempt is not None
        assert attempt.id == "mine"


def test_the_end_of_every_attempt_is_told_once_it_is_on_record(room: Room) -> None:
    room.tasks.add("good")
    room.tasks.add("bad", max_attempts=2)
    told: list[tuple[str, str, str]] = []

    def handler(attempt: hardsave.Attempt) -> None:
        if attempt.id == "bad":
            raise OSError("no")

    def ended(attempt: hardsave.Attempt) -> None:
        told.append((attempt.id, attempt.task.state, room.tasks.get(attempt.id).state))

    room.run(handler, ended=ended)
    assert sorted(told) == [
        ("bad", "failed", "failed"),
        ("bad", "pending", "pending"),
        ("good", "completed", "completed"),
    ]


def test_recovering_puts_back_what_the_dead_have_left_and_runs_nothing(room: Room) -> None:
    left_behind(room, "t1")
    assert [task.id for task in room.tasks.recover().interrupted] == ["t1"]
    assert (room.tasks.get("t1").state, room.tasks.get("t1").attempts) == ("pending", 1)
    assert room.tasks.recover().interrupted == []


def test_with_manual_recovery_nothing_is_put_back_before_it_is_asked_for(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    left_behind(room, "a", "spent")
    room.tasks.add("new")
    ledger = cast(Any, room.store)._tenant(None).ledger
    ledger._tasks["spent"] = ledger._tasks["spent"]._replace(attempts=3)
    ran: list[str] = []
    with room.tasks.runner("test", recovery="manual") as runner:
        assert not runner.report.put_back
        assert [each.id for each in runner.report.interrupted] == ["spent", "a"]
        assert "a (''), attempt 1 of 3" in str(runner.report)
        assert "waits for 'hardsave tasks recover'" in str(runner.report)
        assert "nothing to do by hand" not in str(runner.report)
        caplog.clear()
        runner.run(lambda attempt: ran.append(attempt.id), until_idle=True)
        executor.sweep(runner, executor.side_loop(runner, Terms(1, "retry", AT_ONCE, None)))
        assert caplog.text == ""  # it is not found anew every second
        assert ran == ["new"]
        assert room.tasks.get("spent").state == "failed"
        assert room.tasks.get("a").state == "in_progress"
    with room.tasks.runner("again", recovery="manual") as runner:
        assert [each.session for each in runner.report.dead] == ["dead"]
    assert room.tasks.recover().put_back
    assert (room.tasks.get("a").state, room.tasks.get("a").attempts) == ("pending", 1)
    with pytest.raises(Misuse, match="recovery is 'auto' or 'manual'"):
        room.tasks.runner("test", recovery=cast(Any, "never"))


def test_a_traceback_has_neither_local_values_nor_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "ghp_" + "a1B2" * 9
    with hardsave.open("memory://", redact=True) as vault:
        vault.tasks.add("t", max_attempts=1)

        def handle(attempt: hardsave.Attempt) -> None:
            local = "a value of a variable"
            raise TypeError(f"{secret} is refused, {len(local)}")

        with vault.tasks.runner("test") as runner:
            runner.run(handle, until_idle=True)
        told = [str(each.about) for each in vault.tasks.history("t")] + [caplog.text]
    assert "TypeError" in "".join(told)
    assert "in handle" in "".join(told)
    assert secret not in "".join(told)
    assert "a value of a variable" not in "".join(told)
