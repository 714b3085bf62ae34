"""`hardsave store stats`."""

from typing import TYPE_CHECKING

from hardsave import Stats
from hardsave.cli import words
from hardsave.cli.command import command
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text


@command(
    "stats",
    examples="""
        hardsave store stats
        hardsave store stats --json
    """,
)
def stats(session: Session) -> None:
    """Show how much is stored, and where."""
    found = session.vault.store.stats()
    session.out.result(
        lambda: {"store": session.url, **found.as_dict()}, lambda: _lines(session, found)
    )


def _lines(session: Session, found: Stats) -> "list[Text]":
    from hardsave.cli import draw

    return draw.fields(
        {
            "store": session.url,
            "timelines": f"{found.timelines:,}",
            "checkpoints": f"{found.checkpoints:,}",
            "objects": f"{found.objects:,}",
            "tasks": f"{found.tasks:,}",
            "on disk": words.size(found.disk_bytes),
        }
    )


COMMANDS = {"stats": stats}
