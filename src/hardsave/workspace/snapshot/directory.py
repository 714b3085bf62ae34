"""Directories as tree objects, and back.

One directory is one object. A larger one is cut into runs where a name's checksum says so,
so that one change among 100,000 entries rewrites one run and the list of runs. What is read is
checked before it is returned: names that lead elsewhere or into git's own directory, wrong
order, unknown types are `Corrupt`.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from zlib import crc32

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash, digest
from hardsave.tuples import NamedTuple
from hardsave.workspace import file_names as names
from hardsave.workspace.entries import (
    DIRECTORY,
    FILE,
    SYMLINK,
    Entry,
    is_kept_mode,
)
from hardsave.workspace.snapshot.content import Fetch, Put

WHOLE_ENTRIES = 32  # up to so many stand in one object
_RUN_MEANS = ((1024, 16), (16_384, 64))  # up to so many entries, so many in a run
_RUN_MEAN = 256  # with still more entries
_LONGEST_RUN = 4  # times the mean: a run that no name ends is ended here
_AT_ONCE = 256  # objects that are fetched together

_COUNT = struct.Struct("<I")
_ROW = struct.Struct("<BHQ")  # type, mode, size

Named = tuple[bytes, Entry]


class Snapshot(NamedTuple):
    """What the root object of a snapshot says: the top directory, and which files are one."""

    top: Hash
    links: tuple[tuple[bytes, ...], ...] = ()  # each: two or more paths, sorted


# Writing


def write(entries: Sequence[Named], put: Put) -> Hash:
    """Store a directory's entries, which are sorted by name."""
    names = [name for name, _ in entries]
    starts = run_starts(names)
    runs = [write_run(entries[start:end], put) for start, end in pairwise([*starts, len(names)])]
    return write_list([names[start] for start in starts] if entries else [], runs, put)


def write_run(entries: Sequence[Named], put: Put) -> Hash:
    """Store a run: a whole directory, if it is the only one."""
    texts = [name for name, _ in entries]
    texts += [entry.target for _, entry in entries if entry.type == SYMLINK]
    rows = [row(entry.type, entry.mode, entry.size) for _, entry in entries]
    return write_rows(
        texts, rows, [entry.hash for _, entry in entries if entry.hash is not None], put
    )


row = _ROW.pack
"""The row of an entry: its type, its kept mode, its size."""


def write_rows(
    texts: Sequence[bytes], rows: Sequence[bytes], refs: Sequence[Hash], put: Put
) -> Hash:
    """Store a run by its columns: they compress better than rows, and one kind of byte is read
    at a time. `texts` are the names, and the targets of symlinks after them."""
    payload = _COUNT.pack(len(rows)) + b"".join(rows) + b"\0".join(texts)
    return _put(envelope.DIRECTORY, refs, payload, put)


def write_list(firsts: Sequence[bytes], runs: Sequence[Hash], put: Put) -> Hash:
    """Store the list of a directory's runs, by the first name of each; a single one needs none."""
    if len(runs) == 1:
        return runs[0]
    return _put(envelope.DIRECTORY_NODE, runs, b"\0".join(firsts), put)


def run_starts(names: Sequence[bytes]) -> list[int]:
    """Where the runs of a directory begin. That depends on its names alone, so a change of
    what they hold moves no border, and one more name moves few."""
    if len(names) <= WHOLE_ENTRIES:
        return [0]
    mean = next((mean for most, mean in _RUN_MEANS if len(names) <= most), _RUN_MEAN)
    longest = mean * _LONGEST_RUN
    ends = [at for at, checksum in enumerate(map(crc32, names[:-1]), 1) if not checksum % mean]
    starts = [0]
    for end in ends:
        starts += range(starts[-1] + longest, end, longest)
        starts.append(end)
    starts += range(starts[-1] + longest, len(names), longest)
    return starts


def write_snapshot(snapshot: Snapshot, put: Put) -> Hash:
    """Store the root. The same files, linked in the same way, have the same address."""
    groups = sorted(tuple(sorted(group)) for group in snapshot.links)
    payload = b"".join([b"%b\0\0" % b"\0".join(group) for group in groups])
    return _put(envelope.SNAPSHOT, [snapshot.top], payload, put)


def write_empty(put: Put) -> Hash:
    """The root of a snapshot without any file."""
    return write_snapshot(Snapshot(write([], put)), put)


