"""A checkpoint's files, written into a directory that is empty."""

import os
from pathlib import Path

from hardsave.errors import Misuse, NotFound, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord
from hardsave.timeline.refs import to_text
from hardsave.vault.context import Context
from hardsave.workspace import capture, checkout, directory, ignore
from hardsave.workspace import plan as plans
from hardsave.workspace.content import overlay
from hardsave.workspace.steps import Restored


def fill(context: Context, source: CheckpointRecord, path: Path) -> Restored:
    """Write a checkpoint's files into a directory that is empty or does not exist yet."""
    if source.snapshot is None:
        raise NotFound(f"checkpoint {to_text(source.id)} was saved without files")
    try:
        path.mkdir(parents=True, exist_ok=True)
        is_empty = not os.listdir(path)
    except OSError as error:
        raise Misuse(f"{str(path)!r} cannot be made a directory: {error}") from error
    if not is_empty:
        raise Misuse(f"{str(path)!r} is not empty; name a directory that is, or a new one")
    place = context.places.at(path)
    with place.locked():
        return write_out(context, source, place.root, place.journal)


def write_out(context: Context, source: CheckpointRecord, root: bytes, journal: Path) -> Restored:
    """Write a checkpoint's files into a directory that is empty, and nobody else's yet."""
    assert source.snapshot is not None
    target = capture.read(source.snapshot, context.objects.fetch).snapshot
    nothing: dict[Hash, bytes] = {}
    present = directory.write_empty(nothing.__setitem__)
    fetch = overlay(nothing, context.objects.fetch)
    plan = plans.plan(present, target, fetch, rules=_no_rules)
    done = checkout.restore(root, plan, context.objects.fetch, journal, id=context.new_id())
    if done.conflicts:
        first = done.conflicts[0]
        raise Unavailable(f"{os.fsdecode(first.path)!r} could not be written: {first.reason}")
    return done


def _no_rules(patterns: object) -> ignore.Rules:
    return ignore.root_rules(exclude_files=(), patterns=())
