"""What was saved last, kept so that the next save encodes and hashes only what changed.

`Shadow.save(state)` is given a whole state each time and finds out by itself what is new.
Items are remembered in runs of at most `RUN_BYTES`, each with a sketch: the bytes that
ormsgpack makes of it. A run whose sketch is still the same has not changed, whatever was
done to the objects in it; `==` would not do (1 == True) and identity neither (messages are
edited in place). Containers larger than a run have a shadow of their own.

A shadow describes what *would* be stored once its objects are committed. If the save is
refused or the commit fails, throw the shadow away and start with a new one.
"""

from collections.abc import Collection, Iterator, Sequence

from hardsave.errors import Unstorable
from hardsave.objects import wire
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Entry, Levels, Out
from hardsave.objects.tree import MAX_TREE_DEPTH, Builder, Columns, Shape

RUN_BYTES = 32 * 1024  # beyond about 64 KiB an allocator threshold makes sketches 5 × slower


class _Run:
    """Neighbouring items of one container: how they looked, or the shadow of a large one."""

    __slots__ = ("branch", "count", "sketch")

    def __init__(self, count: int, sketch: bytes | None, branch: "_Branch | None" = None) -> None:
        self.count = count
        self.sketch = sketch  # of the items; of the key alone where `branch` has the item
        self.branch = branch

    @property
    def size(self) -> int:
        return RUN_BYTES + 1 if self.branch is not None else len(self.sketch or b"")


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
            slot, self._branch = self._build(state, out, "state", 0)
        return self._builder.as_object(slot, out), out

    # Building

    def _build(
        self, value: object, out: Out, path: str, depth: int
    ) -> tuple[Entry, _Branch | None]:
        """A slot, with its shadow if it is large enough to deserve one."""
        columns = self._builder.columns(value)
        if columns is None or depth >= MAX_TREE_DEPTH or not self._is_large(columns, value):
            return self._builder.slot(value, out, path, depth), None
        branch = _Branch(columns, Levels(columns.shape.stride, full=True), depth)
        count = len(columns.values)
        entries, branch.runs = self._fill(branch, columns, 0, count, out, path, frozenset())
        branch.levels.append(entries, out)
        return Entry(wire.REF_MARK, branch.finish(out)), branch

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
        runs: list[_Run] = []
        start = low  # of the run being gathered
        gathered = 0
        for at in range(low, high):
            value = columns.values[at]
            try:
                self._builder.check_sizes(value, path)
                made = Out()
                slot, sub = self._build(value, made, path, branch.depth + 1)
                if slot.ref not in known:
                    out.add(made)
            except Unstorable as error:
                raise error.below(path, columns.step(at)) from None
            entries.append(self._builder.entry(columns, at, slot))
            size = RUN_BYTES if sub else len(self._builder.codec.sketch(value))
            if at > start and gathered + size > RUN_BYTES:
                runs.append(_Run(at - start, self._sketch(columns, start, at)))
                start, gathered = at, 0
            gathered += size
            if sub is not None:
                runs.append(_Run(1, self._key_sketch(columns, at), sub))
                start, gathered = at + 1, 0
        if high > start:
            runs.append(_Run(high - start, self._sketch(columns, start, high)))
        return entries, runs

    # Comparing

    def _updated(self, branch: _Branch, value: object, out: Out, path: str) -> Entry | None:
        """The slot of `value`, whose last version `branch` remembers; None: build it anew."""
        columns = self._builder.columns(value)
        if columns is None or not branch.fits(columns):
            return None
        self._replace_changed(branch, columns, out, path)
        if sum(run.size for run in branch.runs) <= RUN_BYTES:
            return None  # has shrunk, perhaps below what is split at all
        return Entry(wire.REF_MARK, branch.finish(out))

    def _replace_changed(self, branch: _Branch, columns: Columns, out: Out, path: str) -> None:
        """Splice everything between the runs that are as they were."""
        old_runs = branch.runs
        runs: list[_Run] = []
        number = at = 0  # the next old run, and where the next item stands
        for kept, place in [*self._unchanged(branch, columns), (len(old_runs), None)]:
            end = len(columns.values) if place is None else place
            gone = sum(run.count for run in old_runs[number:kept])
            if gone or end > at:
                known = branch.levels.known(at, at + gone)
                entries, fresh = self._fill(branch, columns, at, end, out, path, known)
                branch.levels.splice(at, at + gone, entries, out)
                self._add_runs(runs, fresh, columns, at)
            if place is not None:
                run = old_runs[kept]
                self._refresh(branch, run, columns, place, out, path)
                self._add_runs(runs, [run], columns, place)
                at, number = place + run.count, kept + 1
        branch.runs = runs

    def _unchanged(self, branch: _Branch, columns: Columns) -> Iterator[tuple[int, int]]:
        """(run, where it stands now) for every run found again, in order.

        A run is looked for where it was, then where it would be if what lies before it grew
        or shrank by as much as the whole did.
        """
        grown = len(columns.values) - branch.levels.count
        shifted = False
        old = free = 0
        for number, run in enumerate(branch.runs):
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
        if run.branch is None:
            try:
                return run.sketch == self._sketch(columns, at, at + run.count)
            except Unstorable:
                return False  # whoever builds it anew knows the path
        inner = self._builder.columns(columns.values[at])
        return (
            inner is not None
            and run.branch.fits(inner)
            and run.sketch == self._key_sketch(columns, at)
            and (columns.keys is not None or self._begins_alike(run.branch, inner))
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
                slot, run.branch = self._build(value, out, path, branch.depth + 1)
                run.sketch = None if run.branch is None else run.sketch
        except Unstorable as error:
            raise error.below(path, columns.step(at)) from None
        if slot.ref != before:
            branch.levels.replace(at, self._builder.entry(columns, at, slot), out)

    def _add_runs(self, runs: list[_Run], more: Sequence[_Run], columns: Columns, at: int) -> None:
        """Add runs that begin at item `at`, joining small neighbours so that they stay few."""
        for run in more:
            last = runs[-1] if runs else None
            if last is not None and last.size + run.size <= RUN_BYTES:
                start = at - last.count
                runs[-1] = _Run(
                    last.count + run.count, self._sketch(columns, start, at + run.count)
                )
            else:
                if run.branch is None and run.sketch is None:
                    run.sketch = self._sketch(columns, at, at + run.count)
                runs.append(run)
            at += run.count

    def _sketch(self, columns: Columns, low: int, high: int) -> bytes:
        sketch = self._builder.codec.sketch
        if columns.keys is None:
            return sketch(columns.values[low:high])
        return sketch(columns.keys[low:high]) + sketch(columns.values[low:high])

    def _key_sketch(self, columns: Columns, at: int) -> bytes:
        return b"" if columns.keys is None else self._builder.codec.sketch(columns.keys[at])
