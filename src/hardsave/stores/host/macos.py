"""What macOS tells about processes, the machine and its boot, by calls of its C library.

There is no /proc. But no process must be taken for ended because a structure was misread: it is
believed only where it has told the truth about this process itself.
"""

import ctypes
import errno
import os
import struct
import time
from functools import cache
from itertools import takewhile
from typing import Any

from hardsave.tuples import NamedTuple

_BSD_INFO = 3  # of proc_pidinfo: what `_LAYOUT` says
_LAYOUT = struct.Struct("=12I 16s 32s 6I 2Q")  # struct proc_bsdinfo, of <sys/proc_info.h>
_COUNT = struct.Struct("=i")
_STATUS, _PID, _PARENT, _USER, _SECONDS, _MICROSECONDS = 1, 3, 4, 5, -2, -1  # where in it
_ZOMBIE = 5
_MOST_PIDS = 1 << 31
_BOOT = b"kern.bootsessionuuid"
_TEXT_BYTES = 64
_WAIT_SECONDS = 5  # for a machine that has only just been switched on
_ARGUMENTS = (1, 49)  # of sysctl: CTL_KERN, KERN_PROCARGS2
_ARGUMENTS_BYTES = 1 << 20  # that a process can be given at most
_CALLS = ("proc_pidinfo", "proc_listallpids", "sysctl", "sysctlbyname", "gethostuuid")


class Process(NamedTuple):
    """One that runs."""

    pid: int
    parent: int
    user: int
    started: int  # microseconds since 1970, by the clock of that moment


class Arguments(NamedTuple):
    """What a process was given when it began."""

    words: list[bytes]
    environment: list[bytes]  # NAME=VALUE


class System:
    """The calls, of a C library that is handed in."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def process(self, pid: int) -> Process | None:
        """None if there is none, or it is a zombie. `OSError` if that is not told."""
        if not 0 < pid < _MOST_PIDS:
            return None
        data = ctypes.create_string_buffer(_LAYOUT.size)
        ctypes.set_errno(0)
        size = self._library.proc_pidinfo(
            pid, _BSD_INFO, ctypes.c_uint64(0), data, ctypes.c_int(_LAYOUT.size)
        )
        if size == _LAYOUT.size:
            return _process(data.raw)
        if ctypes.get_errno() == errno.ESRCH:
            return None
        raise OSError(ctypes.get_errno(), f"process {pid} cannot be looked at")

    def pids(self) -> list[int]:
        """Of all processes."""
        length = self._library.proc_listallpids(None, ctypes.c_int(0)) + 64  # some begin meanwhile
        numbers = (ctypes.c_int * max(length, 0))()
        count = self._library.proc_listallpids(numbers, ctypes.c_int(ctypes.sizeof(numbers)))
        return sorted(number for number in numbers[: max(count, 0)] if number > 0)

    def arguments(self, pid: int) -> Arguments | None:
        """None if it is gone, or belongs to another user."""
        if not 0 < pid < _MOST_PIDS:
            return None
        name = (ctypes.c_int * 3)(*_ARGUMENTS, pid)
        data = ctypes.create_string_buffer(_ARGUMENTS_BYTES)
        size = ctypes.c_size_t(_ARGUMENTS_BYTES)
        wrong = self._library.sysctl(
            name, ctypes.c_uint(3), data, ctypes.byref(size), None, ctypes.c_size_t(0)
        )
        return None if wrong else arguments(data.raw[: size.value])

    def is_truthful(self) -> bool:
        """Whether what it says about this process is so."""
        try:
            own = self.process(os.getpid())
        except OSError:
            return False
        if own is None or own[:3] != (os.getpid(), os.getppid(), os.geteuid()):
            return False
        return 0 < own.started <= (time.time() + 86_400) * 1_000_000  # clocks are set now and then

    def boot(self) -> str | None:
        """Which boot of the machine this is."""
        data = ctypes.create_string_buffer(_TEXT_BYTES)
        size = ctypes.c_size_t(_TEXT_BYTES)
        if self._library.sysctlbyname(_BOOT, data, ctypes.byref(size), None, ctypes.c_size_t(0)):
            return None
        return data.value.decode(errors="replace") or None

    def host(self) -> str | None:
        """What tells the machine from others: its name changes with the network that it is in."""
        data = ctypes.create_string_buffer(16)
        wait = (ctypes.c_long * 2)(_WAIT_SECONDS, 0)
        if self._library.gethostuuid(data, ctypes.byref(wait)) or not any(data.raw):
            return None
        return data.raw.hex()


@cache
def system() -> System | None:
    """This system; None if it is another, or does not answer as it should."""
    library = ctypes.CDLL(None, use_errno=True)
    if not all(hasattr(library, name) for name in _CALLS):
        return None
    found = System(library)
    return found if found.is_truthful() else None


def _process(data: bytes) -> Process | None:
    fields = _LAYOUT.unpack(data)
    if fields[_STATUS] == _ZOMBIE:
        return None
    started = fields[_SECONDS] * 1_000_000 + fields[_MICROSECONDS]
    return Process(fields[_PID], fields[_PARENT], fields[_USER], started)


def arguments(data: bytes) -> Arguments | None:
    """How many words; the program's path, and zeros up to the next boundary; the words; the
    environment, up to an empty one. None if it is not laid out so."""
    if len(data) < _COUNT.size:
        return None
    (count,) = _COUNT.unpack_from(data)
    _, _, rest = data[_COUNT.size :].partition(b"\0")
    words = rest.lstrip(b"\0").split(b"\0")
    if not 0 <= count < len(words):
        return None
    return Arguments(words[:count], list(takewhile(bool, words[count:])))
