"""How an agent goes on from a checkpoint: another transcript, cut where the checkpoint was saved.

The original is only read. The copy has an id of its own; it appears whole or not at all, and the
agent goes on from there. Where the original ends at the checkpoint by itself, it is gone on with;
and a copy that was made for the same checkpoint and not used yet serves again. What cannot be done
is said in `why`, and nothing is written.
"""

import json
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

from blake3 import blake3

from hardsave.agents import events, sessions
from hardsave.agents.cut import Cut, Moment, cut
from hardsave.agents.spec import AgentSpec, Ending, Unknown
from hardsave.agents.state import agent_of
from hardsave.agents.transcripts import Mark, beginning, is_at, read, to_bytes, to_lines
from hardsave.tuples import NamedTuple

_LONGEST_TITLE = 40  # characters
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
    prompt: str = ""
    """What its user said next in the conversation that was left; empty if nothing."""


class Place(NamedTuple):
    """For which checkpoint a conversation is wanted, and where it shall go on."""

    timeline: str  # on which the session that goes on saves
    checkpoint: str = ""  # its id; empty: no copy of it is used again
    origin: str = "rewound"  # what the copy says of itself: "rewound to :14"
    workspace: str | None = None
    """The directory in which the agent shall work. None: where this was said."""


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
    place: Place,
    earlier: Iterable[Mapping[str, Any]] = (),
    saved_at: datetime | None = None,
    *,
    make_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Resumption | None:
    """See to it that there is a transcript that ends where a checkpoint was saved, and say how to
    go on; None if its state is not a conversation of an agent CLI that is known. `earlier` is the
    metadata of the checkpoints before it, newest first."""
    agent = agent_of(state)
    if agent is None:
        return None
    near, far = tee(chain([metadata], earlier))
    has_talked = _has_talked([metadata] if state.get("lines") else far)
    try:
        source = _source(agent, state["transcript"], environment)
        moment = _moment(source, metadata, near, saved_at)
        found, is_whole = _cut(source._replace(moment=moment), _saved(state))
        if not _has_talk(source, found):
            if has_talked:
                raise Unknown("no transcript of it was written, or it is gone")
            return _anew(agent, place.workspace)
        move = _move(source, found.lines, place.workspace)
        if is_whole and move is None:
            new = source.session
            if place.timeline != events.timeline(agent.program, new):
                sessions.remember_timeline(environment, new, place.timeline)
        else:
            writing = _Copying(source, found, place, move)
            new = _known_copy(writing, environment) or _copy(writing, environment, make_id, clock())
        where = _where(source, found.lines, new) if move is None else move[1]
    except Unknown as error:
        return Resumption(agent.name, None, why=str(error))
    except OSError as error:
        return Resumption(agent.name, None, why=f"a transcript could not be written: {error}")
    return Resumption(agent.name, agent.resume_command(new), new, _remark(found), where)


def begin(left: Any, kept: Any, workspace: str | None) -> Resumption | None:
    """How the agent of the conversation that was left begins another one, where a checkpoint has
    none yet, as the first of a `hardsave run`; None if it has one, or anything else."""
    agent = agent_of(left)
    return None if agent is None or kept is not None else _anew(agent, workspace)


def _anew(agent: AgentSpec, workspace: str | None) -> Resumption:
    where = workspace and os.path.realpath(workspace)
    why = "nothing had been said yet"
    return Resumption(agent.name, agent.resume_command(None), why=why, directory=where)


def taken_back(left: Any, kept: Any) -> str:
    """What a user said first behind a conversation that is kept, in the one that was left; empty if
    that is another one, or nothing was said. With nothing kept, what was said first of all."""
    if agent_of(left) is None or (kept is not None and agent_of(kept) is None):
        return ""
    before, now = left.get("messages") or (), (kept or {}).get("messages") or ()
    count = len(now)
    if len(before) <= count or (count and before[count - 1] != now[count - 1]):
        return ""
    return next(filter(None, map(_prompt, before[count:])), "")