def _put(kind: int, refs: Sequence[Hash], payload: bytes, put: Put) -> Hash:
    sealed = envelope.seal(kind, refs, payload)
    address = digest(sealed)
    put(address, sealed)
    return address


# Reading


def read_snapshot(root: Hash, fetch: Fetch) -> Snapshot:
    return snapshot_of(root, *envelope.unseal(fetch([root])[root]))


def snapshot_of(root: Hash, kind: int, refs: tuple[Hash, ...], payload: bytes) -> Snapshot:
    """Parse and check the root of a snapshot."""
    if kind != envelope.SNAPSHOT or len(refs) != 1:
        raise Corrupt(f"object {root.hex()} is not a snapshot; run verify")
    groups = payload.split(b"\0\0")
    if groups.pop():
        raise _malformed(root, "its last group of links has no end")
    return Snapshot(refs[0], tuple([_group(root, group) for group in groups]))


def _group(root: Hash, data: bytes) -> tuple[bytes, ...]:
    paths = tuple(data.split(b"\0"))
    if len(paths) < 2 or list(paths) != sorted(set(paths)):
        raise _malformed(root, "a group of links is not two or more paths in order")
    for path in paths:
        for name in path.split(b"/"):
            _judge(root, name)
    return paths


def read_apart(
    pairs: Sequence[tuple[Hash | None, Hash | None]], fetch: Fetch
) -> list[tuple[tuple[Named, ...], tuple[Named, ...]]]:
    """The entries of pairs of directories, many at a time, without the runs that both have."""
    whole = _parts({tree for pair in pairs for tree in pair if tree is not None}, fetch)
    runs: list[tuple[list[Hash], list[Hash]]] = []
    for old, new in pairs:
        left = whole[old] if old is not None else ()
        right = whole[new] if new is not None else ()
        both = {*left} & {*right}
        runs.append(([x for x in left if x not in both], [x for x in right if x not in both]))
    wanted = {run for pair in runs for side in pair for run in side}
    entries = {
        address: entries_of(address, *envelope.unseal(data))
        for address, data in _objects(wanted, fetch)
    }
    return [(_joined(left, entries), _joined(right, entries)) for left, right in runs]


def read_level(tree: Hash, after: bytes | None, limit: int, fetch: Fetch) -> list[Named]:
    """Entries of a directory by name, the first so many after one; of a large one only the runs
    are read that they lie in."""
    kind, refs, payload = envelope.unseal(fetch([tree])[tree])
    if kind != envelope.DIRECTORY_NODE:
        return _behind(entries_of(tree, kind, refs, payload), after)[:limit]
    check_node(tree, kind, refs, payload)
    at = 0 if after is None else max(0, bisect_right(payload.split(b"\0"), after) - 1)
    found: list[Named] = []
    while at < len(refs) and len(found) < limit:
        run = refs[at]
        found += _behind(entries_of(run, *envelope.unseal(fetch([run])[run])), after)
        at += 1
    return found[:limit]


def _behind(entries: Sequence[Named], after: bytes | None) -> list[Named]:
    return [each for each in entries if after is None or each[0] > after]


def find(tree: Hash, name: bytes, fetch: Fetch) -> Entry | None:
    """One entry of a directory; of a large one only the run that it lies in is read."""
    return Finder(fetch).find(tree, name)


class Finder:
    """The same for callers that look for many: each run is read and checked once."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._nodes: dict[Hash, tuple[list[bytes], tuple[Hash, ...]]] = {}  # runs, by first names
        self._entries: dict[Hash, dict[bytes, Entry]] = {}

    def find(self, tree: Hash, name: bytes) -> Entry | None:
        if tree not in self._nodes and tree not in self._entries:
            self._read(tree)
        if tree in self._nodes:
            firsts, refs = self._nodes[tree]
            at = bisect_right(firsts, name) - 1
            if not 0 <= at < len(refs):
                return None
            tree = refs[at]
            if tree not in self._entries:
                self._read_run(tree, *self._unsealed(tree))
        return self._entries[tree].get(name)

    def _read(self, tree: Hash) -> None:
        kind, refs, payload = self._unsealed(tree)
        if kind == envelope.DIRECTORY_NODE:
            self._nodes[tree] = payload.split(b"\0"), refs
        else:
            self._read_run(tree, kind, refs, payload)

    def _read_run(self, run: Hash, kind: int, refs: tuple[Hash, ...], payload: bytes) -> None:
        self._entries[run] = dict(entries_of(run, kind, refs, payload))

    def _unsealed(self, address: Hash) -> tuple[int, tuple[Hash, ...], bytes]:
        return envelope.unseal(self._fetch([address])[address])


def check_node(address: Hash, kind: int, refs: tuple[Hash, ...], payload: bytes) -> None:
    """`Corrupt` if the list of a large directory's runs is malformed."""
    firsts = payload.split(b"\0")
    if kind != envelope.DIRECTORY_NODE or len(firsts) != len(refs):
        raise _malformed(address, "it does not name as many runs as it has")
    for name in firsts:
        _judge(address, name)
    if any(one >= other for one, other in pairwise(firsts)):
        raise _malformed(address, "its runs are not in order")


