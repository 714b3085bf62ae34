"""How an agent goes on from a checkpoint: another transcript, cut where the checkpoint was saved.

The original is only read. The copy has an id of its own; it appears whole or not at all, and the
agent goes on from there. What cannot be done is said in `why`, and nothing is written.
"""

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, tee
from pathlib import Path
from typing import Any

from hardsave.agents import sessions
from hardsave.agents.cut import Cut, Moment, cut
from hardsave.agents.spec import AgentSpec, Ending, Unknown
from hardsave.agents.state import agent_of
from hardsave.agents.transcripts import Mark, beginning, is_at, read, to_bytes, to_lines
from hardsave.tuples import NamedTuple

_SESSION = re.compile(r"[0-9A-Za-z][-.\w]*")  # it becomes a part of paths


class Resumption(NamedTuple):
    """How to go on from a checkpoint."""

    agent: str
    command: str | None
    """What to type; None if the conversation could not be brought back."""
    session: str | None = None
    why: str = ""
    """What stands in the way; or, with a command, what is worth knowing."""
    directory: str | None = None
    """Where to type it: agents look for their conversations by where they are started. None if that
    is not known, or not there any more."""


class _Source(NamedTuple):
    """A transcript as a checkpoint remembers it."""

    agent: AgentSpec
    folder: Path
    session: str
    path: Path
    mark: Mark
    moment: Moment


