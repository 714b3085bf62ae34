"""Small old packs become few large ones."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardsave
from bench.payload import Conversation
from hardsave.objects.hashing import Hash
from hardsave.stores.base import Batch
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.gc.by_timeline import MIXED_BYTES as TARGET_BYTES
from hardsave.stores.sqlite.gc.compact import choose
from hardsave.stores.sqlite.gc.merge import PackRow
from hardsave.testing.batches import Line, an_entry, refs_of, some_objects
from tests.unit.stores.test_index import count_packs

TURNS = 500


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


# Deciding


def put_together(standing: list[PackRow], groups: list[list[PackRow]]) -> list[PackRow]:
    """What stands when each group has become one pack, under its highest id."""
    gone = {row for group in groups for row in group}
    made = [PackRow(group[-1].id, sum(row.size for row in group)) for group in groups]
    return sorted([row for row in standing if row not in gone] + made)


packs = st.lists(st.integers(1, TARGET_BYTES * 2), max_size=60).map(
    lambda sizes: [PackRow(id, size) for id, size in enumerate(sizes, 1)]
)
small = st.lists(st.integers(1, TARGET_BYTES // 20), max_size=100).map(
    lambda sizes: [PackRow(id * 3, size) for id, size in enumerate(sizes, 1)]
)


@settings(max_examples=50)
@given(packs | small)
def test_groups_are_neighbours_within_the_target(standing: list[PackRow]) -> None:
    for group in choose(standing):
        assert len(group) > 1
        assert sum(row.size for row in group) <= TARGET_BYTES
        first = standing.index(group[0])
        assert standing[first : first + len(group)] == group


@settings(max_examples=50)
@given(packs | small)
def test_what_was_put_together_is_left_alone(standing: list[PackRow]) -> None:
    once = put_together(standing, choose(standing))
    assert choose(once) == []
    for one, following in pairwise(once):
        assert one.size + following.size > TARGET_BYTES


# Doing


def test_many_saves_become_one_pack_and_the_second_time_nothing_happens(
    store: SqliteStore,
) -> None:
    line = Line(store)
    for _ in range(100):
        line.save()
    store.compact(refs_of)
    assert count_packs(store) == 1
    before = state_of(store)
    store.compact(refs_of)
    assert state_of(store) == before
    roots = [record.root for record in line.saved]
    assert store.read(None, roots).keys() >= set(roots)
    assert store.verify() == []


def test_the_newest_pack_is_made_dense_without_neighbours_and_once(store: SqliteStore) -> None:
    objects = some_objects("text " * 100, 200)
    store.commit(Batch(None, an_entry("one"), objects=objects))
    loose = body_of(store)
    store.compact(refs_of)
    assert len(body_of(store)) < len(loose)
    before = state_of(store)
    store.compact(refs_of)
    assert state_of(store) == before
    assert readable(store, objects)
    assert store.verify() == []


def body_of(store: SqliteStore) -> bytes:
    with store._reading() as connection:
        return bytes(connection.execute("SELECT body FROM packs").get)


def state_of(store: SqliteStore) -> list[Any]:
    """What a rewrite would change."""
    with store._reading() as connection:
        sql = "SELECT packs.id, size, swept, (SELECT max(id) FROM changes) FROM packs, users"
        found: list[Any] = connection.execute(sql).fetchall()
        return found


def test_an_object_that_was_stored_twice_is_indexed_once(store: SqliteStore) -> None:
    objects = some_objects("twice", 3)
    store.commit(Batch(None, an_entry("one"), objects=objects))
    store._merge_waiting(0)
    with store._reading() as connection:
        row = connection.execute("SELECT size, directory, body FROM packs").fetchone()
    assert row is not None

    def store_again(connection: apsw.Connection) -> None:
        sql = "INSERT INTO packs (id, size, directory, body) VALUES (2, ?, ?, ?)"
        connection.execute(sql, row)

    store._apply(store_again)
    store.compact(refs_of)
    assert count_packs(store) == 1
    assert store.verify() == []
    assert readable(store, objects)


def readable(store: SqliteStore, objects: dict[Hash, bytes]) -> bool:
    found = store.read(None, list(objects))
    return {address: found[address] for address in objects} == objects


@pytest.mark.parametrize("way", ["save", "append"])
def test_a_long_conversation_takes_hardly_more_space_than_its_messages(
    tmp_path: Path, way: str
) -> None:
    path = tmp_path / "store.db"
    payload = Conversation(TURNS)
    with hardsave.open(f"sqlite:///{path}", durability="process") as vault:
        vault.store.compact()
        tables = path.stat().st_size  # each takes a page before anything is in it
        line = vault.timeline("main")
        for turn in range(1, TURNS + 1):
            if way == "save":
                line.save(payload.state(turn))
            else:
                line.append(payload.delta(turn))
        vault.store.compact()
        for_lists = 160 * TURNS  # the beginnings of two messages, in the row of each checkpoint
        pages = 2 * 4096  # which the file and its fullest table may have begun
        assert path.stat().st_size - tables <= 0.935 * payload.size + for_lists + pages
        assert line.load() == payload.state(TURNS)
        assert vault.store.verify().ok
