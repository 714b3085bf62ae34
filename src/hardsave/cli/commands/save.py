"""`hardsave save`: the files as they are, beside the state that the timeline has."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hardsave import Checkpoint, config, wording
from hardsave.cli import missed_saves
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.session import Session
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.text import Text

NAMED = 5  # ignored files
NOTHING_RUNS = "saved"  # the status where there is no agent whose status could be carried on


@command(
    "save",
    examples="""
        hardsave save
        hardsave save before-refactor
        hardsave save plan-ready -m "tests are green" --timeline session-1
    """,
    takes=ON_A_TIMELINE,
    timeline_help="The timeline, by its name; may be new. Else the one that last saved here.",
)
@click.argument("name", required=False)
@click.option("-m", "--message", default="", help="A description.")
@click.option("--status", help="A status. Else that of the checkpoint before.")
@click.option(
    "--include", multiple=True, metavar="PATTERN", help="Capture these although secret or ignored."
)
def save(
    session: Session, name: str | None, message: str, status: str | None, include: tuple[str, ...]
) -> None:
    """Save the files of this workspace, and the state that goes with them.

    What the timeline's head holds of an agent's state is carried forward. The first save makes
    the store, outside of the workspace, and goes on the timeline 'main'.
    """
    above = session.project_above
    session.may_make_timeline = True
    session.may_save_here()
    head = session.line.head
    workspace = session.vault.workspace(session.directory, include=include)
    with session.out.busy("saving"), missed_saves.recorded(session) as missed:
        saved = session.line.save_files(
            workspace,
            name=name,
            kind="manual",
            status=status or (NOTHING_RUNS if head is None else None),
            description=message,
            metadata=missed,
        )
    session.out.result(lambda: json_data.checkpoint(saved), lambda: _lines(session, saved))
    _tell_what_is_ignored(session, head, saved)
    if above and not config.has_repository(Path.cwd()):  # which makes a project wherever it lies
        session.out.say("this directory is a project of its own from now on")
        session.out.to_type("to save all of the one above", f"hardsave -C {above} save")


def _tell_what_is_ignored(session: Session, before: Checkpoint | None, saved: Checkpoint) -> None:
    """Once: what is ignored, is nowhere else, and no rewind brings back."""
    known = () if before is None or before.files is None else before.files.ignored
    found = () if saved.files is None else saved.files.ignored
    new = [path for path in found if path not in known]
    if not new:
        return
    named = ", ".join(wording.shown(path) for path in new[:NAMED])
    more = f" and {len(new) - NAMED:,} more" if len(new) > NAMED else ""
    session.out.say(f"not saved, because ignored: {named}{more}")
    where = wording.shown(str(config.user_file(os.environ, sys.platform)))
    session.out.say(f"to have such files saved, name them in {where}: include: [{new[0]!r}]")


def _lines(session: Session, saved: Checkpoint) -> "Iterator[Text]":
    from hardsave.cli.render import draw
    from hardsave.cli.render.summary import Summaries

    summary = Summaries(session.vault).of(saved)
    named = (f" {wording.shown(saved.name)}", "name") if saved.name else ""
    files = draw.tally(summary.files) or "no file has changed"
    yield draw.line("saved ", draw.ref(saved), named, "  ", files)
    yield from draw.not_captured(saved.not_captured, limit=5)


COMMANDS = {"save": save}
