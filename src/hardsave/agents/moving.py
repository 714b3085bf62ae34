"""The conversations of a directory that was moved, so that agents find them where it is now.

Agent CLIs look for transcripts by the directory that they are started in. Each is copied to where
the agent looks for it now, with the new directory in its lines; the original stays as it is. A copy
that is already there, as in a directory that was moved away and back, is replaced if it is the
beginning of the newer one; else both stay where they are.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec, Unknown
from hardsave.tuples import NamedTuple


class Parted(NamedTuple):
    """A conversation that has gone on in both directories, each time otherwise."""

    session: str
    old: str  # the file of the directory that was moved
    new: str  # the file that is resumed


class MovedConversations(NamedTuple):
    """What was done for one agent."""

    agent: str
    program: str
    sessions: tuple[str, ...]
    why: str = ""
    """Why some are left where they were."""
    parted: tuple[Parted, ...] = ()


def move(environment: Mapping[str, str], old: str, new: str) -> list[MovedConversations]:
    """Let the conversations of one directory be gone on with in another; agents that find them by
    their ids alone need nothing, and are left out."""
    done = [_moved(agent, agent.home(environment), old, new) for agent in registry.every()]
    return [each for each in done if each.sessions or each.why or each.parted]


def _moved(agent: AgentSpec, home: Path, old: str, new: str) -> MovedConversations:
    sessions: set[str] = set()
    parted: dict[str, Parted] = {}
    why, now = "", datetime.now(UTC)
    for session, path in agent.transcripts(home, old):
        try:
            here, there = (agent.copy_path(path, session, home, now, each) for each in (old, new))
            if here == there:
                continue
            for source, target in _files(path, there):
                copied = _content(agent, source, old, new)
                found = _content(agent, target, new, new) if target.exists() else b""
                if not found.startswith(copied) and copied.startswith(found):
                    _write(target, copied)
                    sessions.add(session)
                elif not found.startswith(copied):
                    parted.setdefault(session, Parted(session, str(source), str(target)))
        except (OSError, UnicodeDecodeError, Unknown) as error:
            why = why or str(error)
    told = tuple(sorted(sessions - parted.keys()))
    return MovedConversations(agent.title, agent.program, told, why, tuple(parted.values()))


def _files(path: Path, there: Path) -> Iterator[tuple[Path, Path]]:
    """A transcript and the files of its subagents and tools, each with where it is copied to."""
    yield path, there
    folder = path.with_suffix("")
    for each in sorted(folder.rglob("*")):
        if each.is_file() and not each.is_symlink():
            yield each, there.with_suffix("") / each.relative_to(folder)


def _content(agent: AgentSpec, path: Path, old: str, new: str) -> bytes:
    """With the new directory in its lines. Two of the same lines are equal, however they were
    written: each is written anew."""
    data = path.read_bytes()
    if path.suffix != ".jsonl":
        return data
    lines = data.decode().split("\n")
    return "\n".join(line and agent.lines.moved(line, old, new) for line in lines).encode()


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as draft:
            draft.write(data)
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
