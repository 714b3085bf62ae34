"""Timelines in one file, to carry them to another store: export and import.

Export. The file is written beside its target, synced, and put in its place whole; until
then a target that was there stays as it was. The same history makes the same file. It holds what
was there when it began, also if it is deleted, dropped or collected meanwhile.

Import. The file is read and checked to its end before the store is touched. Then it is one
operation: all of it is there, or nothing. Once more changes nothing. See `importing` for what
happens to a history that is here already, and to one that went another way.

Both need memory for the largest object and a little more, however large the file is.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from hardsave.errors import Misuse, Unavailable
from hardsave.objects.frames import MAGIC, FrameReader
from hardsave.progress import Total, meter
from hardsave.record import Record
from hardsave.vault.context import Context
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import examination, exporting, importing

PathLike = str | os.PathLike[str]

Read = Callable[[int, int], bytes]
"""So many bytes of a file, from there."""


class Exported(Record):
    """What a file holds."""

    path: str
    timelines: int
    checkpoints: int
    objects: int
    file_bytes: int


class Imported(Record):
    """What has come of a file."""

    timelines: tuple[str, ...]
    """Created here, or extended."""
    checkpoints: int
    """How many are new."""
    skipped: int
    """How many were here already."""
    hidden: int
    """How many of these are deleted here, and stay so."""
    renamed: Mapping[str, str]
    """Timelines whose name has another history here, and what they are called instead."""


def export_file(context: Context, path: PathLike, timelines: Iterable[str] | None) -> Exported:
    if isinstance(timelines, str):
        raise Misuse(f"timelines is a list of names: write timelines=[{timelines!r}]")
    target = _named(path)
    with _in_our_words(target):
        _check_target(target)
        with _replacing(target) as write:
            counts, totals = exporting.write(context, timelines, write)
        size = os.stat(target).st_size
    return Exported(target, counts.timelines, counts.checkpoints, totals.objects, size)


def import_file(context: Context, path: PathLike) -> Imported:
    max_value_bytes = context.objects.builder.max_value_bytes
    name = _named(path)
    with _in_our_words(name), _reading(name) as read, Scratch(examination.TABLES) as scratch:
        reader = FrameReader(_metered(read, name, "checking"), name)
        examination.Examination(reader, scratch).run(max_value_bytes)
        brought = importing.bring(
            context,
            scratch,
            lambda: FrameReader(_metered(read, name, "importing"), name),
            reader.link,
            max_value_bytes,
        )
    return Imported(*brought)


def _metered(read: Read, path: str, doing: str) -> Read:
    """The same, and what it has read is counted."""
    done = meter(doing, total=lambda: Total(bytes=os.stat(path).st_size))

    def counted(size: int, at: int) -> bytes:
        data = read(size, at)
        done.add(bytes=len(data))
        return data

    return counted


def _named(path: PathLike) -> str:
    """The absolute path that a caller means, if a file can have such a name."""
    name: object = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise Misuse(f"an export is named by a path as text, not by {name!r}")
    try:
        is_possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        is_possible = False
    if not name or not is_possible:
        raise Misuse(f"{name!r} cannot be the name of a file; choose another path")
    return os.path.abspath(name)


def _check_target(target: str) -> None:
    """Only an export is replaced by one: a slip of the pen costs no other file."""
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise Misuse(f"there is no folder {folder} to write an export to; make it first")
    if not os.path.lexists(target):
        return
    if not stat.S_ISREG(os.stat(target).st_mode):
        raise Misuse(f"{target} is no plain file; choose another path for the export")
    with _reading(target) as read:
        beginning = read(len(MAGIC), 0)
    if beginning not in (b"", MAGIC):
        raise Misuse(f"{target} is there, and is no export; choose another path")


@contextlib.contextmanager
def _replacing(target: str) -> Iterator[Callable[[bytes], None]]:
    """Write a file that takes the place of another once it is complete and on the disk."""
    part = f"{target}.{os.urandom(6).hex()}.part"
    file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    at = 0

    def write(data: bytes) -> None:
        nonlocal at
        while data:
            done = os.pwrite(file, data, at)
            at += done
            data = data[done:]

    try:
        try:
            yield write
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _reading(path: str) -> Iterator[Read]:
    """Read a plain file at any place: so many bytes, from there."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Misuse(f"{path} is no plain file; name a file that export_file made")
        yield lambda size, at: _read(file, size, at)
    finally:
        os.close(file)


def _read(file: int, size: int, at: int) -> bytes:
    parts = []
    while size > 0 and (part := os.pread(file, size, at)):
        parts.append(part)
        size -= len(part)
        at += len(part)
    return b"".join(parts)


@contextlib.contextmanager
def _in_our_words(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise Misuse(f"there is no file {path}") from error
    except OSError as error:
        raise Unavailable(f"{path} cannot be used: {error}; see to it, then repeat") from error
