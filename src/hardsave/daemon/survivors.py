"""Processes that an agent has begun and that outlive it: they may still write files.

They are known by what they have inherited: the agent's environment names a socket that is its
resident's alone. Neither a session nor a process group would do, which a shell gives to others
too, and background work leaves. Where nobody tells about other processes, nobody is found.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hardsave.stores import processes
from hardsave.tuples import NamedTuple

_LOOK_SECONDS = 0.3
_LONGEST_COMMAND = 80


class Survivor(NamedTuple):
    """One of them."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.command} ({self.pid})"

    def works_in(self, directory: Path) -> bool:
        """Whether it stands in a directory, or below; not if that cannot be told."""
        standing = processes.directory(self.pid)
        return standing is not None and Path(standing).is_relative_to(directory)


def of(pid: int) -> Survivor:
    """The process of this number, as people know it."""
    seen = processes.look(pid)
    words = () if seen is None else seen.words
    return Survivor(pid, " ".join(" ".join(words).split())[:_LONGEST_COMMAND] or "?")


def find(variable: str, value: str, *, is_beginning: bool = False) -> list[Survivor]:
    """Everybody of this user whose environment has it, by number; not this process itself.

    Or a value that begins so: that of any resident of a store.
    """
    wanted = os.fsencode(f"{variable}={value}")
    found = []
    for pid in processes.pids():
        if pid == os.getpid():
            continue
        for given in processes.environment(pid):  # nothing, if it is dead and not yet buried
            if given == wanted or (is_beginning and given.startswith(wanted)):
                found.append(of(pid))
                break
    return found


def outermost(found: Iterable[Survivor]) -> list[Survivor]:
    """Each once, and none that another of them has started."""
    one_each = list(dict.fromkeys(found))
    pids = {each.pid for each in one_each}
    return [each for each in one_each if pids.isdisjoint(above(each.pid))]


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


def ancestors() -> set[int]:
    """Who has started this process, and whoever has started those: they wait for it."""
    return {os.getppid(), *above(os.getppid())}


def above(pid: int) -> set[int]:
    """Who has started a process, and whoever has started those."""
    found: set[int] = set()
    while (seen := processes.look(pid)) is not None and seen.parent not in {0, *found}:
        pid = seen.parent
        found.add(pid)
    return found
