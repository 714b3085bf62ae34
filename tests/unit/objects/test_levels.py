"""The tree's shape depends on its content alone, stays shallow, and changes little."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.objects import envelope, wire
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import HASH_BYTES, Hash, digest
from hardsave.objects.levels import (
    MAX_WEIGHT,
    MEAN_WEIGHT,
    REF_WEIGHT,
    Entry,
    Levels,
    Out,
    chunk_end,
)
from hardsave.objects.reader import Reader
from hardsave.objects.tree import Ref, Shape, Stored
from tests.unit.objects.strategies import examples

HEAD = Builder.head(Shape.LIST, None)


def ref(number: int) -> Entry:
    """A reference like any other: one in four ends a chunk."""
    return Entry(wire.REF_MARK, digest(b"%d" % number))


def inline(number: int) -> Entry:
    """A text of 1 to 113 bytes."""
    return Entry(wire.text(f"{number}".ljust(number * 13 % 113, ".")), None)


def fixed(first: int) -> Entry:
    """Always the same reference: a first byte below 64 asks for a boundary."""
    return Entry(wire.REF_MARK, bytes([first]) * HASH_BYTES)


def weight(entry: Entry) -> int:
    return REF_WEIGHT if entry.ref is not None else len(entry.data)


def ends_chunk(entry: Entry) -> bool:
    """Whether the entry, wherever it stands but first, asks for a boundary after it."""
    return chunk_end([Entry(b"", None), entry], 0) is not None


entries = st.integers(0, 300).map(ref) | st.integers(0, 300).map(inline)
runs = st.lists(entries, max_size=60) | st.lists(st.sampled_from([fixed(0), fixed(255)]))


def root_of(items: Sequence[Entry], stride: int = 1) -> Hash:
    """The address of a sequence that is built from scratch."""
    levels, out = Levels(stride, full=True), Out()
    levels.append(items, out)
    return levels.root(HEAD, out)


def built(items: Sequence[Entry]) -> tuple[Levels, Hash, Out]:
    levels, out = Levels(1, full=True), Out()
    levels.append(items, out)
    return levels, levels.root(HEAD, out), out


def reader(out: Out) -> Reader:
    return Reader(Codec(), lambda wanted: {address: out[address] for address in wanted})


def stored(root: Hash, out: Out) -> Stored:
    found = reader(out).open(root)
    assert isinstance(found, Stored)
    return found


def resumed(root: Hash, out: Out) -> Levels:
    """The edges of a stored sequence, read as whoever appends to it would read them."""
    found = stored(root, out)
    tails = [
        [
            Entry(wire.REF_MARK, item)
            if isinstance(item, Ref)
            else Entry(Codec().encode(item), None)
            for item in found.items
        ]
    ]
    for counts, refs in reader(out).edges(found):
        tails.append([Entry(b"", ref, n) for n, ref in zip(counts, refs, strict=True)])
    return Levels.resumed(1, found.length, tails)


# The same content, the same shape


@examples(80)
@given(runs, st.lists(st.tuples(st.integers(0, 999), st.integers(0, 40), runs), max_size=8))
def test_any_splices_give_the_root_of_building_from_scratch(
    items: list[Entry], splices: list[tuple[int, int, list[Entry]]]
) -> None:
    model = items.copy()
    levels, _, out = built(items)
    for place, gone, new in splices:
        low = place % (len(model) + 1)
        high = min(len(model), low + gone)
        model[low:high] = new
        levels.splice(low, high, new, out)
        root = levels.root(HEAD, out)
        assert root == root_of(model)
        assert levels.count == len(model)
        assert [levels.entry(at) for at in range(len(model))] == model


@examples(50)
@given(st.lists(runs, max_size=8), st.integers(0, 7))
def test_any_appends_and_splices_give_the_root_of_building_from_scratch(
    parts: list[list[Entry]], cut_after: int
) -> None:
    model: list[Entry] = []
    levels, out = Levels(1, full=True), Out()
    for number, part in enumerate(parts):
        levels.append(part, out)
        model += part
        if number == cut_after:
            half = len(model) // 2
            levels.splice(0, half, [], out)
            del model[:half]
        assert levels.root(HEAD, out) == root_of(model)


@examples(50)
@given(st.lists(runs, min_size=1, max_size=8))
def test_the_edges_alone_are_enough_to_append(parts: list[list[Entry]]) -> None:
    model = parts[0].copy()
    _, root, out = built(model)
    kept = resumed(root, out)  # one that goes on, beside one that is resumed each time
    for part in parts[1:]:
        again = resumed(root, out)
        again.append(part, out)
        kept.append(part, out)
        model += part
        root = again.root(HEAD, out)
        assert root == kept.root(HEAD, out) == root_of(model)


def test_appending_one_by_one_through_the_edges_gives_the_same_root_for_long() -> None:
    out = Out()
    levels = Levels(1, full=False)
    for number in range(2000):
        levels.append([ref(number)], out)
    assert levels.root(HEAD, out) == root_of([ref(number) for number in range(2000)])


@examples(30)
@given(st.lists(entries, max_size=80))
def test_every_item_is_found_again(items: list[Entry]) -> None:
    _, root, out = built(items)
    found = reader(out).items(stored(root, out), 0, len(items))
    expected = [
        Ref(item.ref) if item.ref is not None else Codec().decode(item.data) for item in items
    ]
    assert found == expected


def test_the_root_names_the_count_and_the_order() -> None:
    items = [ref(number) for number in range(50)]
    roots = {root_of(items), root_of(items[::-1]), root_of(items[1:]), root_of([*items, items[0]])}
    assert len(roots) == 4
    assert root_of(items[:4], stride=1) != root_of(items[:4], stride=2)


def test_only_a_full_one_can_be_spliced() -> None:
    with pytest.raises(AssertionError):
        Levels(1, full=False).splice(0, 0, [ref(1)], Out())


# Boundaries


def test_weights_and_boundaries_are_part_of_the_format() -> None:
    assert (REF_WEIGHT, MEAN_WEIGHT, MAX_WEIGHT) == (256, 1024, 8192)
    assert ends_chunk(fixed(63))
    assert not ends_chunk(fixed(64))
    text = Entry(b"x" * 100, None)
    assert ends_chunk(text) == (crc32(text.data) % 1024 < 100)
    assert ends_chunk(Entry(b"x" * 1024, None))


def test_a_boundary_is_asked_for_about_once_in_the_mean_weight() -> None:
    references = [ref(number) for number in range(4000)]
    assert 0.22 < sum(map(ends_chunk, references)) / 4000 < 0.28
    texts = [Entry(b"%050d" % number, None) for number in range(20_000)]
    per_byte = sum(map(ends_chunk, texts)) / (20_000 * 50)
    assert 0.8 < per_byte * MEAN_WEIGHT < 1.2


def test_a_chunk_has_two_entries_at_least_and_ends_at_the_maximum() -> None:
    assert chunk_end([fixed(0)], 0) is None
    assert chunk_end([fixed(0)] * 2, 0) == 2
    assert chunk_end([fixed(0)] * 5, 2) == 4
    assert chunk_end([fixed(255)] * 31, 0) is None
    assert chunk_end([fixed(255)] * 40, 0) == 32
    assert chunk_end([fixed(255), fixed(0)], 0) == 2


# Content made to break the balance


def depth_of(root: Hash, out: Out) -> int:
    return len(list(reader(out).edges(stored(root, out))))


def assert_balanced(items: Sequence[Entry]) -> None:
    _, root, out = built(items)
    assert depth_of(root, out) <= math.log2(len(items)) + 1
    heaviest = MAX_WEIGHT + max(map(weight, items))
    for data in out.values():
        kind, refs, payload = envelope.unseal(data)
        is_open = kind in (envelope.SEQUENCE, envelope.EDGE)
        references = len(refs) - 1 if is_open and len(refs) else len(refs)  # less the next edge
        has_items = kind in (envelope.LEAF, envelope.SEQUENCE)
        inside = len(payload) - len(refs) * len(wire.REF_MARK) - 16 if has_items else 0
        assert references * REF_WEIGHT + max(0, inside) <= heaviest
        assert kind != envelope.NODE or len(refs) >= 2


@pytest.mark.parametrize("first", [0, 1, 63, 64, 255])
def test_equal_references_stay_balanced(first: int) -> None:
    for count in (2, 31, 32, 33, 1000, 20_000):
        assert_balanced([fixed(first)] * count)


def test_references_that_alternate_stay_balanced() -> None:
    assert_balanced([fixed(0), fixed(255)] * 5000)
    assert_balanced(([fixed(255)] * 31 + [fixed(0)]) * 300)


def test_items_of_a_single_byte_stay_balanced() -> None:
    for byte in range(0x80):
        assert_balanced([Entry(bytes([byte]), None)] * 3000)
    assert_balanced([Entry(b"\xc0", None)] * 100_000)


def test_items_that_never_ask_for_a_boundary_stay_balanced() -> None:
    quiet = [entry for number in range(20_000) if not ends_chunk(entry := ref(number))]
    assert_balanced(quiet)
    texts = [
        entry for number in range(9000) if not ends_chunk(entry := Entry(b"%0100d" % number, None))
    ]
    assert_balanced(texts)


def test_items_that_always_ask_for_a_boundary_stay_balanced() -> None:
    assert_balanced([entry for number in range(20_000) if ends_chunk(entry := ref(number))])


def test_a_change_in_equal_content_stays_correct_and_local() -> None:
    for first in (0, 255):
        items = [fixed(first)] * 5000
        levels, _, out = built(items)
        new = Out()
        levels.splice(2500, 2501, [ref(1)], new)
        assert levels.root(HEAD, new) == root_of([*items[:2500], ref(1), *items[2501:]])
        assert unknown(new, out) < 20_000


# What a change costs


def unknown(new: Out, known: Iterable[Hash]) -> int:
    """Bytes of objects that were not there before."""
    there = set(known)
    return sum(len(data) for address, data in new.items() if address not in there)


def costs_of_appending_to(count: int) -> list[int]:
    levels, _, known = built([ref(number) for number in range(count)])
    costs = []
    for number in range(200):
        new = Out()
        levels.append([ref(1_000_000 + number)], new)
        levels.root(HEAD, new)
        costs.append(unknown(new, ()))
        known.update(new)
    return costs


def test_appending_costs_the_same_however_long_the_sequence_is() -> None:
    short, long = costs_of_appending_to(100), costs_of_appending_to(100_000)
    assert mean(long) < mean(short) * 1.25
    assert mean(long) < 250
    assert max(long) < 1500


Change = Callable[[Levels, int, Entry, Out], None]
CHANGES: dict[str, Change] = {
    "changing": lambda levels, at, new, out: levels.splice(at, at + 1, [new], out),
    "inserting": lambda levels, at, new, out: levels.splice(at, at, [new], out),
    "removing": lambda levels, at, _, out: levels.splice(at, at + 1, [], out),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_to_one_of_many_items_makes_few_objects(name: str) -> None:
    levels, _, known = built([ref(number) for number in range(10_000)])
    chance = random.Random(5)
    places = [0, 1, 9900, *(chance.randrange(9900) for _ in range(150))]
    for number, at in enumerate(places):
        new = Out()
        CHANGES[name](levels, at, ref(1_000_000 + number), new)
        levels.root(HEAD, new)
        assert unknown(new, known) < 3 * 1024
        known.update(new)


def test_a_root_that_did_not_change_writes_nothing() -> None:
    levels, root, _ = built([ref(number) for number in range(1000)])
    new = Out()
    assert levels.root(HEAD, new) == root
    assert new == {}
