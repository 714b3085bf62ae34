"""Which host this is: what tells the directories of one machine from those of another.

The same after a restart, and after a machine got another name. A container counts as a host of its
own, by the name that it was given: it has its own directories, and perhaps the machine's id.
"""

import os
from functools import cache

from blake3 import blake3

from hardsave.stores.host import processes

_OWN_NAMES = "/proc/self/ns/uts"
_FIRST_NAMES = 0xEFFFFFFE  # what Linux calls the names that a machine starts with, on every machine


@cache
def host_id() -> str:
    """This host, in 20 hex digits. Not the machine's id itself, which is not for others to know."""
    return of(processes.host(), _container())


def of(machine: str, container: str | None) -> str:
    """A machine, or a container on it."""
    named = machine.encode() if container is None else f"{machine}\0{container}".encode()
    return blake3(b"hardsave host\0" + named).hexdigest(10)


def _container() -> str | None:
    """The name of the container that this process runs in; None: in none, or in one that shares
    the names of its machine."""
    try:
        is_first = os.stat(_OWN_NAMES).st_ino == _FIRST_NAMES
    except OSError:  # no Linux
        return None
    return None if is_first else os.uname().nodename
