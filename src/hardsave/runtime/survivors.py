"""Processes that an agent has begun and that outlive it: they may still write files.

They are known by what they have inherited: the agent's environment names a socket that is its
resident's alone. Neither a session nor a process group would do, which a shell gives to others
too, and background work leaves. Elsewhere than on Linux nobody is found.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_LOOK_SECONDS = 0.3
_LONGEST_COMMAND = 80


class Survivor(NamedTuple):
    """One of them."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.command} ({self.pid})"


def find(
    variable: str, value: str, *, is_beginning: bool = False, proc: Path = _PROC
) -> list[Survivor]:
    """Everybody of this user whose environment has it, by number; not this process itself.

    Or a value that begins so: that of any resident of a store.
    """
    wanted = b"\0" + os.fsencode(f"{variable}={value}") + (b"" if is_beginning else b"\0")
    found = []
    try:
        numbers = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    except FileNotFoundError:
        return []
    for pid in numbers:
        inherited = _read(proc / str(pid) / "environ")  # empty, if it is dead and not yet buried
        if pid != os.getpid() and wanted in b"\0" + inherited + b"\0":
            found.append(Survivor(pid, _command(proc / str(pid))))
    return found


def wait(
    look: Callable[[], Sequence[Survivor]],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Sequence[Survivor]:
    """Until nobody is left; or for so long, and who is left then."""
    end = clock() + seconds
    while (left := look()) and clock() < end:
        sleep(_LOOK_SECONDS)
    return left


def ancestors(*, proc: Path = _PROC) -> set[int]:
    """Who has started this process, and whoever has started those: they wait for it."""
    found: set[int] = set()
    pid = os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        facts = _read(proc / str(pid) / "stat").rpartition(b")")[2].split()  # any name, in brackets
        pid = int(facts[1]) if len(facts) > 1 else 0
    return found


def _command(folder: Path) -> str:
    words = _read(folder / "cmdline").decode(errors="replace").split("\0")
    return " ".join(" ".join(words).split())[:_LONGEST_COMMAND] or "?"


def _read(path: Path) -> bytes:
    """Empty if it is gone, or another user's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
