"""`hardsave store copy`."""

import click

from hardsave import config, wording
from hardsave.cli.command import command, not_empty
from hardsave.cli.session import Session
from hardsave.stores.registry import shown


@command(
    "copy",
    examples="""
        hardsave store copy sqlite:///runs.db postgresql://ada@db.example/agents
        hardsave store copy postgresql://ada@db.example/agents sqlite:////backup/agents.db
    """,
    takes=("--json", "-C"),
)
@click.argument("source", metavar="A", callback=not_empty)
@click.argument("target", metavar="B", callback=not_empty)
def copy(session: Session, source: str, target: str) -> None:
    """Copy a whole store into another one, and compare them.

    All users, with timelines, checkpoints, files, operations, labels, notes, workspaces, tasks and
    jobs. A and B are URLs of stores, of any kinds, or paths of files. B is empty, or has a part of
    this copy: one that was interrupted goes on when it is repeated. Stop what writes to A before.
    """
    from hardsave.vault.copying.store_copy import copy_store  # few commands need it

    one, other = config.url_of(source), config.url_of(target)
    with session.out.busy("copying"):
        done = copy_store(one, other)
    session.out.result(
        lambda: {"source": shown(one), "target": shown(other), **done.as_dict()},
        lambda: [
            (
                f"{wording.count(done.checkpoints, 'checkpoint')}, "
                f"{wording.count(done.objects, 'object')} and {wording.count(done.tasks, 'task')} "
                f"of {wording.count(done.users, 'user')}: copied, and equal"
            )
        ],
    )


COMMANDS = {"copy": copy}
