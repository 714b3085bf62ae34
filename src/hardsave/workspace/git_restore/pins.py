"""Refs of ours that hold what a restore leaves behind, so that `git gc` cannot take it.

They lie below `refs/hardsave/ID/`, ID being the safety checkpoint's. Plain git shows them, and
removes them as any other ref.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hardsave.errors import Conflict, Misuse, Unavailable
from hardsave.workspace.git import objects
from hardsave.workspace.git import refs as git_refs
from hardsave.workspace.git.git_directory import GitDirectory, repository
from hardsave.workspace.git.packs import Object
from hardsave.workspace.git_restore.locks import ATTEMPTS, LOCK, Locks, Waiting
from hardsave.workspace.git_restore.plan import GitPlan, Pin
from hardsave.workspace.git_restore.writer import GitFiles

PINS = "refs/hardsave/"
_PACKED = b"packed-refs"
_ID = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*")


def check(id: str) -> None:
    if not _ID.fullmatch(id):
        raise Misuse(f"{id!r} cannot name pins; use the id of the safety checkpoint")


def staging(id: str) -> bytes:
    """The directory in which a restore stages its files."""
    return b"hardsave-" + id.encode()


# Making them


def pin(directory: GitDirectory, files: GitFiles, plan: GitPlan, id: str) -> tuple[str, ...]:
    """Pin what the plan says, as far as it is there. Those that are pinned already stay so.

    An empty content that either index names is made if it is not there: without it git can
    neither commit nor collect.
    """
    named = [each.id for each in (*plan.staged, *plan.contents)]
    for empty in objects.missing_empty(directory, named) if named else ():
        write(directory, files, empty)
    lost = objects.missing(directory, [pin.id for pin in plan.pins])
    pins = [pin for pin in plan.pins if pin.id not in lost]
    made = []
    for each in (*pins, *_of_index(directory, files, plan)):
        ref = os.fsencode(f"{PINS}{id}/{each.name}")
        there = git_refs.resolve(directory, ref).commit
        if there is None:
            files.add(directory.common, ref, files.stage(each.id.encode() + b"\n"))
        elif there.decode() != each.id:
            raise Conflict(f"{os.fsdecode(ref)!r} pins something else; use an id of its own")
        made.append(os.fsdecode(ref))
    return tuple(made)


def _of_index(directory: GitDirectory, files: GitFiles, plan: GitPlan) -> Iterator[Pin]:
    """The contents that only the index may name, in a tree of their own."""
    lost = objects.missing(directory, [each.id for each in plan.staged])
    tree = objects.tree_of(each for each in plan.staged if each.id not in lost)
    if not tree.data:
        return
    id = objects.object_id(tree, directory.hash_name)
    if objects.missing(directory, [id]):
        write(directory, files, tree)
    yield Pin("index", id)


def write(directory: GitDirectory, files: GitFiles, made: Object) -> None:
    """Put an object where git looks for it."""
    id = objects.object_id(made, directory.hash_name)
    staged = files.stage(objects.as_file(made), mode=0o444)
    with suppress(FileExistsError):
        files.add(directory.common, f"objects/{id[:2]}/{id[2:]}".encode(), staged)


# Letting them go


def pinned(root: Path) -> set[str]:
    """The ids of safety checkpoints for which something is pinned."""
    with repository(root) as directory:
        refs = git_refs.below(directory, PINS.encode())
    return {os.fsdecode(ref).removeprefix(PINS).partition("/")[0] for ref in refs}


def unpin(root: Path, id: str) -> int:
    """Remove the pins of a safety checkpoint that is no more. How many there were.

    `git gc` takes what nothing else holds, in its own time. May be repeated.
    """
    check(id)
    below = os.fsencode(f"{PINS}{id}/")
    with repository(root) as directory:
        try:
            return _unpin(directory, below, id, Waiting(ATTEMPTS, time.sleep))
        except OSError as error:
            raise Unavailable(
                f"the pins {os.fsdecode(below)!r} could not all be removed: {error}; see to it, "
                "then repeat"
            ) from error


def _unpin(directory: GitDirectory, below: bytes, id: str, waiting: Waiting) -> int:
    pins = git_refs.below(directory, below)
    if not pins:
        return 0
    with GitFiles(directory, staging(id)) as files, Locks(files.staging, id, waiting) as locks:
        files.stage(locks.words, name=LOCK)
        locks.take(directory.common, _PACKED)  # so that no git packs them meanwhile
        packed = git_refs.read_packed(directory)
        rest = git_refs.without(packed, *pins)
        if rest != packed:
            files.put(directory.common, _PACKED, files.stage(rest))
        for ref in pins:
            files.remove(directory.common, ref)
        files.remove_empty(directory.common, below.rstrip(b"/"))
        files.sync()
    return len(pins)
