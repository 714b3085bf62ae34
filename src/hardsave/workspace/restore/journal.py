"""The journal of a restore: what it will do, written before it does anything.

The journal lies outside of the workspace. It is there, whole and on the disk, before the
first file is touched, and goes when the last one is safe: as long as it exists, a restore has
begun and may not have ended. It holds the way forward and the way back.
"""

import os
from pathlib import Path
from typing import Any

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import HASH_BYTES, digest
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import Entry
from hardsave.workspace.file_names import TEMPORARY_PREFIX
from hardsave.workspace.filesystem.durable_write import sync_directory, write_whole
from hardsave.workspace.restore.plan import Plan, Step

_MAGIC = b"HSRJ"
_VERSION = 2
_CODEC = Codec()
_VERSION_AT = len(_MAGIC)
_SUM_AT = _VERSION_AT + 1
_BODY_AT = _SUM_AT + HASH_BYTES


class Journal(NamedTuple):
    """`id` names the temporary files; `note` is the caller's own."""

    root: bytes
    device: int
    inode: int  # 0: the root was not there yet
    id: bytes
    note: bytes
    plan: Plan
    boot: bytes = b""  # in which the device has its number; none: of an older journal
    made: tuple[bytes, ...] = ()  # directories that were not there, the root and those above it

    def is_about(self, status: os.stat_result, boot: bytes) -> bool:
        """Whether a directory is the one that the restore was begun in. Devices get other numbers
        when a machine starts, and after a power loss it has: then the inode decides."""
        if status.st_ino != self.inode:
            return False
        return status.st_dev == self.device or self.boot != boot


def write(path: Path, journal: Journal) -> None:
    """Durable when it returns."""
    root, device, inode, id, note, plan, boot, made = journal
    steps = [[_plain(step) for step in way] for way in (plan.steps, plan.back)]
    told = [root, device, inode, id, note, plan.present, plan.target, *steps, boot, list(made)]
    # No floats are in it, so this is the canonical encoding. `encode` looks for bytes that might be
    # one, finds some by chance among thousands of hashes, and takes the slow way: seconds.
    body = _CODEC.sketch(told)
    temporary = _new(path)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_whole(file, _MAGIC + bytes([_VERSION]) + digest(body) + body)
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(temporary, path)
    sync_directory(path.parent)


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
    version, sum, body = data[_VERSION_AT:_SUM_AT], data[_SUM_AT:_BODY_AT], data[_BODY_AT:]
    if not data.startswith(_MAGIC) or not version or digest(body) != sum:
        raise Corrupt(
            f"the journal {str(path)!r} of a restore that was interrupted is damaged: it can "
            "neither be finished nor taken back, and every file is as it was before or after it. "
            "'hardsave store repair' sets the journal aside (in Python: hardsave.repair); then "
            "rewind again: the newest checkpoint has what was there. "
            f"Files that begin with {os.fsdecode(TEMPORARY_PREFIX)!r} may go; look first at those "
            "that end with '-aside', which another program may have written at that moment"
        )
    if version[0] > _VERSION:
        raise Unavailable(
            f"the journal {str(path)!r} of a restore that was interrupted is from a newer "
            "hardsave; finish it with that one"
        )
    root, device, inode, id, note, present, target, steps, back, *more = _CODEC.decode(body)
    boot, made = more or (b"", ())
    plan = Plan(present, target, _steps(steps), _steps(back))
    return Journal(root, device, inode, id, note, plan, boot, tuple(made))


def remove(path: Path) -> None:
    """The restore is done. One that is gone is fine."""
    path.unlink(missing_ok=True)
    _new(path).unlink(missing_ok=True)
    sync_directory(path.parent)


def _new(path: Path) -> Path:
    return path.with_name(path.name + ".new")


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
