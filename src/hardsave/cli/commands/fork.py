"""`hardsave fork`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, config, wording
from hardsave.cli import current_timeline, going_on
from hardsave.cli.arguments import REF
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.hints import quoted
from hardsave.cli.session import Session
from hardsave.vault import json_data
from hardsave.vault.workspaces import projects

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.agents.conversation import Resumption


@command(
    "fork",
    examples="""
        hardsave fork @~3
        hardsave fork plan-ready ../try-2
        hardsave fork main:7 ../try-3 --name another-way
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF)
@click.argument("target", metavar="[DIR]", required=False, type=click.Path())
@click.option("--name", help="What the new timeline is called; else like DIR, or by a number.")
def fork(session: Session, ref: str, target: str | None, name: str | None) -> None:
    """Start another timeline from a checkpoint.

    With DIR its files are put there, into a directory that is new or empty, so that another agent
    can work on from that point; what is saved there comes into the same store. The conversation of
    an agent CLI goes on there, too. Without DIR, only the timeline is made; nothing is copied.
    """
    source = session.find(ref)
    make(session, source, target, name)


def make(session: Session, source: Checkpoint, target: str | None, name: str | None = None) -> None:
    """Fork a checkpoint, say what was made, and offer to go on with its agent there."""
    back = None
    if target is None:
        taken = [line.name for line in session.vault.timelines()]
        name = name or current_timeline.free_name(source.timeline, taken)
        line = session.vault.timeline(source.timeline).fork(source.id, name=name)
        path = None
    else:
        with session.out.busy("copying files"):
            made = session.workspace.fork(source.id, target, name=name)
        line, path = made.timeline, str(made.workspace.path)
        from hardsave.agents.going_on import conversation_of

        back = conversation_of(
            session.vault, os.environ, source, line.name, origin="forked from", workspace=path
        )
    session.out.result(
        lambda: _data(line.name, source, path, back), lambda: _lines(line.name, source, path)
    )
    session.out.hint("look at it with", "log", "--timeline", line.name)
    session.hint_undo(line.name)
    if path is not None and Path(path).is_relative_to(session.directory):
        session.out.say(
            "it lies in this workspace, and is saved and rewound with it; choose a place"
        )
        session.out.say("beside it, or let git ignore it, if another agent is to work there")
    store = None
    if path is not None and not projects.adopt(os.environ, Path(path), _absolute(session)):
        store = _absolute(session)  # that directory was a project before, with a store of its own
        there = f"{config.STORE_VARIABLE}={quoted(store)}"
        session.out.to_type("to save there on it", f"export {there}")
    if going_on.tell(session, back) is None:
        going_on.offer(session, back, line.name, begun_on=source.timeline, store=store)


def _absolute(session: Session) -> str:
    """The store's URL, for a process that is started in another directory."""
    path = session.store_path
    return session.url if path is None else config.file_url(path)


def _data(
    name: str, source: Checkpoint, path: str | None, back: "Resumption | None"
) -> dict[str, Any]:
    also = {} if back is None else {"conversation": back._asdict()}
    return {"timeline": name, "source": json_data.checkpoint(source), "workspace": path, **also}


def _lines(name: str, source: Checkpoint, path: str | None) -> "Iterator[Text]":
    from hardsave.cli.render import draw

    where = f", its files are in {wording.shown(path)}" if path else ""
    yield draw.line("forked ", draw.timeline(name), " from ", draw.ref(source), where)


COMMANDS = {"fork": fork}
