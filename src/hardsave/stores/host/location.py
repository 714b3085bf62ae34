"""Where a process runs: on which host, since which boot, in which numbering of processes.

The number of a process says something only to a process that numbers them in the same way. All
three must agree for that: the first numbering of every Linux host has the same id, and hosts that
were copied from one image may have the same name.
"""

import os

from blake3 import blake3

from hardsave.stores.host import processes
from hardsave.stores.host.boot import boot_id
from hardsave.tuples import NamedTuple


class Numbering(NamedTuple):
    """In which a process has its number. `space` tells those of one host apart: a container has
    its own."""

    host: str
    boot: bytes
    space: int

    def digest(self) -> bytes:
        """Eight bytes that stand for it."""
        return blake3(b"%s\0%s\0%d" % (self.host.encode(), self.boot, self.space)).digest(8)


class Location(NamedTuple):
    """Of a process."""

    numbering: Numbering
    pid: int
    pid_started: int  # tells two processes of one number apart


def here() -> Location:
    """Of this process."""
    pid = os.getpid()
    began = processes.started(pid) if processes.can_ask() else None
    numbering = Numbering(processes.host(), boot_id(), processes.space())
    return Location(numbering, pid, began or processes.UNKNOWN)
