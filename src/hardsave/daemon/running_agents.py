"""Agents that run at the same time: in the same directory, or one started by another.

What the outer agent of a `hardsave run` is told it hands on to all that it starts, an inner agent
too. So a run says which process it tells, and the processes between a hook and that one decide
whether the hook is an inner agent's. Where the system tells nothing about other processes, all is
taken for the outer agent's.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave import config
from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec, is_called
from hardsave.stores.host import processes
from hardsave.stores.registry import file_path, is_file
from hardsave.tuples import NamedTuple
from hardsave.vault.workspaces import projects

if TYPE_CHECKING:  # which hooks do without
    from hardsave.daemon.processes import Running

RUN_VARIABLE = "HARDSAVE_RUN"
_LONGEST_COMMAND = 80
_MOST = 8  # processes of one agent, one above the other
_MOST_ABOVE = 64  # processes between a hook and the agent of the run


# In the same directory


class Others(Enum):
    """Whether another agent of the same kind works in the same directory."""

    NONE = auto()
    SOME = auto()
    UNKNOWN = auto()  # this system does not tell


def others(agent: int, program: str, directory: str) -> Others:
    """Beside the agent of this number. One that it has started itself, by a tool, is another; and
    so is one whose directory cannot be told, as on macOS."""
    if not processes.can_ask():
        return Others.UNKNOWN
    found = (pid for pid in processes.pids() if _is_one(pid, program))
    here = (pid for pid in found if processes.directory(pid) in (directory, None))
    is_any = any(not _is_of(pid, agent, program) for pid in here)
    return Others.SOME if is_any else Others.NONE


def at_work(directory: Path, waiting: Collection[int] = ()) -> "list[Running]":
    """The agents in a directory, or below it, however they were started; and tools there that have
    outlived theirs. Each once, though it may have started others to do the work.

    `waiting` are processes that do nothing until this one is done: what they have started before
    may.
    """
    from hardsave.daemon.processes import outermost, running, with_variable

    programs = [agent.program for agent in registry.every()]
    agents = (pid for pid in processes.pids() if any(_is_one(pid, each) for each in programs))
    tools = (
        tool.pid
        for agent in registry.every()
        for tool in with_variable(agent.session_variable, "", is_prefix=True)
        if not _is_beside_us(tool.pid)
    )
    found = (running(pid) for pid in (*agents, *tools) if pid not in waiting)
    return outermost(each for each in found if each.works_in(directory))


class OpenAgent(NamedTuple):
    """An agent that runs."""

    program: str
    pid: int

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


def open_agents(directory: Path, name: str) -> list[OpenAgent]:
    """The agents of one kind that stand in a directory, or below it; the one that has started this
    process, too."""
    from hardsave.daemon.processes import outermost, running

    spec = registry.named(name)
    if spec is None:
        return []
    found = (running(pid) for pid in processes.pids() if _is_one(pid, spec.program))
    here = outermost(each for each in found if each.works_in(directory))
    return [OpenAgent(spec.program, each.pid) for each in here]


def agent_above() -> tuple[AgentSpec, int] | None:
    """The agent that has started this process, by a tool or by its shell escape, and the number of
    its process; None if there is none."""
    pid = os.getppid()
    for _ in range(_MOST_ABOVE):
        if spec := next((each for each in registry.every() if _is_one(pid, each.program)), None):
            return spec, pid
        seen = processes.look(pid)
        if seen is None or seen.parent <= 1:
            return None
        pid = seen.parent
    return None


def named(found: "Running") -> str:
    """A process as people know it: a tool by the command that it was given, and not by the shell
    that an agent has started for it."""
    seen = processes.look(found.pid)
    words = () if seen is None else seen.words
    told = filter(None, (spec.tool_command(words) for spec in registry.every()))
    command = " ".join(next(told, found.command).split())
    return str(found._replace(command=command[:_LONGEST_COMMAND]))


def _is_beside_us(pid: int) -> bool:
    """Whether one command has started it and us: an agent's tool may pipe our output to it."""
    seen = processes.look(pid)
    return seen is not None and seen.parent == os.getppid()


def _is_one(pid: int, program: str) -> bool:
    seen = processes.look(pid)
    if seen is None or seen.user != os.getuid() or not is_called(seen.words, program):
        return False
    servers = frozenset[str]().union(*(spec.server_words for spec in registry.every()))
    return not servers.intersection(seen.words[1:3])


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


# One started by another


class Run(NamedTuple):
    """A `hardsave run` that this process is part of."""

    agent: int  # its process
    timeline: str

    def dump(self) -> str:
        """As its agent is told."""
        return f"{self.agent}:{self.timeline}"


def run_around(environment: Mapping[str, str]) -> Run | None:
    """The innermost; None outside of any."""
    agent, _, timeline = environment.get(RUN_VARIABLE, "").partition(":")
    return Run(int(agent), timeline) if agent.isdecimal() else None


def own_environment(
    environment: Mapping[str, str], caller: int, project: Path
) -> Mapping[str, str]:
    """What an agent that works in a project was told itself: without what the run around it has
    told the agent that has started it."""
    if not is_inner(environment, caller):
        return environment
    theirs = {"HARDSAVE_TIMELINE"}
    if is_of_another(environment, project):
        theirs.add(config.STORE_VARIABLE)
    return {name: value for name, value in environment.items() if name not in theirs}


def is_of_another(environment: Mapping[str, str], directory: Path) -> bool:
    """Whether the store that was told is the own one of a project that a directory does not lie in,
    or lies in with a repository of its own: its user would not look there."""
    url = environment.get(config.STORE_VARIABLE, "")
    if not is_file(url):
        return False
    known = projects.read(Path(file_path(url)).parent)
    if known is None:
        return False
    root = config.project_root(directory)
    is_inside = root.is_relative_to(known.root) and not config.has_repository(root)
    return not is_inside and root != Path(known.root)


def is_inner(environment: Mapping[str, str], caller: int) -> bool:
    """Whether a hook was called by an agent that the agent of its run has started. `caller` is the
    hook's process, or the one above it."""
    run = run_around(environment)
    if run is None:
        return False
    above: list[Sequence[str]] = []
    pid = caller
    while len(above) < _MOST_ABOVE and (found := processes.look(pid)) is not None:
        above.append(found.words)
        if pid == run.agent:
            return count_agents(above) > 1
        pid = found.parent
    return False


def is_below(caller: int, agent: tuple[int, int]) -> bool:
    """Whether a hook was called by an agent that is known by its number and when it began; of a
    caller that is not known, whether that agent is there."""
    from hardsave.daemon.processes import above

    pid, began = agent
    if processes.started(pid) != began:
        return False
    return not caller or pid == caller or pid in above(caller)


def count_agents(commands: Iterable[Sequence[str]]) -> int:
    """How many agents there are among processes that have started each other. What an agent's
    program starts under the same name, next to itself, belongs to it."""
    return sum(name is not None for name, _ in groupby(map(_program, commands)))


def _program(words: Sequence[str]) -> str | None:
    programs = (agent.program for agent in registry.every())
    return next((each for each in programs if is_called(words, each)), None)
