"""`.claude/checkpoints/`: what the vault knows, as files that people and other tools can read.

It is written after each change, each file by one rename, and is never relied upon: what is missing,
damaged or too much there is put right the next time. It lies in a project that any program may have
written: no link is followed, and what cannot be written is told, and stops no caller. What goes is
what this vault has written for a checkpoint that it had: records of the skill itself, of another
store or another machine, and what people put beside a copy, are theirs.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave.compat.skill.records import Checkpoint
from hardsave.logs import log
from hardsave.objects import depth
from hardsave.workspace.filesystem.bounded_read import open_directory, read_beneath

PLACE = ".claude/checkpoints"
_RECORD = "checkpoint.json"
_LARGEST_RECORD = 16 << 20
_ID = re.compile(r"checkpoint-[0-9-]+")  # a record from elsewhere may call itself anything


class Mirror:
    """The checkpoint directory of one project."""

    def __init__(self, project: Path, copied: Collection[str]) -> None:
        """`copied` are the names of the files that lie beside a record."""
        self._project = project
        self._written = (*copied, _RECORD)

    def path(self, id: str, name: str) -> str:
        """Where a copied file lies, relative to the project."""
        return f"{PLACE}/{id}/{name}"

    def write(self, checkpoint: Checkpoint, files: Mapping[str, bytes]) -> None:
        if not _ID.fullmatch(checkpoint.id):
            log(__name__).warning("checkpoint %r is not mirrored: no such id", checkpoint.id)
            return
        with self._told(), self._opened(checkpoint.id) as folder:
            for name, data in files.items():
                _put(folder, name, data)
            record = json.dumps(checkpoint.to_dict(), indent=2, ensure_ascii=False)
            _put(folder, _RECORD, record.encode("utf-8", "backslashreplace") + b"\n")

    def is_whole(self, checkpoint: Checkpoint) -> bool:
        path = os.fsencode(self.path(checkpoint.id, _RECORD))
        try:
            project = open_directory(self._project)
        except OSError:
            return False
        try:
            data, _ = read_beneath(project, path, limit=_LARGEST_RECORD)
        finally:
            os.close(project)
        try:
            known = depth.loads(data or b"")
        except ValueError:
            return False
        return bool(known == json.loads(json.dumps(checkpoint.to_dict())))

    def keep(self, ids: Iterable[str], was_ours: Callable[[str], bool]) -> None:
        """Remove what the vault no longer has; `was_ours` tells of a ref whether it ever had it."""
        kept = set(ids)
        with self._told(), self._opened() as root:
            for name in os.listdir(root):
                if name in kept or not _ID.fullmatch(name):
                    continue
                ref = _ref(root, name)
                if ref is not None and was_ours(ref):
                    self._remove(root, name)

    def _remove(self, root: int, name: str) -> None:
        """What was written there, the record last; and the directory, if that was all."""
        folder = open_directory(os.fsencode(name), parent=root)
        try:
            for written in self._written:
                with suppress(FileNotFoundError):
                    os.unlink(written, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            os.rmdir(name, dir_fd=root)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            log(__name__).warning("%s could not be put right: %s", self._project / PLACE, error)

    @contextmanager
    def _opened(self, *below: str) -> Iterator[int]:
        """The directory, or one in it, made if it is not there."""
        here = open_directory(self._project)
        try:
            for name in (*PLACE.split("/"), *below):
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                following = open_directory(os.fsencode(name), parent=here)
                os.close(here)
                here = following
            yield here
        finally:
            os.close(here)


def _ref(root: int, name: str) -> str | None:
    """The checkpoint of a vault that a record there speaks of; None if it speaks of none."""
    data, _ = read_beneath(root, os.fsencode(f"{name}/{_RECORD}"), limit=_LARGEST_RECORD)
    try:
        record = depth.loads(data or b"")
    except ValueError:
        return None
    ref = record.get("ref") if isinstance(record, dict) else None
    return ref if isinstance(ref, str) else None


def _put(folder: int, name: str, data: bytes) -> None:
    temporary = f".{name}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
