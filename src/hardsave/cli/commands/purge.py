"""`hardsave purge`."""

import click

from hardsave.cli import words
from hardsave.cli.arguments import REF, TIMELINE
from hardsave.cli.command import YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import Misuse


@command(
    "purge",
    examples="""
        hardsave purge main:7
        hardsave purge --text "sk-live-0123456789" --yes
        hardsave purge --whole session-1
    """,
)
@click.argument("ref", type=REF, required=False)
@click.option("--text", help="A text, replaced by [purged] in all states, names and files.")
@click.option("--whole", metavar="TIMELINE", type=TIMELINE, help="A timeline, with all it holds.")
@YES
def purge(
    session: Session, ref: str | None, text: str | None, whole: str | None, yes: bool
) -> Exit | None:
    """Remove something from every file of the store, for good.

    Cannot be undone. What other checkpoints share with a purged one stays. Exported files, and
    files that a repair has set aside, are yours to delete.
    """
    if [ref, text, whole].count(None) != 2:
        raise Misuse("say what, and only one: a REF, --text TEXT, or --whole TIMELINE")
    what = "the text" if text is not None else f"timeline {whole!r}" if whole else f"{ref!r}"
    one = None if ref is None else session.find(ref).id
    if not session.out.confirm(f"purge {words.shown(what)} for good?", yes=yes, what="purge"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("purging"):
        done = session.vault.purge(one, timeline=whole, text=text)
    session.out.result(
        lambda: {"dropped": done.dropped, "rewritten": done.rewritten, "objects": done.objects},
        lambda: [
            (
                f"{words.count(done.dropped, 'checkpoint')} gone, {done.rewritten:,} rewritten, "
                f"{words.count(done.objects, 'object')} erased"
            )
        ],
    )
    return None


COMMANDS = {"purge": purge}
