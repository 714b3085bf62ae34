"""Runs another program as a child process, for `hardsave tasks start`: it gets our signals."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from hardsave.cli.render.output import stdout_is_stderr
from hardsave.errors import NotFound
from hardsave.tasks.child_lock import ChildLock


def check(name: str) -> None:
    """`NotFound` if there is no such program: a slip of the keyboard is no attempt."""
    if shutil.which(name) is None:
        raise NotFound(f"{name!r} cannot be run: there is no such command here")


def run(program: Sequence[str], more: Mapping[str, str], lock: ChildLock) -> int:
    """Its exit code; that of a shell, 128 and the signal's number, if one has ended it.

    What it prints goes to stderr: stdout is for our own answer. It may outlive this process;
    its lock then shows that it is still there.
    """
    with stdout_is_stderr(), _signals() as pass_on, lock:
        try:
            child = subprocess.Popen(program, env={**os.environ, **more}, pass_fds=lock.descriptors)
        except (FileNotFoundError, PermissionError) as error:
            raise NotFound(f"{program[0]!r} cannot be run: {error.strerror}") from error
        pass_on(child)
        lock.started(child.pid)
        code = child.wait()
    return code if code >= 0 else 128 - code


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
