"""A checkpoint's files, written into a directory that is empty."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hardsave.errors import Misuse, NotFound, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.timeline.refs import to_text
from hardsave.vault import request_key
from hardsave.vault.arguments import encoded
from hardsave.vault.context import Context
from hardsave.vault.request_key import Request
from hardsave.vault.restore.recovery import note, recover
from hardsave.vault.save.pin import Pin
from hardsave.vault.workspaces.place import Place
from hardsave.workspace.restore import execution
from hardsave.workspace.restore import plan as plans
from hardsave.workspace.restore.steps import Restored
from hardsave.workspace.snapshot import capture, directory
from hardsave.workspace.snapshot.content import Fetch, overlay

Commit = Callable[[Place], object]
"""Commits what the copy is for, with the directory that is filled."""


def fill(
    context: Context, source: CheckpointRecord, path: Path, commit: Commit, request: Request
) -> Restored:
    """Write a checkpoint's files into a directory that is empty or does not exist yet.

    `commit` decides, under the id of the request: interrupted before it, all that was made goes
    again, when the directory is used or the store is opened next; after it, the copy is finished.
    If it is refused, all of it goes at once.
    """
    if source.snapshot is None:
        raise NotFound(
            f"checkpoint {to_text(source.id)} was saved without files; "
            "choose one that has a snapshot"
        )
    nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if not nearest.is_dir():  # a link to nowhere is none, either
        raise Misuse(f"{str(nearest)!r} is no directory; name one that is empty, or a new one")
    place = context.places.of(os.path.realpath(encoded(path, "the directory")))
    with place.locked():
        recover(context, place)
        request_key.check_not_done(context, request)
        if os.path.lexists(place.root) and _names(place):
            raise Misuse(
                f"{str(place.path)!r} is not empty; name a directory that is, or a new one"
            )
        decide = partial(commit, place)
        pin = Pin(context, "copy")
        pin.put({})  # before any file is written: a store that takes no writes refuses it here
        try:
            return write_out(context, source, place.root, place.journal, request.id, decide)
        finally:
            pin.give_back()


def _names(place: Place) -> list[bytes]:
    try:
        return os.listdir(place.root)
    except OSError as error:
        raise Misuse(f"{str(place.path)!r} cannot be looked into: {error}") from error


def _missing(root: bytes) -> tuple[bytes, ...]:
    """A directory and those above it that are not there, innermost first."""
    found: list[bytes] = []
    while not os.path.lexists(root):
        found.append(root)
        root = os.path.dirname(root)
    return tuple(found)


def write_out(
    context: Context,
    source: CheckpointRecord,
    root: bytes,
    journal: Path,
    id: Id,
    decide: Callable[[], object] = lambda: None,
) -> Restored:
    """Write a checkpoint's files into a directory that is empty, and not in use yet, or is made.

    All of them or none; but a link that this file system cannot hold is found out late, when
    the rest is there.
    """
    done = execution.restore(
        *(root, _plan(source, context.objects.fetch), context.objects.fetch, journal),
        id=id,
        note=note(context, id),
        made=_missing(root),
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


def fill_own(context: Context, source: CheckpointRecord, root: bytes, fetch: Fetch) -> None:
    """Write a checkpoint's files into a directory that is empty and this process's alone: what is
    there when it dies is not used. All of them, or `Unavailable`."""
    execution.fill(root, _plan(source, fetch), fetch, name=context.new_id().hex())


def _plan(source: CheckpointRecord, fetch: Fetch) -> plans.Plan:
    """What makes a checkpoint's files of nothing."""
    assert source.snapshot is not None
    nothing: dict[Hash, bytes] = {}
    present = directory.write_empty(nothing.__setitem__)
    target = capture.read(source.snapshot, fetch).snapshot
    return plans.plan(present, target, overlay(nothing, fetch), rules=_NoRules)


class _NoRules:
    """What a checkpoint has is written, no matter what its ignore files say: they ignored none of
    it, because git tracked it, or the caller asked for it."""

    key = b""

    def __init__(self, patterns: object) -> None:
        pass

    def enter(self, name: bytes, patterns: object) -> "_NoRules":
        return self

    def match(self, name: bytes, is_dir: bool) -> bool:
        return False
