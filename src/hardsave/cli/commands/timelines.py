"""`hardsave timelines`."""

from typing import TYPE_CHECKING, Any

from hardsave import Timeline
from hardsave.cli import data, moments, words
from hardsave.cli.command import command
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text


@command(
    "timelines",
    examples="""
        hardsave timelines
        hardsave timelines --json
    """,
)
def timelines(session: Session) -> None:
    """List the timelines."""
    found = list(session.vault.timelines())
    session.out.result(lambda: [_data(each) for each in found], lambda: _lines(session, found))
    if not found:
        nothing = "nothing was saved here yet; 'hardsave save' makes the first checkpoint"
        session.out.say(session.deleted() or session.saved_above or nothing)


def _data(line: Timeline) -> dict[str, Any]:
    head = line.head
    return {
        "name": line.name,
        "checkpoints": len(line),
        "head": None if head is None else data.checkpoint(head),
    }


def _lines(session: Session, found: list[Timeline]) -> "list[Text]":
    from rich.text import Text

    from hardsave.cli import draw

    rows = []
    for line in found:
        head = line.head
        rows.append(
            (
                Text(words.shown(line.name), style="name"),
                Text(words.count(len(line), "checkpoint")),
                Text("" if head is None else words.shown(head.status)),
                Text("" if head is None else moments.ago(head.created_at, session.now), "quiet"),
                Text("")
                if head is None or head.files is None
                else Text(words.shown(head.files.workspace)),
            )
        )
    return draw.columns(rows)


COMMANDS = {"timelines": timelines}
