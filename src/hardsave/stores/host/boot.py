"""Which boot of the machine this is, and the time that it was awake since then.

A store of one host measures leases and pins by it, and not by the clock, which users set and which
jumps.
"""

import sys
import time
from functools import cache

from blake3 import blake3

from hardsave.stores.host.processes import read_if_there

UNKNOWN_BOOT = bytes(8)

_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too
_AWAKE = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)  # macOS has it by another name


@cache
def boot_id() -> bytes:
    """Which boot of the machine this is. `Unavailable` if that cannot be read just now: a process
    that took one boot for another would take running processes for ended ones."""
    text = _of_macos() if _SYSTEM == "darwin" else _of_linux()
    # Without one, every mark seems to be from this boot: the strict reading.
    return blake3(text).digest(8) if text else UNKNOWN_BOOT


def _of_linux() -> bytes | None:
    return read_if_there("/proc/sys/kernel/random/boot_id")


def _of_macos() -> bytes | None:
    from hardsave.stores.host import macos

    system = macos.system()
    told = system and system.boot()
    return told.encode() if told else None


def awake() -> int:
    """Microseconds since boot in which the machine was awake: no process could do anything in the
    others."""
    return time.clock_gettime_ns(_AWAKE) // 1_000
