"""`hardsave store export` and `import`."""

from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.arguments import TIMELINE
from hardsave.cli.command import command, not_empty
from hardsave.cli.render import refs
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound

if TYPE_CHECKING:
    from hardsave.vault.transfer.transfer import Imported


@command(
    "export",
    examples="""
        hardsave store export everything.hardsave
        hardsave store export two.hardsave --timeline session-1 --timeline session-2
    """,
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "-t",
    "--timeline",
    "timelines",
    multiple=True,
    metavar="T",
    type=TIMELINE,
    callback=not_empty,
    help="Only this timeline, by its name or a unique beginning; repeatable.",
)
def export_(session: Session, file: str, timelines: tuple[str, ...]) -> None:
    """Write timelines, with their history, into one file.

    All timelines, or those that are named. A file that is there is replaced only if it is an
    export, and only by a complete one.
    """
    if file == "-":
        raise Misuse("an export is a file, not a stream: name one; ./- if that is its name")
    if next(session.vault.timelines(), None) is None:
        nothing = (
            "nothing was saved here, so there is nothing to export; see 'hardsave store stats'"
        )
        raise NotFound(session.deleted_hint() or nothing)
    wanted = [session.whole_name(each) for each in timelines] or None
    with session.out.busy("exporting"):
        done = session.vault.export_file(file, timelines=wanted)
    session.out.result(
        done.as_dict,
        lambda: [
            (
                f"{wording.count(done.timelines, 'timeline')}, "
                f"{wording.count(done.checkpoints, 'checkpoint')}, "
                f"{wording.size(done.file_bytes)} in {wording.shown(done.path)}"
            )
        ],
    )


@command(
    "import",
    examples="""
        hardsave store import everything.hardsave
    """,
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def import_(session: Session, file: str) -> None:
    """Add what an export holds and is not here yet.

    Nothing is replaced: a timeline that has another history here comes under a new name. It is
    one operation, which 'hardsave undo --any-timeline' takes back.
    """
    session.may_create_store = True
    with session.out.busy("importing"):
        done = session.vault.import_file(file)
    session.out.result(lambda: _data(done), lambda: _lines(done))
    if done.checkpoints:
        session.out.hint("take it back with", "undo", "--any-timeline")
    if done.hidden:
        session.out.say(
            "'hardsave undo --list' shows what deleted them, and 'hardsave undo' takes it back"
        )


def _data(done: "Imported") -> dict[str, Any]:
    return {**done.as_dict(), "timelines": list(done.timelines), "renamed": dict(done.renamed)}


def _lines(done: "Imported") -> list[str]:
    here = f", {done.skipped:,} were here already" if done.skipped else ""
    deleted_hint = f"; {done.hidden:,} of them are deleted here and stay so" if done.hidden else ""
    lines = [f"{wording.count(done.checkpoints, 'new checkpoint')}{here}{deleted_hint}"]
    lines += [f"  {wording.shown(refs.timeline(name))}" for name in done.timelines]
    lines += [
        f"  {wording.shown(old)} has another history here; it came as {wording.shown(new)}"
        for old, new in done.renamed.items()
    ]
    return lines


COMMANDS = {"export": export_, "import": import_}
