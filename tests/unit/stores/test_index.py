"""The index sorts objects by the first 63 bits of their hash: the rest has to count as well."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hardsave.objects.hashing import Hash
from hardsave.stores.base import Batch, ObjectsGone
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.read import object_index
from hardsave.stores.sqlite.read.object_index import prefix
from hardsave.testing.batches import an_entry, an_object, refs_of, some_objects
from tests.unit.stores.processes import eventually

ONE = b"\xaa" * 8 + b"1" * 12
TWO = b"\xaa" * 8 + b"2" * 12
NEAR = b"\xaa" * 7 + b"\xab" + b"1" * 12  # differs in the 64th bit only, and in nothing after it


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


def put(store: SqliteStore, label: str, objects: dict[Hash, bytes]) -> None:
    store.commit(Batch(None, an_entry(label), objects=objects))


def test_these_hashes_collide_in_the_index() -> None:
    assert prefix(ONE) == prefix(TWO) == prefix(NEAR)
    assert len({ONE, TWO, NEAR}) == 3


@pytest.mark.parametrize("absent", [TWO, NEAR])
def test_an_object_is_not_there_because_its_neighbour_is(store: SqliteStore, absent: Hash) -> None:
    put(store, "one", {ONE: b"one"})
    assert store.missing(None, [ONE, absent]) == {absent}
    assert store.missing(None, [absent]) == {absent}
    assert absent not in store.read(None, [absent])


@pytest.mark.parametrize("absent", [TWO, NEAR])
def test_an_object_is_not_there_to_rely_on_because_its_neighbour_is(
    store: SqliteStore, absent: Hash
) -> None:
    put(store, "one", {ONE: b"one"})
    with pytest.raises(ObjectsGone):
        store.commit(Batch(None, an_entry("relies"), requires=[absent]))


@pytest.mark.parametrize("size", [10, 5_000])
def test_objects_that_collide_are_kept_apart(store: SqliteStore, size: int) -> None:
    contents = {address: bytes([n]) * size for n, address in enumerate((ONE, TWO, NEAR))}
    for number, (address, data) in enumerate(contents.items()):
        put(store, f"{number}", {address: data})
    assert store.missing(None, contents) == set()
    for address, data in contents.items():
        assert store.read(None, [address])[address] == data
    assert store.read(None, list(contents)) == contents
    assert store.verify() == []


def test_objects_that_collide_inside_one_batch_are_kept_apart(store: SqliteStore) -> None:
    put(store, "all", {ONE: b"one", TWO: b"two", NEAR: b"near"})
    for address, data in ((ONE, b"one"), (TWO, b"two"), (NEAR, b"near")):
        assert store.read(None, [address])[address] == data
    assert store.verify() == []


def test_objects_that_collide_are_kept_apart_after_a_merge(store: SqliteStore) -> None:
    put(store, "one", {ONE: b"one"})
    for number in range(40):
        put(store, f"between {number}", an_object(f"between {number}"))
    put(store, "two", {TWO: b"two"})
    for number in range(40):
        put(store, f"behind {number}", an_object(f"behind {number}"))
    assert eventually(lambda: count_packs(store) < 50)
    assert store.read(None, [ONE])[ONE] == b"one"
    assert store.read(None, [TWO])[TWO] == b"two"
    assert store.missing(None, [ONE, TWO, NEAR]) == {NEAR}


def test_users_that_are_not_asked_about_leave_the_cache_and_nothing_goes_wrong(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_index, "MAX_IN_ALL", 20)
    monkeypatch.setattr(object_index, "FEW_USERS", 3)
    users = [f"user {n}" for n in range(12)]
    objects = {user: some_objects(user, 4) for user in users}
    for turn in range(3):
        for user in users:
            event = an_entry(f"{user} {turn}")
            requires = objects[user] if turn else ()
            store.commit(Batch(user, event, objects=objects[user], requires=requires))
            known = store._objects.index
            assert len(known._recent) <= 6
            assert known._count == sum(each.count for each in known._recent.values())
    for user in users:
        assert store.missing(user, objects[user]) == set()
        assert store.read(user, objects[user]) == objects[user]
        assert store.stats(user).objects == 4  # each is stored once
    assert store.verify() == []


def test_of_many_users_only_so_many_are_in_mind(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_index, "MANY_USERS", 5)
    for number in range(9):
        objects = an_object(f"{number}")
        store.commit(Batch(f"user {number}", an_entry(f"{number}"), objects=objects))
        assert store.missing(f"user {number}", objects) == set()
    assert len(store._objects.index._recent) == 5


def count_packs(store: SqliteStore) -> int:
    with store._reading() as connection:
        return int(connection.execute("SELECT count(*) FROM packs").get)


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """A store that has the rows of its index in mind, of packs that it never read."""
    monkeypatch.setattr(object_index, "BUSY_QUESTIONS", 2)
    before = SqliteStore(tmp_path / "busy.db")
    put(before, "old", some_objects("old", 20))
    before.compact(refs_of)
    before.close()
    store = SqliteStore(tmp_path / "busy.db")
    put(store, "new", an_object("new"))
    put(store, "newer", an_object("newer"))
    yield store
    store.close()


def asked(store: SqliteStore) -> list[str]:
    """What the writer asks the index from now on."""
    found: list[str] = []
    store._writer._connection.trace_v2(
        apsw.SQLITE_TRACE_STMT, lambda event: found.append(event["sql"])
    )
    return found


def test_who_saves_again_and_again_asks_the_index_no_more(busy: SqliteStore) -> None:
    questions = asked(busy)
    put(busy, "last", some_objects("last", 5))
    assert questions
    assert not [sql for sql in questions if "FROM objects" in sql]


def test_what_is_in_mind_is_not_stored_twice(busy: SqliteStore) -> None:
    put(busy, "again", {**some_objects("old", 20), **an_object("new"), **an_object("newest")})
    assert busy.stats(None).objects == 23
    assert busy.verify() == []


def test_what_is_in_mind_can_be_relied_on_and_nothing_else(busy: SqliteStore) -> None:
    busy.commit(Batch(None, an_entry("relies"), requires=list(some_objects("old", 20))))
    with pytest.raises(ObjectsGone):
        busy.commit(Batch(None, an_entry("relies too"), requires=list(an_object("never"))))


def test_what_others_have_stored_and_indexed_meanwhile_is_not_stored_twice(
    busy: SqliteStore,
) -> None:
    other = SqliteStore(busy.path)
    put(other, "others", some_objects("others", 20))
    other.compact(refs_of)
    other.close()
    put(busy, "again", {**some_objects("others", 20), **some_objects("old", 20)})
    assert busy.stats(None).objects == 42
    assert busy.verify() == []


def test_what_was_collected_is_not_taken_for_stored(busy: SqliteStore) -> None:
    busy.collect(lambda data: (), exact=True)  # no checkpoint leads to any of it
    assert busy.stats(None).objects == 0
    with pytest.raises(ObjectsGone):
        busy.commit(Batch(None, an_entry("relies"), requires=list(some_objects("old", 20))))
    put(busy, "again", some_objects("old", 20))
    put(busy, "once more", some_objects("old", 20))
    assert busy.stats(None).objects == 20


def test_an_index_that_is_too_long_to_have_in_mind_is_asked(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_index, "BUSY_QUESTIONS", 1)
    monkeypatch.setattr(object_index, "MAX_ROWS", 19)
    put(store, "old", some_objects("old", 20))
    store.compact(refs_of)
    store._objects.index._recent.clear()
    questions = asked(store)
    for label in ("new", "newer"):
        put(store, label, {**an_object(label), **some_objects("old", 20)})
    assert [sql for sql in questions if "prefix IN" in sql]
    assert store.stats(None).objects == 22
