"""Checks objects of files that come from another store: whether a capture could have made them.

The counterpart of `objects.sound`, for the kinds of objects that `workspace` makes.
"""

from collections.abc import Callable, Sequence

from hardsave.errors import Corrupt
from hardsave.objects.envelope import (
    CAPTURE,
    CONTENT,
    DIRECTORY,
    DIRECTORY_NODE,
    PARTS,
    SNAPSHOT,
    unseal,
)
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.sound import Part, Sound
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import FILE
from hardsave.workspace.snapshot import capture, content, directory

_FILES = frozenset({CONTENT, PARTS})
_DIRECTORIES = frozenset({DIRECTORY, DIRECTORY_NODE})
_SOUND = Sound()


class _Object(NamedTuple):
    address: Hash
    kind: int
    refs: tuple[Hash, ...]
    payload: bytes


def parts(data: bytes) -> list[Part] | None:
    """What an object refers to, in order; None if it is no file's, `Corrupt` if not sound."""
    kind, refs, payload = unseal(data)
    check = _CHECKS.get(kind)
    return None if check is None else check(_Object(digest(data), kind, refs, payload))


def _content(given: _Object) -> list[Part]:
    if given.refs or len(given.payload) > content.PART_BYTES:
        raise Corrupt("a file's content is longer than any that is made, or refers to others")
    return []


def _parts(given: _Object) -> list[Part]:
    level = content.level_of(given.payload)
    if level is None or not 0 < len(given.refs) <= content.FAN_OUT:
        raise Corrupt("a list of a file's parts is malformed")
    return _all(given.refs, frozenset({PARTS}) if level else frozenset({CONTENT}))


def _directory(given: _Object) -> list[Part]:
    found = directory.entries_of(*given)
    return [
        Part(entry.hash, _FILES if entry.type == FILE else _DIRECTORIES)
        for _, entry in found
        if entry.hash is not None
    ]


def _directory_node(given: _Object) -> list[Part]:
    directory.check_node(*given)
    return _all(given.refs, frozenset({DIRECTORY}))


def _snapshot(given: _Object) -> list[Part]:
    found = directory.snapshot_of(*given)
    return [Part(found.top, _DIRECTORIES)]


def _capture(given: _Object) -> list[Part]:
    _SOUND.value(given.payload)  # before it is built
    found = capture.parsed(*given)
    return [Part(found.snapshot, frozenset({SNAPSHOT})), *_all(given.refs[1:], _FILES)]


def _all(refs: Sequence[Hash], kinds: frozenset[int]) -> list[Part]:
    return [Part(ref, kinds) for ref in refs]


_CHECKS: dict[int, Callable[[_Object], list[Part]]] = {
    CONTENT: _content,
    PARTS: _parts,
    DIRECTORY: _directory,
    DIRECTORY_NODE: _directory_node,
    SNAPSHOT: _snapshot,
    CAPTURE: _capture,
}
