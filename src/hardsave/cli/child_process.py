"""Runs other programs as child processes: `hardsave tasks start` runs one, which gets our signals;
`hardsave tasks run` runs one for each attempt, and ends them when it stops."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hardsave.cli.render.output import stdout_is_stderr
from hardsave.errors import Misuse, NotFound, Unavailable
from hardsave.tasks.child_lock import ChildLock

_LOOK_SECONDS = 0.05


def check(name: str) -> None:
    """`NotFound` or `Misuse` if there is no such program: a slip of the keyboard is no attempt."""
    if shutil.which(name) is not None:
        return
    if os.path.isdir(name):
        raise Misuse(f"{name!r} cannot be run: it is not executable, it is a directory")
    if os.sep in name and os.path.exists(name):
        raise Misuse(f"{name!r} cannot be run: it is not executable; 'chmod +x' makes it so")
    raise NotFound(f"{name!r} cannot be run: there is no such command here")


def run(program: Sequence[str], more: Mapping[str, str], lock: ChildLock) -> int:
    """Its exit code; that of a shell, 128 and the signal's number, if one has ended it.

    What it prints goes to stderr: stdout is for our own answer. It may outlive this process;
    its lock then shows that it is still there.
    """
    with stdout_is_stderr(), _signals() as pass_on, lock:
        child = _started(program, more, lock)
        pass_on(child)
        lock.started(child.pid)
        code = child.wait()
    return _as_shells_say(code)


def run_unless(
    program: Sequence[str],
    more: Mapping[str, str],
    lock: ChildLock,
    *,
    is_over: Callable[[], bool],
    grace_seconds: float,
) -> int | None:
    """The same in any thread; None if it was ended, with all that it had started, because
    `is_over` came true.

    It is in a process group of its own: Ctrl-C at the terminal reaches this process alone, which
    hands back the attempt instead of taking the end of its program for a failure.
    """
    with lock:
        child = _started(program, more, lock, stdin=subprocess.DEVNULL, process_group=0)
        lock.started(child.pid)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return _as_shells_say(child.wait(_LOOK_SECONDS))
            if is_over():
                _end(child, grace_seconds)
                return None


def _started(
    program: Sequence[str], more: Mapping[str, str], lock: ChildLock, **how: Any
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            program, env={**os.environ, **more}, pass_fds=lock.descriptors, **how
        )
    except (FileNotFoundError, PermissionError) as error:
        raise NotFound(f"{program[0]!r} cannot be run: {error.strerror}") from error
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
            begun = "a script begins with a line such as '#!/bin/sh'"
            raise Misuse(f"{program[0]!r} cannot be run: {error.strerror}; {begun}") from error
        if isinstance(error, OSError) and error.errno != errno.E2BIG:
            raise Unavailable(f"{program[0]!r} cannot be run: {error.strerror}") from error
        raise Misuse(
            f"{program[0]!r} cannot be given the text of its task: {error}; "
            "a command can read it with 'hardsave tasks show ID --json'"
        ) from error


def _as_shells_say(code: int) -> int:
    return code if code >= 0 else 128 - code


def _end(child: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    """End a process group: it has so long to end by itself."""
    deadline = time.monotonic() + grace_seconds
    _tell_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(grace_seconds)
    while _tell_group(child.pid, 0) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)  # what the program has started may take longer than itself
    _tell_group(child.pid, signal.SIGKILL)
    child.wait()


def _tell_group(group: int, number: int) -> bool:
    """Whether there was one to tell. No other process can get its number while a member lives."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # one that became another user's: it cannot be ended from here
        return number == 0
    return True


@contextmanager
def _signals() -> "Iterator[Callable[[subprocess.Popen[bytes]], None]]":
    """A signal that is to end us goes to the program first, also if it has not started yet: if we
    ended without it, another process would take up its task while it works on. The program itself
    starts with the usual handlers."""
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def tell(number: int, frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)
        if not children:
            early.append(number)

    def pass_on(child: "subprocess.Popen[bytes]") -> None:
        children.append(child)
        for number in early:
            child.send_signal(number)

    before = {each: signal.signal(each, tell) for each in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)  # the terminal tells both
    try:
        yield pass_on
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
