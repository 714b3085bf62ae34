"""Packs in order by timeline: where objects go, and what a store is like afterwards."""

from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardsave
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.gc import by_timeline, compact
from hardsave.stores.sqlite.gc.by_timeline import (
    MIXED_BYTES,
    TARGET_BYTES,
    WINDOW_BYTES,
    cut,
    in_order,
    windows,
)
from hardsave.stores.sqlite.gc.merge import PackRow
from hardsave.testing.batches import Line, refs_of
from hardsave.vault.vault import Vault

# Which packs

standings = st.lists(st.integers(1, WINDOW_BYTES + 5), max_size=30).map(
    lambda sizes: [PackRow(3 * at, size) for at, size in enumerate(sizes, 1)]
)


@settings(max_examples=60)
@given(standings, st.integers(0, 100))
def test_windows_are_neighbours_and_hold_all_that_is_new(
    standing: list[PackRow], upto: int
) -> None:
    found = windows(standing, upto)
    rows = list(chain(*found))
    assert rows == standing[len(standing) - len(rows) :]
    assert {row for row in standing if row.id > upto} <= set(rows)
    for window in found:
        assert len(window) == 1 or sum(row.size for row in window) <= WINDOW_BYTES


def test_without_anything_new_nothing_is_put_in_order() -> None:
    assert windows([PackRow(1, 5), PackRow(2, 5)], 2) == []


def test_a_little_that_is_new_takes_little_along() -> None:
    standing = [PackRow(id, 100_000) for id in range(1, 200)]
    (window,) = windows(standing, 198)
    assert sum(row.size for row in window) <= TARGET_BYTES
    (window,) = windows(standing, 150)
    assert len(window) > 100


# Which objects


def an_address(number: int) -> Hash:
    return number.to_bytes(20)


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[Hash, bytes], dict[Hash, int]]:
    """Objects, each of which refers to some before it and to some elsewhere, in any order; and
    roots of some timelines."""
    count = draw(st.integers(0, 40))
    numbers = [draw(st.lists(st.integers(0, at + 3), max_size=4)) for at in range(count)]
    refs = {
        an_address(at): b"".join(an_address(ref if ref < at else 10_000 + ref) for ref in found)
        for at, found in enumerate(numbers)
    }
    order = draw(st.permutations(list(refs)))
    roots = draw(st.dictionaries(st.sampled_from(order), st.integers(1, 5))) if order else {}
    return {address: refs[address] for address in order}, roots


def refs_in(data: bytes) -> list[Hash]:
    return [data[at : at + 20] for at in range(0, len(data), 20)]


@settings(max_examples=200)
@given(histories())
def test_each_object_comes_once_by_timeline_and_behind_what_it_refers_to(
    history: tuple[dict[Hash, bytes], dict[Hash, int]],
) -> None:
    objects, timelines = history
    placed = list(in_order(objects, timelines, refs_in))
    at = {address: place for place, (_, address) in enumerate(placed)}
    assert len(placed) == len(at) == len(objects)
    for address, data in objects.items():
        assert all(at[ref] < at[address] for ref in refs_in(data) if ref in objects)
    met = [99 if timeline is None else timeline for timeline, _ in placed]
    assert met == sorted(met)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, TARGET_BYTES // 3)), max_size=40),
    st.integers(1, 50),
)
def test_packs_are_few_enough_and_those_of_several_timelines_small(
    sizes: list[tuple[int, int]], most: int
) -> None:
    placed = [(timeline, an_address(at)) for at, (timeline, _) in enumerate(sorted(sizes))]
    objects = {an_address(at): bytes(size) for at, (_, size) in enumerate(sorted(sizes))}
    made = cut(placed, objects, most)
    assert list(chain(*made)) == [address for _, address in placed]
    assert len(made) <= most
    timeline_of = {address: timeline for timeline, address in placed}
    for batch in cut(placed, objects, len(placed)):  # as many as it takes
        for at, (one, other) in enumerate(pairwise(batch)):
            if timeline_of[one] != timeline_of[other]:  # little was in the pack
                before = batch[: at + 2]
                assert sum(len(objects[address]) for address in before) <= MIXED_BYTES


# In a store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


def directories(store: SqliteStore) -> list[tuple[int, list[Hash]]]:
    with store._reading() as connection:
        sql = "SELECT id, directory FROM packs ORDER BY id"
        rows: list[Any] = connection.execute(sql).fetchall()
    return [(id, packs.hashes(directory)) for id, directory in rows]


def take_turns(path: Path, lines: int, turns: int) -> Vault:
    vault = hardsave.open(f"sqlite:///{path}", durability="process")
    handles = [vault.timeline(f"line {number}") for number in range(lines)]
    for turn in range(turns):
        for number, handle in enumerate(handles):
            text = f"{number} {turn} " * 60
            handle.append({"messages": [{"role": "user", "content": text}]})
    return vault


def test_a_timeline_is_read_from_one_pack_after_it_was_saved_in_turn_with_others(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    vault = take_turns(path, 30, 20)
    states = [vault.timeline(f"line {number}").load() for number in range(30)]
    store = vault._context.store
    assert isinstance(store, SqliteStore)
    roots = {c._record.root for c in vault.timeline("line 7").checkpoints(limit=50)}
    vault.store.compact()
    found = [id for id, hashes in directories(store) if roots & set(hashes)]
    assert len(directories(store)) > 2
    assert len(found) <= 2
    assert [vault.timeline(f"line {number}").load() for number in range(30)] == states
    assert vault.store.verify().ok
    assert vault.store.gc().objects == 0
    vault.close()


def test_no_object_lies_in_an_older_pack_than_one_that_it_refers_to(tmp_path: Path) -> None:
    vault = take_turns(tmp_path / "store.db", 12, 12)
    vault.timeline("line 3").fork(name="fork").append({"messages": ["one more"]})
    store = vault._context.store
    assert isinstance(store, SqliteStore)
    for _ in range(2):
        vault.store.compact()
        found = directories(store)
        pack_of = {address: id for id, hashes in found for address in hashes}
        objects = store.read(None, list(pack_of))
        for address, pack in pack_of.items():
            assert all(pack_of[ref] <= pack for ref in envelope.refs(objects[address]))
        vault.timeline("line 5").append({"messages": ["later"]})
    vault.close()


def test_counts_are_kept_of_packs_that_compaction_inserts(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_timeline, "MIXED_BYTES", 1)
    lines = [Line(store, str(number)) for number in range(5)]
    for line in lines * 20:
        line.save()
    before = store.stats(None)
    store.compact(refs_of)
    assert len(directories(store)) == 5
    after = store.stats(None)
    assert (after.objects, after.object_bytes) == (before.objects, before.object_bytes)
    assert store.verify() == []


def test_a_window_that_another_process_has_changed_meanwhile_is_left(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(store)
    for _ in range(20):
        line.save()
    other = SqliteStore(store.path)
    real = compact._Rewrite.prepare

    def prepare(self: compact._Rewrite, *args: object, **how: bool) -> None:
        real(self, *args, **how)  # type: ignore[arg-type] # handed on
        monkeypatch.setattr(compact._Rewrite, "prepare", real)
        other.compact(refs_of)

    monkeypatch.setattr(compact._Rewrite, "prepare", prepare)
    store.compact(refs_of)
    other.close()
    roots = [record.root for record in line.saved]
    assert store.missing(None, roots) == set()
    assert store.verify() == []
