"""`hardsave status`: this workspace beside its last checkpoint."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, wording
from hardsave.cli import missed_saves
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import changed_files
from hardsave.cli.session import Session
from hardsave.vault import json_data

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
    the newest checkpoint that has some, on any timeline. Makes no
    checkpoint.
    """
    session.reads_only = True
    head = session.line.head
    with session.out.busy("looking"):
        found = session.workspace.status(session.base)
    session.out.result(
        lambda: _data(session, found, head), lambda: _lines(session, found, head, full=full)
    )
    missed_saves.say(session)
    _hint(session, found)


def _data(session: Session, found: "WorkspaceStatus", head: Checkpoint | None) -> dict[str, Any]:
    return {
        "workspace": str(session.directory),
        "timeline": session.line.name,
        "head": None if head is None else json_data.checkpoint(head),
        "last": None if found.last is None else json_data.checkpoint(found.last),
        "files": json_data.files(found.files),
        "not_captured": json_data.left_out(found.not_captured),
        "git": json_data.git(found.git),
        "missed": missed_saves.listed(missed_saves.notes_here(session)),
    }


def _hint(session: Session, found: "WorkspaceStatus") -> None:
    if found.last is None:
        nothing = "nothing was saved here yet; 'hardsave save' makes the first checkpoint"
        if session.line.head is not None:
            nothing = "no files were saved here yet; 'hardsave save' saves them"
        session.out.say(session.saved_above or session.deleted_hint() or nothing)
    elif found.files:
        own = session.timeline_option
        back = "@" if found.last == session.line.head else session.ref(found.last)
        session.out.hint("save it with", "save", *own)
        session.out.hint("take it back with", "rewind", back, "--files", *own)


def _lines(
    session: Session, found: "WorkspaceStatus", head: Checkpoint | None, *, full: bool
) -> "Iterator[Text]":
    from hardsave.cli.render import draw

    last = found.last
    yield from draw.fields(
        {
            "workspace": str(session.directory),
            "timeline": session.shown_name(session.line.name),
            "head": None if head is None else _said(session, head),
            "files": None if last is None or last == head else _said(session, last),
            "git": None if found.git is None else found.git.branch or "detached HEAD",
        }
    )
    listed = changed_files.signed(found.files)
    if last is None:
        yield draw.line(f"{wording.count(len(listed), 'file')} to save")
    elif not listed:
        yield draw.line(("nothing has changed since ", "quiet"), draw.ref(last))
    else:
        yield draw.line(
            (f"{wording.count(len(listed), 'file')} changed", "name"), " since ", draw.ref(last)
        )
        yield from draw.paths(listed, limit=None if full else draw.LISTED)
    if last is not None and not _is_back(session, last, found):
        yield from draw.lost(last.not_captured)  # which its files do not show any more
    yield from draw.not_captured(found.not_captured, limit=None if full else 5)


def _is_back(session: Session, last: Checkpoint, found: "WorkspaceStatus") -> bool:
    """Whether the rule that a checkpoint has lost files to was taken back since."""
    if last.parent is None or not any(each.is_loss for each in last.not_captured):
        return False
    lost = session.vault.diff(last.parent, last).files.removed
    return not {*lost}.isdisjoint(found.files.added)


def _said(session: Session, one: Checkpoint) -> "Text":
    from hardsave.cli.render import draw

    name = (f"  {wording.shown(one.name)}", "name") if one.name else ""
    return draw.line(
        draw.ref(one), name, (f"  {wording.ago(one.created_at, session.now)}", "quiet")
    )


COMMANDS = {"status": status}
