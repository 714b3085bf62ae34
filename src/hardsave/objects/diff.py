"""What changed between two states, reading only what differs.

Two trees are compared from the top: a node that both have is equal and stays unread. What
remains is lined up like a text diff, so that an insertion is one addition and not a change
of everything after it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from hardsave.objects import envelope, slow
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.reader import Reader
from hardsave.objects.tree import INLINE_BYTES, Ref, Shape, Stored
from hardsave.objects.types import Types
from hardsave.objects.wire import Verbatim
from hardsave.tuples import NamedTuple

MAX_DEPTH = 50  # beyond it a difference is reported, not looked into
_PLAIN = Codec(Types())
MAX_ALIGNED = 2_000  # tokens on a side; more are paired by position
MAX_ALIKE = 10_000  # pairs of equal tokens; with more, the frequent ones are no landmarks


class StatePath(tuple[Any, ...]):
    """Keys and indexes from the state down. Reads as people write it: `messages[3].content`."""

    __slots__ = ()

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else slow.key_step(step) for step in self)
        return "".join(steps).removeprefix(".") or "state"

    def down(self, step: object) -> "StatePath":
        return StatePath((*self, step))


@dataclass
class StateDiff:
    """Paths; those of `removed` lead into the old state, all others into the new one."""

    added: list[StatePath] = field(default_factory=list)
    removed: list[StatePath] = field(default_factory=list)
    changed: list[StatePath] = field(default_factory=list)


class _Token(NamedTuple):
    """One item, or a whole chunk of items that both sides may have."""

    address: Hash
    covers: int
    height: int  # 0: an item; 1: a leaf; above: a node
    item: Any = None  # of an item


def diff(reader: Reader, old: Hash, new: Hash) -> StateDiff:
    """What has to happen to the state at `old` to become the one at `new`.

    `reader` reads verbatim: tuples, sets, objects and the like are compared as they are stored,
    and what differs inside a small one is a change of the whole.
    """
    found = StateDiff()
    _Comparison(reader, found).slots(Ref(old), Ref(new), StatePath())
    return found


class _Comparison:
    def __init__(self, reader: Reader, found: StateDiff) -> None:
        self._reader = reader
        self._found = found

    def slots(self, old: Any, new: Any, path: StatePath) -> None:
        """Compare two values, each plain or a Ref."""
        if isinstance(old, Ref) and isinstance(new, Ref) and old == new:
            return
        old, new = self._open(old), self._open(new)
        if isinstance(old, Stored) or isinstance(new, Stored):
            if _shape(old) != _shape(new) or _kind(old) is None or len(path) >= MAX_DEPTH:
                self._found.changed.append(path)
                return
        elif type(old) is not type(new) or not isinstance(old, dict | list):
            if self._encoded(old) != self._encoded(new):
                self._found.changed.append(path)
            return
        if _kind(old) == "map":
            self._maps(old, new, path)
        else:
            self._lists(old, new, path)

    def _maps(self, old: Any, new: Any, path: StatePath) -> None:
        before, after = self._tokens(old, new)
        left, right = self._by_key(before), self._by_key(after)
        for name, (key, _) in left.items():
            if name not in right:
                self._found.removed.append(path.down(key))
        for name, (key, value) in right.items():
            if name not in left:
                self._found.added.append(path.down(key))
            elif len(path) < MAX_DEPTH:
                self.slots(left[name][1], value, path.down(key))
            elif self._encoded(left[name][1]) != self._encoded(value):
                self._found.changed.append(path.down(key))

    def _by_key(self, tokens: list[_Token]) -> dict[bytes, tuple[Any, Any]]:
        """Key, for people to read, and value of every item, by the key's encoding."""
        items: dict[bytes, tuple[Any, Any]] = {}
        for token in tokens:
            if not token.height:
                key, value = token.item
                name = self._encoded(key)
                items[name] = _PLAIN.decode(name) if isinstance(key, Verbatim) else key, value
        return items

    def _lists(self, old: Any, new: Any, path: StatePath) -> None:
        before, after = self._tokens(old, new)
        for low, high, from_, to in _edits(before, after):
            old_at = sum(token.covers for token in before[:low])
            new_at = sum(token.covers for token in after[:from_])
            gone = _flat(before[low:high])
            came = _flat(after[from_:to])
            pairs = min(len(gone), len(came))
            for number in range(pairs):
                self._pair(gone[number], came[number], path.down(new_at + number))
            self._found.removed += [path.down(old_at + n) for n in range(pairs, len(gone))]
            self._found.added += [path.down(new_at + n) for n in range(pairs, len(came))]

    def _pair(self, old: Any, new: Any, path: StatePath) -> None:
        if old is None or new is None or len(path) >= MAX_DEPTH:
            self._found.changed.append(path)  # one of them lies in a chunk that has moved
        else:
            self.slots(old[0], new[0], path)

    # Taking containers apart

    def _tokens(self, old: Any, new: Any) -> tuple[list[_Token], list[_Token]]:
        """Both sides as tokens, with every chunk opened that the other side does not have."""
        before, after = self._parts(old), self._parts(new)
        while True:
            shared = {token.address for token in before} & {token.address for token in after}
            alone = [token for token in (*before, *after) if token.address not in shared]
            # Only the tallest: a chunk meets its like on the other side at its own height.
            height = max((token.height for token in alone), default=0)
            if height == 0:
                return before, after
            opened = {token.address for token in alone if token.height == height}
            found = self._reader.fetch(opened)
            stride = 2 if _kind(old) == "map" else 1
            before = self._expanded(before, opened, found, stride)
            after = self._expanded(after, opened, found, stride)

    def _parts(self, value: Any) -> list[_Token]:
        if not isinstance(value, Stored):
            flat = (
                [part for item in value.items() for part in item]
                if isinstance(value, dict)
                else value
            )
            return self._items(flat, 2 if isinstance(value, dict) else 1)
        tokens: list[_Token] = []
        edges = list(enumerate(self._reader.edges(value), 1))
        for height, (counts, refs) in reversed(edges):
            tokens += [_Token(ref, n, height) for n, ref in zip(counts, refs, strict=True)]
        return tokens + self._items(value.items, value.shape.stride)

    def _expanded(
        self, tokens: list[_Token], opened: set[Hash], found: Mapping[Hash, bytes], stride: int
    ) -> list[_Token]:
        parts: list[_Token] = []
        for token in tokens:
            if token.address not in opened:
                parts.append(token)
            elif token.height == 1:
                parts += self._items(self._reader.flat(found[token.address]), stride)
            else:
                children = zip(
                    *self._reader.children(token.address, found[token.address]), strict=True
                )
                parts += [_Token(ref, count, token.height - 1) for count, ref in children]
        return parts

    def _items(self, flat: Sequence[Any], stride: int) -> list[_Token]:
        items = [tuple(flat[at : at + stride]) for at in range(0, len(flat), stride)]
        return [_Token(self._address(item), 1, 0, item) for item in items]

    def _address(self, item: tuple[Any, ...]) -> Hash:
        """What an item is compared by: never equal to the address of a chunk."""
        return digest(b"item" + b"".join(map(self._as_split, item)))

    def _as_split(self, part: Any) -> bytes:
        """A key or value as it lies in a split container, whether it does or not: there, what is
        long is an object. One of the two sides may have been too small to be split."""
        if isinstance(part, Ref):
            return b"r" + part
        data = self._encoded(part)
        if len(data) <= INLINE_BYTES:
            return b"v" + data
        return b"r" + digest(envelope.seal(envelope.VALUE, (), data))

    def _open(self, value: Any) -> Any:
        return self._reader.open(value) if isinstance(value, Ref) else value

    def _encoded(self, value: Any) -> bytes:
        if isinstance(value, Ref):
            return value
        return self._reader.codec.encode(value)


