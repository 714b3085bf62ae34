"""`hardsave delete` and `clear`: what they hide, `undo` brings back."""

import click

from hardsave.cli import data, words
from hardsave.cli.arguments import REF, TIMELINE
from hardsave.cli.command import command
from hardsave.cli.commands.rewind import say_undo
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound


@command(
    "delete",
    examples="""
        hardsave delete main:7
        hardsave delete --whole session-1
    """,
)
@click.argument("ref", type=REF, required=False)
@click.option("--whole", metavar="TIMELINE", type=TIMELINE, help="A timeline, with all it holds.")
def delete(session: Session, ref: str | None, whole: str | None) -> None:
    """Delete a checkpoint or a timeline; undo brings it back.

    It is hidden, and its bytes stay until retention lets them go. What must be gone at once is
    for 'hardsave purge'.
    """
    if (ref is None) == (whole is None):
        raise Misuse("say what: a REF, or --whole TIMELINE")
    if whole is not None:
        count = session.vault.timeline(whole).delete()
        _answer(session, whole, count, f"deleted {words.shown(whole)}")
    elif ref is not None:
        gone = session.vault.delete(session.find(ref).id)
        session.out.result(
            lambda: {"deleted": data.checkpoint(gone)},
            lambda: [f"deleted {words.shown(gone.timeline)}:{gone.seq}"],
        )
        say_undo(session, gone.timeline)


@command(
    "clear",
    examples="""
        hardsave clear session-1
    """,
)
@click.argument("name", metavar="TIMELINE", type=TIMELINE)
def clear(session: Session, name: str) -> None:
    """Delete all checkpoints of a timeline; undo brings them back.

    The timeline stays, and its numbers go on.
    """
    if all(line.name != name for line in session.vault.timelines()):
        raise NotFound(f"there is no timeline {name!r}; 'hardsave timelines' lists them")
    count = session.vault.timeline(name).clear()
    _answer(session, name, count, f"cleared {words.shown(name)}")


def _answer(session: Session, name: str, count: int, said: str) -> None:
    session.out.result(
        lambda: {"timeline": name, "checkpoints": count},
        lambda: [f"{said}: {words.count(count, 'checkpoint')}"],
    )
    if count:
        say_undo(session, name)


COMMANDS = {"delete": delete, "clear": clear}
