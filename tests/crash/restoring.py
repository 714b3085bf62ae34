"""A restore that is struck: what is on the disk before it, and the processes that run it.

The store is beside the point here: objects lie in a file, and only the calls that change the
workspace or the journal are counted.
"""

import errno
import json
import os
import signal
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from hardsave.errors import HardsaveError
from hardsave.objects.hashing import Hash
from hardsave.workspace.filesystem import safe_open
from hardsave.workspace.restore import execution
from tests.unit.workspace.room import Room, picture

NOBODY = 65534
ID = b"\x07\x08"
CALLS = (
    *("mkdir", "rmdir", "unlink", "rename", "replace", "symlink", "link"),
    *("fchmod", "fsync", "write", "pwrite", "ftruncate", "utime"),
)
NEEDS_SPACE = {"mkdir", "rename", "replace", "symlink", "link", "write", "pwrite", "create"}


def prepare(folder: str) -> dict[str, str]:
    """A workspace with everything that can change, saved twice: the target and the present."""
    room = Room(Path(folder, "work"))
    room.root.mkdir(parents=True)
    first(room.root)
    Path(folder, "target").write_text(repr(sorted(picture(room.root).items())))
    target = room.snapshot().root
    second(room.root)
    present = room.snapshot().root
    objects = {address.hex(): data.hex() for address, data in room.objects.items()}
    Path(folder, "objects").write_text(json.dumps(objects))
    return {"target": target.hex(), "present": present.hex()}


def first(root: Path) -> None:
    for name in ("edited", "gone", "sub/edited", "sub/deep/gone", "becomes-directory", "mode"):
        _write(root / name, f"old {name}")
    _write(root / "becomes-file/below/file", "old below")
    (root / "large").write_bytes(b"old" * 100_000)
    (root / "link").symlink_to("old")
    (root / "becomes-link").write_text("a file")
    (root / "one").write_text("linked")
    (root / "two").hardlink_to(root / "one")
    (root / "empty").mkdir()
    (root / "shut").mkdir()
    (root / "shut/file").write_text("old shut")
    (root / "shut").chmod(0o500)


def second(root: Path) -> None:
    for name in ("edited", "sub/edited"):
        (root / name).write_text(f"new {name}, and longer")
    for name in ("gone", "sub/deep/gone", "becomes-directory", "becomes-link", "two", "link"):
        (root / name).unlink()
    (root / "mode").chmod(0o600)
    (root / "sub/deep").rmdir()
    (root / "becomes-file/below/file").unlink()
    (root / "becomes-file/below").rmdir()
    (root / "becomes-file").rmdir()
    (root / "becomes-file").write_text("new, a file")
    _write(root / "becomes-directory/deep/file", "new below")
    (root / "becomes-link").symlink_to("sub")
    (root / "large").write_bytes(b"old" * 90_000 + b"new" * 10_000)
    (root / "link").symlink_to("new")
    (root / "two").write_text("linked")
    (root / "empty").rmdir()
    _write(root / "added/file", "new")
    (root / "shut").chmod(0o700)
    (root / "shut/file").write_text("new shut")
    (root / "shut").chmod(0o500)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Shelf:
    def __init__(self, folder: str) -> None:
        saved = json.loads(Path(folder, "objects").read_text())
        self._objects = {bytes.fromhex(key): bytes.fromhex(saved[key]) for key in saved}

    def fetch(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        return {address: self._objects[address] for address in wanted}


def run(
    folder: str,
    present: str,
    target: str,
    at: int | None = None,
    how: str = "before",
    recover: bool = False,
    back: bool = False,
) -> dict[str, Any]:
    """Restore, or recover; struck at one call. How many calls there were, and how it ended."""
    room = Room(Path(folder, "work"))
    shelf = Shelf(folder)
    room.fetch = shelf.fetch  # type: ignore[method-assign] # the objects are in a file here
    made = None if recover else room.plan(bytes.fromhex(target), bytes.fromhex(present))
    watched = Watch(at, how)
    watched.start()
    error, restored = "", None
    try:
        if made is None:
            restored = execution.recover(room.journal, shelf.fetch, back=back)
        else:
            path = os.fsencode(room.root)
            restored = execution.restore(path, made, shelf.fetch, room.journal, id=ID)
    except HardsaveError as failure:
        error = f"{type(failure).__name__}: {failure}"
    conflicts = [] if restored is None else [str(each) for each in restored.conflicts]
    return {"calls": watched.calls, "error": error, "conflicts": conflicts}


def run_as_nobody(folder: str, present: str, target: str) -> dict[str, Any]:
    """The same, as a user for whom modes count."""
    if os.getuid() == 0:
        for directory, below, files in os.walk(folder):
            for name in (".", *below, *files):
                os.chown(os.path.join(directory, name), NOBODY, NOBODY, follow_symlinks=False)
        # What is loaded late must be loaded now: the interpreter may be root's alone.
        safe_open._openat2()
        safe_open._rename()
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    answer = run(folder, present, target)
    os.seteuid(os.getuid())  # the answer is written as who we were
    return answer


class Watch:
    """Counts the calls from its start on, and strikes one of them."""

    def __init__(self, at: int | None, how: str) -> None:
        self.calls = 0
        self.how = how
        self._at = at

    def strikes(self, name: str) -> bool:
        """Whether it strikes this call, which counts."""
        self.calls += 1
        return self.calls == self._at and (self.how != "ENOSPC" or name in NEEDS_SPACE)

    def start(self) -> None:
        for name in CALLS:
            mock.patch.object(os, name, self._watched(name, getattr(os, name))).start()
        moved = self._watched("rename", safe_open.rename_to_nothing)
        swapped = self._watched("rename", safe_open.exchange)
        for room in ("steps", "swap"):
            mock.patch(f"hardsave.workspace.restore.{room}.rename_to_nothing", moved).start()
        mock.patch("hardsave.workspace.restore.swap.exchange", swapped).start()
        real_open = os.open

        def opening(path: Any, flags: int, *given: Any, **named: Any) -> int:
            call = self._watched("create", real_open) if flags & os.O_CREAT else real_open
            opened: int = call(path, flags, *given, **named)
            return opened

        mock.patch.object(os, "open", opening).start()

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if not self.strikes(name):
                return real(*given, **named)
            return _strike(name, self.how, real, given, named)

        return call


def _strike(
    name: str, how: str, real: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    if how in ("ENOSPC", "EIO"):
        number = getattr(errno, how)
        raise OSError(number, os.strerror(number))
    if how == "middle" and name in ("write", "pwrite"):
        real(given[0], bytes(given[1])[: len(given[1]) // 2], *given[2:], **named)
    elif how != "before":
        real(*given, **named)
    die()
    return None


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # the signal may arrive a moment later
