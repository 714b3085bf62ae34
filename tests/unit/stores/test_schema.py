"""Indexes of what a store may never have: they come with the first row that they are for."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import hardsave
from hardsave.errors import LeaseLost
from hardsave.objects.records import EntryRecord
from hardsave.stores.base import Batch, Changes, ObjectsGone
from hardsave.stores.ledger import Fence, Work
from hardsave.stores.sqlite import SqliteStore, schema
from hardsave.stores.sqlite.connection import connect
from hardsave.stores.sqlite.write.transaction import Write
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.testing.batches import MOMENT, Line, a_note, an_id, but, operate
from hardsave.testing.workspaces import HERE, capture
from tests.unit.stores import ruins

_NAMES = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", backup=False)
    yield store
    store.close()


def indexes(connection: apsw.Connection) -> set[str]:
    return {str(row[0]) for row in connection.execute(_NAMES)}


def of(store: SqliteStore) -> set[str]:
    with store._reading() as connection:
        return indexes(connection)


def known() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    schema.migrate(connection)
    return connection


def of_saves() -> set[str]:
    return indexes(known())


OF_WORKSPACES = {"workspaces_by_id", "workspaces_by_place"}


def all_of_them() -> set[str]:
    connection = known()
    schema.add_indexes(connection)
    return indexes(connection)


def a_step_of_no_task() -> Batch:
    entry = EntryRecord(0, an_id("step"), "gone", "step_done", 1, 1, MOMENT, "a#1", bytes(13))
    return Batch(None, entry, work=Work(fences=(Fence("gone", 1),)))


def a_note_that_fails() -> Batch:
    return but(a_note("fails"), requires=[b"?" * 20])


def test_a_store_that_only_saves_has_those_of_saves_alone(store: SqliteStore) -> None:
    line = Line(store)
    for _ in range(3):
        line.save()
    assert of(store) == of_saves()
    assert store.verify() == []


def test_what_is_logged_brings_all_of_them(store: SqliteStore) -> None:
    number = store.commit(a_note("one"))
    assert of(store) == all_of_them() > of_saves()
    assert store.commit(a_note("one")) == number  # known by its id


def test_what_is_dropped_brings_all_of_them(store: SqliteStore) -> None:
    line = Line(store)
    first, _ = line.save(), line.save()
    operate(store, "drop", Changes(drop=[first.id]))
    assert of(store) == all_of_them()
    assert store.verify() == []


def test_a_task_brings_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with hardsave.open(ruins.url(path)) as vault:
        vault.timeline("main").save({"a": 1})
        vault.tasks.add("work")
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        assert of(store) == all_of_them()


def test_a_step_where_there_was_never_a_task_is_refused_as_anywhere(store: SqliteStore) -> None:
    with pytest.raises(LeaseLost):
        store.commit(a_step_of_no_task())


def test_what_was_taken_back_is_made_again(store: SqliteStore) -> None:
    with pytest.raises(ObjectsGone):
        store.commit(a_note_that_fails())
    assert of(store) == of_saves()
    store.commit(a_note("good"))
    assert of(store) == all_of_them()


@pytest.mark.parametrize("after", [a_note("good"), a_note_that_fails()])
def test_what_a_failed_transaction_took_back_is_made_by_the_next(
    store: SqliteStore, after: Batch
) -> None:
    done = store._writer._transact([Write(a_note_that_fails(), []), Write(after, [])])
    done.settle()
    is_made = not isinstance(done.answers[1], Exception)
    assert isinstance(done.answers[0], ObjectsGone)
    assert store._writer._known.has_indexes is is_made
    assert of(store) == (all_of_them() if is_made else of_saves())


def test_one_makes_them_under_another_who_has_it_open(store: SqliteStore) -> None:
    Line(store, "ours").save()
    other = SqliteStore(store.path, backup=False)
    theirs = Line(other, "theirs")
    theirs.save()
    number = store.commit(a_note("one"))
    assert other.commit(a_note("one")) == number
    theirs.save()
    assert other.commit(a_note("two")) == number + 2
    other.close()
    assert of(store) == all_of_them()
    assert store.verify() == []


def test_an_earlier_file_and_one_that_was_mended_have_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    Line(store).save()

    store.close()
    with contextlib.closing(connect(str(path), "power", create=False)) as direct:
        ruins.age(direct, schema.VERSION - 1)
    store = SqliteStore(path)
    assert of(store) == all_of_them() | OF_WORKSPACES
    store.close()
    path.unlink()
    store = SqliteStore(path)
    assert of(store) == all_of_them() | OF_WORKSPACES
    store.close()


def test_the_first_workspace_brings_those_of_workspaces_alone(store: SqliteStore) -> None:
    line = Line(store)
    line.commit(capture(line, WorkspaceMove(None, HERE)))
    assert of(store) == of_saves() | OF_WORKSPACES


def test_a_capture_of_a_known_workspace_writes_no_row_of_it(store: SqliteStore) -> None:
    line = Line(store)
    line.commit(capture(line, WorkspaceMove(None, HERE)))
    line.commit(capture(line, WorkspaceMove(0, HERE)))
    with store._reading() as connection:
        noted = connection.execute("SELECT count(*) FROM changes WHERE what = 'workspaces'").get
    assert noted == 1
