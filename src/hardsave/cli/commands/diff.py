"""`hardsave diff`: what changed between two checkpoints, in messages, state and files."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint
from hardsave.cli import changes, data, messages, words
from hardsave.cli.arguments import REF
from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.errors import HardsaveError
from hardsave.objects.diff import StatePath
from hardsave.timeline.diff import Diff
from hardsave.vault.files import unified

if TYPE_CHECKING:
    from rich.console import RenderableType

VALUE = 60  # characters of a value that has changed


@command(
    "diff",
    examples="""
        hardsave diff @~1
        hardsave diff main:3 main:7 --stat
        hardsave diff plan-ready @ --files
    """,
)
@click.argument("old", metavar="A", type=REF)
@click.argument("new", metavar="[B]", type=REF, default="@")
@click.option("--stat", is_flag=True, help="Which files, not which lines.")
@click.option("--files", "only", flag_value="files", help="Only files.")
@click.option("--state", "only", flag_value="state", help="Only the state.")
def diff(session: Session, old: str, new: str, stat: bool, only: str | None) -> None:
    """Show what changed between two checkpoints.

    From A to B; without B, to the head. What has changed since the head was saved is shown by
    'hardsave status'.
    """
    before, after = session.find(old), session.find(new)
    found = session.vault.diff(before, after)
    session.out.result(
        lambda: _data(before, after, found, lines=not stat),
        lambda: _lines(before, after, found, lines=not stat, only=only),
        paged=True,
    )


def _data(before: Checkpoint, after: Checkpoint, found: Diff, *, lines: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "old": data.checkpoint(before),
        "new": data.checkpoint(after),
        "added": [str(path) for path in found.added],
        "removed": [str(path) for path in found.removed],
        "changed": [str(path) for path in found.changed],
        "old_status": found.old_status,
        "new_status": found.new_status,
        "files": data.files(found.files),
    }
    if lines:
        answer["patches"] = {
            path: _patch(before, after, path) for _, path in changes.signed(found.files)
        }
    return answer


def _patch(before: Checkpoint, after: Checkpoint, path: str) -> str:
    return unified(before.snapshot, after.snapshot, path)


# For people


def _lines(
    before: Checkpoint, after: Checkpoint, found: Diff, *, lines: bool, only: str | None
) -> "Iterator[RenderableType]":
    from hardsave.cli import draw

    yield draw.line(draw.ref(before), " → ", draw.ref(after))
    if not found:
        yield draw.line(("nothing differs", "quiet"))
        return
    if only != "files":
        yield from _state(before, after, found)
    if only != "state":
        yield from _files(before, after, found, lines=lines)


def _state(before: Checkpoint, after: Checkpoint, found: Diff) -> "Iterator[RenderableType]":
    from hardsave.adapters import conversations
    from hardsave.cli import draw

    if found.old_status != found.new_status:
        yield draw.line(("~ ", "changed"), f"status: {found.old_status} → {found.new_status}")
    for sign, side, paths in (
        ("-", before, found.removed),
        ("~", after, found.changed),
        ("+", after, found.added),
    ):
        for path in paths:
            if conversations.is_record(side.state, path[0] if path else None):
                continue
            if _is_message(path):
                yield from draw.message(messages.read(side.read(*path)), sign=sign)
            else:
                yield draw.line(
                    (f"{sign} ", draw.SIGNS[sign]), f"{path}: ", _values(before, after, path, sign)
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
        return words.line(json.dumps(data.json_ready(side.read(*path)), ensure_ascii=False), VALUE)
    except HardsaveError:
        return None


def _files(
    before: Checkpoint, after: Checkpoint, found: Diff, *, lines: bool
) -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli import draw

    for sign, path in changes.signed(found.files):
        if not lines:
            yield draw.line((f"{sign} ", draw.SIGNS[sign]), words.shown(path))
            continue
        yield Text()
        patch = _patch(before, after, path)
        if patch:
            yield from draw.patch(patch)
        else:
            yield draw.line((f"{sign} ", draw.SIGNS[sign]), words.shown(path), _why(sign))


def _why(sign: str) -> tuple[str, str]:
    """A path without changed lines."""
    return ("  mode or kind" if sign == "~" else "  empty, or a directory", "quiet")


COMMANDS = {"diff": diff}
