"""`hardsave search`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import json_data, times, wording
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from hardsave.page import Page
    from hardsave.vault.search import Hit


@command(
    "search",
    examples="""
        hardsave search parser
        hardsave search '"off by one"'
        hardsave search 'refactor*' --timeline session-1 -n 5
    """,
    takes=ON_A_TIMELINE,
    timeline_help="Only this timeline, by its name or a unique beginning.",
)
@click.argument("text")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--after", metavar="CURSOR", help="Go on behind a page: its 'next' in --json.")
def search(session: Session, text: str, limit: int, after: str | None) -> None:
    """Find words in what was said and saved, files apart.

    All words must be there; "a phrase" stands in quotes, begin* means any word that begins so.
    Looks at states, names, descriptions and statuses, on all timelines of the store or the one
    that is given.
    When a text came into a file is found by: hardsave bisect A B -- sh -c '! grep -q TEXT FILE'
    """
    with session.out.busy("searching"):
        found = session.vault.search(
            text, timeline=session.timeline_given, limit=limit, after=after
        )
    session.out.result(
        lambda: {"hits": [_data(hit) for hit in found], "next": found.next},
        lambda: _lines(session, found),
        paged=True,
    )
    if not found:
        session.out.say(f"nothing has {text!r} in it; files are not searched")
    elif found.next is not None:
        session.out.say(f"these are the best {limit}; -n {limit * 4} shows more")


def _data(hit: "Hit[Checkpoint]") -> dict[str, Any]:
    return {
        "checkpoint": json_data.checkpoint(hit.checkpoint),
        "timeline": hit.timeline,
        "field": hit.field,
        "path": hit.path,
        "snippet": hit.snippet,
        "marks": [list(mark) for mark in hit.marks],
        "score": hit.score,
    }


def _lines(session: Session, found: "Page[Hit[Checkpoint]]") -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli.render import draw

    for hit in found:
        where = hit.path or hit.field
        age = times.ago(hit.checkpoint.created_at, session.now)
        yield draw.line(draw.ref(hit.checkpoint), (f"  {age}  {wording.shown(where)}", "quiet"))
        yield draw.Hanging(Text("    "), _snippet(hit))


def _snippet(hit: "Hit[Checkpoint]") -> "Text":
    from rich.text import Text

    text = Text()
    at = 0
    for start, end in hit.marks:
        text.append(wording.line(f"|{hit.snippet[at:start]}|")[1:-1])
        text.append(wording.line(hit.snippet[start:end]), style="found")
        at = end
    return text.append(wording.line(f"|{hit.snippet[at:]}|")[1:-1])


COMMANDS = {"search": search}
