"""What is in a checkpoint, for people: its last messages, and the files that it changed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hardsave import Checkpoint, wording
from hardsave.cli.render import changed_files
from hardsave.timeline.diff import FileDiff
from hardsave.values import messages
from hardsave.vault.files import Files, difference, unified

if TYPE_CHECKING:
    from rich.console import RenderableType


def last_messages(one: Checkpoint, limit: int | None) -> tuple[int, list[Any]]:
    """How many there are, and the last of them; all without a limit."""
    found = messages.of(one.state)
    if found is None:
        return 0, []
    items = found[1]
    return len(items), list(items[max(0, len(items) - limit) :] if limit is not None else items)


def messages_of(
    one: Checkpoint, limit: int | None, *, full: bool = False
) -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli.render import draw

    total, items = last_messages(one, limit)
    if total:
        yield Text()
        earlier = f", the last {len(items)}" if len(items) < total else ""
        yield draw.line((wording.count(total, "message") + earlier, "name"))
        for item in items:
            yield from draw.message(messages.read(item), full=full)


def files_of(
    one: Checkpoint, before: Files | None, *, full: bool = False
) -> "Iterator[RenderableType]":
    """What changed since `before`, with lines; how many files there are, if it is the first."""
    from hardsave.cli.render import draw

    assert one.files is not None
    limit = None if full else draw.LISTED
    if before is None:
        yield from _first_files(one.files, full=full)
    else:
        yield from _changed_files(before, one.files, limit)
    yield from draw.not_captured(one.not_captured, limit=limit)


def first_paths(files: Files) -> list[str]:
    """What a checkpoint holds, of which no file was captured before."""
    return [each.path for each in files.list() if each.kind != "directory"]


def _first_files(files: Files, *, full: bool) -> "Iterator[RenderableType]":
    """How many there are, and their paths if all are asked for."""
    from hardsave.cli.render import draw

    paths = first_paths(files)
    yield draw.line((wording.count(len(paths), "file"), "name"), "; none was captured before")
    for path in paths if full else ():
        yield draw.line(("  + ", draw.SIGNS["+"]), wording.shown(path))


def _changed_files(before: Files, after: Files, limit: int | None) -> "Iterator[RenderableType]":
    from hardsave.cli.render import draw

    found = difference(before, after)
    yield draw.line((_changed(found), "name"))
    listed = changed_files.signed(found)
    for sign, path in listed[:limit]:
        lines = changed_files.stat(unified(before, after, path))
        start = (f"  {sign} ", draw.SIGNS[sign])
        yield draw.line(start, wording.shown(path), "  ", draw.tally(lines))
    if limit is not None and len(listed) > limit:
        yield draw.line((f"    and {len(listed) - limit:,} more; --full lists all", "quiet"))


def _changed(found: FileDiff) -> str:
    count = len(changed_files.signed(found))
    return f"{wording.count(count, 'file')} changed" if count else "no file has changed"
