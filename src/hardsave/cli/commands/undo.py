"""`hardsave undo`, `redo` and `ops`: walking over what was done."""

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, Operation
from hardsave.cli import data, moments, words
from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.errors import NotFound
from hardsave.timeline.refs import to_text

if TYPE_CHECKING:
    from rich.text import Text

ANY = click.option(
    "--any-timeline", is_flag=True, help="The latest of the whole store, on whatever timeline."
)


@command(
    "undo",
    examples="""
        hardsave undo
        hardsave undo --timeline session-1
        hardsave undo --any-timeline
    """,
)
@ANY
def undo(session: Session, any_timeline: bool) -> None:
    """Take back the latest rewind, fork, deletion or import.

    Files come back too, and what they are now is saved first. What was saved since stays
    reachable.
    """
    _refuse_where_nothing_was_saved(session)
    with session.out.busy("taking back"):
        done = session.vault.undo() if any_timeline else session.line.undo()
    _answer(session, done, f"took back the {done.about.get('of', 'operation')}")
    session.out.hint("do it again with", "redo", *_where(done))
    if done.about.get("of") in ("rewind", "redo") and done.timeline is not None:
        _tell_conversation(session, session.vault.timeline(done.timeline).head)


@command(
    "redo",
    examples="""
        hardsave redo
        hardsave redo --any-timeline
    """,
)
@ANY
def redo(session: Session, any_timeline: bool) -> None:
    """Do again what the latest undo took back."""
    _refuse_where_nothing_was_saved(session)
    with session.out.busy("doing it again"):
        done = session.vault.redo() if any_timeline else session.line.redo()
    _answer(session, done, "did again what was taken back")
    session.out.hint("take it back with", "undo", *_where(done))


@command(
    "ops",
    examples="""
        hardsave ops
        hardsave ops --timeline session-1 -n 5
    """,
)
@click.option("-n", "--limit", type=click.IntRange(1), default=30, show_default=True)
def ops(session: Session, limit: int) -> None:
    """List what was done and can be taken back.

    Newest first, on all timelines of the store or the one that is given. Saves are no operations.
    """
    found = list(islice(session.vault.operations(session.settings.timeline), limit))
    session.out.result(
        lambda: [data.operation(each) for each in found], lambda: _lines(session, found), paged=True
    )
    if not found:
        session.out.say("nothing was done yet that could be taken back")


def _refuse_where_nothing_was_saved(session: Session) -> None:
    """Below a directory that was: what can be taken back is there."""
    if session.saved_above:
        raise NotFound(session.saved_above)


def _where(done: Operation) -> list[str]:
    return ["--any-timeline"] if done.timeline is None else ["--timeline", done.timeline]


def _tell_conversation(session: Session, head: Checkpoint | None) -> None:
    """The rewind has named a conversation that was cut; the whole one is still there."""
    from hardsave.agents import conversation

    found = None if head is None else conversation.whole(head.state, os.environ)
    if found is not None and found.command is not None:
        there = session.settings.place.there(found.directory, found.command)
        session.out.to_type("the whole conversation goes on with", there)


def _answer(session: Session, done: Operation, said: str) -> None:
    head = session.vault.timeline(done.timeline).head if done.timeline else None
    session.out.result(
        lambda: {
            **data.operation(done),
            "head": None if head is None else data.checkpoint(head),
            "files": None if done.files is None else data.file_changes(done.files),
        },
        lambda: _done(done, head, said),
    )


def _done(done: Operation, head: Any, said: str) -> "Iterator[Text]":
    from hardsave.cli import draw

    where = (f" on {words.shown(done.timeline)}", "name") if done.timeline else ""
    now = draw.line("; its head is ", draw.ref(head)) if head is not None else ""
    yield draw.line(said, where, now)
    if done.files is not None and (done.files or done.files.kept):
        yield draw.line(f"files: {done.files}")
        yield from draw.file_changes(done.files, limit=10)


def _lines(session: Session, found: list[Operation]) -> "list[Text]":
    from rich.text import Text

    from hardsave.cli import draw

    rows = [
        (
            Text(moments.ago(each.created_at, session.now), style="quiet"),
            Text(each.kind, style="name"),
            Text(words.shown(each.timeline or "")),
            Text("undone" if each.is_undone else "", style="warning"),
            Text(_about(session, each), style="quiet"),
        )
        for each in found
    ]
    return draw.columns(rows)


def _about(session: Session, one: Operation) -> str:
    """What the log says of it; checkpoints as people type them."""
    said = {
        key: _ref(session, value) if isinstance(value, bytes) else str(data.json_ready(value))
        for key, value in one.about.items()
    }
    return ", ".join(f"{key} {words.line(text, 60)}" for key, text in said.items())


def _ref(session: Session, id: bytes) -> str:
    try:
        found = session.vault.get(to_text(id))
    except NotFound:  # gone for good, or deleted, and then this may be what brings it back
        return f"{to_text(id)}, which is not there now"
    return f"{found.timeline}:{found.seq}"


COMMANDS = {"undo": undo, "redo": redo, "ops": ops}
