"""`hardsave diff`: what changed between two checkpoints, in messages, state and files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint
from hardsave.cli.arguments import REF, one_of
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import changed_files, json_data, messages, wording
from hardsave.cli.session import Session
from hardsave.errors import HardsaveError, Misuse, NotFound
from hardsave.objects.diff import StatePath
from hardsave.timeline.diff import Diff
from hardsave.vault.files import unified

if TYPE_CHECKING:
    from rich.console import RenderableType

VALUE = 60  # characters of a value that has changed


@command(
    "diff",
    examples="""
        hardsave diff
        hardsave diff @~1
        hardsave diff main:3 main:7 --stat
        hardsave diff plan-ready @ --files
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("old", metavar="[A]", type=REF, required=False)
@click.argument("new", metavar="[B]", type=REF, default="@")
@click.option("--stat", is_flag=True, help="Which files, not which lines.")
@click.option("--files", is_flag=True, help="Only files.")
@click.option("--state", is_flag=True, help="Only the state.")
def diff(
    session: Session, old: str | None, new: str, *, stat: bool, files: bool, state: bool
) -> None:
    """Show what changed between two checkpoints, or since the last.

    From A to B; without B, to the head; without both, from the head to the files as they are now.
    What goes into a pipe or a file can be given to 'git apply', but for what is no text.
    """
    session.reads_only = True
    only = one_of(files=files, state=state)
    one_of(stat=stat, state=state)
    if old is None:
        _since_the_last(session, lines=not stat, only=only)
    else:
        before, after = session.find_all(old, new)
        _between(session, before, after, lines=not stat, only=only)


def _between(
    session: Session, before: Checkpoint, after: Checkpoint, *, lines: bool, only: str | None
) -> None:
    found = session.vault.diff(before, after)
    session.out.result(
        lambda: _data(before, after, found, lines=lines),
        lambda: _lines(before, after, found, lines=lines, only=only),
        paged=True,
    )


def _since_the_last(session: Session, *, lines: bool, only: str | None) -> None:
    if only == "state":
        raise Misuse("what is not saved yet has files alone; name a checkpoint: hardsave diff A")
    with session.out.busy("looking"):
        found = session.workspace.status(session.base)
    if found.last is None:
        nothing = "nothing was saved here yet; see 'hardsave status'"
        raise NotFound(session.saved_above or session.deleted_hint() or nothing)
    before = found.last

    def patch(path: str) -> str:
        return changed_files.patch_since(before.files, session.directory, path)

    listed = changed_files.signed(found.files)
    patches = {"patches": {path: patch(path) for _, path in listed}} if lines else {}
    answer = {
        "old": json_data.checkpoint(before),
        "new": None,
        "files": json_data.files(found.files),
    }
    session.out.result(
        lambda: {**answer, **patches},
        lambda: _present(before, listed, patches.get("patches")),
        paged=True,
    )


def _present(
    before: Checkpoint, listed: Sequence[tuple[str, str]], patches: Mapping[str, str] | None
) -> "Iterator[RenderableType]":
    from hardsave.cli.render import draw

    yield draw.line(draw.ref(before), " → now")
    if not listed:
        yield draw.line(("nothing has changed", "quiet"))
    yield from _changed(listed, patches)


def _data(before: Checkpoint, after: Checkpoint, found: Diff, *, lines: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "old": json_data.checkpoint(before),
        "new": json_data.checkpoint(after),
        "added": [str(path) for path in found.added],
        "removed": [str(path) for path in found.removed],
        "changed": [str(path) for path in found.changed],
        "old_status": found.old_status,
        "new_status": found.new_status,
        "files": json_data.files(found.files),
    }
    if lines:
        answer["patches"] = {
            path: _patch(before, after, path) for _, path in changed_files.signed(found.files)
        }
    return answer


def _patch(before: Checkpoint, after: Checkpoint, path: str) -> str:
    return unified(before.files, after.files, path)


# For people


def _lines(
    before: Checkpoint, after: Checkpoint, found: Diff, *, lines: bool, only: str | None
) -> "Iterator[RenderableType]":
    from hardsave.cli.render import draw

    yield draw.line(draw.ref(before), " → ", draw.ref(after))
    if not found:
        yield draw.line(("nothing differs", "quiet"))
        return
    if only != "files":
        yield from _state(before, after, found)
    if only != "state":
        yield from _files(before, after, found, lines=lines)


def _state(before: Checkpoint, after: Checkpoint, found: Diff) -> "Iterator[RenderableType]":
    from hardsave.agents.state import is_record
    from hardsave.cli.render import draw

    if found.old_status != found.new_status:
        status = wording.shown(f"{found.old_status} → {found.new_status}")
        yield draw.line(("~ ", "changed"), f"status: {status}")
    for sign, side, paths in (
        ("-", before, found.removed),
        ("~", after, found.changed),
        ("+", after, found.added),
    ):
        for path in paths:
            if is_record(side.state, path[0] if path else None):
                continue
            if _is_message(path):
                yield from draw.message(messages.read(side.read(*path)), sign=sign)
            else:
                yield draw.line(
                    (f"{sign} ", draw.SIGNS[sign]),
                    f"{wording.shown(str(path))}: ",
                    _values(before, after, path, sign),
                )


def _is_message(path: StatePath) -> bool:
    return len(path) == 2 and path[0] in messages.KEYS and isinstance(path[1], int)


def _values(before: Checkpoint, after: Checkpoint, path: StatePath, sign: str) -> str:
    old = _value(before, path) if sign != "+" else None
    new = _value(after, path) if sign != "-" else None
    return " → ".join(each for each in (old, new) if each is not None)


def _value(side: Checkpoint, path: StatePath) -> str | None:
    """None where a path leads nowhere: an item of a list may have had another number before."""
    try:
        return wording.line(
            json.dumps(json_data.json_ready(side.read(*path)), ensure_ascii=False), VALUE
        )
    except HardsaveError:
        return None


def _files(
    before: Checkpoint, after: Checkpoint, found: Diff, *, lines: bool
) -> "Iterator[RenderableType]":
    listed = changed_files.signed(found.files)
    patches = {path: _patch(before, after, path) for _, path in listed} if lines else None
    yield from _changed(listed, patches)


def _changed(
    listed: Sequence[tuple[str, str]], patches: Mapping[str, str] | None
) -> "Iterator[RenderableType]":
    """Which files, with their lines if there are patches."""
    from rich.text import Text

    from hardsave.cli.render import draw

    for sign, path in listed:
        if patches is None:
            yield draw.line((f"{sign} ", draw.SIGNS[sign]), wording.shown(path))
            continue
        yield Text()
        if patches[path]:
            yield draw.Patch(patches[path])
        else:
            yield draw.line((f"{sign} ", draw.SIGNS[sign]), wording.shown(path), _why(sign))


def _why(sign: str) -> tuple[str, str]:
    """A path without changed lines."""
    return ("  mode or kind" if sign == "~" else "  an empty directory", "quiet")


COMMANDS = {"diff": diff}
