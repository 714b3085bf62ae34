"""Which process this is, and whether another one is still there: the thin reading of /proc.

macOS is asked by its own calls. Where neither is there, nothing is known of other processes: what
they hold ends with its time.
"""

import os
import sys
from functools import cache
from typing import NamedTuple

_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too
_PROC = "/proc"
_MACHINE = "/etc/machine-id"

UNKNOWN = 0
"""When a process began that is there, and of which nothing more can be learned."""


class Place(NamedTuple):
    """Where a process runs. `space` tells numberings apart: a container has its own."""

    host: str
    space: int
    pid: int
    pid_started: int


def here() -> Place:
    """Of this process."""
    pid = os.getpid()
    began = started(pid) if can_ask() else None
    return Place(host(), _space(), pid, began or UNKNOWN)


@cache
def host() -> str:
    """What tells this machine from others: its id, or at least its name."""
    try:
        with open(_MACHINE) as file:
            known = file.read().strip()
    except OSError:
        known = ""
    if not known and _SYSTEM == "darwin":
        from hardsave.stores import macos

        system = macos.system()
        known = (system and system.host()) or ""
    if known:
        return known
    import socket  # which takes a while, and most machines have an id

    return socket.gethostname()


def _space() -> int:
    try:
        return os.stat(f"{_PROC}/self/ns/pid").st_ino
    except OSError:
        return 0


def can_ask() -> bool:
    """Whether this system tells about other processes, by the numbers that they have here: a
    sandbox may show us those of the machine around it."""
    if _SYSTEM == "darwin":
        from hardsave.stores import macos

        return macos.system() is not None
    try:
        return os.readlink(f"{_PROC}/self") == str(os.getpid())
    except OSError:
        return False


def started(pid: int) -> int | None:
    """When a process of this number began, as the kernel counts; None if there is none.

    `UNKNOWN` if it is there and cannot be looked at: it may be another user's, and whoever has
    too many files open can read nothing. Nobody must be taken for dead for that. One that was
    killed and is waited for by nobody yet is gone: it runs nothing any more.
    """
    try:
        return _asked(pid) if _SYSTEM == "darwin" else _started(_stat(pid))
    except OSError:
        return UNKNOWN if is_there(pid) else None


def _asked(pid: int) -> int | None:
    from hardsave.stores import macos

    system = macos.system()
    if system is None:
        raise OSError(f"process {pid} cannot be looked at")
    found = system.process(pid)
    return found and found.started


def _stat(pid: int) -> str:
    with open(f"{_PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read()


def is_there(pid: int) -> bool:
    """Whether there is any process of this number, be it that it only waits to be buried."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _started(stat: str) -> int | None:
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])
