"""`hardsave export` and `import`."""

from typing import TYPE_CHECKING, Any

import click

from hardsave.cli import words
from hardsave.cli.arguments import TIMELINE
from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound

if TYPE_CHECKING:
    from hardsave.vault.transfer import Imported


@command(
    "export",
    examples="""
        hardsave export everything.hardsave
        hardsave export session.hardsave session-1
    """,
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("names", metavar="[TIMELINE]...", nargs=-1, type=TIMELINE)
def export_(session: Session, file: str, names: tuple[str, ...]) -> None:
    """Write timelines, with their history, into one file.

    All timelines, or those that are named. A file that is there is replaced only if it is an
    export, and only by a complete one.
    """
    if file == "-":
        raise Misuse("an export is a file, not a stream: name one; ./- if that is its name")
    given = session.settings.timeline
    wanted = [*names, *([given] if given and given not in names else [])]
    if next(session.vault.timelines(), None) is None:
        nothing = "nothing was saved here, so there is nothing to export; see 'hardsave stats'"
        raise NotFound(session.deleted() or nothing)
    with session.out.busy("exporting"):
        done = session.vault.export_file(file, timelines=wanted or None)
    session.out.result(
        done._asdict,
        lambda: [
            (
                f"{words.count(done.timelines, 'timeline')}, "
                f"{words.count(done.checkpoints, 'checkpoint')}, "
                f"{words.size(done.file_bytes)} in {words.shown(done.path)}"
            )
        ],
    )


@command(
    "import",
    examples="""
        hardsave import everything.hardsave
    """,
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def import_(session: Session, file: str) -> None:
    """Add what an export holds and is not here yet.

    Nothing is replaced: a timeline that has another history here comes under a new name. It is
    one operation, which 'hardsave undo --any-timeline' takes back.
    """
    session.creates = True
    with session.out.busy("importing"):
        done = session.vault.import_file(file)
    session.out.result(lambda: _data(done), lambda: _lines(done))
    if done.checkpoints:
        session.out.hint("take it back with", "undo", "--any-timeline")
    if done.hidden:
        session.out.say("'hardsave ops' shows what deleted them, and 'hardsave undo' takes it back")


def _data(done: "Imported") -> dict[str, Any]:
    return {**done._asdict(), "timelines": list(done.timelines), "renamed": dict(done.renamed)}


def _lines(done: "Imported") -> list[str]:
    here = f", {done.skipped:,} were here already" if done.skipped else ""
    deleted = f"; {done.hidden:,} of them are deleted here and stay so" if done.hidden else ""
    lines = [f"{words.count(done.checkpoints, 'new checkpoint')}{here}{deleted}"]
    lines += [f"  {words.shown(name)}" for name in done.timelines]
    lines += [
        f"  {words.shown(old)} has another history here; it came as {words.shown(new)}"
        for old, new in done.renamed.items()
    ]
    return lines


COMMANDS = {"export": export_, "import": import_}
