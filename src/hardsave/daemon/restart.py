"""The agent of a `hardsave run` ends and starts again in another conversation, in its terminal.

At a terminal, the process of a `hardsave run` for an agent that is known stays as its parent. A
rewind that is typed inside of the agent is a child of it, so it cannot end the agent and start it
again itself: it hands that to this process, over a socket whose path the agent was told.

    rewind     one line of JSON: the agent, the session to go on with, the prompt, the directory
    this       `taken`, or `no WHY`; once the other side has closed, it ends the agent

Both are in one process group: what is typed, Ctrl-C and Ctrl-Z among it, reaches the agent as
without us, and a shell stops and continues both together. The agent's exit code, or the signal that
ended it, becomes our own.
"""

import json
import os
import select
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from hardsave.agents.spec import AgentSpec
from hardsave.daemon import protocol
from hardsave.daemon.election import SOCKET_SUFFIX, listen
from hardsave.daemon.processes import above
from hardsave.stores.host import processes
from hardsave.tuples import NamedTuple

VARIABLE = "HARDSAVE_RESTART"
_TAKEN = b"taken\n"
_LARGEST = 1 << 20  # bytes of a request
_ANSWER_SECONDS = 5.0
_CLOSE_SECONDS = 3.0  # until the rewind has printed its last line
_END_SECONDS = 8.0  # that an agent has to end by itself
_LOOK_SECONDS = 0.05
_PASSED_ON = ("SIGHUP", "SIGTERM", "SIGUSR1", "SIGUSR2")
_TO_BOTH = ("SIGINT", "SIGQUIT")  # the terminal sends them to the agent, too
# What a program that was ended may have left on: mouse, focus, paste, keys, cursor, other screen
_RESET = (
    b"\x1b[?2026l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[<u"
    b"\x1b[>4m\x1b[?1049l\x1b[?7h\x1b[?25h\x1b[0m\r"
)

Start = Callable[[Sequence[str]], NoReturn]
"""Becomes a program, in a child."""


class Next(NamedTuple):
    """What an agent shall go on with."""

    agent: str  # by the name of its spec
    session: str | None
    prompt: str
    directory: str | None
    said: str = ""  # for its user, between the two

    @classmethod
    def of(cls, told: Any) -> "Next":
        """`ValueError` if it makes no sense."""
        if not isinstance(told, dict) or told.keys() != set(cls._fields):
            raise ValueError("not a request to go on")
        found = cls(**told)
        texts = found.agent, found.prompt, found.said
        if not all(isinstance(each, str) for each in texts):
            raise ValueError("not a request to go on")
        return found


def socket_path(daemon_socket: str) -> str:
    """Beside that of the run's daemon; a stale one is removed with those."""
    return f"{daemon_socket.removesuffix(SOCKET_SUFFIX)}-agent{SOCKET_SUFFIX}"


def can_stay() -> bool:
    """Whether there is a terminal on which an agent could be started again."""
    return all(os.isatty(number) for number in (0, 1, 2))


# Asking


def ask(path: str, wanted: Next) -> "socket.socket | str":
    """Hand over what to go on with. The agent is ended once the socket that comes back is closed;
    a text says why it is not."""
    talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        talk.settimeout(_ANSWER_SECONDS)
        with _short(path) as short:
            talk.connect(short)
        talk.sendall(json.dumps(wanted._asdict()).encode() + b"\n")
        answer = talk.recv(1024)
    except OSError as error:
        talk.close()
        return str(error)
    if answer == _TAKEN:
        return talk
    talk.close()
    return answer.decode(errors="replace").strip() or "no answer"


@contextmanager
def _short(path: str) -> Iterator[bytes]:
    short, descriptor = protocol.short_path(os.fsencode(path))
    try:
        yield short
    finally:
        if descriptor is not None:
            os.close(descriptor)


# Staying


