"""`hardsave move`: a project that was moved goes on where it is now."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

import hardsave
from hardsave import wording
from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.vault.opening import open_project
from hardsave.vault.workspaces import moving

if TYPE_CHECKING:
    from hardsave.agents.moving import MovedConversations
    from hardsave.vault.workspaces.moving import ProjectMove


@command(
    "move",
    examples="""
        hardsave move ../old-name
        hardsave move ~/old-name ~/new-name
    """,
    takes=("--json", "-C"),
)
@click.argument("old", metavar="OLD", type=click.Path())
@click.argument("new", metavar="[NEW]", type=click.Path(), default=".")
def move(session: Session, old: str, new: str) -> None:
    """Let a project that was moved go on where it is now.

    OLD is where its directory was, NEW is where it is; else here. Its checkpoints, its timelines
    and the conversations of its agents are those of the new directory from then on. The directory
    itself is moved by you, before.
    """
    from hardsave.agents import moving as conversations

    done = moving.move(os.environ, Path(old), Path(new))
    talks = conversations.move(os.environ, done.old, done.new)
    with open_project(done.new, done.store, moves=[(done.old, done.new)]) as vault:
        stats = vault.store.stats()
    session.out.result(
        lambda: {
            "from": done.old,
            "to": done.new,
            "store": done.store,
            "forks": list(done.forks),
            "timelines": stats.timelines,
            "checkpoints": stats.checkpoints,
            "conversations": [_data(each) for each in talks],
        },
        lambda: _lines(done, stats, talks),
    )


def _data(talk: "MovedConversations") -> dict[str, object]:
    return {**talk._asdict(), "parted": [each._asdict() for each in talk.parted]}


def _lines(
    done: "ProjectMove", stats: hardsave.Stats, talks: "list[MovedConversations]"
) -> Iterator[str]:
    old, new = wording.shown(done.old), wording.shown(done.new)
    count = wording.count(stats.checkpoints, "checkpoint")
    lines = wording.count(stats.timelines, "timeline")
    yield f"{new} goes on with what was saved in {old}: {count} on {lines}"
    for fork in done.forks:
        yield f"so does its fork {wording.shown(fork)}"
    for talk in talks:
        if talk.sessions:
            found = wording.count(len(talk.sessions), "conversation")
            yield f"{found} of {talk.agent} can be resumed there: {talk.program} --resume"
        for each in talk.parted:
            yield (
                f"{talk.agent} has two conversations {each.session}, because it has gone on in "
                f"both directories: {wording.shown(each.new)} is resumed here; "
                f"{wording.shown(each.old)} is kept as it is"
            )
        if talk.why:
            yield f"conversations of {talk.agent} were left where they are: {talk.why}"


COMMANDS = {"move": move}
