"""What was saved last, kept so that the next save encodes and hashes only what changed.

`Shadow.save(state)` is given a whole state each time and finds out by itself what is new.
Items are remembered in runs of at most `RUN_BYTES`, each with a sketch: the bytes that
ormsgpack makes of it. A run whose sketch is still the same has not changed, even if the
objects in it were replaced; `==` would not do (1 == True) and identity neither (messages are
edited in place). Containers larger than a run have a shadow of their own.

The state is the caller's, and another thread may change it while it is saved. So what is stored
of an item is made from its sketch, not from the item once more: if the two were looked at one
after the other, a change in between would be in the sketch and not in the store, and no later
save would find it.

A shadow describes what *would* be stored once its objects are committed. If the save is
refused or the commit fails, throw the shadow away and start with a new one.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from hardsave.errors import Unstorable
from hardsave.objects import wire
from hardsave.objects.builder import Builder
from hardsave.objects.hashing import Hash
from hardsave.objects.keeping import Keeping
from hardsave.objects.levels import Entry, Levels, Out
from hardsave.objects.tree import MAX_TREE_DEPTH, SPLIT_BYTES, Columns, Shape
from hardsave.tuples import NamedTuple

RUN_BYTES = 32 * 1024  # beyond about 64 KiB an allocator threshold makes sketches 5 × slower


_keeping = Keeping()


class _Run:
    """Neighbouring items of one container: how they looked, or the shadow of a large one."""

    __slots__ = ("branch", "count", "keys", "values")

    def __init__(
        self, count: int, keys: bytes, values: bytes, branch: "_Branch | None" = None
    ) -> None:
        self.count = count
        self.keys = keys  # the sketches of its keys, one behind the other; empty without any
        self.values = values  # those of its items; empty where `branch` has the item
        self.branch = branch

    @property
    def size(self) -> int:
        return RUN_BYTES + 1 if self.branch is not None else len(self.keys) + len(self.values)

    def joined(self, other: "_Run") -> "_Run":
        """Both as one."""
        return _Run(self.count + other.count, self.keys + other.keys, self.values + other.values)


class _Item(NamedTuple):
    """What was made of one item."""

    slot: Entry
    sketch: bytes  # of exactly what the slot holds; empty if there is a branch
    branch: "_Branch | None" = None


class _Gathering:
    """Items put together to runs, each as long as a run may be."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._size = 0

    def add(self, key: bytes, item: _Item) -> None:
        size = len(key) + len(item.sketch)
        if item.branch is not None or self._size + size > RUN_BYTES:
            self.close()
        if item.branch is not None:
            self.runs.append(_Run(1, key, b"", item.branch))
            return
        self._keys.append(key)
        self._values.append(item.sketch)
        self._size += size

    def close(self) -> None:
        """End the run that is being gathered."""
        if self._values:
            run = _Run(len(self._values), b"".join(self._keys), b"".join(self._values))
            self.runs.append(run)
        self._keys, self._values, self._size = [], [], 0


class _Branch:
    """A split container: its tree, and its items in runs."""

    __slots__ = ("depth", "levels", "name", "ref", "runs", "shape")

    def __init__(self, columns: Columns, levels: Levels, depth: int) -> None:
        self.shape = columns.shape
        self.name = columns.name
        self.levels = levels
        self.depth = depth
        self.runs: list[_Run] = []
        self.ref: Hash = b""

    def fits(self, columns: Columns) -> bool:
        return self.shape is columns.shape and self.name == columns.name

    def finish(self, out: Out) -> Hash:
        self.ref = self.levels.root(Builder.head(self.shape, self.name), out)
        return self.ref


