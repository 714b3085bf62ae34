"""An agent under `hardsave run` that starts another one: whose conversation is whose.

What the outer one is told it hands on to whatever it starts, the inner one too. So a run says whom
it tells, and the processes between a hook and that one tell the rest. Where nobody tells about
other processes, all is taken for the outer one's, as it was told.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from hardsave import config
from hardsave.agents import registry
from hardsave.agents.spec import is_called
from hardsave.stores import processes
from hardsave.stores.registry import sqlite_path
from hardsave.tuples import NamedTuple
from hardsave.vault import projects

VARIABLE = "HARDSAVE_RUN"
_MOST = 64  # processes between a hook and the agent of the run


class Run(NamedTuple):
    """A `hardsave run` that this process is part of."""

    agent: int  # its process
    timeline: str

    def told(self) -> str:
        """As its agent is told."""
        return f"{self.agent}:{self.timeline}"


def around(environment: Mapping[str, str]) -> Run | None:
    """The innermost; None outside of any."""
    agent, _, timeline = environment.get(VARIABLE, "").partition(":")
    return Run(int(agent), timeline) if agent.isdecimal() else None


def own(environment: Mapping[str, str], caller: int, project: Path) -> Mapping[str, str]:
    """What an agent that works in a project is told by itself: not what the run around it has told
    the one that has started it."""
    if not is_inner(environment, caller):
        return environment
    theirs = {"HARDSAVE_TIMELINE"}
    if is_of_another(environment, project):
        theirs.add(config.STORE_VARIABLE)
    return {name: value for name, value in environment.items() if name not in theirs}


def is_of_another(environment: Mapping[str, str], directory: Path) -> bool:
    """Whether the store that was told is the own one of a project that a directory does not lie in,
    or lies in with a repository of its own: nobody would look there for what is saved here."""
    url = environment.get(config.STORE_VARIABLE, "")
    if not url.startswith("sqlite:"):
        return False
    known = projects.read(Path(sqlite_path(url)).parent)
    if known is None:
        return False
    root = config.project_root(directory)
    is_inside = root.is_relative_to(known.root) and not (root / ".git").exists()
    return not is_inside and root != Path(known.root)


def is_inner(environment: Mapping[str, str], caller: int) -> bool:
    """Whether a hook was called by an agent that the agent of its run has started. `caller` is the
    hook's process, or the one above it."""
    run = around(environment)
    if run is None:
        return False
    above: list[Sequence[str]] = []
    pid = caller
    while len(above) < _MOST and (found := processes.look(pid)) is not None:
        above.append(found.words)
        if pid == run.agent:
            return agents_among(above) > 1
        pid = found.parent
    return False


def agents_among(commands: Iterable[Sequence[str]]) -> int:
    """How many agents there are among processes that have started each other. What an agent's
    program starts under the same name, next to itself, belongs to it."""
    return sum(name is not None for name, _ in groupby(map(_program, commands)))


def _program(words: Sequence[str]) -> str | None:
    programs = (agent.program for agent in registry.every())
    return next((each for each in programs if is_called(words, each)), None)
