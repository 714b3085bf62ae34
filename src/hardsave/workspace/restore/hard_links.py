"""Which files have to be linked to each other, or parted, to have the hard links of the target.

Pure. A file keeps its inode where it can: of files that are one now and shall not be, the
largest part stays as it is; of files that shall be one, those that are already.
"""

from collections.abc import Collection, Iterable, Mapping

from hardsave.tuples import NamedTuple

Group = tuple[bytes, ...]


class Linking(NamedTuple):
    """`to` says which path each is linked to; `apart` are written anew, to be no longer the
    same file as these others."""

    to: Mapping[bytes, bytes]
    apart: Mapping[bytes, Group]


def effective(
    present: Iterable[Group], target: Iterable[Group], follows_target: Collection[bytes]
) -> list[Group]:
    """The groups that shall hold afterwards, if only some paths follow the target."""
    theirs = [tuple(path for path in group if path in follows_target) for group in target]
    ours = [tuple(path for path in group if path not in follows_target) for group in present]
    return [group for group in (*theirs, *ours) if len(group) > 1]


def anchors(
    present: Iterable[Group],
    target: Iterable[Group],
    fixed: Collection[bytes],
    staying: Collection[bytes],
) -> set[bytes]:
    """Of files that are not touched, those that others may be linked to, to be one file as in the
    target: each file that stays one with them is one with them there, too."""
    shall = {path: group[0] for group in target for path in group}
    found = {path for path in fixed if path in shall}
    for group in present:
        kept = [path for path in group if path in staying]
        if len({shall.get(path, path) for path in kept}) > 1:
            found.difference_update(kept)
    return found


def linking(
    present: Iterable[Group],
    wanted: Iterable[Group],
    rewritten: Collection[bytes],
    fixed: Collection[bytes] = (),
) -> Linking:
    """`rewritten` get new content, and thus a new inode, in any case; `fixed` are not touched."""
    inode = {path: group[0] for group in present for path in group if path not in rewritten}
    shall = {path: group[0] for group in wanted for path in group}
    apart: dict[bytes, Group] = {}
    for group in present:
        kept = [path for path in group if path not in rewritten]
        for part in _parts_that_leave(kept, shall, fixed):
            others = tuple(path for path in kept if path not in part)
            for path in part:
                apart[path] = others
                del inode[path]
    to: dict[bytes, bytes] = {}
    for group in wanted:
        for path in group:  # a file that is linked to nothing is one of its own
            if path not in rewritten and path not in apart:
                inode.setdefault(path, path)
        anchored = _anchored(group, inode, fixed)
        for path in group:
            if path not in anchored and path not in fixed:
                to[path] = anchored[0]
                apart.pop(path, None)
    return Linking(to, apart)


def _anchored(group: Group, inode: Mapping[bytes, bytes], fixed: Collection[bytes]) -> list[bytes]:
    """The part of a group that is one file already; the others are linked to its first."""
    parts: dict[bytes, list[bytes]] = {}
    for path in group:
        if path in inode:
            parts.setdefault(inode[path], []).append(path)
    ordered = _ordered(parts.values(), fixed)
    return ordered[0] if ordered else [group[0]]


def _parts_that_leave(
    kept: list[bytes], shall: Mapping[bytes, bytes], fixed: Collection[bytes]
) -> list[list[bytes]]:
    """Of files that are one, the parts that shall be something else than the rest."""
    parts: dict[bytes, list[bytes]] = {}
    for path in kept:
        parts.setdefault(shall.get(path, path), []).append(path)
    leaving = _ordered(parts.values(), fixed)[1:]
    return [part for part in leaving if not any(path in fixed for path in part)]


def _ordered(parts: Iterable[list[bytes]], fixed: Collection[bytes]) -> list[list[bytes]]:
    """What must not be touched first, then the largest."""

    def rank(part: list[bytes]) -> tuple[bool, int, list[bytes]]:
        return not any(path in fixed for path in part), -len(part), part

    return sorted(parts, key=rank)
