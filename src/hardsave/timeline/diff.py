"""What changed between two checkpoints."""

from collections.abc import Iterable
from itertools import pairwise

from hardsave.objects.diff import StatePath, diff
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord
from hardsave.record import Record


class FileDiff(Record):
    """Paths of files that differ between two checkpoints, directories among them."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Content, mode, kind, or which files are one."""

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


NO_FILES = FileDiff()


def without_folders(paths: Iterable[str]) -> list[str]:
    """Paths in order, but for those that others of them lie in: a new folder is its files."""
    ordered = sorted(paths, key=lambda path: path.split("/"))
    following = pairwise([*ordered, ""])
    return [path for path, after in following if not after.startswith(path + "/")]


class Diff(Record):
    """Paths into the states: `removed` into the old one, the others into the new one."""

    added: tuple[StatePath, ...]
    removed: tuple[StatePath, ...]
    changed: tuple[StatePath, ...]
    old_status: str
    new_status: str
    files: FileDiff = NO_FILES
    """The same for files; empty if one of the two was saved without."""

    def __bool__(self) -> bool:
        """Whether anything differs."""
        changes = bool(self.added or self.removed or self.changed or self.files)
        return changes or self.old_status != self.new_status


def compare(reader: Reader, old: CheckpointRecord, new: CheckpointRecord) -> Diff:
    """Reads only what differs. `reader` reads verbatim."""
    found = diff(reader, old.root, new.root)
    return Diff(
        added=tuple(found.added),
        removed=tuple(found.removed),
        changed=tuple(found.changed),
        old_status=old.status,
        new_status=new.status,
    )
