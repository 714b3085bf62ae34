"""`hardsave log`: what was done in this directory, by prompt and step; or as it happens."""

from typing import TYPE_CHECKING, Any, cast

import click

from hardsave import Checkpoint, wording
from hardsave.cli import current_timeline, missed_saves
from hardsave.cli.arguments import one_of
from hardsave.cli.command import EVERY_COMMON, command
from hardsave.cli.current_timeline import TimelineState
from hardsave.cli.known_timelines import NEWEST
from hardsave.cli.log_query import LIMIT, Asked, Shape, Told, Wanted, newest_rows, told
from hardsave.cli.render import times
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.timeline.story import Prompt, Step
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.client import RemoteCheckpoint, RemoteEvent
    from hardsave.vault.history.follow import Event

    Happened = Event[Checkpoint] | RemoteEvent[RemoteCheckpoint]


@command(
    "log",
    examples="""
        hardsave log
        hardsave log --prompts
        hardsave log --steps -n 100
        hardsave log --timeline fix-parser
        hardsave log --status failed --since 2h
        hardsave log --follow --json
        hardsave log --follow --server http://localhost:8765
    """,
    takes=EVERY_COMMON,
)
@click.option("--prompts", is_flag=True, help="One row for each prompt.")
@click.option("--steps", is_flag=True, help="One row for each step, with branches.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 10_000),
    help="How many prompts or steps.  [default: 30]",
)
@click.option("--all", "everything", is_flag=True, help="All timelines, of all directories.")
@click.option("--name", help="Only checkpoints of this name.")
@click.option("--kind", help="Only this kind: automatic, manual, feature, session.")
@click.option("--status", help="Only this status.")
@click.option("--since", metavar="T", help="Not before: 2h, 14:00, yesterday, or 2026-01-31T14:00.")
@click.option("--until", metavar="T", help="Not after.")
@click.option("--follow", "-f", is_flag=True, help="Show what happens from now on, as it does.")
def log(
    session: Session,
    prompts: bool,
    steps: bool,
    limit: int | None,
    everything: bool,
    since: str | None,
    until: str | None,
    follow: bool,
    **filters: str | None,
) -> None:
    """Show what was done here, in all sessions, newest first.

    A prompt (>) has the steps that followed beneath it; one step is one call of a tool or one
    answer. A step is gone back to after it, a prompt before it. @ is where a session stands, ×
    was left behind by a rewind, ● has a name or was saved by hand. Files are added (+), changed
    (~) and removed (-); ! counts what was not captured, and 'show' says why.
    """
    session.reads_only = True
    if everything:
        session.refuse_timeline(beside="--all")
    shape = one_of(prompts=prompts, steps=steps)
    if follow:
        flags = {"prompts": prompts or None, "steps": steps or None}
        _refuse_beside_follow(n=limit, since=since, until=until, **flags, **filters)
        _follow(session, None if everything else session.timeline_given)
        return
    if session.settings.server is not None:
        raise Misuse("a server is followed: add --follow, or leave --server out")
    first, last = (times.moment(t, session.now) if t else None for t in (since, until))
    wanted = Wanted(limit or LIMIT, since=first, until=last, **filters)
    asked = Asked(
        _lines_of(session, wanted, everything=everything),
        cast(Shape | None, shape),
        wanted,
        is_limited=limit is not None,
        with_origin=session.timeline_given is not None,
    )
    if shape is None and session.out.as_json:
        session.out.result(lambda: _checkpoints(session, asked), list)
        return
    found = told(session, asked)
    session.out.result(lambda: _data(session, found), lambda: _drawn(session, found), paged=True)
    missed_saves.say(session)
    _hint(session, found)


def show_newest(session: Session, limit: int) -> None:
    """The newest prompts with their steps, for a command that needs a ref."""
    wanted = Wanted(limit)
    lines = _lines_of(session, wanted, everything=False)
    found = told(session, Asked(lines, None, wanted, is_limited=True, with_origin=False))
    session.out.result(lambda: _data(session, found), lambda: _drawn(session, found))


def _refuse_beside_follow(**given: object) -> None:
    """What is saved from now on is shown as it comes, all of it."""
    for name, value in given.items():
        if value is not None:
            option = f"{'-' if len(name) == 1 else '--'}{name}"
            raise Misuse(f"{option} means nothing beside --follow; leave one of them out")


def _lines_of(session: Session, wanted: Wanted, *, everything: bool) -> list[TimelineState]:
    """The timelines that a log is about. The newest steps of all are among those of the timelines
    that were updated last; one that a filter finds may be on any."""
    if (name := session.timeline_given) is not None and not everything:
        named = session.timelines.state_of(name)
        return [] if named is None else [named]
    if wanted.is_filtered or wanted.limit > NEWEST:
        known = [each for each in session.timelines.every if each.newest]
        return known if everything else current_timeline.of_directory(known, session.directory)
    return session.timelines.saved if everything else session.timelines_here


