"""What a process knows of a file is read again only after another connection has written to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from hardsave.errors import Conflict, Unavailable
from hardsave.stores.base import Batch, Changes
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.open import file_identity
from hardsave.testing.batches import Line, a_note, an_entry, an_object, but, operate


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", backup=False)
    yield store
    store.close()


@pytest.fixture
def other(tmp_path: Path, store: SqliteStore) -> Iterator[SqliteStore]:
    other = SqliteStore(tmp_path / "store.db", backup=False)
    yield other
    other.close()


def statements(store: SqliteStore, batch: Batch) -> list[str]:
    """The first words of what a commit asks SQLite for."""
    found: list[str] = []

    def note(event: Any) -> None:
        found.append(" ".join(event["sql"].split()[:3]))

    connection = store._writer._connection
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, note)
    store.commit(batch)
    connection.trace_v2(0, None)
    return found


def test_a_save_on_top_of_the_last_one_asks_only_whether_its_objects_are_there(
    store: SqliteStore,
) -> None:
    line = Line(store)
    line.save()
    line.save()
    assert statements(store, line.next()) == [
        "BEGIN IMMEDIATE",
        "UPDATE timelines SET",
        "SELECT prefix FROM",
        "INSERT INTO packs",
        "INSERT INTO checkpoints",
        "COMMIT",
    ]


def test_two_who_take_turns_give_out_every_number_once(
    store: SqliteStore, other: SqliteStore
) -> None:
    lines = [Line(store, "one"), Line(other, "two")]
    numbers = [lines[n % 2].save().number for n in range(20)]
    assert numbers == list(range(1, 21))
    packs = store._connect().execute("SELECT id FROM packs").fetchall()
    assert len(set(packs)) == len(packs)
    assert store.verify() == []


def test_what_the_other_one_has_stored_is_not_stored_again(
    store: SqliteStore, other: SqliteStore
) -> None:
    for n in range(5):
        Line(store, f"before {n}").save()
        shared = an_object(f"shared {n}")
        other.commit(Batch(None, an_entry(f"other {n}"), objects=shared))
        store.commit(Batch(None, an_entry(f"ours {n}"), objects=shared, requires=list(shared)))
    assert store.stats(None).objects == 10


def test_a_user_met_for_the_first_time_has_what_was_stored_before(
    store: SqliteStore, other: SqliteStore
) -> None:
    objects = an_object("theirs")
    store.commit(Batch("a", an_entry("first"), objects=objects))
    other.commit(Batch(None, an_entry("second")))
    other.commit(Batch("a", an_entry("third"), objects=objects, requires=list(objects)))
    assert other.stats("a").objects == 1


def test_a_save_that_failed_leaves_no_gap(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(store)
    line.save()
    with monkeypatch.context() as broken:
        broken.setattr(file_identity, "status_of", lambda path: None)
        with pytest.raises(Unavailable):
            line.save()
    assert line.save().number == 2
    row = store._connect().execute("SELECT count(*), max(id) FROM packs").fetchone()
    assert row == (2, 2)


def test_a_connection_that_is_opened_anew_counts_anew(
    store: SqliteStore, other: SqliteStore
) -> None:
    line = Line(store)
    line.save()
    fresh = store._connect()
    fresh.execute("BEGIN IMMEDIATE")
    count = fresh.data_version()
    fresh.execute("ROLLBACK")
    fresh.close()
    other.commit(a_note("meanwhile"))
    store._writer._known.standing.version = count  # as it may be after some saves
    store._writer._is_doubtful = True
    assert line.save().number == 3


def test_a_timeline_of_a_save_that_failed_is_not_taken_for_one(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(file_identity, "status_of", lambda path: None)
        with pytest.raises(Unavailable):
            Line(store, "lost").save()
    Line(store, "kept").save()  # which now has the row that the other one would have had
    first = Line(store, "lost")
    with pytest.raises(Conflict):
        store.commit(but(first.next(), move=Line(store, "kept").next().move))
    first.save()
    first.save()
    assert [row.name for row in store.timelines(None, None, 9)] == ["kept", "lost"]
    assert store.count(None, "lost") == 2


def test_an_operation_is_followed_by_a_fresh_look(store: SqliteStore) -> None:
    line = Line(store)
    dropped = line.save()
    line.save()
    number = operate(store, "drop", Changes(drop=[dropped.id]))
    assert "SELECT id, size," in statements(store, line.next())
    assert line.store.log(None, 0, 9)[0].number == number == 3
