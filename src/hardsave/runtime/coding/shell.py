"""A command in a directory: bounded in time and output, and nothing of its group stays, also if
its parent is killed: else it would work on beside the one that goes on with the conversation.
What makes itself a session of its own, as servers do that are started to stay, does stay.

It runs with the rights of the account that runs the agent, and can reach what that account can: a
directory to begin in is no wall. A user who wants one puts the whole agent into a container.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping

from hardsave.runtime.coding.text import Refused
from hardsave.tuples import NamedTuple

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TERM", "SHELL")
_GRACE_SECONDS = 0.5
_LOOK_SECONDS = 0.02
_PIECE = 64 * 1024
_PIPE_BYTES = 64 * 1024
_GATED = 'read -r _ && exec /bin/sh -c "$1" </dev/null'
"""Waits until its watcher is there: if we are killed before, its input ends, and nothing begins."""


class Ended(NamedTuple):
    """How a command ended. No code: it was stopped because its time was over."""

    code: int | None
    head: bytes
    tail: bytes
    left_out: int
    """How many bytes of its output came between the two."""


def environment(given: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """What a command is told of our environment: no keys, unless the caller names them. Pure."""
    return {name: given[name] for name in PASSED_ON if name in given} | dict(more)


def run(
    command: str,
    *,
    directory: str,
    env: Mapping[str, str],
    timeout_seconds: float,
    keep: int,
    stop: threading.Event | None = None,
) -> Ended:
    """Run a command of the shell to its end, or to the end of its time, or until `stop`.

    `keep` bounds the output that is held: half of it is the beginning, half the end. `Refused` if
    it cannot be begun at all.
    """
    output = _Output(keep)
    with _started(command, directory, env) as process:
        try:
            with _watched(process.pid):
                _open_gate(process)
                until = time.monotonic() + timeout_seconds
                _read(process, output, until, stop or threading.Event())
            code = process.poll()
        finally:
            _end(process.pid)
    return Ended(code, bytes(output.head), bytes(output.tail), output.left_out)


def _started(command: str, directory: str, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """The command, which waits at its gate."""
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _GATED, "sh", command],
            cwd=directory,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # no directory, too long, with a NUL, no text
        why = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"the command cannot be run: {why}") from error


def _open_gate(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as gate:
        gate.write(b"\n")


def _read(
    process: "subprocess.Popen[bytes]", output: "_Output", until: float, stop: threading.Event
) -> None:
    """Until it has ended, and a moment longer: what it left behind may hold the pipe for ever."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    is_open, has_ended = True, False
    while time.monotonic() < until and not stop.is_set():
        ready = is_open and select.select([pipe], [], [], _LOOK_SECONDS)[0]
        if ready:
            piece = os.read(pipe, _PIECE)
            output.add(piece)
            is_open = bool(piece)
        elif not is_open:
            stop.wait(_LOOK_SECONDS)
        if process.poll() is not None and not is_open:
            return
        if process.poll() is not None and not has_ended:
            has_ended, until = True, min(until, time.monotonic() + _GRACE_SECONDS)
    if process.poll() is not None:
        _drain(pipe, output)


def _drain(pipe: int, output: "_Output") -> None:
    """What it has written before it ended, however long we were kept from reading. No more than a
    pipe holds: another process may write for ever."""
    left = _PIPE_BYTES
    while left > 0 and select.select([pipe], [], [], 0)[0] and (piece := os.read(pipe, _PIECE)):
        output.add(piece)
        left -= len(piece)


@contextlib.contextmanager
def _watched(session: int) -> Iterator[None]:
    """A second process ends the first one's group if we end before this does: it waits for the
    end of a pipe that is never written to, which only our death can close."""
    reads, writes = os.pipe()
    watch = subprocess.Popen(
        ["/bin/sh", "-c", f"read _; kill -s KILL -- -{session}"],
        stdin=reads,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what is sent to all of our group is not sent to it
    )
    os.close(reads)
    try:
        yield
    finally:
        watch.kill()
        watch.wait()
        os.close(writes)


def _end(session: int) -> None:
    """All that it started, if it stayed in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)


class _Output:
    """The beginning of a stream and its end."""

    def __init__(self, keep: int) -> None:
        self._half = max(keep // 2, 1)
        self.head = bytearray()
        self.tail = bytearray()
        self.left_out = 0

    def add(self, piece: bytes) -> None:
        room = self._half - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        over = max(len(self.tail) - self._half, 0)
        del self.tail[:over]
        self.left_out += over
