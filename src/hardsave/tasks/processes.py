"""Which process this is, and whether another one is still there: the thin reading of /proc.

Elsewhere than on Linux nothing is known of other processes, and their leases alone decide.
"""

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_MACHINE = Path("/etc/machine-id")


class Place(NamedTuple):
    """Where a process runs. `space` tells numberings apart: a container has its own."""

    host: str
    space: int
    pid: int
    pid_started: int


def here() -> Place:
    """Of this process."""
    pid = os.getpid()
    return Place(host(), _space(), pid, started(pid) or 0)


@cache
def host() -> str:
    """What tells this machine from others: its id, or at least its name."""
    try:
        known = _MACHINE.read_text().strip()
    except OSError:
        known = ""
    if known:
        return known
    import socket  # which takes a while, and most machines have an id

    return socket.gethostname()


def _space() -> int:
    try:
        return os.stat(_PROC / "self/ns/pid").st_ino
    except OSError:
        return 0


def can_ask() -> bool:
    """Whether this system tells about other processes at all."""
    return (_PROC / "self/stat").exists()


def started(pid: int) -> int | None:
    """When a process of this number began, in the kernel's ticks; None if there is none.

    One that was killed and is waited for by nobody yet is gone: it runs nothing any more.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return _started(text)


def _started(stat: str) -> int | None:
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])
