"""Who has called a hook: the agent, found among the processes above it.

Agents let a shell run a hook's command; some shells become that command and others wait for it,
and people put `timeout` or `env` in front. Whoever does nothing but run the hook ends with it, and
is not the agent. Elsewhere than on Linux nobody is found.
"""

import os
from collections.abc import Sequence

from hardsave.stores import processes
from hardsave.stores.processes import Process

_PROC = "/proc"
_MOST = 8  # processes between a hook and its agent


def agent_among(hook: Process, above: Sequence[Process]) -> Process | None:
    """The first above a hook that does more than to run it. None if that is somebody else's
    process, or has begun after the hook: then the agent is gone, and its number used again."""
    for process in above:
        if process.user != hook.user or process.began > hook.began:
            return None
        if not _only_runs(process.words, hook.words):
            return process
    return None


def _only_runs(words: Sequence[str], hook: Sequence[str]) -> bool:
    """Whether a command is a shell with the hook's command, or has it at its end."""
    program = os.path.basename(max(hook[1:], key=len, default=""))  # its most telling word
    is_shell = len(words) == 3 and words[0].endswith("sh") and words[1].startswith("-")
    if is_shell and words[1].endswith("c"):
        return bool(program) and program in words[2]
    return len(words) > len(hook) and tuple(words[-len(hook) :]) == tuple(hook)


def agent_of(hook: int, parent: int | None = None) -> Process | None:
    """Who has called a hook that is there now. `parent`, if it is known who that was when the
    hook began: a process whose parent has died gets another."""
    own = processes.look(hook)
    if own is None:
        return None
    above: list[Process] = []
    number = own.parent if parent is None else parent
    while number > 0 and len(above) < _MOST and (found := processes.look(number)) is not None:
        above.append(found)
        number = found.parent
    return agent_among(own, above)


def sees_the_same_files(pid: int) -> bool:
    """Whether a path leads that process to where it leads us: a container has files of its own."""
    try:
        spaces = [os.readlink(f"{_PROC}/{each}/ns/mnt") for each in (pid, "self")]
        roots = [os.stat(f"{_PROC}/{each}/root") for each in (pid, "self")]
    except OSError:
        return False
    return spaces[0] == spaces[1] and os.path.samestat(*roots)