def _prompt(message: Any) -> str:
    """What a user typed as a prompt; empty if this is anything else. What begins with a tag is a
    command that the agent has carried out itself, or what that has printed."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return ""
    content = message.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else content or ()
    texts = [str(each.get("text", "")) for each in blocks if isinstance(each, Mapping)]
    said = "\n".join(filter(None, texts)).strip()
    return "" if said.startswith("<") else said


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


def _cut(source: _Source, saved: bytes) -> tuple[Cut, bool]:
    """The conversation as it was saved, if the transcript still begins with it, or is gone; and
    whether the transcript ends with it by itself."""
    if not is_at(saved, source.mark):
        raise Unknown("the saved transcript is not the one of its mark")
    try:
        later = _later(source.agent.moved_to(source.path, source.folder), source.mark)
    except OSError as error:
        raise Unknown(f"its transcript cannot be read: {error}") from error
    texts, more = _texts(to_lines(saved)), _texts(later or ())
    found = cut(source.agent.lines, texts, more, source.session, source.moment)
    rest = [*texts, *more][len(found.lines) :]
    is_there = later is not None and source.agent.is_gone_on_with(source.path, source.session)
    is_whole = is_there and not found.waiting and not _goes_on(source, rest)
    return found, is_whole and all(_is_copied(source, text) for text in [*texts, *more])


def _goes_on(source: _Source, texts: Sequence[str]) -> bool:
    """Whether lines of a transcript change what the model is asked with: agents also note what is
    no talk. A line that is not known may."""
    form = source.agent.lines
    tests = form.is_talk, form.is_to_model, form.is_from_model
    try:
        lines = [form.parsed(text, source.session) for text in texts]
    except Unknown:
        return True
    return any(test(line) for line in lines for test in tests)


def _is_copied(source: _Source, text: str) -> bool:
    """Whether a copy has this line: some lead the agent away from here."""
    return source.agent.lines.copied(text, source.session, source.session) is not None


def _later(path: Path, mark: Mark) -> list[bytes] | None:
    """What was written since; None if the transcript is gone."""
    if not path.exists():
        return None
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


class _Copying(NamedTuple):
    """A copy that is to be made."""

    source: _Source
    found: Cut
    place: Place
    move: tuple[str, str] | None  # from one directory to another

    @property
    def key(self) -> str:
        """The same for the same copy; empty if it is used once."""
        if not self.place.checkpoint:
            return ""
        words = [*self.place[:2], self.place.origin, *(self.move or ()), *self.found.lines]
        return blake3(json.dumps(words).encode()).hexdigest(length=20)


def _known_copy(copying: _Copying, environment: Mapping[str, str]) -> str | None:
    """The session of a copy like this that was made before, if nothing was said in it since."""
    known = sessions.copy(environment, copying.key) if copying.key else None
    if known is None:
        return None
    session, path, mark = known
    source = copying.source._replace(session=session)
    try:
        later = _later(Path(path), mark)
        is_unused = later is not None and not _goes_on(source, _texts(later))
    except (OSError, Unknown):
        return None
    return session if is_unused else None


def _copy(
    copying: _Copying, environment: Mapping[str, str], make_id: Callable[[], str], now: datetime
) -> str:
    """Write a transcript of these lines; the id of its session."""
    source, found, place, move = copying
    agent, folder, new = source.agent, source.folder, make_id()
    ending = Ending(new, _title(source, found), place.origin, _written(now), make_id)
    copied = (agent.lines.copied(text, source.session, new) for text in found.lines)
    copy = [text for text in copied if text is not None]
    if move is not None:
        copy = [agent.lines.moved(text, *move) for text in copy]
    copy += agent.lines.closing(copy, found.waiting, ending)
    if base := agent.missing_base(copy[0], folder):
        raise Unknown(f"it goes on from the session {base!r}, which is gone")
    for more in filter(Path.is_dir, agent.session_folders(folder, source.session)):
        shutil.copytree(more, more.with_name(new), symlinks=True)
    path = agent.copy_path(source.path, new, folder, now, None if move is None else move[1])
    sessions.remember_timeline(environment, new, place.timeline)
    # Half a character, which JSON can hold, is written as JSON does.
    data = to_bytes(text.encode(errors="backslashreplace") for text in copy)
    _write(path, data)  # from here on it is there
    if copying.key:
        mark = Mark(len(data), blake3(data).hexdigest())
        sessions.remember_copy(environment, copying.key, new, path, mark)
    return new


def _title(source: _Source, found: Cut) -> str:
    """What a conversation is about: how its first prompt begins."""
    lines = [text.encode(errors="backslashreplace") for text in found.lines]
    first = next(filter(None, map(_prompt, source.agent.lines.messages(lines))), "")
    plain = " ".join(first.split())
    return plain if len(plain) <= _LONGEST_TITLE else f"{plain[: _LONGEST_TITLE - 1]}…"


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


def _told_place(source: _Source, texts: Sequence[str]) -> str | None:
    """The directory that this was said in, as it says itself."""
    form = source.agent.lines
    told = (form.directory(form.parsed(text, source.session)) for text in texts)
    return next((each for each in told if each is not None), None)


def _move(source: _Source, texts: Sequence[str], workspace: str | None) -> tuple[str, str] | None:
    """From where this was said to where it shall go on; None if that is the same. An agent may have
    been started below its workspace."""
    told = _told_place(source, texts)
    if not workspace or not told:
        return None
    now = os.path.realpath(workspace)
    is_inside = Path(os.path.realpath(told)).is_relative_to(now)
    return None if is_inside else (told, now)


def _where(source: _Source, texts: Sequence[str], session: str) -> str | None:
    """The directory that this was said in, if the agent finds the session from there."""
    place = _told_place(source, texts)
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