def resume(
    state: Any,
    metadata: Mapping[str, Any],
    environment: Mapping[str, str],
    timeline: str,
    earlier: Iterable[Mapping[str, Any]] = (),
    saved_at: datetime | None = None,
    *,
    make_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Resumption | None:
    """Write a transcript that ends where a checkpoint was saved, and say how to go on; None if its
    state is not a conversation of an agent CLI that is known. `earlier` is the metadata of the
    checkpoints before it, newest first."""
    agent = agent_of(state)
    if agent is None:
        return None
    near, far = tee(chain([metadata], earlier))
    has_talked = _has_talked([metadata] if state.get("lines") else far)
    try:
        source = _source(agent, state["transcript"], environment)
        moment = _moment(source, metadata, near, saved_at)
        found = _cut(source._replace(moment=moment), _saved(state))
        if not _has_talk(source, found):
            if has_talked:
                raise Unknown("no transcript of it was written, or it is gone")
            return Resumption(agent.name, agent.program, why="nothing had been said yet")
        new = _copy(source, found, environment, timeline, make_id, clock())
        where = _where(source, found.lines, new)
    except Unknown as error:
        return Resumption(agent.name, None, why=str(error))
    except OSError as error:
        return Resumption(agent.name, None, why=f"a transcript could not be written: {error}")
    return Resumption(agent.name, agent.resume_command(new), new, _remark(found), where)


def whole(state: Any, environment: Mapping[str, str]) -> Resumption | None:
    """How to go on with the conversation of a state as its agent has it by now, uncut; None if it
    is of no agent CLI that is known, or gone. Writes nothing."""
    agent = agent_of(state)
    if agent is None:
        return None
    try:
        source = _source(agent, state["transcript"], environment)
        if not agent.moved_to(source.path, source.folder).exists():
            return None
        where = _where(source, _texts(to_lines(_saved(state))), source.session)
    except (Unknown, OSError):
        return None
    return Resumption(agent.name, agent.resume_command(source.session), source.session, "", where)


# The moment of a checkpoint


def _moment(
    source: _Source,
    metadata: Mapping[str, Any],
    told: Iterable[Mapping[str, Any]],
    saved_at: datetime | None,
) -> Moment:
    """When a checkpoint was saved, as seen from the calls of its conversation.

    A conversation is as the last hook of its session has left it. Checkpoints that were made since
    without a hook, of files alone, have it too: it is not from the same moment. If no hook calls
    us, it was read along with the files, and the checkpoint names the session. So it was when a
    tool of a subagent had ended, whose work is one call of the session that was under way then:
    what came of that call in the end tells of more than the files have. And so it is when its user
    says something while a tool is at work.
    """
    is_hook, is_aside = "hook" in metadata, "subagent" in metadata
    is_prompt = metadata.get("hook") == "UserPromptSubmit" and not is_aside
    is_read_along = not is_hook and "session" in metadata
    is_in_its_midst = is_aside and not source.agent.has_transcripts_of_subagents
    return source.moment._replace(
        before=_ended(told),
        at="" if saved_at is None else _written(saved_at),
        is_past=not is_hook or is_aside,
        is_prompt=is_prompt,
        is_seen=is_read_along or is_prompt or is_in_its_midst,
    )


def _ended(told: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The calls that hooks have told of, one by one, up to this checkpoint. Until the last call of
    an answer has ended, nothing else happens in a session, but that its user says more; what was
    saved by other processes counts for nothing."""
    found, session = set[str](), None
    for metadata in told:
        if "hook" not in metadata or "subagent" in metadata:
            continue
        session = session or metadata.get("session")
        is_one = metadata["hook"] in ("PostToolUse", "UserPromptSubmit")
        if not is_one or metadata.get("session") != session:
            break
        found.add(str(metadata.get("tool_use_id")))
    return frozenset(found)


def _has_talked(told: Iterable[Mapping[str, Any]]) -> bool:
    """Whether hooks have told of an answer in the session of the first. If nothing is written, all
    its hooks are asked: an agent may be told to write nothing down, and has talked all the same."""
    session = None
    for metadata in told:
        session = session or metadata.get("session")
        if metadata.get("session", session) != session:
            return False
        if metadata.get("hook") in ("PostToolUse", "PostToolBatch", "Stop"):
            return True
    return False


# Reading the original


def _source(agent: AgentSpec, told: Mapping[str, Any], environment: Mapping[str, str]) -> _Source:
    """What a checkpoint says, which may come from a stranger: it leads nowhere but to
    transcripts."""
    session, path, mark = told.get("session"), told.get("path"), Mark.of(told)
    if not isinstance(session, str) or not isinstance(path, str) or mark is None:
        raise Unknown("the checkpoint does not say where its transcript is")
    if not _SESSION.fullmatch(session):
        raise Unknown(f"{session!r} is no id of a session")
    batch = told.get("batch")
    ids = tuple(map(str, batch)) if isinstance(batch, Sequence) else ()
    moment = Moment(_id(told, "pending"), ids, _id(told, "upcoming"))
    folder = agent.home(environment)
    try:
        real = agent.original(path, session, folder)
    except ValueError as error:  # a NUL, half an emoji
        raise Unknown(f"{path[:100]!r} cannot be a path: {error}") from error
    return _Source(agent, folder, session, real, mark, moment)


def _id(told: Mapping[str, Any], key: str) -> str | None:
    found = told.get(key)
    return None if found is None else str(found)


def _saved(state: Mapping[str, Any]) -> bytes:
    found = state.get("lines")
    if not isinstance(found, Sequence) or not all(isinstance(line, bytes) for line in found):
        raise Unknown("the checkpoint holds no lines of its transcript")
    return to_bytes(found)


def _cut(source: _Source, saved: bytes) -> Cut:
    """The conversation as it was saved, if the transcript still begins with it, or is gone."""
    if not is_at(saved, source.mark):
        raise Unknown("the saved transcript is not the one of its mark")
    try:
        later = _later(source.agent.moved_to(source.path, source.folder), source.mark)
    except OSError as error:
        raise Unknown(f"its transcript cannot be read: {error}") from error
    texts = _texts(to_lines(saved))
    return cut(source.agent.lines, texts, _texts(later), source.session, source.moment)


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


def _has_talk(source: _Source, found: Cut) -> bool:
    form = source.agent.lines
    return any(form.is_talk(form.parsed(text, source.session)) for text in found.lines)


# Writing the copy


def _copy(
    source: _Source,
    found: Cut,
    environment: Mapping[str, str],
    timeline: str,
    make_id: Callable[[], str],
    now: datetime,
) -> str:
    """Write a transcript of these lines; the id of its session."""
    agent, folder, new = source.agent, source.folder, make_id()
    ending = Ending(new, f"{timeline} rewound", _written(now), make_id)
    copied = (agent.lines.copied(text, source.session, new) for text in found.lines)
    copy = [text for text in copied if text is not None]
    copy += agent.lines.closing(copy, found.waiting, ending)
    if base := agent.missing_base(copy[0], folder):
        raise Unknown(f"it goes on from the session {base!r}, which is gone")
    for more in filter(Path.is_dir, agent.session_folders(folder, source.session)):
        shutil.copytree(more, more.with_name(new), symlinks=True)
    path = agent.copy_path(source.path, new, folder, now)
    sessions.remember_timeline(environment, new, timeline)
    # Half a character, which JSON can hold, is written as JSON does.
    data = to_bytes(text.encode(errors="backslashreplace") for text in copy)
    _write(path, data)  # last: from here on it is there
    return new


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


def _written(moment: datetime) -> str:
    """As agents write it."""
    utc = moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# What is said about it


def _where(source: _Source, texts: Sequence[str], session: str) -> str | None:
    """The directory that this was said in, if the agent finds the session from there."""
    form = source.agent.lines
    told = (form.directory(form.parsed(text, source.session)) for text in texts)
    place = next((each for each in told if each is not None), None)
    if not place or not os.path.isdir(place):
        return None
    found = source.agent.transcripts(source.folder, place)
    return place if any(session == id for id, _ in found) else None


def _remark(found: Cut) -> str:
    if found.waiting:
        count = len(found.waiting)
        calls = "1 call has" if count == 1 else f"{count} calls have"
        return f"{calls} no result, and the agent is told so"
    if found.later:
        calls = "1 more call" if found.later == 1 else f"{found.later} more calls"
        return f"the conversation may tell of {calls} than the files: an answer comes back whole"
    return ""
