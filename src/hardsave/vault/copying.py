"""A checkpoint's files, written into a directory that is empty."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave.errors import HardsaveError, Misuse, NotFound, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.timeline.refs import to_text
from hardsave.vault.context import Context
from hardsave.vault.place import Place
from hardsave.vault.recovering import note, recover
from hardsave.workspace import capture, checkout, directory, ignore
from hardsave.workspace import plan as plans
from hardsave.workspace.content import overlay
from hardsave.workspace.steps import Restored

Commit = Callable[[Id, bytes], object]
"""Commits what the copy is for, under this id; the directory's real path goes with it."""


def fill(context: Context, source: CheckpointRecord, path: Path, commit: Commit) -> Restored:
    """Write a checkpoint's files into a directory that is empty or does not exist yet.

    `commit` decides: interrupted before it, the directory is emptied again by whoever next
    uses it or opens the store; after it, the copy is finished. If it is refused, a directory
    that was made for it goes again.
    """
    if source.snapshot is None:
        raise NotFound(f"checkpoint {to_text(source.id)} was saved without files")
    with _made(context, path) as place:
        return _fill(context, source, place, commit)


@contextmanager
def _made(context: Context, path: Path) -> Iterator[Place]:
    """A directory with those above it; what is new of them, and empty, goes if the block fails.
    Not if a journal is left: what was begun there is taken back by the next one."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _remove(new)
        raise Misuse(f"{str(path)!r} cannot be made a directory: {error}") from error
    place = context.places.at(path)
    try:
        yield place
    except HardsaveError:
        if not place.journal.exists():
            _remove(new)
        raise


def _remove(folders: list[Path]) -> None:
    """Innermost first; one that was never made, or that somebody has put something into, stays."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _fill(context: Context, source: CheckpointRecord, place: Place, commit: Commit) -> Restored:
    with place.locked():
        recover(context, place)
        if _names(place):
            raise Misuse(
                f"{str(place.path)!r} is not empty; name a directory that is, or a new one"
            )
        id = context.new_id()
        return write_out(
            context, source, place.root, place.journal, id, lambda: commit(id, place.root)
        )


def _names(place: Place) -> list[bytes]:
    try:
        return os.listdir(place.root)
    except OSError as error:
        raise Misuse(f"{str(place.path)!r} cannot be looked into: {error}") from error


def write_out(
    context: Context,
    source: CheckpointRecord,
    root: bytes,
    journal: Path,
    id: Id,
    decide: Callable[[], object] = lambda: None,
) -> Restored:
    """Write a checkpoint's files into a directory that is empty, and nobody else's yet.

    All of them or none; but a link that this file system cannot hold is found out late, when
    the rest is there.
    """
    assert source.snapshot is not None
    target = capture.read(source.snapshot, context.objects.fetch).snapshot
    nothing: dict[Hash, bytes] = {}
    present = directory.write_empty(nothing.__setitem__)
    fetch = overlay(nothing, context.objects.fetch)
    plan = plans.plan(present, target, fetch, rules=_no_rules)
    done = checkout.restore(
        *(root, plan, context.objects.fetch, journal),
        id=id,
        note=note(context, id),
        whole=True,
        decide=decide,
    )
    if done.conflicts:
        first = done.conflicts[0]
        raise Unavailable(
            f"{os.fsdecode(first.path)!r} could not be written to {os.fsdecode(root)!r}: "
            f"{first.reason}; all but {len(done.conflicts)} are there"
        )
    return done


def _no_rules(patterns: object) -> ignore.Rules:
    return ignore.root_rules(exclude_files=(), patterns=())
