"""Who else works in a directory: agents that we know, if the system tells."""

import os
from collections.abc import Collection
from pathlib import Path

from hardsave.agents import registry
from hardsave.agents.spec import is_called
from hardsave.daemon import survivors
from hardsave.daemon.survivors import Survivor
from hardsave.daemon.whose import Company
from hardsave.stores import processes

_SERVERS = frozenset({"app-server", "daemon", "mcp", "mcp-server"})  # they wait for others
_MOST = 8  # processes of one agent, one above the other


def around(agent: int, program: str, directory: str) -> Company:
    """Beside the agent of this number. One that it has started itself, by a tool, is another; and
    so is one of which nobody tells where it stands, as on macOS."""
    if not processes.can_ask():
        return Company.UNKNOWN
    found = (pid for pid in processes.pids() if _is_one(pid, program))
    here = (pid for pid in found if processes.directory(pid) in (directory, None))
    is_any = any(not _is_of(pid, agent, program) for pid in here)
    return Company.SOME if is_any else Company.NONE


def at_work(directory: Path, waiting: Collection[int] = ()) -> list[Survivor]:
    """The agents in a directory, or below it, however they were started; and tools there that have
    outlived theirs. Each once, though it may have started others to do the work.

    `waiting` are those who do nothing until we are done: what they have started before may.
    """
    programs = [agent.program for agent in registry.every()]
    agents = (pid for pid in processes.pids() if any(_is_one(pid, each) for each in programs))
    tools = (
        tool.pid
        for agent in registry.every()
        for tool in survivors.find(agent.session_variable, "", is_beginning=True)
        if not _is_beside_us(tool.pid)
    )
    found = (survivors.of(pid) for pid in (*agents, *tools) if pid not in waiting)
    return survivors.outermost(each for each in found if each.works_in(directory))


def _is_beside_us(pid: int) -> bool:
    """Whether one command has started it and us: an agent's tool may pipe what we say to it."""
    seen = processes.look(pid)
    return seen is not None and seen.parent == os.getppid()


def _is_one(pid: int, program: str) -> bool:
    seen = processes.look(pid)
    if seen is None or seen.user != os.getuid() or not is_called(seen.words, program):
        return False
    return not _SERVERS.intersection(seen.words[1:3])


def _is_of(pid: int, agent: int, program: str) -> bool:
    """Whether it is the agent, or what its program has started to do the work."""
    for _ in range(_MOST):
        if pid == agent:
            return True
        seen = processes.look(pid)
        if seen is None or not is_called(seen.words, program):
            return False
        pid = seen.parent
    return False
