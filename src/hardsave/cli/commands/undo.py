"""`hardsave undo` and `redo`, and the list of operations."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, Operation, Timeline, wording
from hardsave.cli import going_on
from hardsave.cli.arguments import one_of
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.current_timeline import to_redo, to_undo
from hardsave.cli.errors import Exit
from hardsave.cli.render import refs
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound
from hardsave.timeline.refs import to_text
from hardsave.values import text
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.agents.conversation import Resumption

LISTED = 30
ANY = click.option(
    "--any-timeline", is_flag=True, help="The latest of the whole store, on any timeline."
)


THIS = click.option(
    "--this-timeline", is_flag=True, help="The latest of this session's timeline, of no other."
)


@command(
    "undo",
    examples="""
        hardsave undo
        hardsave undo --timeline session-1
        hardsave undo --any-timeline
        hardsave undo --list -n 5
    """,
    takes=ON_A_TIMELINE,
)
@ANY
@THIS
@click.option("--list", "listing", is_flag=True, help="Only list what can be taken back.")
@click.option("-n", "--limit", type=click.IntRange(1), help="How many to list.  [default: 30]")
def undo(
    session: Session, any_timeline: bool, this_timeline: bool, listing: bool, limit: int | None
) -> Exit | None:
    """Take back the latest rewind, fork, deletion or import.

    Without a timeline it is the latest of this directory. Files come back too, and what they are
    now is saved first. What was saved since stays reachable. The list is of the whole store, or of
    the timeline that is named; saves are no operations.
    """
    session.may_name_deleted = True
    one_of(any_timeline=any_timeline, this_timeline=this_timeline)
    if any_timeline:
        session.refuse_timeline(beside="--any-timeline")
    if listing:
        _list(session, limit or LISTED)
        return None
    if limit is not None:
        raise Misuse("-n says how many to list; add --list")
    _refuse_where_nothing_was_saved(session)
    own = session.line if this_timeline else None
    line = None if any_timeline else own or session.line_to(to_undo)
    with _leaving(session, line) as leaving:
        left = None if line is None else line.head
        with session.out.busy("taking back"):
            done = session.vault.undo() if line is None else line.undo()
        back = _conversation(session, done, left)
        _answer(session, done, f"took back the {done.about.get('of', 'operation')}", back)
        session.out.hint("do it again with", "redo", *_where(done))
        failed = _failed(session, done)
        if failed is None and leaving.restarted(session, back):
            return None
    return _go_on(session, done, back, failed)


@command(
    "redo",
    examples="""
        hardsave redo
        hardsave redo --any-timeline
    """,
    takes=ON_A_TIMELINE,
)
@ANY
def redo(session: Session, any_timeline: bool) -> Exit | None:
    """Do again what the latest undo took back."""
    session.may_name_deleted = True
    if any_timeline:
        session.refuse_timeline(beside="--any-timeline")
    _refuse_where_nothing_was_saved(session)
    line = None if any_timeline else session.line_to(to_redo)
    with _leaving(session, line) as leaving:
        left = None if line is None else line.head
        with session.out.busy("doing it again"):
            done = session.vault.redo() if line is None else line.redo()
        back = _conversation(session, done, left)
        _answer(session, done, "did again what was taken back", back)
        session.out.hint("take it back with", "undo", *_where(done))
        failed = _failed(session, done)
        if failed is None and leaving.restarted(session, back):
            return None
    return _go_on(session, done, back, failed)


def _list(session: Session, limit: int) -> None:
    """What was done and can be taken back, newest first."""
    found = session.vault.operations(session.timeline_given, limit=limit)
    session.out.result(
        lambda: [json_data.operation(each) for each in found],
        lambda: _lines(session, found),
        paged=True,
    )
    if not found:
        session.out.say("nothing was done yet that could be taken back")


def _refuse_where_nothing_was_saved(session: Session) -> None:
    """Where only a directory above was saved, what can be taken back is there."""
    if session.saved_above:
        raise NotFound(session.saved_above)


def _leaving(session: Session, line: Timeline | None) -> going_on.Leaving:
    """The agent around this command, if it is of the run that saves on this timeline."""
    around = going_on.inside(session)
    if line is None or around is None:
        return going_on.Leaving(None)
    return going_on.Leaving(around.of_run(line.name))


def _go_on(
    session: Session, done: Operation, back: "Resumption | None", failed: Exit | None
) -> Exit | None:
    """Say how to go on with the agent; where nothing failed, offer it."""
    if back is None or done.timeline is None:
        return failed
    failed = going_on.tell(session, back) or failed
    if failed is None:
        going_on.offer(session, back, done.timeline)
    return failed


def _failed(session: Session, done: Operation) -> Exit | None:
    if done.files is None or done.files.is_complete:
        return None
    from hardsave.cli.commands.rewind import tell_what_failed

    return tell_what_failed(session, done.files, done.files)


def _where(done: Operation) -> list[str]:
    return ["--any-timeline"] if done.timeline is None else ["--timeline", done.timeline]


def _conversation(
    session: Session, done: Operation, left: Checkpoint | None
) -> "Resumption | None":
    """That of the head, where the head has moved: the rewind that was taken back or done again has
    named another one. `left` is where its user has come from."""
    if done.timeline is None or done.about.get("of") not in ("rewind", "redo", "undo"):
        return None
    head = session.vault.timeline(done.timeline).head
    if head is None:
        return None
    from hardsave.agents.going_on import conversation_of

    where = going_on.workspace_of(session, head)
    return conversation_of(
        session.vault, os.environ, head, done.timeline, workspace=where, left=left
    )


def _answer(session: Session, done: Operation, said: str, back: "Resumption | None") -> None:
    head = session.vault.timeline(done.timeline).head if done.timeline else None
    session.out.result(
        lambda: {
            **json_data.operation(done),
            "head": None if head is None else json_data.checkpoint(head),
            "files": None if done.files is None else json_data.file_changes(done.files),
            **({} if back is None else {"conversation": back._asdict()}),
        },
        lambda: _done(done, head, said),
    )


def _done(done: Operation, head: Any, said: str) -> "Iterator[Text]":
    from hardsave.cli.render import draw

    where = draw.line(" on ", draw.timeline(done.timeline)) if done.timeline else ""
    now = draw.line("; its head is ", draw.ref(head)) if head is not None else ""
    yield draw.line(said, where, now)
    if done.files is not None and (done.files or done.files.kept):
        yield draw.line(f"files: {done.files}")
        yield from draw.file_changes(done.files, limit=10)


def _lines(session: Session, found: Sequence[Operation]) -> "list[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw

    rows = [
        (
            Text(wording.ago(each.created_at, session.now), style="quiet"),
            Text(each.kind, style="name"),
            Text(wording.shown(refs.timeline(each.timeline or ""))),
            Text("undone" if each.is_undone else "", style="warning"),
            Text(_about(session, each), style="quiet"),
        )
        for each in found
    ]
    return draw.columns(rows)


def _about(session: Session, one: Operation) -> str:
    """What the log says of it; checkpoints as people type them."""
    said = {
        key: _ref(session, value) if isinstance(value, bytes) else text.shown(value)
        for key, value in one.about.items()
    }
    return refs.in_text(", ".join(f"{key} {wording.line(text, 60)}" for key, text in said.items()))


def _ref(session: Session, id: bytes) -> str:
    try:
        found = session.vault.get(to_text(id))
    except NotFound:  # gone for good, or deleted, and then this may be what brings it back
        return f"{to_text(id)}, which is not there now"
    return session.ref(found)


COMMANDS = {"undo": undo, "redo": redo}
