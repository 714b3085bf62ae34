"""Telling processes apart: which has ended, which agent called a hook, what an agent left running.

Reading facts about one process is `stores.processes`; here are the decisions over them. Where the
system tells nothing about other processes, none is found.
"""

import os
import select
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from hardsave.stores.host import processes
from hardsave.stores.host.processes import UNKNOWN, Process
from hardsave.tuples import NamedTuple

_PROC = "/proc"
_POLL_SECONDS = 0.3
_LONGEST_COMMAND = 80
_MOST_ABOVE = 8  # processes between a hook and its agent
_open: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


# What a process holds


def close_inherited(kept: int) -> None:
    """Close all descriptors but this one and the three streams. A lock is held, and a pipe has no
    end, as long as any process has it open: a daemon with either would hold up others."""
    found: list[str] = []
    for folder in ("/proc/self/fd", "/dev/fd"):  # of Linux, and of macOS
        with suppress(OSError):
            found = found or os.listdir(folder)
    for name in found:
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):  # the one that the list was read from
                os.close(int(name))


# Whether a process has ended


class ProcessHandle:
    """A process that is there when this is made. Its number may be given to another later."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._started = processes.started(pid)
        self._descriptor: int | None = None
        # An older kernel, another system, or it is gone: then it is polled.
        if _open is not None:
            with suppress(OSError):
                self._descriptor = _open(pid)

    def wait(self) -> None:
        """Until it has ended."""
        if self._descriptor is not None:
            select.select([self._descriptor], [], [])
            os.close(self._descriptor)
            return
        while self.is_running():
            time.sleep(_POLL_SECONDS)

    def is_running(self) -> bool:
        started = processes.started(self._pid)
        return processes.is_there(self._pid) and started in (self._started, UNKNOWN)


# The agent that has called a hook


class Origin(NamedTuple):
    """The parent and the session that a hook had when it began."""

    parent: int
    session: int


def agent_among(hook: Process, above: Sequence[Process], name: str) -> Process | None:
    """The first process above a hook that does more than to run it. None if that is another
    user's process, or has begun after the hook: then the agent is gone, and its number used again.

    Agents let a shell run a hook's command; some shells become that command and others wait for
    it, and people put `timeout` or `env` in front: those end with the hook. A hook whose agent has
    died is adopted by a process that looks like a parent, but shares no session with the hook, nor
    is it called by the agent's name.
    """
    for process in above:
        if process.user != hook.user or process.began > hook.began:
            return None
        if not _only_runs(process.words, hook.words):
            is_named = any(name in word for word in process.words)
            return process if is_named or process.session == hook.session else None
    return None


def _only_runs(words: Sequence[str], hook: Sequence[str]) -> bool:
    """Whether a command is a shell with the hook's command, or has it at its end."""
    program = os.path.basename(max(hook[1:], key=len, default=""))  # its most telling word
    is_shell = len(words) == 3 and words[0].endswith("sh") and words[1].startswith("-")
    if is_shell and words[1].endswith("c"):
        return bool(program) and program in words[2]
    return len(words) > len(hook) and tuple(words[-len(hook) :]) == tuple(hook)


def agent_of(hook: int, name: str, origin: Origin | None = None) -> Process | None:
    """The agent of this name that has called a hook which is running. `origin`, if it is known
    how the hook began: it may have left its session since, and lost its parent."""
    own = processes.look(hook)
    if own is None:
        return None
    if origin is not None:
        own = own._replace(parent=origin.parent, session=origin.session)
    above: list[Process] = []
    number = own.parent
    while number > 0 and len(above) < _MOST_ABOVE:
        found = processes.look(number)
        if found is None:
            break
        above.append(found)
        number = found.parent
    return agent_among(own, above, name)


def sees_the_same_files(pid: int) -> bool:
    """Whether a path leads that process to where it leads us: a container has files of its own."""
    try:
        spaces = [os.readlink(f"{_PROC}/{each}/ns/mnt") for each in (pid, "self")]
        roots = [os.stat(f"{_PROC}/{each}/root") for each in (pid, "self")]
    except OSError:
        return False
    return spaces[0] == spaces[1] and os.path.samestat(*roots)


# Processes that an agent has started and that outlive it: they may still write files


class Running(NamedTuple):
    """A running process, as people know it."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.command} ({self.pid})"

    def works_in(self, directory: Path) -> bool:
        """Whether it stands in a directory, or below; not if that cannot be told."""
        standing = processes.directory(self.pid)
        return standing is not None and Path(standing).is_relative_to(directory)


def running(pid: int) -> Running:
    """The process of this number."""
    seen = processes.look(pid)
    words = () if seen is None else seen.words
    return Running(pid, " ".join(" ".join(words).split())[:_LONGEST_COMMAND] or "?")


def with_variable(variable: str, value: str, *, is_prefix: bool = False) -> list[Running]:
    """This user's processes whose environment has it, by number; not this process itself.

    The agent's environment names the socket of its daemon, which all that it starts inherits.
    Neither a session nor a process group would do: a shell gives both to others too, and
    background work leaves them.
    """
    wanted = os.fsencode(f"{variable}={value}")
    found = []
    for pid in processes.pids():
        if pid == os.getpid():
            continue
        for given in processes.environment(pid):  # nothing, if it is a zombie
            if given == wanted or (is_prefix and given.startswith(wanted)):
                found.append(running(pid))
                break
    return found


def orphans(variable: str, value: str) -> set[tuple[int, int]]:
    """Those of `with_variable` whose parent has ended, each with when it began. The process that
    adopts them has adopted the daemon, too: process 1, or that of the user's session."""
    found = (processes.look(each.pid) for each in with_variable(variable, value))
    adopting = {1, os.getppid()}
    return {(each.pid, each.began) for each in found if each and each.parent in adopting}


def outermost(found: Iterable[Running]) -> list[Running]:
    """Each once, and none that another of them has started."""
    one_each = list(dict.fromkeys(found))
    pids = {each.pid for each in one_each}
    return [each for each in one_each if pids.isdisjoint(above(each.pid))]


def wait_for_end(
    look: Callable[[], Sequence[Running]],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Sequence[Running]:
    """Until none is left; or for so long, and which are left then."""
    end = clock() + seconds
    while (left := look()) and clock() < end:
        sleep(_POLL_SECONDS)
    return left


def ancestors() -> set[int]:
    """The processes that have started this one, directly or not: they wait for it."""
    return {os.getppid(), *above(os.getppid())}


def above(pid: int) -> set[int]:
    """The processes that have started one, directly or not."""
    found: set[int] = set()
    while (seen := processes.look(pid)) is not None and seen.parent not in {0, *found}:
        pid = seen.parent
        found.add(pid)
    return found
