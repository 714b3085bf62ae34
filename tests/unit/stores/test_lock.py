import contextlib
import fcntl
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hardsave.errors import Unavailable
from hardsave.stores.local.daemon_lock import DaemonLock
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.open.presence import Presence
from tests.unit.stores.processes import Child, eventually


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


@pytest.fixture
def holder(path: str) -> Iterator[Child]:
    """Another process that holds the lock until it is told to go on."""

    def hold(child: Child) -> None:
        lock = FileLock(path)
        lock.acquire(1)
        child.tell()
        child.wait()

    child = Child(hold)
    child.hear()
    yield child
    try:
        os.kill(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    child.end()


def is_free(path: str) -> bool:
    lock = FileLock(path)
    try:
        lock.acquire(0.001)
    except Unavailable:
        return False
    finally:
        lock.close()
    return True


def test_a_lock_is_taken_and_given_back(path: str) -> None:
    lock = FileLock(path)
    lock.acquire(1)
    assert not is_free(path)
    lock.release()
    assert is_free(path)
    lock.acquire(1)
    lock.close()
    assert is_free(path)


def test_releasing_or_closing_what_is_not_held_is_fine(path: str) -> None:
    lock = FileLock(path)
    lock.release()
    lock.close()
    lock.acquire(1)
    lock.release()
    lock.release()
    lock.close()
    lock.close()


def test_a_lock_held_by_another_process_is_waited_for(path: str, holder: Child) -> None:
    let_go = threading.Event()

    def go() -> None:
        let_go.set()
        holder.go()

    threading.Timer(0.1, go).start()
    lock = FileLock(path)
    lock.acquire(60)
    assert let_go.is_set()
    assert not is_free(path)
    lock.release()
    assert is_free(path)
    lock.close()
    holder.end()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_lock_that_is_never_given_back_is_given_up(
    path: str, holder: Child, stopped: bool
) -> None:
    if stopped:
        os.kill(holder.pid, signal.SIGSTOP)
    lock = FileLock(path)
    before = time.monotonic()
    with pytest.raises(Unavailable, match="another process has held"):
        lock.acquire(0.2)
    assert 0.2 <= time.monotonic() - before < 60
    assert path in str(_failure(lock))
    if stopped:
        os.kill(holder.pid, signal.SIGCONT)
    holder.go()
    assert holder.end() == 0
    lock.acquire(60)  # and can be had once the holder is gone
    lock.release()
    lock.close()


def _failure(lock: FileLock) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        lock.acquire(0.01)
    return caught.value


def test_a_holder_that_dies_gives_the_lock_back(path: str, holder: Child) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    lock = FileLock(path)
    lock.acquire(60)
    lock.close()
    assert holder.end() == -signal.SIGKILL


def test_a_caller_that_stopped_waiting_does_not_keep_the_lock(path: str, holder: Child) -> None:
    impatient = [FileLock(path) for _ in range(5)]
    for lock in impatient:
        with pytest.raises(Unavailable):
            lock.acquire(0.01)
    holder.go()
    assert holder.end() == 0
    assert eventually(lambda: not waiting())  # each of them got the lock, and gave it back
    assert is_free(path)


def waiting() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hardsave-lock"]


def test_an_interrupted_wait_does_not_keep_the_lock(path: str, holder: Child) -> None:
    lock = FileLock(path)
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.1):
        lock.acquire(60)
    holder.go()
    assert holder.end() == 0
    assert eventually(lambda: not waiting())
    assert is_free(path)
    lock.acquire(1)
    lock.close()


def test_an_interrupt_that_comes_with_the_lock_does_not_keep_it(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = FileLock(path)

    def interrupted(file: int, how: int) -> None:
        monkeypatch.undo()
        fcntl.flock(file, how)
        raise KeyboardInterrupt  # as when a signal is dealt with on the way back from the kernel

    monkeypatch.setattr("hardsave.stores.local.file_lock.fcntl.flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(1)
    assert is_free(path)
    lock.acquire(1)
    lock.close()


def test_an_interrupt_that_comes_as_a_lock_is_given_back_does_not_keep_it(path: str) -> None:
    lock = FileLock(path)
    lock.acquire(1)
    with contextlib.suppress(KeyboardInterrupt):
        interrupted_at_first_call(lock)
    assert is_free(path)
    lock.close()


def interrupted_at_first_call(lock: FileLock) -> None:
    """Give a lock back. At the start of a function Python calls the handlers of signals."""

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        lock.release()
    finally:
        sys.settrace(before)


def test_what_was_closed_cannot_be_given_back(path: str) -> None:
    lock = FileLock(path)
    lock.acquire(1)
    lock.close()
    other = FileLock(path)
    other.acquire(1)  # with the number that the file of the first one had
    lock.release()
    assert not is_free(path)
    other.close()


def test_where_no_thread_can_be_had_a_lock_is_waited_for_all_the_same(
    path: str, holder: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("hardsave.stores.local.file_lock._Waiter.start", refused)
    lock = FileLock(path)
    with pytest.raises(Unavailable, match="another process has held"):
        lock.acquire(0.05)
    holder.go()
    lock.acquire(60)
    assert not is_free(path)
    lock.release()
    assert is_free(path)
    lock.close()
    assert holder.end() == 0


class interrupted_after:
    """A block in which the user presses Ctrl-C, and again if nothing happens.

    Python drops an interrupt that strikes inside a finalizer. So few of them run here, and
    one that was dropped is followed by another. So is one that comes, on a slow machine, before
    the block has begun or after it has ended: what was set up here would not be undone.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        gc.disable()
        self._before = signal.signal(signal.SIGALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, 0.25)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        gc.enable()

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        outside = (type(self).__enter__.__code__, type(self).__exit__.__code__)
        if frame is None or frame.f_code not in outside:
            raise KeyboardInterrupt


def test_a_waiting_lock_leaves_no_file_open(path: str, holder: Child) -> None:
    with pytest.raises(Unavailable):
        FileLock(path).acquire(0.01)
    holder.go()
    assert holder.end() == 0
    assert eventually(lambda: not waiting())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        lock = FileLock(path)
        lock.acquire(1)
        lock.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_one_process_holds_the_lock_at_a_time(path: str, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count(_: Child) -> None:
        lock = FileLock(path)
        for _turn in range(50):
            lock.acquire(60)
            counter.write_text(str(int(counter.read_text()) + 1))
            lock.release()

    children = [Child(count) for _ in range(4)]
    assert [child.end() for child in children] == [0] * 4
    assert counter.read_text() == "200"


@pytest.mark.parametrize("kind", [FileLock, CommitMark, Presence, DaemonLock])
def test_ctrl_c_while_it_is_closed_leaves_no_number_to_be_closed_twice(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then it may be that of another file."""
    held: Any = object.__new__(kind)
    held._file = number = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    close = os.close

    def interrupted(file: int) -> None:
        close(file)
        raise KeyboardInterrupt

    with monkeypatch.context() as struck:
        struck.setattr(os, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            held.close()
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    assert other == number
    held.close()
    close(other)
