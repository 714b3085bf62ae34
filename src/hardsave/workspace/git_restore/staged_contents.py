"""What is staged: the contents that the indexes of two positions name. Pure.

There may be a hundred thousand entries; an index that does not change is not taken apart.
"""

from collections.abc import Iterable, Iterator

from hardsave.errors import Corrupt
from hardsave.tuples import NamedTuple
from hardsave.workspace import file_names
from hardsave.workspace.git import index
from hardsave.workspace.git.position import GitPosition

_KIND = 0o170000  # of a mode
_TREE = 0o040000  # a directory outside a sparse checkout
_LINK = 0o160000  # a submodule's commit, which lies in another repository


class Content(NamedTuple):
    """What an entry of the index names: a file's content, or a tree."""

    id: str
    is_tree: bool


def differing(
    present: GitPosition, target: GitPosition
) -> tuple[frozenset[Content], frozenset[Content]]:
    """What only the present's index names, and what only the target's does.

    `Corrupt` if the target's cannot be read, or leads to where git would not write.
    """
    if (present.own_index, present.shared_index) == (target.own_index, target.shared_index):
        return frozenset(), frozenset()
    held, wanted = _readable(present), list(_indexes(target))
    _judge(_names(wanted) - _names(held) - {b""})  # an empty one changes one of the other half
    ours, theirs = _contents(held), _contents(wanted)
    return ours - theirs, theirs - ours


def are_same(one: GitPosition, other: GitPosition) -> bool:
    """Whether they stage the same. `git status` writes an index anew for its stat data alone."""
    if one.own_index == other.own_index:
        return True
    if one.own_index is None or other.own_index is None:
        return False
    try:
        return _entries(_indexes(one)) == _entries(_indexes(other))
    except Corrupt:
        return False


def entries(position: GitPosition) -> Iterator[index.IndexEntry]:
    """All that the index of a position stages. `Corrupt` if it cannot be read."""
    for some in _entries(_indexes(position)):
        yield from some


class _Parsed(NamedTuple):
    data: bytes
    parts: index.Index
    hash_name: str


def _indexes(position: GitPosition) -> Iterator[_Parsed]:
    """The index, and the one that it is split from."""
    shared = None if position.shared_index is None else position.shared_index.data
    for data in (position.own_index, shared):
        if data is None:
            continue
        try:
            parts = index.parse(data, hash_name=position.hash_name)
        except index.BadIndex as error:
            raise Corrupt(
                f"an index of the position cannot be read: {error}; restore the files without git"
            ) from error
        yield _Parsed(data, parts, position.hash_name)


def _readable(present: GitPosition) -> list[_Parsed]:
    """Nothing if it is damaged: a rewind may be the way to get rid of such an index."""
    try:
        return list(_indexes(present))
    except Corrupt:
        return []


def _names(indexes: Iterable[_Parsed]) -> frozenset[bytes]:
    return frozenset(name for each in indexes for name in each.parts.names)


def _contents(indexes: Iterable[_Parsed]) -> frozenset[Content]:
    return frozenset(
        Content(id, is_tree=mode & _KIND == _TREE)
        for data, parts, hash_name in indexes
        for mode, id in index.objects(data, parts, hash_name=hash_name)
        if mode & _KIND != _LINK
    )


def _entries(indexes: Iterable[_Parsed]) -> list[list[index.IndexEntry]]:
    return [index.entries(data, parts, hash_name=name) for data, parts, name in indexes]


def _judge(paths: Iterable[bytes]) -> None:
    """Git trusts its index: it would write to any path there, also to `.git/hooks`."""
    for part in {part for path in paths for part in path.removesuffix(b"/").split(b"/")}:
        if fault := file_names.fault(part):
            raise Corrupt(
                f"the stored index holds a path with {part!r}: {fault}; "
                "restore the files without git"
            )
