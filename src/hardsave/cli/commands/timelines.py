"""`hardsave timelines …`: list, delete and clear them."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.current_timeline import TimelineState
from hardsave.cli.moments import agent_of
from hardsave.cli.session import Session
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.text import Text

LIMIT = 100


@command(
    "list",
    examples="""
        hardsave timelines list
        hardsave timelines list -n 500 --json
    """,
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1_000_000),
    help=f"How many; without it {LIMIT}, or all with --json.",
)
def list_(session: Session, limit: int | None) -> None:
    """List sessions and other timelines, the last updated first."""
    if limit is None:
        limit = sys.maxsize - 1 if session.out.as_json else LIMIT
    known = session.timelines.newest(limit + 1)
    found = known[:limit]
    session.out.result(
        lambda: [_data(session, each) for each in found], lambda: _lines(session, found)
    )
    if len(known) > limit:
        session.out.say(f"these are the newest {limit:,}; -n {limit * 4} shows more")
    if not found:
        nothing = "nothing was saved here yet; 'hardsave save' makes the first checkpoint"
        session.out.say(session.deleted_hint() or session.saved_above or nothing)


def _data(session: Session, line: TimelineState) -> dict[str, Any]:
    handle = session.vault.timeline(line.name)
    head = handle.head
    return {
        "name": line.name,
        "short_name": session.shown_name(line.name),
        "title": line.title,
        "agent": agent_of(line.name),
        "updated_at": line.updated_at.isoformat(),
        "checkpoints": len(handle),
        "head": None if head is None else json_data.checkpoint(head),
    }


def _lines(session: Session, found: Sequence[TimelineState]) -> "list[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw, rows

    width = session.out.console.width
    here = str(session.directory)
    is_narrow = width < rows.NARROW  # then what it was about is told, and little else
    lines = [
        (
            draw.timeline(each.name),
            Text("" if is_narrow else agent_of(each.name)),
            Text() if is_narrow else _size(each, is_wide=width >= rows.WIDE),
            rows.age(each.updated_at, session.now, width),
            Text("" if is_narrow else wording.shown(each.status)),
            _title(each, here),
        )
        for each in found
    ]
    return draw.columns(lines)


def _size(line: TimelineState, *, is_wide: bool) -> "Text":
    from rich.text import Text

    text = wording.count(line.seq, "checkpoint") if is_wide else f"{line.seq:,}"
    return Text(text, style="quiet")


def _title(line: TimelineState, here: str) -> "Text":
    """Its first prompt; and where it is about, if that is not here."""
    from rich.text import Text

    text = Text(wording.line(line.title))
    if line.workspace not in (None, here):
        text.append("  " if text else "").append(wording.shown(line.workspace or ""), style="quiet")
    return text


@command(
    "delete",
    examples="""
        hardsave timelines delete --timeline session-1
    """,
    takes=ON_A_TIMELINE,
    timeline_help="Which timeline, by its name or a unique beginning.",
)
def delete(session: Session) -> None:
    """Delete a timeline; undo brings it back.

    It is hidden with all its checkpoints, and its bytes stay until retention lets them go. What
    must be gone at once is for 'hardsave store purge'.
    """
    line = session.line_typed
    _removed(session, line.name, line.delete(), "deleted")


@command(
    "clear",
    examples="""
        hardsave timelines clear --timeline session-1
    """,
    takes=ON_A_TIMELINE,
    timeline_help="Which timeline, by its name or a unique beginning.",
)
def clear(session: Session) -> None:
    """Delete all checkpoints of a timeline, which stays; undo brings them back.

    Its numbers go on where they were.
    """
    line = session.line_typed
    _removed(session, line.name, line.clear(), "cleared")


def _removed(session: Session, name: str, count: int, what: str) -> None:
    session.out.result(
        lambda: {"timeline": name, "checkpoints": count},
        lambda: [f"{what} {_named(session, name)}: {wording.count(count, 'checkpoint')}"],
    )
    if count:
        session.hint_undo(name)


def _named(session: Session, name: str) -> str:
    return wording.shown(session.shown_name(name))


COMMANDS = {"list": list_, "delete": delete, "clear": clear}