def stay(command: Sequence[str], agent: AgentSpec, path: str, start: Start) -> NoReturn:
    """Let children be the agent, one after the other, and end as the last of them does."""
    saved = termios.tcgetattr(0)
    listening = socket.socket(fileno=listen(path))
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for name in _TO_BOTH:
        signal.signal(getattr(signal, name), lambda *_: None)
    words = list(command)
    while True:
        child = _started(words, start)
        _pass_signals_on(child)
        wanted = _watched(child, listening, woken, agent)
        if not isinstance(wanted, Next):
            os.unlink(path)
            _end_like(wanted)
        _end(child)
        _give_back(saved)
        os.write(2, f"{wanted.said}\r\n".encode() if wanted.said else b"")
        if wanted.directory is not None:
            os.chdir(wanted.directory)
        words = agent.started_as(command, wanted.session, wanted.prompt)


def _pass_signals_on(child: int) -> None:
    for name in _PASSED_ON:
        signal.signal(getattr(signal, name), lambda number, _: _kill(child, number))


def _started(words: Sequence[str], start: Start) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.set_wakeup_fd(-1)
        start(words)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
    finally:
        os._exit(127)


def _watched(child: int, listening: socket.socket, woken: int, agent: AgentSpec) -> Next | int:
    """What to go on with, once that is asked for; or how the child has ended."""
    while True:
        ready, _, _ = select.select([listening.fileno(), woken], [], [])
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                os.kill(os.getpid(), signal.SIGSTOP)  # the shell brings both back together
            elif pid:
                return status
        if listening.fileno() in ready and (found := _heard(listening, agent)) is not None:
            return found


def _heard(listening: socket.socket, agent: AgentSpec) -> Next | None:
    """What a client wants; None if that cannot be."""
    with suppress(OSError):
        talk, _ = listening.accept()
        with talk:
            talk.settimeout(_ANSWER_SECONDS)
            if not protocol.is_same_user(talk):
                return None
            try:
                wanted = Next.of(json.loads(_line(talk)))
            except ValueError as error:
                talk.sendall(f"no {error}\n".encode())
                return None
            if wanted.agent != agent.name:
                talk.sendall(f"no this is the run of {agent.title}\n".encode())
                return None
            talk.sendall(_TAKEN)
            talk.settimeout(_CLOSE_SECONDS)
            with suppress(TimeoutError):
                talk.recv(1)
            return wanted
    return None


def _line(talk: socket.socket) -> bytes:
    read = b""
    while b"\n" not in read and len(read) < _LARGEST and (more := talk.recv(65536)):
        read += more
    return read.partition(b"\n")[0]


def _end(child: int) -> None:
    """End an agent: politely, and then not. What its program has started to do the work ends with
    it; what its tools have left running is told of by the rewind."""
    family = [child, *_family(child)]
    _kill(child, signal.SIGTERM)
    _kill(child, signal.SIGCONT)
    until = time.monotonic() + _END_SECONDS
    while _is_there(family) and time.monotonic() < until:
        with suppress(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
        time.sleep(_LOOK_SECONDS)
    for pid in filter(processes.started, family):
        _kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def _family(child: int) -> list[int]:
    """The processes below an agent that share its process group: its tools have their own."""
    own = os.getpgrp()
    return [pid for pid in processes.pids() if _group(pid) == own and child in above(pid)]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _is_there(family: Sequence[int]) -> bool:
    return any(processes.started(pid) is not None for pid in family)


def _give_back(saved: list[Any]) -> None:
    """The terminal as it was before the agent, which may have been killed, without what was typed
    ahead or answered to it."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError, termios.error):
        os.write(1, _RESET)
        termios.tcsetattr(0, termios.TCSAFLUSH, saved)
    signal.signal(signal.SIGTTOU, before)


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _end_like(status: int) -> NoReturn:
    """With the exit code of a child, or by the signal that has ended it."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError, ValueError):  # a signal that cannot be set to its default
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        code = 128 - code
    os._exit(code)
