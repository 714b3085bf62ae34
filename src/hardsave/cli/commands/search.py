"""`hardsave search`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, wording
from hardsave.cli import current_timeline
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.session import Session
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hardsave.vault.search.search import Hit, Hits


@command(
    "search",
    examples="""
        hardsave search parser
        hardsave search parser.py
        hardsave search '"off by one"' --all
        hardsave search 'refactor*' --timeline session-1 -n 5
    """,
    takes=ON_A_TIMELINE,
    timeline_help="Only this timeline, by its name or a unique beginning.",
)
@click.argument("text")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--after", metavar="CURSOR", help="Go on behind a page: its 'next' in --json.")
@click.option("--wait", is_flag=True, help="Search all that was saved, however long it takes.")
@click.option("--all", "everything", is_flag=True, help="All timelines, of all directories.")
def search(
    session: Session, text: str, limit: int, after: str | None, *, wait: bool, everything: bool
) -> None:
    """Find words in what was said and saved, and in file names.

    All words must be there; "a phrase" stands in quotes, begin* means any word that begins so.
    Looks at states, names, descriptions and statuses, and at the paths of files that were added
    (+), changed (~) or removed (-), in all sessions of this directory.
    When a text came into a file is found by: hardsave bisect A B -- sh -c '! grep -q TEXT FILE'
    """
    session.reads_only = True
    if everything:
        session.refuse_timeline(beside="--all")
    with session.out.busy("searching"):
        chosen = None if everything else _chosen(session)
        found = session.vault.search(text, timeline=chosen, limit=limit, after=after, wait=wait)
    session.out.result(
        lambda: {"hits": [_data(hit) for hit in found], "next": found.next, **_reach(found)},
        lambda: _lines(session, found),
        paged=True,
    )
    if found.reaches is not None:
        many = wording.count(found.unsearched, "checkpoint")
        when = wording.ago(found.reaches, session.now)
        session.out.say(
            f"{many} not searched yet: the index reaches to {when}, and grows with every search; "
            "--wait searches all"
        )
    if not found:
        where = "; --all searches other directories, too" if chosen is not None else ""
        session.out.say(f"nothing has {text!r} in it; contents of files are not searched{where}")
    elif found.next is not None:
        session.out.say(f"these are the best {limit}; -n {limit * 4} shows more")


def _reach(found: "Hits[Checkpoint]") -> dict[str, Any]:
    reaches = found.reaches
    return {
        "unsearched": found.unsearched,
        "reaches": None if reaches is None else reaches.isoformat(),
    }


def _chosen(session: Session) -> list[str]:
    """The timelines that a search is about."""
    if (given := session.timeline_given) is not None:
        return [given]
    here = current_timeline.of_directory(session.timelines.every, session.directory)
    return [each.name for each in here]


def _data(hit: "Hit[Checkpoint]") -> dict[str, Any]:
    return {
        "checkpoint": json_data.checkpoint(hit.checkpoint),
        "timeline": hit.timeline,
        "field": hit.field,
        "path": hit.path,
        "snippet": hit.snippet,
        "marks": [list(mark) for mark in hit.marks],
        "score": hit.score,
        "newest": None if hit.newest is None else json_data.checkpoint(hit.newest),
        "change": hit.change,
    }


def _lines(session: Session, found: "Hits[Checkpoint]") -> "Iterator[RenderableType]":
    from hardsave.cli.render import hits

    titles = {hit.timeline: session.vault.timeline(hit.timeline).title for hit in found}
    yield from hits.drawn(found, titles, session.now)


COMMANDS = {"search": search}