def _parts(trees: Iterable[Hash], fetch: Fetch) -> dict[Hash, tuple[Hash, ...]]:
    """Which runs each directory consists of: one that is not large, of itself."""
    parts: dict[Hash, tuple[Hash, ...]] = {}
    for address, data in _objects(trees, fetch):
        kind, refs, _ = envelope.unseal(data)
        parts[address] = refs if kind == envelope.DIRECTORY_NODE else (address,)
    return parts


def _joined(runs: Sequence[Hash], entries: Mapping[Hash, tuple[Named, ...]]) -> tuple[Named, ...]:
    if len(runs) == 1:
        return entries[runs[0]]
    whole = tuple([item for run in runs for item in entries[run]])
    if runs:
        _judge_order(runs[0], whole)
    return whole


def _objects(wanted: Iterable[Hash], fetch: Fetch) -> Iterator[tuple[Hash, bytes]]:
    unique = sorted(wanted)
    for start in range(0, len(unique), _AT_ONCE):
        some = unique[start : start + _AT_ONCE]
        objects = fetch(some)
        for address in some:
            yield address, objects[address]


def entries_of(
    address: Hash, kind: int, refs: tuple[Hash, ...], payload: bytes
) -> tuple[Named, ...]:
    """Parse and check a directory, or one run of it."""
    if kind != envelope.DIRECTORY or len(payload) < _COUNT.size:
        raise Corrupt(f"object {address.hex()} is not a directory; run verify")
    (count,) = _COUNT.unpack_from(payload)
    end = _COUNT.size + count * _ROW.size
    if end > len(payload):
        raise _malformed(address, "its rows run past its end")
    rows = list(_ROW.iter_unpack(payload[_COUNT.size : end]))
    texts = payload[end:].split(b"\0") if count else []
    links = sum(row[0] == SYMLINK for row in rows)
    if len(texts) != count + links or len(refs) != count - links:
        raise _malformed(address, "its names, links and references do not match its rows")
    targets, hashes = iter(texts[count:]), iter(refs)
    named = tuple(
        [
            (name, _entry(address, row, targets, hashes))
            for name, row in zip(texts[:count], rows, strict=True)
        ]
    )
    for name in texts[:count]:
        _judge(address, name)
    _judge_order(address, named)
    return named


def _entry(
    address: Hash, row: tuple[int, int, int], targets: Iterator[bytes], hashes: Iterator[Hash]
) -> Entry:
    type, mode, size = row
    if type not in (FILE, SYMLINK, DIRECTORY) or not is_kept_mode(type, mode):
        raise _malformed(address, f"it has an entry of type {type} and mode {mode:o}")
    if type != SYMLINK:
        return Entry(type, mode, size, next(hashes))
    target = next(targets)
    if not target:
        raise _malformed(address, "it has a symlink to nothing at all")
    return Entry(type, mode, size, None, target)


def _judge(address: Hash, name: bytes) -> None:
    reason = names.fault(name)
    if reason is not None:
        raise _malformed(address, f"it has the name {name!r}: {reason}")


def _judge_order(address: Hash, named: Sequence[Named]) -> None:
    if any(one[0] >= other[0] for one, other in pairwise(named)):
        raise _malformed(address, "its names are not in order")


def _malformed(address: Hash, why: str) -> Corrupt:
    return Corrupt(
        f"the directory {address.hex()} is not one of ours, and was not used: {why}; run verify"
    )
