"""Time that no change of the clock moves: which boot of the machine, and how long ago that was."""

import time
from functools import cache

from blake3 import blake3

UNKNOWN_BOOT = bytes(8)

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while a laptop sleeps
_AWAKE = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)  # macOS has it by another name


@cache
def boot_id() -> bytes:
    """Which boot of the machine this is."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            text = file.read()
    except OSError:
        return UNKNOWN_BOOT  # every mark seems to be from this boot, the strict reading
    return blake3(text).digest(8)


def since_boot() -> int:
    """Microseconds."""
    return time.clock_gettime_ns(_CLOCK) // 1_000


def awake() -> int:
    """Microseconds since boot in which the machine was awake: nobody could do anything in the
    others."""
    return time.clock_gettime_ns(_AWAKE) // 1_000
