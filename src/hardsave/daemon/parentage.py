"""Who has called a hook: the agent, found among the processes above it.

Agents let a shell run a hook's command; some shells become that command and others wait for it,
and people put `timeout` or `env` in front. Whoever does nothing but run the hook ends with it, and
is not the agent. Elsewhere than on Linux nobody is found.
"""

import os
from collections.abc import Sequence

from hardsave.stores import processes
from hardsave.stores.processes import Process
from hardsave.tuples import NamedTuple

_PROC = "/proc"
_MOST = 8  # processes between a hook and its agent


class Origin(NamedTuple):
    """Where a hook came from when it began."""

    parent: int
    session: int


def agent_among(hook: Process, above: Sequence[Process], name: str) -> Process | None:
    """The first above a hook that does more than to run it. None if that is somebody else's
    process, or has begun after the hook: then the agent is gone, and its number used again.

    A hook whose agent has died is given to whoever buries orphans, which looks like a parent. But
    that one shares no session with it, nor is it called by the agent's name.
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
    """Who has called a hook that is there now, of an agent of this name. `origin`, if it is known
    how the hook began: it may have left its session since, and lost its parent."""
    own = processes.look(hook)
    if own is None:
        return None
    if origin is not None:
        own = own._replace(parent=origin.parent, session=origin.session)
    above: list[Process] = []
    number = own.parent
    while number > 0 and len(above) < _MOST and (found := processes.look(number)) is not None:
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
