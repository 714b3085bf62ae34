"""`hardsave diff`: what changed between two checkpoints, in messages, state and files; or between
one and the files as they are now."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, wording
from hardsave.cli.arguments import REF, one_of
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import changed_files, refs
from hardsave.cli.render.changed_files import FileStat
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound
from hardsave.progress import Total, meter
from hardsave.timeline.diff import Diff, FileDiff
from hardsave.tuples import NamedTuple
from hardsave.vault import json_data
from hardsave.vault.history import file_sides
from hardsave.vault.history.file_sides import Side

if TYPE_CHECKING:
    from rich.console import RenderableType

NOW = "now"  # the files as they are, where a ref may stand


class Asked(NamedTuple):
    """What a diff is to show."""

    stat: bool
    only: str | None  # `files` or `state`
    paths: tuple[str, ...]  # seen from the workspace; none: all

    @property
    def files(self) -> bool:
        return self.only != "state"

    @property
    def state(self) -> bool:
        return self.only != "files" and not self.paths


class ComparedFiles(NamedTuple):
    """The files of a diff, and where their contents are."""

    found: FileDiff
    old: Side
    new: Side
    stats: tuple[FileStat, ...] = ()

    def signed(self) -> list[tuple[str, str]]:
        return changed_files.signed(self.found)

    def patch(self, path: str) -> str:
        return file_sides.patch(path, self.old, self.new)

    def counted(self) -> "ComparedFiles":
        """The same, with how much of each file has changed."""
        listed = self.signed()
        done = meter("comparing", "files", lambda: Total(len(listed)))
        stats = []
        for sign, path in listed:
            stats.append(changed_files.file_stat(sign, path, self.old, self.new))
            done.add(1)
        return self._replace(stats=tuple(stats))


@command(
    "diff",
    examples="""
        hardsave diff
        hardsave diff @~1
        hardsave diff plan-ready now --path src
        hardsave diff main:3 main:7 --stat
        hardsave diff plan-ready @ --files
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("old", metavar="[A]", type=REF, required=False)
@click.argument("new", metavar="[B]", type=REF, required=False)
@click.option("--stat", is_flag=True, help="Which files and how many lines, not which lines.")
@click.option("--files", is_flag=True, help="Only files.")
@click.option("--state", is_flag=True, help="Only the state, with all of its messages.")
@click.option(
    "--path",
    "paths",
    metavar="P",
    type=click.Path(),
    multiple=True,
    help="Only this file or directory, seen from here. May be given several times.",
)
def diff(
    session: Session,
    old: str | None,
    new: str | None,
    *,
    stat: bool,
    files: bool,
    state: bool,
    paths: tuple[str, ...],
) -> None:
    """Show what changed between two checkpoints, or since the last.

    From A to B; without B, to the head; without both, from the head to the files as they are now.
    'now' in the place of A or B stands for the files as they are. What goes into a pipe or a file
    can be given to 'git apply', but for what is no text.
    """
    session.reads_only = True
    only = one_of(files=files, state=state)
    one_of(stat=stat, state=state)
    one_of(path=bool(paths), state=state)
    asked = Asked(stat, only, tuple(session.inside(path) for path in paths))
    if old is None or (old == NOW and new is None):
        _with_disk(session, session.base, asked)
    elif NOW in (old, new):
        if old == new:
            raise Misuse("'now' does not differ from itself; name a checkpoint beside it")
        one = session.find(str(new) if old == NOW else old)
        _with_disk(session, _with_files(one), asked, from_disk=old == NOW)
    else:
        before, after = session.find_all(old, "@" if new is None else new)
        _between(session, before, after, asked, to_head=new is None)


# Between two checkpoints


def _between(
    session: Session, before: Checkpoint, after: Checkpoint, asked: Asked, *, to_head: bool
) -> None:
    found = session.vault.diff(before, after)
    old, new = (file_sides.checkpoint_side(one.files) for one in (before, after))
    if asked.paths:
        _check_paths(asked.paths, old, new)
        found = found.replace(files=changed_files.within(found.files, asked.paths))
    files = _counted(session, ComparedFiles(found.files, old, new), asked)
    session.out.result(
        lambda: {
            "old": json_data.checkpoint(before),
            "new": json_data.checkpoint(after),
            **_state_data(found),
            **_files_data(files, asked),
        },
        lambda: _lines(before, after, found, files, asked, to_head=to_head),
        paged=True,
    )


def _lines(
    before: Checkpoint,
    after: Checkpoint,
    found: Diff,
    files: ComparedFiles,
    asked: Asked,
    *,
    to_head: bool,
) -> "Iterator[RenderableType]":
    from hardsave.cli.render import draw, state_diff

    head = (", the head" if to_head else "", "quiet")
    yield draw.line(draw.ref(before), " → ", draw.ref(after), head)
    if not (found.files if asked.paths else found):
        yield draw.line(("nothing differs", "quiet"))
    if asked.state:
        yield from state_diff.lines(
            before, after, found, full=asked.only == "state", stat=asked.stat
        )
    if asked.files:
        yield from _files(files, asked)
        yield from _not_compared(before, after)


