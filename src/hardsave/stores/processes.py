"""Which process this is, and whether another one is still there: the thin reading of /proc.

Elsewhere than on Linux nothing is known of other processes: what they hold ends with its time.
"""

import os
from functools import cache
from typing import NamedTuple

_PROC = "/proc"
_MACHINE = "/etc/machine-id"


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
        with open(_MACHINE) as file:
            known = file.read().strip()
    except OSError:
        known = ""
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
    """Whether this system tells about other processes at all."""
    return os.path.exists(f"{_PROC}/self/stat")


def started(pid: int) -> int | None:
    """When a process of this number began, in the kernel's ticks; None if there is none.

    One that was killed and is waited for by nobody yet is gone: it runs nothing any more.
    """
    try:
        with open(f"{_PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    return _started(text)


def _started(stat: str) -> int | None:
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])
