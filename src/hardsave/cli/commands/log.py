"""`hardsave log`: what was saved, as a graph; or as it happens."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, Timeline
from hardsave.cli import missed_saves
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.log_query import Log, Wanted, gather
from hardsave.cli.render import graph, json_data, times, wording
from hardsave.cli.render.summary import Summaries, Summary
from hardsave.cli.session import Session
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.vault.follow import Event

LIMIT = 30


@command(
    "log",
    examples="""
        hardsave log
        hardsave log --timeline session-1 -n 100
        hardsave log --all
        hardsave log --status failed --since 2h
        hardsave log --follow --json
    """,
    takes=ON_A_TIMELINE,
)
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), help="How many.  [default: 30]")
@click.option("--all", "everything", is_flag=True, help="All timelines.")
@click.option("--name", help="Only checkpoints of this name.")
@click.option("--kind", help="Only this kind: automatic, manual, feature, session.")
@click.option("--status", help="Only this status.")
@click.option("--since", metavar="T", help="Not before: 2h, 14:00, yesterday, or 2026-01-31T14:00.")
@click.option("--until", metavar="T", help="Not after.")
@click.option("--follow", "-f", is_flag=True, help="Show what happens from now on, as it does.")
def log(
    session: Session,
    limit: int | None,
    everything: bool,
    since: str | None,
    until: str | None,
    follow: bool,
    **filters: str | None,
) -> None:
    """Show what was saved, newest first, with its branches.

    @ is the head of the timeline, :7 its number 7; ● has a name or was saved by hand, ○ was saved
    automatically. Counts are against the checkpoint before: messages, then files added (+),
    changed (~) and removed (-); ! counts what was not captured, and 'show' says why.
    """
    session.reads_only = True
    if everything:
        session.refuse_timeline(beside="--all")
    if follow:
        _refuse_beside_follow(n=limit, since=since, until=until, **filters)
        _follow(session, None if everything else session.timeline_given)
        return
    limit = limit or LIMIT
    first, last = (times.moment(t, session.now) if t else None for t in (since, until))
    wanted = Wanted(limit, since=first, until=last, **filters)
    line = None if everything else session.line
    found = gather(session.vault.timelines() if line is None else [line], wanted)
    seen = found if line is None else found.with_head(line)
    session.out.result(
        lambda: _data(session, found), lambda: _lines(session, seen, line), paged=True
    )
    missed_saves.say(session)
    _hint(session, found, line, limit)


def _refuse_beside_follow(**given: object) -> None:
    """What is saved from now on is shown as it comes, all of it."""
    for name, value in given.items():
        if value is not None:
            option = f"{'-' if len(name) == 1 else '--'}{name}"
            raise Misuse(f"{option} means nothing beside --follow; leave one of them out")


def _hint(session: Session, found: Log, line: Timeline | None, limit: int) -> None:
    if not found.checkpoints:
        session.out.say(_nothing(session, line))
    elif found.has_more and session.out.is_terminal:
        session.out.say(f"these are the newest {limit}; -n {limit * 4} shows more")


def _nothing(session: Session, line: Timeline | None) -> str:
    """Why there is nothing to be seen, and what to do next."""
    if session.saved_above:
        return session.saved_above
    where = "" if line is None else f" on timeline {line.name!r}"
    summaries = list(session.vault.timelines() if line is None else [line])
    if any(map(len, summaries)):
        return f"there is nothing like that{where}"
    if found := session.deleted_hint(None if line is None or not _any(session) else line.name):
        return found
    if next(session.vault.timelines(), None) is not None:
        return f"nothing was saved{where} yet; 'hardsave timelines' lists what there is"
    return f"nothing was saved{where} yet; 'hardsave save' makes a checkpoint"


def _any(session: Session) -> bool:
    """Whether there is anything on any timeline."""
    return any(map(len, session.vault.timelines()))


def _data(session: Session, found: Log) -> list[dict[str, Any]]:
    summaries = Summaries(session.vault, found.checkpoints)
    return [
        {
            **json_data.checkpoint(each),
            "head_of": found.heads.get(each.id, []),
            **_counts(summaries.of(each)),
        }
        for each in found.checkpoints
    ]


def _counts(summary: Summary) -> dict[str, Any]:
    files = summary.files
    return {
        "messages": summary.messages,
        "new_messages": summary.new_messages,
        "files": None
        if files is None
        else {
            word: files.get(sign, 0)
            for sign, word in (("+", "added"), ("~", "changed"), ("-", "removed"), ("", "first"))
        },
    }


# For people


def _lines(session: Session, found: Log, line: Timeline | None) -> "Iterator[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw, rows

    summaries = Summaries(session.vault, found.checkpoints)
    shown = {each.id for each in found.checkpoints} if found.is_filtered else None
    nodes = [_node(summaries, each, found, line, shown) for each in found.checkpoints]
    graphics = graph.draw(nodes, apart=not found.is_filtered)
    above = rows.long_name(line)
    narrow = session.out.console.width < rows.NARROW
    cells = [
        rows.cells(summaries.of(each), each, found.heads, session.now, above, narrow=narrow)
        for each in found.checkpoints
    ]
    if above is not None and cells:
        way = (
            "" if session.is_default_timeline(above) else "  (for :N, add --timeline and this name)"
        )
        yield draw.line(("timeline  ", "quiet"), (wording.shown(above), "name"), (way, "quiet"))
    for row, text in zip(graphics, draw.columns(cells), strict=True):
        for join in row.joins:
            yield Text(join, style="quiet")
        graphic = Text(f"{row.line}  ", style="quiet")
        graphic.highlight_regex(r"@", "head")
        graphic.highlight_regex(r"●", "name")
        yield draw.line(graphic, text, cut=True)


def _node(
    summaries: Summaries,
    one: Checkpoint,
    found: Log,
    line: Timeline | None,
    shown: Collection[str] | None,
) -> graph.Node:
    """With what it was saved on top of; only if that is `shown`, where some are left out."""
    from hardsave.cli.render import rows

    parent = summaries.parent(one)
    mark = rows.mark(one, found.heads.get(one.id, []), None if line is None else line.name)
    is_there = parent is not None and (shown is None or parent.id in shown)
    return graph.Node(one.id, parent.id if parent is not None and is_there else None, mark)


# As it happens


def _follow(session: Session, timeline: str | None) -> None:
    following = session.vault.follow()
    if session.out.is_terminal:
        session.out.say("what is saved and done from now on; Ctrl-C ends it")
    for event in following:
        if timeline in (None, event.timeline):
            session.out.event(lambda e=event: _event_data(e), lambda e=event: _event_line(e))  # type: ignore[misc]  # bound now, not later


def _event_data(event: "Event[Checkpoint]") -> dict[str, Any]:
    one = event.checkpoint
    return {
        "number": event.number,
        "kind": event.kind,
        "timeline": event.timeline,
        "created_at": event.created_at.isoformat(),
        "checkpoint": None if one is None else json_data.checkpoint(one),
        "data": json_data.logged(event.data),
        "task": event.task,
    }


def _event_line(event: "Event[Checkpoint]") -> "Text":
    from hardsave.cli.render import draw

    one = event.checkpoint
    what = (event.kind, "name") if one is None else draw.ref(one)
    about = event.task or event.timeline or ""
    about = wording.shown(about if one is None else one.name or one.description)
    return draw.line((times.local(event.created_at), "quiet"), "  ", what, "  ", about)


COMMANDS = {"log": log}