def _not_compared(before: Checkpoint, after: Checkpoint) -> "Iterator[RenderableType]":
    """That one of the two was saved without files."""
    from hardsave.cli.render import draw

    without = [one for one in (before, after) if one.files is None]
    if len(without) == 1:
        why = " was saved without files, so none are compared"
        yield draw.line(draw.ref(without[0]), (why, "quiet"))


def _state_data(found: Diff) -> dict[str, Any]:
    return {
        "added": [str(path) for path in found.added],
        "removed": [str(path) for path in found.removed],
        "changed": [str(path) for path in found.changed],
        "old_status": found.old_status,
        "new_status": found.new_status,
    }


# With the disk


def _with_files(one: Checkpoint) -> Checkpoint:
    if one.files is None:
        raise NotFound(
            f"checkpoint {refs.ref(one)} was saved without files; choose one that has "
            "some: hardsave log"
        )
    return one


def _with_disk(
    session: Session, against: Checkpoint | None, asked: Asked, *, from_disk: bool = False
) -> None:
    """`against` a checkpoint, or the newest one with files of this directory."""
    if asked.only == "state":
        raise Misuse("what is not saved yet has files alone; name a checkpoint: hardsave diff A")
    with session.out.busy("looking"):
        found = session.workspace.status(against)
    if found.last is None:
        nothing = "nothing was saved here yet; see 'hardsave status'"
        raise NotFound(session.saved_above or session.deleted_hint() or nothing)
    one = found.last
    stored = file_sides.checkpoint_side(one.files)
    disk = file_sides.disk_side(session.directory)
    changes = found.files
    if asked.paths:
        _check_paths(asked.paths, stored, disk)
        changes = changed_files.within(changes, asked.paths)
    files = ComparedFiles(changes, stored, disk)
    if from_disk:
        files = ComparedFiles(changed_files.turned(changes), disk, stored)
    files = _counted(session, files, asked)
    ends = {"old": json_data.checkpoint(one), "new": None}
    session.out.result(
        lambda: {
            **(dict(zip(ends, reversed(ends.values()), strict=True)) if from_disk else ends),
            **_files_data(files, asked),
        },
        lambda: _disk_lines(session, one, files, asked, from_disk=from_disk),
        paged=True,
    )


def _disk_lines(
    session: Session, one: Checkpoint, files: ComparedFiles, asked: Asked, *, from_disk: bool
) -> "Iterator[RenderableType]":
    from hardsave.cli.render import draw

    where = "" if one.files is None else session.where(one.files)
    other = f" (files of {wording.shown(where)})" if where != str(session.directory) else ""
    stored = draw.line(draw.ref(one), (other, "quiet"))
    yield draw.line("now → ", stored) if from_disk else draw.line(stored, " → now")
    if not files.found:
        yield draw.line(("nothing has changed", "quiet"))
    yield from _files(files, asked)


# Files


def _check_paths(paths: Sequence[str], *sides: Side) -> None:
    """A path that neither side has is a slip of the hand."""
    for path in paths:
        if path != "." and all(side(path) is None for side in sides):
            raise NotFound(f"{path!r} is on neither side; 'hardsave show REF --full' lists paths")


def _counted(session: Session, files: ComparedFiles, asked: Asked) -> ComparedFiles:
    if not asked.stat:
        return files
    with session.out.busy("comparing"):
        return files.counted()


def _files_data(files: ComparedFiles, asked: Asked) -> dict[str, Any]:
    answer: dict[str, Any] = {"files": json_data.files(files.found)}
    if not asked.stat:
        return {**answer, "patches": {path: files.patch(path) for _, path in files.signed()}}
    return {
        **answer,
        "stat": [each._asdict() for each in files.stats],
        "insertions": sum(each.added for each in files.stats),
        "deletions": sum(each.removed for each in files.stats),
    }


def _files(files: ComparedFiles, asked: Asked) -> "Iterator[RenderableType]":
    """Which files, with their lines or only how many."""
    from rich.text import Text

    from hardsave.cli.render import draw
    from hardsave.cli.render.diffstat import Diffstat

    if asked.stat:
        if files.found:
            yield Diffstat(files.stats)
        return
    for sign, path in files.signed():
        patch = files.patch(path)
        yield Text()
        if patch:
            yield draw.Patch(patch)
        else:
            yield draw.line((f"{sign} ", draw.SIGNS[sign]), wording.shown(path), _why(sign))


def _why(sign: str) -> tuple[str, str]:
    """A path without changed lines."""
    return ("  mode or kind" if sign == "~" else "  an empty directory", "quiet")


COMMANDS = {"diff": diff}
