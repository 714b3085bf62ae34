"""The written word about a restore: what it will do, before it does anything.

The journal lies outside of the workspace. It is there, whole and on the disk, before the
first file is touched, and goes when the last one is safe: as long as it exists, a restore has
begun and may not have ended. It holds the way forward and the way back.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import HASH_BYTES, digest
from hardsave.workspace.entries import Entry
from hardsave.workspace.names import TEMPORARY_PREFIX
from hardsave.workspace.plan import Plan, Step

_MAGIC = b"HSRJ\x01"
_CODEC = Codec()


class Journal(NamedTuple):
    """`id` names the temporary files; `note` is the caller's own."""

    root: bytes
    device: int
    inode: int
    id: bytes
    note: bytes
    plan: Plan


def write(path: Path, journal: Journal) -> None:
    """Durable when it returns."""
    root, device, inode, id, note, plan = journal
    steps = [[_plain(step) for step in way] for way in (plan.steps, plan.back)]
    body = _CODEC.encode([root, device, inode, id, note, plan.present, plan.target, *steps])
    temporary = _new(path)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_whole(file, _MAGIC + digest(body) + body)
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(temporary, path)
    _sync_directory(path.parent)


def read(path: Path) -> Journal | None:
    """None if there is none: no restore is under way."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(
            f"the journal {str(path)!r} of a restore cannot be read: {error}; "
            "see to it, then repeat"
        ) from error
    sum, body = data[len(_MAGIC) :][:HASH_BYTES], data[len(_MAGIC) + HASH_BYTES :]
    if not data.startswith(_MAGIC) or digest(body) != sum:
        raise Corrupt(
            f"the journal {str(path)!r} of a restore that was interrupted is damaged: it can "
            "neither be finished nor taken back, and every file is as it was before or after it. "
            "Remove the journal, then rewind again: the newest checkpoint has what was there. "
            f"Files that begin with {os.fsdecode(TEMPORARY_PREFIX)!r} may go"
        )
    root, device, inode, id, note, present, target, steps, back = _CODEC.decode(body)
    plan = Plan(present, target, _steps(steps), _steps(back))
    return Journal(root, device, inode, id, note, plan)


def remove(path: Path) -> None:
    """The restore is done. One that is gone is fine."""
    path.unlink(missing_ok=True)
    _new(path).unlink(missing_ok=True)
    _sync_directory(path.parent)


def _new(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def write_whole(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _plain(step: Step) -> list[Any]:
    before, after = (None if each is None else list(each) for each in (step.before, step.after))
    return [step.do, step.path, before, after, step.to, list(step.apart), step.via]


def _steps(plain: list[list[Any]]) -> tuple[Step, ...]:
    return tuple(
        [
            Step(do, path, _entry(before), _entry(after), to, tuple(apart), via)
            for do, path, before, after, to, apart, via in plain
        ]
    )


def _entry(plain: list[Any] | None) -> Entry | None:
    return None if plain is None else Entry(*plain)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