def _shape(value: Any) -> tuple[Any, ...]:
    """What a container is: a list that became a tuple is a change, however alike they are."""
    if isinstance(value, Stored):
        return value.shape, value.name
    if isinstance(value, dict):
        return Shape.MAP, None
    return Shape.LIST if isinstance(value, list) else None, None


def _kind(value: Any) -> str | None:
    if isinstance(value, Stored):
        if value.shape in (Shape.MAP, Shape.OBJECT):
            return "map"
        return "list" if value.shape in (Shape.LIST, Shape.TUPLE) else None
    return "map" if isinstance(value, dict) else "list" if isinstance(value, list) else None


def _flat(tokens: Sequence[_Token]) -> list[tuple[Any, ...] | None]:
    """One entry per item; None for those inside a chunk that was not opened."""
    items: list[tuple[Any, ...] | None] = []
    for token in tokens:
        items += [None] * token.covers if token.height else [token.item]
    return items


def _edits(before: list[_Token], after: list[_Token]) -> list[tuple[int, int, int, int]]:
    """(old from, old to, new from, new to) of every stretch that differs."""
    old = [token.address for token in before]
    new = [token.address for token in after]
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    low, high = start, len(old) - end
    from_, to = start, len(new) - end
    if low == high and from_ == to:
        return []
    if max(high - low, to - from_) > MAX_ALIGNED:
        return [(low, high, from_, to)]
    matcher = _matcher(old[low:high], new[from_:to])
    return [
        (low + a, low + b, from_ + c, from_ + d)
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def _matcher(old: list[Hash], new: list[Hash]) -> SequenceMatcher[Hash]:
    """It looks at every pair of equal tokens, once for every stretch that it finds: a list of the
    same two values over and over would take minutes."""
    had = Counter(old)
    alike = sum(had[address] for address in new)
    return SequenceMatcher(None, old, new, autojunk=alike > MAX_ALIKE)