def _hint(session: Session, found: Told) -> None:
    if not found.entries:
        session.out.say(_nothing(session, found))
    elif session.out.is_terminal:
        if found.has_left:
            session.out.say("× was left behind by a rewind, and is still saved: rewind REF")
        if found.has_more:
            count = len(found.entries)
            unit = "prompt" if any(isinstance(each, Prompt) for each in found.entries) else "step"
            newest = (
                f"these are the newest {count:,} {unit}s" if count > 1 else f"the newest {unit}"
            )
            session.out.say(f"{newest}; -n {count * 4} shows more")


def _nothing(session: Session, found: Told) -> str:
    """Why there is nothing to be seen, and what to do next."""
    if session.saved_above:
        return session.saved_above
    name = session.timeline_given
    where = "" if name is None else f" on timeline {name!r}"
    known = [each.name for each in session.timelines.saved]
    if known if name is None else name in known:
        if found.shape == "prompts" and not found.is_filtered:
            return f"nothing was prompted{where or ' here'}; 'hardsave log' shows what was saved"
        if name is None and not found.is_filtered and not session.timelines_here:
            return "nothing was saved in this directory; 'hardsave log --all' shows all others"
        return f"there is nothing like that{where}"
    if deleted := session.deleted_hint(name if known else None):
        return deleted
    if known:
        return f"nothing was saved{where} yet; 'hardsave timelines' lists what there is"
    return f"nothing was saved{where} yet; 'hardsave save' makes a checkpoint"


# For programs


def _checkpoints(session: Session, asked: Asked) -> list[dict[str, Any]]:
    """Every checkpoint, however little it adds."""
    heads = session.timelines.heads
    return [
        {
            **json_data.checkpoint(one),
            "head_of": heads.get(one.id, []),
            "messages": row.messages,
            "new_messages": row.new_messages,
            "files": json_data.counts(row.files),
        }
        for row, one in newest_rows(session, asked)
    ]


def _data(session: Session, found: Told) -> list[dict[str, Any]]:
    return [
        _step(session, each) if isinstance(each, Step) else _prompt(session, each)
        for each in found.entries
    ]


def _prompt(session: Session, one: Prompt) -> dict[str, Any]:
    """What leads back to it, and what followed."""
    before = one.before
    return {
        "timeline": one.timeline,
        "session": session.shown_name(one.timeline),
        "prompt": one.text,
        "id": None if before is None else before.id,
        "ref": None if before is None else f"{before.timeline}:{before.seq}",
        "created_at": one.created_at.isoformat(),
        "is_left_behind": one.is_left,
        "files": json_data.counts(one.files),
        "steps": [_step(session, each) for each in one.steps],
    }


def _step(session: Session, one: Step) -> dict[str, Any]:
    newest = one.newest
    return {
        "timeline": newest.timeline,
        "session": session.shown_name(newest.timeline),
        "step": one.text,
        "id": newest.id,
        "ref": f"{newest.timeline}:{newest.seq}",
        "created_at": newest.created_at.isoformat(),
        "name": newest.name,
        "status": newest.status,
        "is_head": one.is_head,
        "is_left_behind": one.is_left,
        "new_messages": one.new_messages,
        "files": json_data.counts(one.files),
        "paths": list(one.paths),
        "outside": list(one.outside),
        "checkpoints": [row.id for row in one.rows],
    }


# For people


def _drawn(session: Session, found: Told) -> "list[Text]":
    from hardsave.cli.render import story_lines

    return story_lines.drawn(found, session.timelines.heads, session.now, session.out.console.width)


# As it happens


def _follow(session: Session, timeline: str | None) -> None:
    remote = session.remote
    following = session.vault.follow() if remote is None else remote.follow(timeline=timeline)
    if session.out.is_terminal:
        session.out.say("what is saved and done from now on; Ctrl-C ends it")
    for event in following:
        if timeline in (None, event.timeline):
            session.out.event(lambda e=event: _event_data(e), lambda e=event: _event_line(e))  # type: ignore[misc]  # bound now, not later


def _event_data(event: "Happened") -> dict[str, Any]:
    one = event.checkpoint
    told = event.as_dict()
    return {
        **{name: told[name] for name in ("number", "id") if name in told},
        "kind": event.kind,
        "timeline": event.timeline,
        "created_at": event.created_at.isoformat(),
        "checkpoint": None if one is None else json_data.checkpoint(cast(Checkpoint, one)),
        "data": json_data.logged(event.data),
        "task": event.task,
    }


def _event_line(event: "Happened") -> "Text":
    from hardsave.cli.render import draw, refs

    one = event.checkpoint
    what = (event.kind, "name") if one is None else draw.ref(one)
    about = event.task or refs.timeline(event.timeline or "")
    about = wording.shown(about if one is None else one.name or one.description)
    return draw.line((times.local(event.created_at), "quiet"), "  ", what, "  ", about)


COMMANDS = {"log": log}
