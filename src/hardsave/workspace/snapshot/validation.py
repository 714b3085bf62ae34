"""Checks objects of files that come from another store: whether a capture could have made them.

The counterpart of `objects.sound`, for the kinds of objects that `workspace` makes.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

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


class Facts(NamedTuple):
    """What an object of a file tells those that refer to it."""

    length: int = -1  # of content: how many bytes of a file it holds
    level: int = -1  # of a list of parts
    first: bytes = b""  # of a directory: its first name
    last: bytes = b""


Below = Mapping[Hash, Facts]


class Checked(NamedTuple):
    """An object that is sound in itself. Whether it fits what it refers to, `facts` says."""

    parts: list[Part]
    facts: Callable[[Below], Facts] = lambda _: Facts()


class _Object(NamedTuple):
    address: Hash
    kind: int
    refs: tuple[Hash, ...]
    payload: bytes


def checked(data: bytes) -> Checked | None:
    """What an object refers to, in order; None if it is no file's, `Corrupt` if not sound."""
    kind, refs, payload = unseal(data)
    check = _CHECKS.get(kind)
    return None if check is None else check(_Object(digest(data), kind, refs, payload))


def _content(given: _Object) -> Checked:
    if given.refs or len(given.payload) > content.PART_BYTES:
        raise Corrupt("a file's content is longer than any that is made, or refers to others")
    length = len(given.payload)
    return Checked([], lambda _: Facts(length))


def _parts(given: _Object) -> Checked:
    level = content.level_of(given.payload)
    if level is None or not 0 < len(given.refs) <= content.FAN_OUT:
        raise Corrupt("a list of a file's parts is malformed")
    length = content.length_of(given.payload)

    def facts(below: Below) -> Facts:
        under = [below[ref] for ref in given.refs]
        if (
            any(each.level >= level for each in under)
            or sum(each.length for each in under) != length
        ):
            raise Corrupt("a list of a file's parts is of another level or length than it says")
        return Facts(length, level)

    return Checked(_all(given.refs, frozenset({PARTS}) if level else frozenset({CONTENT})), facts)


def _directory(given: _Object) -> Checked:
    found = directory.entries_of(*given)

    def facts(below: Below) -> Facts:
        for name, entry in found:
            if entry.type == FILE and entry.hash and below[entry.hash].length != entry.size:
                raise Corrupt(f"the file {name!r} is not as long as its directory says")
        return Facts(first=found[0][0], last=found[-1][0]) if found else Facts()

    parts = [
        Part(entry.hash, _FILES if entry.type == FILE else _DIRECTORIES)
        for _, entry in found
        if entry.hash is not None
    ]
    return Checked(parts, facts)


def _directory_node(given: _Object) -> Checked:
    directory.check_node(*given)

    def facts(below: Below) -> Facts:
        under = [below[ref] for ref in given.refs]
        firsts = [each.first for each in under]
        if firsts != given.payload.split(b"\0"):
            raise Corrupt("a large directory's runs do not begin with the names that it says")
        if any(one.last >= other.first for one, other in pairwise(under)):
            raise Corrupt("a large directory's names are not in order")
        return Facts(first=firsts[0], last=under[-1].last)

    return Checked(_all(given.refs, frozenset({DIRECTORY})), facts)


def _snapshot(given: _Object) -> Checked:
    found = directory.snapshot_of(*given)
    return Checked([Part(found.top, _DIRECTORIES)])


def _capture(given: _Object) -> Checked:
    _SOUND.value(given.payload)  # before it is built
    found = capture.parsed(*given)
    parts = [Part(found.snapshot, frozenset({SNAPSHOT})), *_all(given.refs[1:], _FILES)]
    return Checked(parts)


def _all(refs: Sequence[Hash], kinds: frozenset[int]) -> list[Part]:
    return [Part(ref, kinds) for ref in refs]


_CHECKS: dict[int, Callable[[_Object], Checked]] = {
    CONTENT: _content,
    PARTS: _parts,
    DIRECTORY: _directory,
    DIRECTORY_NODE: _directory_node,
    SNAPSHOT: _snapshot,
    CAPTURE: _capture,
}
