"""The way back into a conversation of Claude Code: another transcript, beside the original.

The original is only read. The copy has an id of its own; it appears whole or not at all.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hardsave.adapters import claude_lines, spool
from hardsave.adapters.claude_lines import Open, Unknown
from hardsave.adapters.install import claude_folder
from hardsave.adapters.resumption import Resumption
from hardsave.adapters.transcripts import Mark, beginning, is_at, read, to_bytes, to_lines

AGENT = "claude-code"


class _Source(NamedTuple):
    """A transcript as a checkpoint remembers it."""

    session: str
    path: Path
    mark: Mark
    pending: str | None


def resume(
    state: Mapping[str, Any],
    environment: Mapping[str, str],
    timeline: str,
    *,
    make_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Resumption:
    """Write a transcript that ends where this checkpoint was saved, and say how to go on."""
    try:
        source = _source(state["transcript"], claude_folder(environment))
        lines, waiting = _cut(source, _saved(state))
        if not claude_lines.has_talk(lines):
            return Resumption(AGENT, "claude", why="nothing had been said yet")
        new = make_id()
        copy = [claude_lines.copied(line, source.session, new) for line in lines]
    except Unknown as error:
        return Resumption(AGENT, None, why=str(error))
    moment = clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    copy += [claude_lines.result(call, new, make_id(), moment) for call in waiting]
    copy.append(claude_lines.title(f"{timeline} rewound", new))
    _copy_history(claude_folder(environment), source.session, new)
    _write(source.path.with_name(f"{new}.jsonl"), to_bytes(line.encode() for line in copy))
    spool.remember_timeline(environment, new, timeline)
    return Resumption(AGENT, f"claude --resume {new}", new, _told(waiting))


def _source(told: Mapping[str, Any], folder: Path) -> _Source:
    """What a checkpoint says, which may come from anybody: it leads nowhere but to transcripts."""
    session, path, pending = (told.get(key) for key in ("session", "path", "pending"))
    offset, digest = told.get("offset"), told.get("sha256")
    if not isinstance(session, str) or not isinstance(path, str) or not isinstance(offset, int):
        raise Unknown("the checkpoint does not say where its transcript is")
    home = Path(os.path.realpath(folder / "projects"))
    real = Path(os.path.realpath(path))
    if real.parent.parent != home or real.name != f"{session}.jsonl":
        raise Unknown(f"{path!r} is not where Claude Code keeps its transcripts")
    return _Source(session, real, Mark(offset, str(digest)), pending and str(pending))


def _saved(state: Mapping[str, Any]) -> bytes:
    lines = state.get("lines")
    if not isinstance(lines, Sequence) or not all(isinstance(line, bytes) for line in lines):
        raise Unknown("the checkpoint holds no lines of its transcript")
    return to_bytes(lines)


def _cut(source: _Source, saved: bytes) -> tuple[list[str], list[Open]]:
    """The conversation as it was saved, if the transcript still begins with it, or is gone."""
    if not is_at(saved, source.mark):
        raise Unknown("the saved transcript is not the one of its mark")
    later: list[bytes] = []
    if source.path.exists():
        if beginning(source.path, source.mark) is None:
            raise Unknown("the transcript was rewritten since: it begins otherwise by now")
        later = read(source.path, source.mark).lines
    lines = _texts(to_lines(saved))
    return claude_lines.settled(lines, _texts(later), source.session, source.pending)


def _texts(lines: Sequence[bytes]) -> list[str]:
    try:
        return [line.decode() for line in lines]
    except UnicodeDecodeError as error:
        raise Unknown(f"a line is not UTF-8: {error}") from error


def _told(waiting: Sequence[Open]) -> str:
    if not waiting:
        return ""
    calls = "1 call has" if len(waiting) == 1 else f"{len(waiting)} calls have"
    return f"{calls} no result, and the agent is told so"


def _copy_history(folder: Path, old: str, new: str) -> None:
    """What Claude Code keeps for its own undo goes along."""
    history = folder / "file-history" / old
    if history.is_dir():
        shutil.copytree(history, history.with_name(new), symlinks=True)


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
