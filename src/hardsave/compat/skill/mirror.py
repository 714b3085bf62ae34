"""`.claude/checkpoints/`: what the vault knows, as files that people and other tools can read.

It is written after each change, each file by one rename, and is never read: what is missing,
damaged or too much there is put right the next time.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from hardsave.compat.skill.records import Checkpoint

PLACE = ".claude/checkpoints"
_RECORD = "checkpoint.json"


class Mirror:
    """The checkpoint directory of one project."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._root = project / PLACE

    def path(self, id: str, name: str) -> str:
        """Where a copied file lies, relative to the project."""
        return f"{PLACE}/{id}/{name}"

    def write(self, checkpoint: Checkpoint, files: Mapping[str, bytes]) -> None:
        folder = self._root / checkpoint.id
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            _put(folder / name, data)
        record = json.dumps(checkpoint.to_dict(), indent=2, ensure_ascii=False)
        _put(folder / _RECORD, record.encode("utf-8", "backslashreplace") + b"\n")

    def is_whole(self, checkpoint: Checkpoint) -> bool:
        try:
            data = (self._root / checkpoint.id / _RECORD).read_text("utf-8")
            return bool(json.loads(data) == json.loads(json.dumps(checkpoint.to_dict())))
        except (OSError, ValueError):
            return False

    def keep(self, ids: Iterable[str]) -> None:
        """Remove what the vault no longer has. What does not look like ours is left alone."""
        kept = set(ids)
        for folder in self._root.glob("checkpoint-*"):
            if folder.name not in kept and (folder / _RECORD).is_file():
                shutil.rmtree(folder)


def _put(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
