"""A runner that is stopped: by signals, by errors, while the store fails."""

import signal
import threading
from typing import Any

import pytest

from hardsave.tasks import executor
from hardsave.tasks.shift import Shift
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

    class Signalled(Shift):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(Interrupted())
            self.stop = made[0]

    monkeypatch.setattr(executor, "Shift", Signalled)
    with room.tasks.runner("s") as runner:
        runner.run(lambda attempt: None)
    assert made[0].was_interrupted


def test_an_error_while_the_crew_is_looked_after_leaves_nobody_at_work(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("not ours")

    monkeypatch.setattr(executor, "SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(executor, "sweep", broken)
    ran = Counter()
    with room.tasks.runner("s") as runner:
        with pytest.raises(RuntimeError, match="not ours"):
            runner.run(lambda attempt: ran(attempt.id))
        assert not [each for each in threading.enumerate() if "hardsave-task" in each.name]
    room.tasks.add("t1")
    assert ran.calls == []
