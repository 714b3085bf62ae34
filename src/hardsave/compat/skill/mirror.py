"""`.claude/checkpoints/`: what the vault knows, as files that people and other tools can read.

It is written after each change, each file by one rename, and is never read: what is missing,
damaged or too much there is put right the next time. It lies in a project that anybody may have
written: no link is followed, and what cannot be written is told, and stops nobody.
"""

import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave.compat.skill.records import Checkpoint
from hardsave.logs import log
from hardsave.objects import depth
from hardsave.workspace.reading import open_directory, read_beneath

PLACE = ".claude/checkpoints"
_RECORD = "checkpoint.json"
_LARGEST_RECORD = 16 << 20
_ID = re.compile(r"checkpoint-[0-9-]+")  # a record from elsewhere may call itself anything


class Mirror:
    """The checkpoint directory of one project."""

    def __init__(self, project: Path) -> None:
        self._project = project

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

    def keep(self, ids: Iterable[str]) -> None:
        """Remove what the vault no longer has. What does not look like ours is left alone."""
        kept = set(ids)
        with self._told(), self._opened() as root:
            for name in os.listdir(root):
                if name not in kept and _ID.fullmatch(name) and _is_ours(root, name):
                    shutil.rmtree(name, dir_fd=root)

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


def _is_ours(root: int, name: str) -> bool:
    """A directory with a record in it."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
        return False
    return (
        read_beneath(root, os.fsencode(f"{name}/{_RECORD}"), limit=_LARGEST_RECORD).data is not None
    )


def _put(folder: int, name: str, data: bytes) -> None:
    temporary = f".{name}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
