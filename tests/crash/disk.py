"""What may be on a disk after the power has failed, built from recorded events. Pure.

The model is what POSIX promises, which is less than ext4 gives:

- What was written to a file before a sync of that file that returned is there.
- Of each write or truncation since, anything may have happened: it is there, it is not,
  or only its first 512-byte sectors are. Any subset of them may be there, in any order on
  the way down; but where two of them overlap, the later one lies on top, because both
  passed through the same page of memory. A write past the end of what is there leaves
  zeros between.
- A sync makes a file's bytes safe, not its name. Names (created, deleted, made as a folder)
  are safe once the folder that holds them was synced. Before that each name may be in any
  of its states since, whatever became of the names beside it. (ext4 journals names in
  order, and a sync of a new file takes its name along; nothing here relies on that.)
- A file that has its name, but was never synced, may be empty.

SQLite's unix VFS syncs the folder with the first sync of a journal or WAL that it opened,
and not after deleting a WAL: so a deleted WAL may come back. Shared memory does not
survive. The mark is never synced, so it may be missing, empty, old or torn in every state.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.crash.events import Event

SECTOR = 512

Image = dict[str, bytes | None]
"""Files by path; None is a folder."""
Keep = Callable[[Event], Event | None]
"""What becomes of a write or truncation that was not synced: all of it, less, or nothing."""


@dataclass
class _Node:
    """A file, or a folder. `synced` is safe; `pending` came after it, in order."""

    is_folder: bool = False
    synced: bytes = b""
    pending: list[Event] = field(default_factory=list)

    def content(self, keep: Keep) -> bytes:
        data = bytearray(self.synced)
        for event in self.pending:
            kept = keep(event)
            if kept is not None:
                _apply(data, kept)
        return bytes(data)


class Disk:
    """A disk to which events happen."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Starts with `files`, all of them safe, and their folders."""
        self._safe: dict[str, _Node] = {}
        for path, data in files.items():
            self._safe[path] = _Node(synced=data)
            for folder in list(PurePosixPath(path).parents)[:-1]:
                self._safe[str(folder)] = _Node(is_folder=True)
        self._now: dict[str, _Node] = dict(self._safe)
        self._names: dict[str, list[_Node | None]] = {}  # what became of a name, not yet safe

    def happen(self, event: Event) -> None:
        if event.kind in ("create", "mkdir"):
            self._rename(event.path, _Node(is_folder=event.kind == "mkdir"))
        elif event.kind == "delete":
            self._rename(event.path, None)
        elif event.kind == "rename":
            self._rename(event.data.decode(), self._now[event.path])
            self._rename(event.path, None)
        elif event.kind in ("write", "truncate"):
            self._now[event.path].pending.append(event)
        elif event.kind == "sync":
            node = self._now[event.path]
            node.synced, node.pending = node.content(keep=_all), []
        elif event.kind == "sync folder":
            for path in [path for path in self._names if _folder(path) == event.path]:
                self._settle(path, self._names.pop(path)[-1])

    def after_power_loss(self, keep: Keep, chance: Callable[[int], int]) -> Image:
        """What is there. `chance(n)` says how many of n changes of a name had got down."""
        names: dict[str, _Node | None] = dict(self._safe)
        for path, changes in self._names.items():
            kept = chance(len(changes))
            if kept:
                names[path] = changes[kept - 1]
        return {
            path: None if node.is_folder else node.content(keep)
            for path, node in names.items()
            if node is not None and _is_reachable(path, names)
        }

    def _rename(self, path: str, node: _Node | None) -> None:
        self._names.setdefault(path, []).append(node)
        if node is None:
            del self._now[path]
        else:
            self._now[path] = node

    def _settle(self, path: str, node: _Node | None) -> None:
        if node is None:
            self._safe.pop(path, None)
        else:
            self._safe[path] = node


def lost(disk: Disk) -> Image:
    """Nothing that was not synced is there."""
    return disk.after_power_loss(lambda event: None, lambda changes: 0)


def kept(disk: Disk) -> Image:
    """Everything is there, as after the end of a process."""
    return disk.after_power_loss(_all, lambda changes: changes)


def reordered(disk: Disk, dice: random.Random) -> Image:
    """Some of it is there, in whatever order the disk took it."""
    share = dice.choice((0.1, 0.5, 0.9))
    return disk.after_power_loss(
        lambda event: event if dice.random() < share else None,
        lambda changes: dice.randint(0, changes),
    )


def torn(disk: Disk, dice: random.Random) -> Image:
    """As reordered, and of some writes only the first sectors are there."""

    def tear(event: Event) -> Event | None:
        if event.kind != "write":
            return dice.choice((event, None))
        return dice.choice((event, None, _cut(event, dice)))

    return disk.after_power_loss(tear, lambda changes: dice.randint(0, changes))


def put(image: Mapping[str, bytes | None], folder: Path) -> None:
    """Make it so in a folder of a real disk."""
    folder.mkdir(parents=True)
    for path, data in sorted(image.items()):
        if data is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(data)


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their path in it."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _all(event: Event) -> Event:
    return event


def _cut(event: Event, dice: random.Random) -> Event:
    """The first sectors of a write; of one within a sector (the mark), the first bytes."""
    end = event.offset + len(event.data)
    borders = list(range((event.offset // SECTOR + 1) * SECTOR, end, SECTOR))
    border = dice.choice(borders) if borders else dice.randint(event.offset, end)
    return Event("write", event.path, offset=event.offset, data=event.data[: border - event.offset])


def _apply(data: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        del data[event.offset :]
        data.extend(bytes(event.offset - len(data)))
    else:
        data.extend(bytes(max(0, event.offset - len(data))))
        data[event.offset : event.offset + len(event.data)] = event.data


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_reachable(path: str, names: Mapping[str, _Node | None]) -> bool:
    """Whether all the folders above are there."""
    above = _folder(path)
    return above == "" or (names.get(above) is not None and _is_reachable(above, names))
