"""Which process this is, and whether another one is still there: the thin reading of /proc.

macOS is asked by its own calls. Where neither is there, nothing is known of other processes: what
they hold ends with its time.
"""

import contextlib
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

from hardsave.errors import Unavailable
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.stores.host.macos import System

_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too
_PROC = "/proc"
_MACHINE = "/etc/machine-id"

UNKNOWN = 0
"""When a process began that is there, and of which nothing more can be learned."""


class Process(NamedTuple):
    """One process, as it was when it was looked at."""

    pid: int
    began: int  # as the kernel counts: a number that is used again is known by it
    parent: int
    user: int
    words: tuple[str, ...]  # its command
    session: int = 0  # of the kernel's sessions, which children share unless they leave it


@cache
def host() -> str:
    """What tells this machine from others: its id, or at least its name."""
    machine = (read_if_there(_MACHINE) or b"").strip().decode(errors="replace")
    if not machine and _SYSTEM == "darwin":
        machine = _macos().host() or "" if can_ask() else ""
    if machine:
        return machine
    import socket  # which takes a while, and most machines have an id

    return socket.gethostname()


def read_if_there(path: str) -> bytes | None:
    """What the system says about itself there; None if it says nothing, which it never will.

    What fails for other reasons may be there in a moment, as when too many files are open.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error}; see to it, then repeat") from error


def space(pid: int | str = "self") -> int:
    """Which of the host's numberings of processes one is in; 0: not known."""
    try:
        return os.stat(f"{_PROC}/{pid}/ns/pid").st_ino
    except OSError:
        return 0


def can_ask() -> bool:
    """Whether this system tells about other processes, by the numbers that they have here: a
    sandbox may show us those of the machine around it."""
    try:
        if _SYSTEM == "darwin":
            return _macos().is_truthful()
        return os.readlink(f"{_PROC}/self") == str(os.getpid())
    except OSError:
        return False


def started(pid: int) -> int | None:
    """When a process of this number began, as the kernel counts; None if there is none.

    `UNKNOWN` if it is there and cannot be looked at: it may be another user's, and a caller that
    has too many files open can read nothing. A process must not be taken for ended for that. One
    that was killed and that its parent has not waited for yet is gone: it runs nothing any more.
    """
    try:
        return _asked(pid) if _SYSTEM == "darwin" else _started(_facts(pid))
    except OSError:
        return UNKNOWN if is_there(pid) else None


def look(pid: int) -> Process | None:
    """What can be seen of a process; None if it is gone, or this process may not look at it."""
    try:
        return _seen_by_macos(pid) if _SYSTEM == "darwin" else _seen_in_proc(pid)
    except OSError:
        return None


def pids() -> list[int]:
    """Of all processes that can be seen, in order."""
    if _SYSTEM == "darwin":
        return _macos().pids() if can_ask() else []
    try:
        return sorted(int(name) for name in os.listdir(_PROC) if name.isdigit())
    except FileNotFoundError:
        return []


def zombies(name: str) -> list[int]:
    """Processes of this name that have ended, and that their parent has not waited for: it is
    process 1 of a container, which may never wait for any. Those of containers inside of this one,
    or of the machine's, can be seen, too, and say nothing about ours."""
    found, ours = [], space()
    for pid in pids() if _SYSTEM == "linux" else ():
        with contextlib.suppress(OSError):  # it is gone by now
            own, _, facts = _read(pid, "stat").rpartition(b")")
            is_dead = own.endswith(b"(" + name.encode()) and facts.split()[0] == b"Z"
            if is_dead and space(pid) == ours:
                found.append(pid)
    return found


def is_zombie(pid: int, began: int) -> bool:
    """Whether the process of this number that began then has ended, and its parent has not waited
    for it. Only on Linux is any found."""
    try:
        facts = _facts(pid)
    except OSError:  # it is gone
        return False
    return facts[0] == b"Z" and int(facts[19]) == began


def environment(pid: int) -> list[bytes]:
    """What a process was given, each as NAME=VALUE; nothing if it is gone, or another user's."""
    try:
        if _SYSTEM != "darwin":
            return _read(pid, "environ").split(b"\0")
        given = _macos().arguments(pid)
    except OSError:
        return []
    return [] if given is None else given.environment


def directory(pid: int) -> str | None:
    """A process's working directory; None if it is gone, or that cannot be told, as on macOS."""
    try:
        return os.readlink(f"{_PROC}/{pid}/cwd")
    except OSError:
        return None


def _macos() -> "System":
    from hardsave.stores.host import macos

    system = macos.system()
    if system is None:
        raise OSError("processes cannot be looked at here")
    return system


def _asked(pid: int) -> int | None:
    found = _macos().process(pid)
    return found and found.started


def _seen_by_macos(pid: int) -> Process | None:
    found, given = _macos().process(pid), _macos().arguments(pid)
    if found is None or given is None:
        return None
    words = tuple(map(os.fsdecode, given.words))
    return Process(pid, found.started, found.parent, found.user, words, os.getsid(pid))


def _seen_in_proc(pid: int) -> Process | None:
    facts = _facts(pid)
    words = os.fsdecode(_read(pid, "cmdline")).split("\0")[:-1]
    began, user = _started(facts), os.stat(f"{_PROC}/{pid}").st_uid
    if began is None:
        return None
    return Process(pid, began, int(facts[1]), user, tuple(words), int(facts[3]))


def _facts(pid: int) -> list[bytes]:
    """From the state on; the name before it may hold anything."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    with open(f"{_PROC}/{pid}/{name}", "rb") as file:
        return file.read()


def is_there(pid: int) -> bool:
    """Whether there is any process of this number, a zombie included."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _started(facts: list[bytes]) -> int | None:
    return None if facts[0] in (b"Z", b"X") else int(facts[19])
