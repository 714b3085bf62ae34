"""`hardsave timelines …`: list, delete and clear them."""

from typing import TYPE_CHECKING, Any

from hardsave import Timeline
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import json_data, times, wording
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text


@command(
    "list",
    examples="""
        hardsave timelines list
        hardsave timelines list --json
    """,
)
def list_(session: Session) -> None:
    """List the timelines."""
    found = list(session.vault.timelines())
    session.out.result(lambda: [_data(each) for each in found], lambda: _lines(session, found))
    if not found:
        nothing = "nothing was saved here yet; 'hardsave save' makes the first checkpoint"
        session.out.say(session.deleted_hint() or session.saved_above or nothing)


def _data(line: Timeline) -> dict[str, Any]:
    head = line.head
    return {
        "name": line.name,
        "checkpoints": len(line),
        "head": None if head is None else json_data.checkpoint(head),
    }


def _lines(session: Session, found: list[Timeline]) -> "list[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw

    rows = []
    for line in found:
        head = line.head
        rows.append(
            (
                Text(wording.shown(line.name), style="name"),
                Text(wording.count(len(line), "checkpoint")),
                Text("" if head is None else wording.shown(head.status)),
                Text("" if head is None else times.ago(head.created_at, session.now), "quiet"),
                Text("")
                if head is None or head.files is None
                else Text(wording.shown(head.files.workspace)),
            )
        )
    return draw.columns(rows)


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
        lambda: [f"{what} {wording.shown(name)}: {wording.count(count, 'checkpoint')}"],
    )
    if count:
        session.hint_undo(name)


COMMANDS = {"list": list_, "delete": delete, "clear": clear}
