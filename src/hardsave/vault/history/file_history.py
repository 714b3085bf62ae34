"""The history of one file: the checkpoints of a timeline that added, changed or removed it."""

from typing import Generic, Literal, TypeVar

from hardsave.errors import Misuse
from hardsave.page import Page, cursor_of
from hardsave.progress import meter
from hardsave.record import Record
from hardsave.vault.arguments import check_limit, not_a_cursor, place
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.context import Context
from hardsave.vault.files import Files
from hardsave.workspace.entries import Entry

C = TypeVar("C", covariant=True)

Change = Literal["added", "changed", "removed"]


class FileVersion(Record, Generic[C]):
    """What a checkpoint did to a file."""

    checkpoint: C
    change: Change
    size: int
    """In bytes, there; 0 where it was removed."""


def history(
    context: Context, start: Checkpoint, path: str, limit: int, after: str | None
) -> Page[FileVersion[Checkpoint]]:
    """From a checkpoint back through its ancestors, newest first."""
    check_limit(limit)
    if not path.strip("/"):
        raise Misuse("path is that of a file inside of the workspace")
    listing = f"file {context.user!r} {start.id} {path!r}"
    first = start if after is None else _at(context, after, listing)
    found: list[FileVersion[Checkpoint]] = []
    done = meter("comparing", "checkpoints")
    here, entry = first, _entry(first, path)
    for record in context.history.ancestors(record_of(first)):
        done.add(1)
        parent = context.checkpoint(record)
        if parent.files is None:
            continue  # it was saved without files: nothing is known of them
        if here.files is None:
            here, entry = parent, _entry(parent, path)
            continue
        if len(found) == limit:
            return Page(found, cursor_of(listing, here.id))
        before = entry if _is_same(here, parent) else _entry(parent, path)
        if (change := _change(before, entry)) is not None:
            found.append(FileVersion(here, change, 0 if entry is None else entry.size))
        here, entry = parent, before
    if entry is not None and len(found) < limit:
        found.append(FileVersion(here, "added", entry.size))
        return Page(found, None)
    return Page(found, None if entry is None else cursor_of(listing, here.id))


def _at(context: Context, after: str, listing: str) -> Checkpoint:
    found = place(after, listing)
    if found is None:
        raise not_a_cursor(after)
    return context.checkpoint(context.find(found))


def _entry(one: Checkpoint, path: str) -> Entry | None:
    files: Files | None = one.files
    return None if files is None else files._find(path)


def _is_same(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether both have the same capture: most saves change no file."""
    return record_of(one).snapshot == record_of(other).snapshot


def _change(before: Entry | None, now: Entry | None) -> Change | None:
    if before == now:
        return None
    if before is None:
        return "added"
    return "removed" if now is None else "changed"