class Shadow:
    """The memory of one timeline's last state."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._branch: _Branch | None = None

    def save(self, state: object) -> tuple[Hash, Out]:
        """The address of `state`, and the objects that may be new."""
        out = Out()
        slot: Entry | None = None
        if self._branch is not None:
            slot = self._updated(self._branch, state, out, "state")
        if slot is None:
            self._builder.check_sizes(state, "state")
            columns = self._builder.columns(state)
            self._branch = self._branched(columns, state, out, "state", 0)
            if self._branch is not None:
                return self._branch.ref, out
            slot = self._builder.slot(state, out, "state", 0)
        return self._builder.as_object(slot, out), out

    # Building

    def _build(self, value: object, out: Out, path: str, depth: int) -> _Item:
        """An item, with a shadow of its own if it is large enough to deserve one."""
        columns = self._builder.columns(value)
        branch = self._branched(columns, value, out, path, depth)
        if branch is not None:
            return _Item(Entry(wire.REF_MARK, branch.ref), b"", branch)
        sketch = self._builder.codec.sketch(value)
        if len(sketch) <= SPLIT_BYTES and self._builder.codec.is_canonical(sketch):
            return _Item(self._builder.whole(sketch, out), sketch)
        own = value if isinstance(value, str | bytes) else _keeping.decode(sketch)
        return _Item(self._builder.slot(own, out, path, depth), sketch)

    def _branched(
        self, columns: Columns | None, value: object, out: Out, path: str, depth: int
    ) -> _Branch | None:
        """The shadow of a container; None if it is none, or too small for one."""
        if columns is None or depth >= MAX_TREE_DEPTH or not self._is_large(columns, value):
            return None
        branch = _Branch(columns, Levels(columns.shape.stride, full=True), depth)
        count = len(columns.values)
        entries, branch.runs = self._fill(branch, columns, 0, count, out, path, frozenset())
        branch.levels.append(entries, out)
        branch.finish(out)
        return branch

    def _is_large(self, columns: Columns, value: object) -> bool:
        if columns.shape in (Shape.SET, Shape.FROZENSET):
            return False  # no order of its own: nothing to remember run by run
        if len(columns.values) > RUN_BYTES:
            return True
        return self._builder.codec.is_sketch_longer(RUN_BYTES, value)

    def _fill(
        self,
        branch: _Branch,
        columns: Columns,
        low: int,
        high: int,
        out: Out,
        path: str,
        known: Collection[Hash],
    ) -> tuple[list[Entry], list[_Run]]:
        """The entries and runs of items `low` to `high`. What is `known` is not put again."""
        entries: list[Entry] = []
        gathering = _Gathering()
        for at in range(low, high):
            value = columns.values[at]
            try:
                self._builder.check_sizes(value, path)
                made = Out()
                item = self._build(value, made, path, branch.depth + 1)
                if item.slot.ref not in known:
                    out.add(made)
            except Unstorable as error:
                raise error.below(path, columns.step(at)) from None
            entries.append(self._builder.entry(columns, at, item.slot))
            gathering.add(self._key_sketch(columns, at), item)
        gathering.close()
        return entries, gathering.runs

    # Comparing

    def _updated(self, branch: _Branch, value: object, out: Out, path: str) -> Entry | None:
        """The slot of `value`, whose last version `branch` remembers; None: build it anew."""
        columns = self._builder.columns(value)
        if columns is None or not branch.fits(columns):
            return None
        self._replace_changed(branch, columns, out, path)
        if not _is_longer_than_a_run(branch.runs):
            return None  # has shrunk, perhaps below what is split at all
        return Entry(wire.REF_MARK, branch.finish(out))

    def _replace_changed(self, branch: _Branch, columns: Columns, out: Out, path: str) -> None:
        """Splice everything between the runs that are as they were."""
        old_runs = branch.runs
        number, at = self._untouched(branch, columns)  # the next old run, the next item's place
        runs = old_runs[:number]
        for kept, place in [*self._unchanged(branch, columns, number, at), (len(old_runs), None)]:
            end = len(columns.values) if place is None else place
            gone = sum([run.count for run in old_runs[number:kept]])
            if gone or end > at:
                known = branch.levels.known(at, at + gone)
                entries, fresh = self._fill(branch, columns, at, end, out, path, known)
                branch.levels.splice(at, at + gone, entries, out)
                _add_runs(runs, fresh)
            if place is not None:
                run = old_runs[kept]
                self._refresh(branch, run, columns, place, out, path)
                _add_runs(runs, [run])
                at, number = place + run.count, kept + 1
        branch.runs = runs

    def _untouched(self, branch: _Branch, columns: Columns) -> tuple[int, int]:
        """So many runs at the front are as they were, with so many items: nearly always all.

        The same as `_unchanged` finds, of lists, and with as little as can be done for each run.
        """
        number = at = 0
        if columns.keys is not None:
            return number, at
        values, look = columns.values, self._builder.codec.sketch
        try:
            for run in branch.runs:
                end = at + run.count
                if run.branch is not None or end > len(values):
                    break
                looks = look(values[at:end])
                size = len(run.values) + len(wire.array_header(run.count))
                if len(looks) != size or not looks.endswith(run.values):
                    break
                number, at = number + 1, end
        except Unstorable:
            pass  # the builder names the path when it builds the value anew
        return number, at

    def _unchanged(
        self, branch: _Branch, columns: Columns, first: int, old: int
    ) -> Iterator[tuple[int, int]]:
        """(run, where it stands now) for every run found again, in order, from run `first` on,
        which stood at `old`.

        A run is looked for where it was, then where it would be if what lies before it grew
        or shrank by as much as the whole did.
        """
        grown = len(columns.values) - branch.levels.count
        shifted = False
        free = old
        for number, run in enumerate(branch.runs[first:], first):
            place = old + grown
            if not shifted and self._is_same(run, columns, old):
                place = old
            elif grown and place >= free and self._is_same(run, columns, place):
                shifted = True
            else:
                old += run.count
                continue
            yield number, place
            free = place + run.count
            old += run.count

    def _is_same(self, run: _Run, columns: Columns, at: int) -> bool:
        if at < 0 or at + run.count > len(columns.values):
            return False
        try:
            if run.branch is None:
                return self._looks_like(run, columns, at)
            return self._is_branch(run, run.branch, columns, at)
        except Unstorable:
            return False  # the builder names the path when it builds the value anew

    def _is_branch(self, run: _Run, branch: _Branch, columns: Columns, at: int) -> bool:
        inner = self._builder.columns(columns.values[at])
        return (
            inner is not None
            and branch.fits(inner)
            and run.keys == self._key_sketch(columns, at)
            and (columns.keys is not None or self._begins_alike(branch, inner))
        )

    def _begins_alike(self, branch: _Branch, columns: Columns) -> bool:
        """Whether a large item is likely the one remembered, rather than its neighbour."""
        return not branch.runs or self._is_same(branch.runs[0], columns, 0)

    def _refresh(
        self, branch: _Branch, run: _Run, columns: Columns, at: int, out: Out, path: str
    ) -> None:
        """Bring the shadow of a large item up to date, and its entry with it."""
        if run.branch is None:
            return
        value = columns.values[at]
        before = run.branch.ref
        try:
            slot = self._updated(run.branch, value, out, path)
            if slot is None:
                slot, run.values, run.branch = self._build(value, out, path, branch.depth + 1)
        except Unstorable as error:
            raise error.below(path, columns.step(at)) from None
        if slot.ref != before:
            branch.levels.replace(at, self._builder.entry(columns, at, slot), out)

    def _looks_like(self, run: _Run, columns: Columns, at: int) -> bool:
        """Whether items look as those of a run did."""
        end = at + run.count
        return (
            columns.keys is None or self._is_sketch(run.keys, columns.keys[at:end])
        ) and self._is_sketch(run.values, columns.values[at:end])

    def _is_sketch(self, looked: bytes, items: list[Any]) -> bool:
        """Whether these are the sketches of items, which stand so in that of a list."""
        sketch = self._builder.codec.sketch(items)
        header = len(wire.array_header(len(items)))
        return len(sketch) == header + len(looked) and sketch.endswith(looked)

    def _key_sketch(self, columns: Columns, at: int) -> bytes:
        return b"" if columns.keys is None else self._builder.codec.sketch(columns.keys[at])


def _is_longer_than_a_run(runs: list[_Run]) -> bool:
    size = 0
    for run in runs:
        size += run.size
        if size > RUN_BYTES:
            return True
    return False


def _add_runs(runs: list[_Run], more: Iterable[_Run]) -> None:
    """Add runs, joining small neighbours so that they stay few."""
    for run in more:
        if runs and runs[-1].size + run.size <= RUN_BYTES:
            runs[-1] = runs[-1].joined(run)
        else:
            runs.append(run)
