"""Labels and notes in the file: found by indexes, removed with their rows, copied to the backup."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.objects.records import Labels, Note
from hardsave.stores.base import Batch, Changes, Query
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.connection import connect
from hardsave.stores.sqlite.store import SqliteStore
from hardsave.testing.batches import Line, an_entry, but, operate

LABELS: Labels = (("run", "7"), ("source", "loop"))
CHANGED: Labels = (("run", "[purged]"),)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    monkeypatch.setattr(Copier, "saw", lambda self: None)
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


def labelled(line: Line, labels: Labels = LABELS) -> bytes:
    batch = line.next()
    line.commit(but(batch, labels={batch.event.id: labels}))
    return batch.event.id


def rows(path: str) -> dict[str, list[Any]]:
    connection = connect(path, "power", create=False)
    try:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()  # noqa: S608
            for table in ("labels", "notes")
        }
    finally:
        connection.close()


def plan(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans of the statements that are run from here on."""
    lines: list[str] = []
    read = store._rows

    def explained(sql: str, user: str | None, *values: Any) -> list[tuple[Any, ...]]:
        lines.extend(str(row[3]) for row in read(f"EXPLAIN QUERY PLAN {sql}", user, *values))
        return read(sql, user, *values)

    monkeypatch.setattr(store, "_rows", explained)
    return lines


def test_no_question_about_labels_and_notes_reads_all_of_them(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = labelled(Line(store))
    store.put_notes(None, id, [Note("a", b"1")])
    lines = plan(store, monkeypatch)
    assert store.labelled(None, LABELS, 1 << 40, 10)
    assert store.checkpoints(None, Query("main", 10, labels=LABELS))
    assert store.labels(None, [id])
    assert store.timelines(None, "a", 10, prefix="ma")
    assert [line for line in lines if "TEMP B-TREE" in line] == []
    assert store.notes(None, [id])  # the few of one checkpoint are sorted
    assert [line for line in lines if "SCAN" in line] == []
    assert any("labels_by_value (user=? AND key=? AND value=?)" in line for line in lines)
    assert any("(user=? AND name>? AND name<?)" in line for line in lines)


def test_a_store_that_only_saves_has_no_index_of_labels_and_answers(store: SqliteStore) -> None:
    id = Line(store).save().id
    with store._reading() as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    assert not names & {"labels_by_value", "notes_by_key"}
    assert store.labelled(None, LABELS, None, 10) == []
    assert store.checkpoints(None, Query("main", 10, labels=LABELS)) == []
    assert (store.labels(None, [id]), store.notes(None, [id])) == ({}, {})
    store.put_notes(None, id, [Note("a", b"1")])
    assert store.notes(None, [id]) == {id: [Note("a", b"1")]}


def test_rows_are_removed_with_their_checkpoint(store: SqliteStore) -> None:
    line = Line(store)
    gone, kept = labelled(line), labelled(line)
    for id in (gone, kept):
        store.put_notes(None, id, [Note("a", b"1"), Note("b", b"2")])
    line.save()
    operate(store, "drop", Changes(drop=[gone]))
    left = rows(store.path)
    assert {table: len(each) for table, each in left.items()} == {"labels": 2, "notes": 2}


def test_the_backup_has_them_whenever_they_came(store: SqliteStore) -> None:
    line = Line(store)
    one, other = labelled(line), labelled(line)
    store.put_notes(None, one, [Note("a", b"1")])

    def copied() -> dict[str, list[Any]]:
        assert store._copier is not None
        store._copier.turn()
        found = rows(backup_file.path_of(store.path))
        assert found == rows(store.path)
        return found

    copied()
    store.put_notes(None, one, [Note("a", b"anew"), Note("b", b"2")])  # and no commit after it
    assert [row[-1] for row in copied()["notes"]] == [b"anew", b"2"]
    labelled(line)
    batch = Batch(None, an_entry("purge"), changes=Changes(replace=[line.saved[0]]))
    store.commit(but(batch, labels={one: CHANGED}, notes={other: [Note("c", b"3")]}))
    assert len(copied()["labels"]) == 5
    operate(store, "drop", Changes(drop=[one, other]))
    assert {table: len(each) for table, each in copied().items()} == {"labels": 2, "notes": 0}
