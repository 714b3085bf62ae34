"""What differs between two snapshots. What both have stays unread."""

from collections.abc import Callable, Iterator
from typing import Protocol

from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import DIRECTORY, Entry, joined
from hardsave.workspace.snapshot import directory
from hardsave.workspace.snapshot.content import Fetch
from hardsave.workspace.snapshot.directory import Named

_AT_ONCE = 256  # pairs of directories that are read together


class Difference(NamedTuple):
    """A path that one side does not have, or has differently. A directory that both have
    differs if its mode does; what differs in it has paths of its own."""

    path: bytes
    old: Entry | None
    new: Entry | None


class Diff(NamedTuple):
    """Paths, sorted; directories are among them."""

    added: tuple[bytes, ...]
    removed: tuple[bytes, ...]
    changed: tuple[bytes, ...]  # content, mode, kind, or which files are one


class TreeFilter(Protocol):
    """Leaves parts of the two trees out of a comparison."""

    def enter(self, pair: "Pair") -> "TreeFilter":
        """The filter of a directory further down."""

    def leaves_out(self, path: bytes, old: Entry | None, new: Entry | None) -> bool:
        """Whether this entry, and all beneath it, is left out of the comparison."""


class Pair(NamedTuple):
    """A directory of both sides, or of one."""

    path: bytes
    old: Hash | None
    new: Hash | None
    old_mode: int = 0o700  # the top directory's own mode is not captured


class _NoFilter:
    """Leaves nothing out."""

    def enter(self, pair: Pair) -> TreeFilter:
        return self

    def leaves_out(self, path: bytes, old: Entry | None, new: Entry | None) -> bool:
        return False


OPEN: TreeFilter = _NoFilter()


def diff(old_root: Hash, new_root: Hash, fetch: Fetch) -> Diff:
    """What was added, removed and changed from one snapshot to another."""
    old, new = directory.read_snapshot(old_root, fetch), directory.read_snapshot(new_root, fetch)
    found = list(differences(old.top, new.top, fetch))
    added = {each.path for each in found if each.old is None}
    removed = {each.path for each in found if each.new is None}
    relinked = {path for group in {*old.links} ^ {*new.links} for path in group}
    changed = {each.path for each in found} | relinked
    return Diff(
        tuple(sorted(added)),
        tuple(sorted(removed)),
        tuple(sorted(changed - added - removed)),
    )


def differences(
    old: Hash | None, new: Hash | None, fetch: Fetch, tree_filter: TreeFilter = OPEN
) -> Iterator[Difference]:
    """Walk two trees side by side, a level at a time."""
    level = [(Pair(b"", old, new), tree_filter)] if old != new else []
    while level:
        following: list[tuple[Pair, TreeFilter]] = []
        for start in range(0, len(level), _AT_ONCE):
            some = level[start : start + _AT_ONCE]
            read = directory.read_apart([(pair.old, pair.new) for pair, _ in some], fetch)
            for (pair, above), (left, right) in zip(some, read, strict=True):
                yield from _compare(pair, left, right, above.enter(pair), following)
        level = following


def _compare(
    pair: Pair,
    left: tuple[Named, ...],
    right: tuple[Named, ...],
    tree_filter: TreeFilter,
    following: list[tuple[Pair, TreeFilter]],
) -> Iterator[Difference]:
    olds, news = dict(left), dict(right)
    for name in sorted(olds.keys() | news.keys()):
        old, new = olds.get(name), news.get(name)
        path = joined(pair.path, name)
        if old == new or tree_filter.leaves_out(path, old, new):
            continue
        old_tree, new_tree = _tree(old), _tree(new)
        if old_tree != new_tree:
            mode = old.mode if old is not None else 0o700
            following.append((Pair(path, old_tree, new_tree, mode), tree_filter))
        if old is None or new is None or _without_tree(old) != _without_tree(new):
            yield Difference(path, old, new)


def _tree(entry: Entry | None) -> Hash | None:
    return entry.hash if entry is not None and entry.type == DIRECTORY else None


def _without_tree(entry: Entry) -> Entry:
    return entry._replace(hash=None) if entry.type == DIRECTORY else entry


def find(top: Hash, path: bytes, fetch: Fetch) -> Entry | None:
    """The entry at a path; None if there is none."""
    return finder(top, fetch)(path)


def finder(top: Hash, fetch: Fetch) -> Callable[[bytes], Entry | None]:
    """The same for a caller who looks for many: what has been read is kept."""
    inside = directory.Finder(fetch)

    def found(path: bytes) -> Entry | None:
        entry: Entry | None = Entry(DIRECTORY, 0, 0, top)
        for name in path.split(b"/"):
            tree = _tree(entry)
            if tree is None:
                return None
            entry = inside.find(tree, name)
        return entry

    return found
