"""`hardsave log`: what was saved, as a graph; or as it happens."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, Timeline
from hardsave.cli import data, graph, moments, words
from hardsave.cli.arguments import TIMELINE
from hardsave.cli.command import command
from hardsave.cli.facts import Facts, Known
from hardsave.cli.history import Log, Wanted, gather
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.vault.follow import Event

LIMIT = 30


@command(
    "log",
    examples="""
        hardsave log
        hardsave log session-1 -n 100
        hardsave log --all
        hardsave log --status failed --since 2h
        hardsave log --follow --json
    """,
)
@click.argument("timeline_name", metavar="[TIMELINE]", required=False, type=TIMELINE)
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=LIMIT, show_default=True)
@click.option("--all", "everything", is_flag=True, help="All timelines.")
@click.option("--name", help="Only checkpoints of this name.")
@click.option("--kind", help="Only this kind: automatic, manual, feature, session.")
@click.option("--status", help="Only this status.")
@click.option("--since", metavar="T", help="Not before: 2h, 3d, or 2026-01-31T14:00.")
@click.option("--until", metavar="T", help="Not after.")
@click.option("--follow", "-f", is_flag=True, help="Show what happens from now on, as it does.")
def log(
    session: Session,
    timeline_name: str | None,
    limit: int,
    everything: bool,
    since: str | None,
    until: str | None,
    follow: bool,
    **narrow: str | None,
) -> None:
    """Show what was saved, newest first, with its branches.

    @ is the head of the timeline; ● has a name or was saved by hand, ○ was saved automatically.
    Counts are against the checkpoint before: messages, then files added, changed and removed.
    """
    if follow:
        _follow(session, None if everything else timeline_name or session.settings.timeline)
        return
    wanted = Wanted(
        limit,
        since=None if since is None else moments.moment(since, session.now),
        until=None if until is None else moments.moment(until, session.now),
        **narrow,
    )
    line = None if everything else _line(session, timeline_name)
    found = gather(session.vault.timelines() if line is None else [line], wanted)
    session.out.result(
        lambda: _data(session, found), lambda: _lines(session, found, line), paged=True
    )
    _hint(session, found, line, limit)


def _line(session: Session, name: str | None) -> Timeline:
    return session.line if name is None else session.vault.timeline(name)


def _hint(session: Session, found: Log, line: Timeline | None, limit: int) -> None:
    if not found.checkpoints:
        where = "" if line is None else f" on timeline {line.name!r}"
        session.out.say(f"nothing was saved{where} yet; 'hardsave save' makes a checkpoint")
    elif found.has_more and session.out.is_terminal:
        session.out.say(f"these are the newest {limit}; -n {limit * 4} shows more")


def _data(session: Session, found: Log) -> list[dict[str, Any]]:
    known = _known(session, found)
    return [
        {
            **data.checkpoint(each),
            "head_of": found.heads.get(each.id, []),
            **_counts(known.facts(each)),
        }
        for each in found.checkpoints
    ]


def _counts(facts: Facts) -> dict[str, Any]:
    files = facts.files
    return {
        "messages": facts.messages,
        "new_messages": facts.new_messages,
        "files": None
        if files is None
        else {
            word: files.get(sign, 0)
            for sign, word in (("+", "added"), ("~", "changed"), ("-", "removed"), ("", "first"))
        },
    }


def _known(session: Session, found: Log) -> Known:
    known = Known(session.vault)
    for each in found.checkpoints:
        known.add(each)
    return known


# For people


def _lines(session: Session, found: Log, line: Timeline | None) -> "Iterator[Text]":
    from rich.text import Text

    from hardsave.cli import draw

    known = _known(session, found)
    current = None if line is None else line.name
    nodes = [_node(known, each, found.heads, current) for each in found.checkpoints]
    glyphs = graph.Glyphs() if _can_draw() else graph.ASCII
    rows = graph.draw(nodes, glyphs)
    said = [cells(session, known.facts(each), each, found.heads) for each in found.checkpoints]
    for row, text in zip(rows, draw.columns(said) if said else [], strict=True):
        for join in row.joins:
            yield Text(join, style="quiet")
        graphic = Text(f"{row.line}  ", style="quiet")
        graphic.highlight_regex(r"@", "head")
        graphic.highlight_regex(r"●", "name")
        yield draw.line(graphic, text, cut=True)


def _node(
    known: Known, one: Checkpoint, heads: dict[str, list[str]], current: str | None
) -> graph.Node:
    parent = known.parent(one)
    return graph.Node(one.id, None if parent is None else parent.id, mark(one, heads, current))


def mark(one: Checkpoint, heads: dict[str, list[str]], current: str | None) -> str:
    """What stands for a checkpoint: a head, a saved one, an automatic one."""
    names = heads.get(one.id, [])
    if current in names if current is not None else names:
        return "@"
    is_automatic = one.kind == "automatic" and not one.name
    drawn, lettered = ("○", "o") if is_automatic else ("●", "*")
    return drawn if _can_draw() else lettered


def cells(
    session: Session, facts: Facts, one: Checkpoint, heads: dict[str, list[str]]
) -> "tuple[Text, ...]":
    from rich.text import Text

    from hardsave.cli import draw

    ref = draw.ref(one)
    for name in heads.get(one.id, []):
        if name != one.timeline:
            ref.append(f" ← {words.shown(name)}", style="head")
    return (
        ref,
        Text(moments.ago(one.created_at, session.now), style="quiet"),
        _messages(facts),
        draw.tally(facts.files),
        _title(facts, one),
    )


def _messages(facts: Facts) -> "Text":
    from rich.text import Text

    if facts.messages is None:
        return Text()
    text = Text(words.count(facts.messages, "message"))
    if facts.new_messages and facts.new_messages != facts.messages:
        text.append(f" {facts.new_messages:+,}", style="quiet")
    return text


def _title(facts: Facts, one: Checkpoint) -> "Text":
    """Its name, what it says of itself, and what was not captured; else its last message."""
    from rich.text import Text

    text = Text()
    if one.name:
        text.append(words.shown(one.name), style="name")
    if one.status not in ("running", "saved"):
        text.append(f"{' ' if text else ''}[{words.shown(one.status)}]", style="changed")
    if facts.not_captured:
        text.append(f"{' ' if text else ''}{facts.not_captured} not captured", style="warning")
    said = words.line(one.description or facts.last, 72)
    return text.append(f"{' ' if text else ''}{said}" if said else "", style="quiet")


def _can_draw() -> bool:
    """Whether the terminal's encoding has what the graph is drawn with."""
    try:
        "●○│├╯┴┼─".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


# As it happens


def _follow(session: Session, timeline: str | None) -> None:
    if session.out.is_terminal:
        session.out.say("what is saved and done from now on; Ctrl-C ends it")
    for event in session.vault.follow():
        if timeline in (None, event.timeline):
            session.out.event(lambda e=event: _event_data(e), lambda e=event: _event_line(e))  # type: ignore[misc]  # bound now, not later


def _event_data(event: "Event[Checkpoint]") -> dict[str, Any]:
    one = event.checkpoint
    return {
        "number": event.number,
        "kind": event.kind,
        "timeline": event.timeline,
        "created_at": event.created_at.isoformat(),
        "checkpoint": None if one is None else data.checkpoint(one),
        "data": data.logged(event.data),
    }


def _event_line(event: "Event[Checkpoint]") -> "Text":
    from hardsave.cli import draw

    one = event.checkpoint
    what = (event.kind, "name") if one is None else draw.ref(one)
    about = words.shown((event.timeline or "") if one is None else one.name or one.description)
    return draw.line((moments.local(event.created_at), "quiet"), "  ", what, "  ", about)


COMMANDS = {"log": log}
