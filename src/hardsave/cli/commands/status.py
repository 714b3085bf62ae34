"""`hardsave status`: this workspace beside its last checkpoint."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint
from hardsave.cli import changes, data, moments, unsaved, words
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.vault.workspace import WorkspaceStatus


@command(
    "status",
    examples="""
        hardsave status
        hardsave status --full
        hardsave status --json -C ~/project
    """,
    takes=ON_A_TIMELINE,
)
@click.option("--full", is_flag=True, help="All paths.")
def status(session: Session, full: bool) -> None:
    """Show what has changed here since the last checkpoint.

    Compares the files of this workspace with those of the timeline's head; if it has none, with
    the newest checkpoint that has some, on whatever timeline it was saved. Makes no
    checkpoint.
    """
    session.only_looks = True
    head = session.line.head
    with session.out.busy("looking"):
        found = session.workspace.status(session.base)
    session.out.result(
        lambda: _data(session, found, head), lambda: _lines(session, found, head, full=full)
    )
    unsaved.say(session)
    _hint(session, found)


def _data(session: Session, found: "WorkspaceStatus", head: Checkpoint | None) -> dict[str, Any]:
    return {
        "workspace": str(session.directory),
        "timeline": session.line.name,
        "head": None if head is None else data.checkpoint(head),
        "last": None if found.last is None else data.checkpoint(found.last),
        "files": data.files(found.files),
        "not_captured": data.left_out(found.not_captured),
        "git": data.git(found.git),
        "missed": unsaved.listed(unsaved.standing(session)),
    }


def _hint(session: Session, found: "WorkspaceStatus") -> None:
    if found.last is None:
        nothing = "nothing was saved here yet; 'hardsave save' makes the first checkpoint"
        session.out.say(session.saved_above or session.deleted() or nothing)
    elif found.files:
        own = session.naming
        back = "@" if found.last == session.line.head else f"{found.last.timeline}:{found.last.seq}"
        session.out.hint("save it with", "save", *own)
        session.out.hint("take it back with", "rewind", back, "--files", *own)


def _lines(
    session: Session, found: "WorkspaceStatus", head: Checkpoint | None, *, full: bool
) -> "Iterator[Text]":
    from hardsave.cli import draw

    last = found.last
    yield from draw.fields(
        {
            "workspace": str(session.directory),
            "timeline": session.line.name,
            "head": None if head is None else _said(session, head),
            "files": None if last is None or last == head else _said(session, last),
            "git": None if found.git is None else found.git.branch or "detached HEAD",
        }
    )
    listed = changes.signed(found.files)
    if last is None:
        yield draw.line(f"{words.count(len(listed), 'file')} to save")
    elif not listed:
        yield draw.line(("nothing has changed since ", "quiet"), draw.ref(last))
    else:
        yield draw.line(
            (f"{words.count(len(listed), 'file')} changed", "name"), " since ", draw.ref(last)
        )
        yield from draw.paths(listed, limit=None if full else draw.LISTED)
    yield from draw.not_captured(found.not_captured, limit=None if full else 5)


def _said(session: Session, one: Checkpoint) -> "Text":
    from hardsave.cli import draw

    name = (f"  {words.shown(one.name)}", "name") if one.name else ""
    return draw.line(
        draw.ref(one), name, (f"  {moments.ago(one.created_at, session.now)}", "quiet")
    )


COMMANDS = {"status": status}
