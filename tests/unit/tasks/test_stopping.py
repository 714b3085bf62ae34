"""A runner that is stopped: by signals, by errors, while the store fails."""

import logging
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, Unavailable
from hardsave.tasks import executor
from hardsave.tasks import worker_loop as loop
from hardsave.tasks.executor import Handler, Runner
from hardsave.tasks.worker_loop import Terms, WorkerLoop
from tests.unit.stores.processes import PATIENCE_SECONDS, Child
from tests.unit.tasks.room import Counter, Room


@pytest.fixture
def room() -> Room:
    return Room()


class Interrupted(threading.Event):
    """A signal comes while the main thread is inside `wait`, with its lock held."""

    def __init__(self) -> None:
        super().__init__()
        self.is_inside = False
        self.was_interrupted = False

    def wait(self, timeout: float | None = None) -> bool:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and not self.was_interrupted:
            self.is_inside = self.was_interrupted = True
            signal.raise_signal(signal.SIGTERM)
            self.is_inside = False
        return super().wait(timeout)

    def set(self) -> None:
        if threading.current_thread() is threading.main_thread():
            assert not self.is_inside, "it would wait for its own lock, for ever"
        super().set()


def test_a_signal_that_comes_while_the_runner_waits_does_not_hang_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Interrupted] = []

    class Signalled(WorkerLoop):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(Interrupted())
            self.stop = made[0]

    monkeypatch.setattr(executor, "WorkerLoop", Signalled)
    with room.tasks.runner("s") as runner:
        runner.run(lambda attempt: None)
    assert made[0].was_interrupted


