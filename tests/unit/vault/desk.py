"""A workspace on a real disk, and what tests do to it."""

import os
import shutil
from pathlib import Path
from typing import Any

from hardsave.errors import HardsaveError
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.workspace.room import leftovers, picture

Picture = dict[bytes, object]


class Desk:
    """A workspace, and a timeline that saves it. The store is in memory unless it is given."""

    def __init__(self, work: Path, store: MemoryStore | None = None, **options: Any) -> None:
        work.mkdir(exist_ok=True)
        self.work = work
        self.store = store or MemoryStore()
        self.options = options
        self.vault = Vault(self.store, **options)
        self.line = self.vault.timeline("main")

    def write(self, **files: str) -> None:
        """`a__b_txt` is `a/b.txt`: keywords cannot be paths."""
        for name, text in files.items():
            put(self.work, name.replace("__", "/").replace("_", "."), text)

    def read(self, path: str) -> str:
        return (self.work / path).read_text()

    def save(self, turn: int = 0, line: Timeline | None = None, **options: Any) -> str:
        saved = (line or self.line).save({"turn": turn}, workspace=self.work, **options)
        return saved.id

    def seen(self) -> Picture:
        """Everything that is there."""
        assert leftovers(self.work) == []
        return picture(self.work)

    def log(self) -> list[str]:
        """Kinds of operations, newest first."""
        return [each.kind for each in self.vault.operations()]


def put(folder: Path, path: str, text: str | bytes) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def wipe(folder: Path) -> None:
    """Everything in it, whatever its modes."""
    for each in list(folder.iterdir()):
        if each.is_dir() and not each.is_symlink():
            for directory, _, _ in os.walk(each):
                os.chmod(directory, 0o700)
            shutil.rmtree(each)
        else:
            each.unlink()


def refusal(call: Any, *given: Any, **named: Any) -> HardsaveError:
    """The error of ours that a call ends with."""
    try:
        call(*given, **named)
    except HardsaveError as error:
        return error
    raise AssertionError("it was not refused")
