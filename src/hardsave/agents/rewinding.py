"""The way back into an agent's conversation: another transcript, cut where a checkpoint was saved.

The original is only read. The copy has an id of its own; it appears whole or not at all.
"""

import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from hardsave.agents import claude_code, codex, sessions
from hardsave.agents.cutting import Cut, Moment, cut
from hardsave.agents.lines import Ending, Unknown
from hardsave.agents.resumption import Resumption
from hardsave.agents.spec import Agent
from hardsave.agents.transcripts import Mark, beginning, is_at, read, to_bytes, to_lines
from hardsave.tuples import NamedTuple

_SESSION = re.compile(r"[0-9A-Za-z][-.\w]*")  # it becomes a part of paths


class Home(Protocol):
    """Where an agent keeps its transcripts. Each agent has a module that says so."""

    def going_on(self, session: str) -> str:
        """What is typed to go on with a session."""

    def original(self, path: str, session: str, folder: Path) -> Path:
        """The transcript that a checkpoint names, without links; `Unknown` if it is elsewhere."""

    def by_now(self, original: Path, folder: Path) -> Path:
        """Where that transcript is by now: an agent may have moved it since."""

    def transcripts(self, folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
        """Those that may be of a directory, by the ids of their sessions."""

    def check_base(self, first: str, folder: Path) -> None:
        """`Unknown` if what a session goes on from, as its first line tells, is not there: then
        the agent could not go on with a copy either."""

    def beside(self, source: Path, new: str, folder: Path, moment: datetime) -> Path:
        """Where the transcript of another session belongs, made now out of this one."""

    def take_along(self, folder: Path, old: str, new: str) -> None:
        """Copy what else belongs to a session."""


HOMES: dict[str, Home] = {"claude-code": claude_code, "codex": codex}


class _Source(NamedTuple):
    """A transcript as a checkpoint remembers it."""

    session: str
    path: Path
    mark: Mark
    moment: Moment


def resume(
    agent: Agent,
    state: Mapping[str, Any],
    environment: Mapping[str, str],
    timeline: str,
    *,
    before: frozenset[str] = frozenset(),
    saved_at: datetime | None = None,
    is_past: bool = False,
    is_prompt: bool = False,
    is_seen: bool = False,
    has_talked: bool = False,
    make_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Resumption:
    """Write a transcript that ends where this checkpoint was saved, and say how to go on.
    `has_talked`: there was a conversation by then, whether or not it was written down."""
    home, folder, now = HOMES[agent.name], agent.home(environment), clock()
    try:
        source = _source(state["transcript"], home, folder)
        when = source.moment._replace(
            before=before,
            at="" if saved_at is None else _written(saved_at),
            is_past=is_past,
            is_prompt=is_prompt,
            is_seen=is_seen,
        )
        found = _cut(agent, folder, source._replace(moment=when), _saved(state))
        if not any(agent.lines.is_talk(agent.lines.parsed(t, source.session)) for t in found.lines):
            if has_talked:
                raise Unknown("no transcript of it was written, or it is gone")
            return Resumption(agent.name, agent.program, why="nothing had been said yet")
        new = make_id()
        ending = Ending(new, f"{timeline} rewound", _written(now), make_id)
        copied = (agent.lines.copied(text, source.session, new) for text in found.lines)
        copy = [text for text in copied if text is not None]
        copy += agent.lines.ended(copy, found.waiting, ending)
        home.check_base(copy[0], folder)
        home.take_along(folder, source.session, new)
        path = home.beside(source.path, new, folder, now)
        sessions.remember_timeline(environment, new, timeline)
        # Half a character, which JSON can hold, is written as JSON does.
        data = to_bytes(text.encode(errors="backslashreplace") for text in copy)
        _write(path, data)  # last: from here on it is there
        where = _where(agent, home, folder, found.lines, source.session, new)
    except Unknown as error:
        return Resumption(agent.name, None, why=str(error))
    except OSError as error:
        return Resumption(agent.name, None, why=f"a transcript could not be written: {error}")
    return Resumption(agent.name, home.going_on(new), new, _told(found), where)


def whole(
    agent: Agent, state: Mapping[str, Any], environment: Mapping[str, str]
) -> Resumption | None:
    """How to go on with a transcript as it is; None if it is not there any more. Writes nothing."""
    home, folder = HOMES[agent.name], agent.home(environment)
    try:
        source = _source(state["transcript"], home, folder)
        if not home.by_now(source.path, folder).exists():
            return None
        where = _where(
            agent, home, folder, _texts(to_lines(_saved(state))), source.session, source.session
        )
    except (Unknown, OSError):
        return None
    return Resumption(agent.name, home.going_on(source.session), source.session, "", where)


def _where(
    agent: Agent, home: Home, folder: Path, texts: Sequence[str], old: str, new: str
) -> str | None:
    """The directory that this was said in, if the agent finds the copy from there."""
    told = (agent.lines.directory(agent.lines.parsed(text, old)) for text in texts)
    place = next((each for each in told if each is not None), None)
    if not place or not os.path.isdir(place):
        return None
    return place if any(new == id for id, _ in home.transcripts(folder, place)) else None


def _written(moment: datetime) -> str:
    """As agents write it."""
    utc = moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _source(told: Mapping[str, Any], home: Home, folder: Path) -> _Source:
    """What a checkpoint says, which may come from anybody: it leads nowhere but to transcripts."""
    session, path, mark = told.get("session"), told.get("path"), Mark.of(told)
    if not isinstance(session, str) or not isinstance(path, str) or mark is None:
        raise Unknown("the checkpoint does not say where its transcript is")
    if not _SESSION.fullmatch(session):
        raise Unknown(f"{session!r} is no id of a session")
    batch = told.get("batch")
    ids = tuple(map(str, batch)) if isinstance(batch, Sequence) else ()
    moment = Moment(_id(told, "pending"), ids, _id(told, "upcoming"))
    try:
        real = home.original(path, session, folder)
    except ValueError as error:  # a NUL, half an emoji
        raise Unknown(f"{path[:100]!r} cannot be a path: {error}") from error
    return _Source(session, real, mark, moment)


def _id(told: Mapping[str, Any], key: str) -> str | None:
    found = told.get(key)
    return None if found is None else str(found)


def _saved(state: Mapping[str, Any]) -> bytes:
    found = state.get("lines")
    if not isinstance(found, Sequence) or not all(isinstance(line, bytes) for line in found):
        raise Unknown("the checkpoint holds no lines of its transcript")
    return to_bytes(found)


def _cut(agent: Agent, folder: Path, source: _Source, saved: bytes) -> Cut:
    """The conversation as it was saved, if the transcript still begins with it, or is gone."""
    if not is_at(saved, source.mark):
        raise Unknown("the saved transcript is not the one of its mark")
    try:
        later = _later(HOMES[agent.name].by_now(source.path, folder), source.mark)
    except OSError as error:
        raise Unknown(f"its transcript cannot be read: {error}") from error
    texts = _texts(to_lines(saved))
    return cut(agent.lines, texts, _texts(later), source.session, source.moment)


def _later(path: Path, mark: Mark) -> list[bytes]:
    """What was written since; nothing if the transcript is gone."""
    if not path.exists():
        return []
    if beginning(path, mark) is None:
        raise Unknown("the transcript was rewritten since: it begins otherwise by now")
    return read(path, mark).lines


def _texts(found: Sequence[bytes]) -> list[str]:
    try:
        return [line.decode() for line in found]
    except UnicodeDecodeError as error:
        raise Unknown(f"a line is not UTF-8: {error}") from error


def _told(found: Cut) -> str:
    if found.waiting:
        count = len(found.waiting)
        calls = "1 call has" if count == 1 else f"{count} calls have"
        return f"{calls} no result, and the agent is told so"
    if found.later:
        calls = "1 more call" if found.later == 1 else f"{found.later} more calls"
        return f"the conversation may tell of {calls} than the files: an answer comes back whole"
    return ""


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".hardsave-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)  # and not over anything
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