def test_an_error_while_the_crew_is_looked_after_leaves_nobody_at_work(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("not ours")

    monkeypatch.setattr(executor, "until_sweep", lambda runner: 0.0)
    monkeypatch.setattr(executor, "sweep", broken)
    ran = Counter()
    with room.tasks.runner("s") as runner:
        with pytest.raises(RuntimeError, match="not ours"):
            runner.run(lambda attempt: ran(attempt.id))
        assert not [each for each in threading.enumerate() if "hardsave-task" in each.name]
    room.tasks.add("t1")
    assert ran.calls == []


def test_what_was_done_when_the_stop_came_is_recorded_though_the_store_fails_for_a_while(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "AGAIN_SECONDS", 0.01)
    room.tasks.add("t1")
    failing, commit = ["completed", "completed"], room.store.commit

    def flaky(batch: Any) -> int:
        if batch.event.kind in failing:
            failing.pop()
            raise Unavailable("the disk is full")
        return int(commit(batch))

    monkeypatch.setattr(room.store, "commit", flaky)
    with room.tasks.runner("s") as runner:

        def handler(attempt: hardsave.Attempt) -> str:
            runner.stop()
            return "paid"

        runner.run(handler)
    task = room.tasks.get("t1")
    assert (task.state, task.result, failing) == ("completed", "paid", [])


def test_a_task_that_cannot_be_handed_back_keeps_no_other_from_it(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("t1", "t2"):
        room.tasks.add(name)
    commit, go_on = room.store.commit, threading.Event()

    def broken(batch: Any) -> int:
        if batch.event.kind == "handed_back" and batch.event.task == failing[0]:
            raise Unavailable("the disk is full")
        return int(commit(batch))

    both, failing = threading.Barrier(2, timeout=60), [""]
    with room.tasks.runner("s") as runner:

        def hangs(attempt: hardsave.Attempt) -> None:
            failing[0] = failing[0] or attempt.id
            both.wait()
            runner.stop()
            go_on.wait(60)

        monkeypatch.setattr(room.store, "commit", broken)
        runner.run(hangs, concurrency=2, grace_seconds=0.05)
        states = {name: room.tasks.get(name).state for name in ("t1", "t2")}
        other = {"t1": "t2", "t2": "t1"}[failing[0]]
        assert states == {failing[0]: "in_progress", other: "pending"}
    assert room.store.owners(None) == []
    assert room.tasks.recover().interrupted[0].id == failing[0]
    go_on.set()
    assert "could not be handed back" in caplog.text


def test_nothing_more_is_claimed_after_a_stop(room: Room) -> None:
    for number in range(4):
        room.tasks.add(f"t{number}")
    with room.tasks.runner("s") as runner:
        crew = executor.begin_loop(runner, Terms(1, "retry", hardsave.Retry()))
        assert crew.next() is not None  # it has looked further ahead than it takes
        crew.stop.set()
        assert crew.next() is None
    assert room.tasks.stats().pending == 4


def test_what_fails_every_second_is_logged_once_until_it_is_something_else(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "AGAIN_SECONDS", 0.0)
    why = ["the disk is full"]

    def broken(*args: Any) -> Any:
        if why:
            raise Unavailable(why[0])
        return []

    for question in ("due", "retries"):
        monkeypatch.setattr(room.store, question, broken)
    with room.tasks.runner("s") as runner:
        crew = executor.begin_loop(runner, Terms(1, "retry", hardsave.Retry()))

        def look(times: int) -> list[str]:
            caplog.clear()
            for _ in range(times):
                assert crew.next() is None
                executor.sweep(runner, crew)
            ours = threading.get_ident()  # a thread that was left behind may say its last word
            return [each.getMessage() for each in caplog.records if each.thread == ours]

        both = ["no task can be claimed for now", "looking for dead sessions failed"]
        assert look(5) == [f"{worry}: the disk is full; it is tried again" for worry in both]
        why[0] = "the disk fails"
        assert len(look(5)) == 2
        why.clear()
        assert look(1) == []
        why.append("the disk fails")
        assert len(look(5)) == 2


def test_what_is_claimed_while_the_stop_comes_is_handed_back_before_it_begins(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.tasks.add("t1")
    ran, commit = Counter(), room.store.commit
    with room.tasks.runner("s") as runner:

        def stopped(batch: Any) -> int:
            if batch.event.kind == "claimed":
                runner.stop()
            return int(commit(batch))

        monkeypatch.setattr(room.store, "commit", stopped)
        runner.run(lambda attempt: ran(attempt.id))
    task = room.tasks.get("t1")
    assert (task.state, task.attempts, ran.calls) == ("pending", 0, [])


def test_a_task_that_ends_while_it_is_handed_back_is_no_fault_of_the_runner(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end has looked whose it is, and waits while somebody hands it back."""
    room.tasks.add("t")

    def overtaken(attempt: hardsave.Attempt, result: object) -> None:
        attempt.hand_back()
        raise Conflict("task 't' is pending and cannot be completed")

    monkeypatch.setattr(hardsave.Attempt, "complete", overtaken)
    with room.tasks.runner("s") as runner:
        crew = executor.begin_loop(runner, Terms(1, "retry", hardsave.Retry()))
        attempt = crew.next()
        assert attempt is not None
        crew.end(attempt, loop.Outcome("done"))
    assert room.tasks.get("t").state == "pending"


def running(runner: Runner, handler: Handler, **how: Any) -> threading.Thread:
    thread = threading.Thread(target=runner.run, args=(handler,), kwargs=how, daemon=True)
    thread.start()
    return thread


def test_a_stop_is_for_everything_that_a_session_runs(room: Room) -> None:
    begun = threading.Semaphore(0)
    for name in ("even", "odd"):
        room.tasks.add(name)
    with room.tasks.runner("s") as runner:
        crews = [
            running(
                runner, lambda attempt: begun.release(), wants=lambda task, n=name: task.id == n
            )
            for name in ("even", "odd")
        ]
        assert all(begun.acquire(timeout=60) for _ in crews)
        runner.stop()
        for crew in crews:
            crew.join(60)
    assert not any(crew.is_alive() for crew in crews)


def test_whoever_leaves_the_block_of_a_session_ends_what_it_runs_elsewhere(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is just being claimed: it would take a lease that nobody gives back."""
    commit, claiming = room.store.commit, threading.Event()

    def slow(batch: Any) -> int:
        if batch.event.kind == "claimed":
            claiming.set()
            time.sleep(0.1)
        return commit(batch)

    for number in range(9):
        room.tasks.add(f"t{number}")
    monkeypatch.setattr(room.store, "commit", slow)
    with room.tasks.runner("s") as runner:
        crew = running(runner, lambda attempt: None, concurrency=2)
        assert claiming.wait(60)
    assert room.store.owners(None) == []
    crew.join(60)
    assert not crew.is_alive()
    stats = room.tasks.stats()
    assert (stats.in_progress, stats.failed) == (0, 0)
    assert stats.pending > 0
    assert room.store.owners(None) == []


def test_a_child_that_a_handler_has_forked_ends_with_a_word_and_changes_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever mutex was held in its parent, which it has as it was."""
    children: list[int] = []
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        vault.tasks.add("t1")
        with vault.tasks.runner("s") as runner:

            def handler(attempt: hardsave.Attempt) -> str:
                held = [attempt._mutex, runner._loops[0]._mutex]
                for mutex in held:
                    mutex.acquire()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    child = os.fork()
                if not child:
                    logging.basicConfig(force=True)
                    return "the child's"
                for mutex in held:
                    mutex.release()
                children.append(child)
                return "the parent's"

            runner.run(handler, until_idle=True)
        assert vault.tasks.get("t1").result == "the parent's"
    deadline = time.monotonic() + 60
    while os.waitpid(children[0], os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(children[0], signal.SIGKILL)
            raise TimeoutError("the child hangs")
        time.sleep(0.01)
    assert "a handler has returned in a child; end that with os._exit()" in capfd.readouterr().err


def test_a_child_that_leaves_the_block_of_a_runner_ends_nothing_of_its_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was held or under way in the parent when it forked; it waits for none of it."""
    monkeypatch.setattr(loop, "LONGEST_CLAIM", 10 * PATIENCE_SECONDS)
    begun, go_on = threading.Event(), threading.Event()

    def handler(attempt: hardsave.Attempt) -> str:
        begun.set()
        assert go_on.wait(60)
        return "the parent's"

    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        vault.tasks.add("t1")
        with vault.tasks.runner("s") as runner:
            crew = running(runner, handler)
            assert begun.wait(60)
            ours: Any = runner._loops[0]
            lease: Any = runner._lease
            with ours._mutex, ours.stop._cond, lease._stop._cond:
                ours._claiming += 1
                child = Child(lambda _: runner.close())
                ours._claiming -= 1
            assert child.end() == 0
            go_on.set()
            while vault.tasks.get("t1").state != "completed" and crew.is_alive():
                time.sleep(0.01)
            assert vault.tasks.get("t1").result == "the parent's"
            told = [each.kind for each in vault.tasks.happened(0)]
            assert ("session_started" in told, "session_stopped" in told) == (True, False)
