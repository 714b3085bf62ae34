"""`hardsave store purge`."""

from typing import TYPE_CHECKING, Any

import click

from hardsave.cli import words
from hardsave.cli.arguments import REF
from hardsave.cli.command import ON_A_TIMELINE, YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from hardsave.vault.purge import Purged


@command(
    "purge",
    examples="""
        hardsave store purge main:7
        hardsave store purge --text "sk-live-0123456789" --yes
        hardsave store purge --whole --timeline session-1
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF, required=False)
@click.option("--text", help="A text, replaced by [purged] in all states, names and files.")
@click.option(
    "--whole", is_flag=True, help="The timeline that --timeline names, with all it holds."
)
@YES
def purge(
    session: Session, ref: str | None, text: str | None, whole: bool, yes: bool
) -> Exit | None:
    """Remove something from every file of the store, for good.

    A text goes from all timelines, of whatever project. Cannot be undone. What other checkpoints
    share with a purged one stays, and so does what you have exported. An agent that goes on, or a
    file, which has the text still, brings it back with the next save: see to these first. Where
    it still is, it says so, and ends with 1.
    """
    if [ref is None, text is None, not whole].count(False) != 1:
        raise Misuse("say what, and only one: a REF, --text TEXT, or --whole --timeline T")
    if text is not None:
        session.refuse_timeline(beside="--text, which is about the whole store")
    timeline = session.line_typed.name if whole else None
    what = "the text" if text is not None else f"timeline {timeline!r}" if whole else f"{ref!r}"
    one = None if ref is None else session.find(ref).id
    if not session.out.confirm(f"purge {words.shown(what)} for good?", yes=yes, what="purge"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("purging"):
        done = session.vault.store.purge(one, timeline=timeline, text=text)
    session.out.result(lambda: _data(done), lambda: _lines(done))
    for each in done.left:
        session.out.say(f"still there: {words.shown(each)}")
    return Exit.FAILED if done.left else None


def _data(done: "Purged") -> dict[str, Any]:
    return {
        "dropped": done.dropped,
        "rewritten": done.rewritten,
        "tasks": done.tasks,
        "objects": done.objects,
        "left": list(done.left),
    }


def _lines(done: "Purged") -> list[str]:
    if not (done.dropped or done.rewritten or done.tasks or done.objects):
        return ["it was in nothing that is saved"]
    tasks = f"{words.count(done.tasks, 'task')} forgotten, " if done.tasks else ""
    checkpoints = f"{words.count(done.dropped, 'checkpoint')} gone, {done.rewritten:,} rewritten"
    return [f"{checkpoints}, {tasks}{words.count(done.objects, 'object')} erased"]


COMMANDS = {"purge": purge}
