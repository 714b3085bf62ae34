"""The conversations of a directory that was moved, so that agents find them where it is now.

Agent CLIs look for transcripts by the directory that they are started in. Each is copied to where
the agent looks for it now, with the new directory in its lines; the original stays as it is.
"""

import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec, Unknown
from hardsave.tuples import NamedTuple


class MovedConversations(NamedTuple):
    """What was done for one agent."""

    agent: str
    program: str
    sessions: tuple[str, ...]
    why: str = ""
    """Why some are left where they were."""


def move(environment: Mapping[str, str], old: str, new: str) -> list[MovedConversations]:
    """Let the conversations of one directory be gone on with in another; agents that find them by
    their ids alone need nothing, and are left out."""
    done = [_moved(agent, agent.home(environment), old, new) for agent in registry.every()]
    return [each for each in done if each.sessions or each.why]


def _moved(agent: AgentSpec, home: Path, old: str, new: str) -> MovedConversations:
    sessions, why, now = [], "", datetime.now(UTC)
    for session, path in agent.transcripts(home, old):
        try:
            here, there = (agent.copy_path(path, session, home, now, each) for each in (old, new))
            if here != there and not there.exists():
                _copy(agent, path, there, old, new)
                sessions.append(session)
        except (OSError, UnicodeDecodeError, Unknown) as error:
            why = why or str(error)
    return MovedConversations(agent.title, agent.program, tuple(sorted(sessions)), why)


def _copy(agent: AgentSpec, path: Path, there: Path, old: str, new: str) -> None:
    """Whole or not at all."""
    lines = path.read_bytes().decode().split("\n")
    copied = "\n".join(line and agent.lines.moved(line, old, new) for line in lines)
    there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=there.parent, delete=False) as draft:
        draft.write(copied.encode())
    os.replace(draft.name, there)
