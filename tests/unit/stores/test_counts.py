"""Counts that are kept: right after every change, found out if they are wrong, made again."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import hardsave
from hardsave.errors import Misuse
from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.base import Changes, TimelineQuery, TimelineRow
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.sqlite import SqliteStore, counts, ledger, schema
from hardsave.stores.sqlite.connection import connect
from hardsave.stores.sqlite.read import queries
from hardsave.testing.batches import Line, an_object, operate, some_objects
from hardsave.vault.vault import Vault
from tests.unit.stores import ruins


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", backup=False)
    yield store
    store.close()


def _no_refs(data: bytes) -> tuple[Hash, ...]:
    return ()


def kept(store: SqliteStore) -> tuple[int, int, int]:
    with store._reading() as connection:
        sql = "SELECT objects, object_bytes, pack_bytes FROM users WHERE id = 0"
        row: Any = connection.execute(sql).fetchone()
        return tuple(row)


def test_counts_of_packs_follow_merging_compacting_and_collecting(store: SqliteStore) -> None:
    line = Line(store)
    saved = [line.save_tree(some_objects(f"tree {n}", 20)) for n in range(6)]
    assert kept(store) == (0, 0, 0)  # none of them is merged yet
    before = store.stats(None)
    assert before.objects == 120
    store.compact(_no_refs)
    assert kept(store)[:2] == (120, before.object_bytes)
    line.save_tree(some_objects("one more", 20))
    assert store.stats(None).objects == 140  # with those that wait
    operate(store, "drop", Changes(drop=[record.id for record in saved[:3]]))
    store.collect(_no_refs, exact=True)
    left = store.stats(None)
    assert left.objects == 4  # of each tree nothing but its root was referred to
    assert left.object_bytes == kept(store)[1] > 0
    assert store.verify() == []


def test_counts_of_other_users_are_their_own(store: SqliteStore) -> None:
    ours, theirs = Line(store), Line(store, user="ada")
    ours.save()
    theirs.save_tree(some_objects("hers", 50))
    store.compact(_no_refs)
    mine, hers = store.stats(None), store.stats("ada")
    assert (mine.objects, hers.objects) == (1, 50)
    assert 0 < mine.own_bytes < hers.own_bytes
    assert mine.own_bytes + hers.own_bytes <= mine.disk_bytes
    assert store.stats("unknown").objects == 0


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE timelines SET saved = saved + 1",
        "UPDATE timelines SET updated_at = 7",
        "UPDATE users SET objects = objects - 1",
        "UPDATE users SET pack_bytes = 0",
        "UPDATE timelines SET moved = 0",
        "UPDATE checkpoints SET branch = NULL",
    ],
)
def test_a_count_that_is_wrong_is_found_and_repaired(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "store.db"
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        line = Line(store)
        first = line.save()
        line.save()
        line.commit(line.moved("back", head=first.id))
        line.save()
        line.commit(line.moved("back again", head=first.id))
        store.compact(_no_refs)
        right = kept(store)[0], _listed(store), store.children(None, first.id)
    with contextlib.closing(connect(str(path), "power", create=False)) as direct:
        direct.execute(fault)
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        assert re.search("counts kept|not found by its parent", "".join(store.verify()))
        store.repair()
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        assert store.verify() == []
        assert (kept(store)[0], _listed(store), store.children(None, first.id)) == right


def _listed(store: SqliteStore) -> list[TimelineRow]:
    return store.recent_timelines(None, TimelineQuery(9))


def test_a_store_that_is_put_together_from_its_backup_has_them(tmp_path: Path) -> None:
    path = ruins.built(tmp_path / "store.db")
    with hardsave.open(ruins.url(path)) as vault:
        vault.timeline("main").rewind("main:2", what="state")
        branch = vault.timeline("main").save({"a": "branch"})
        before = vault.store.stats()
    ruins.overwrite(path)
    with hardsave.open(ruins.url(path)) as vault:
        after = vault.store.stats()
        assert (after.checkpoints, after.objects) == (before.checkpoints, before.objects)
        assert len(vault.timeline("main")) == ruins.SAVES + 1
        children = vault.timeline("main").children("main:2")
        assert [each.id for each in children][-1] == branch.id
        assert len(children) == 2
        assert vault.store.verify().ok


def test_a_plain_save_has_no_row_in_the_index_of_branches(store: SqliteStore) -> None:
    line = Line(store)
    first = line.save()
    line.save()
    sql = "SELECT count(*) FROM checkpoints INDEXED BY checkpoints_branching WHERE branch NOT NULL"
    with store._reading() as connection:
        assert connection.execute(sql).get == 0
    line.commit(line.moved("back", head=first.id))
    line.save()
    with store._reading() as connection:
        assert connection.execute(sql).get == 1


# By index


def plan(sql: str) -> list[str]:
    """What SQLite reads for a statement, a line each; temporary tables left out."""
    connection = apsw.Connection(":memory:")
    schema.migrate(connection)
    schema.add_indexes(connection)
    places = [int(place) for place in re.findall(r"\?(\d+)", sql)]
    count = max(places) if places else sql.count("?")
    rows: list[Any] = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * count).fetchall()
    return [row[3] for row in rows if row[3].startswith(("SCAN", "SEARCH"))]


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        (queries._CHILDREN, "checkpoints_branching"),
        (queries._BRANCHES, "checkpoints_branching"),
        (queries._ANCESTORS, "checkpoints_by_id"),
        (ledger.listing(TaskQuery(9, 7, "failed", newest_first=True))[0], "tasks_by_state"),
    ],
)
def test_a_question_of_a_front_end_is_answered_by_an_index(sql: str, index: str) -> None:
    found = plan(sql)
    assert any(index in line for line in found)
    whole = ("SCAN checkpoints", "SCAN c", "SCAN s", "SCAN t", "SCAN log")
    assert [line for line in found if line.startswith(whole)] == []


def test_saves_in_order_are_read_from_where_the_last_page_ended(store: SqliteStore) -> None:
    asked: list[str] = []
    rows = store._rows

    def spied(sql: str, user: str | None, *values: Any) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return rows(sql, user, *values)

    store._rows = spied  # type: ignore[method-assign] # to look on
    store.saved(None, 0, 9)
    assert "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)" in plan(asked[0])


def test_stats_and_counts_read_no_checkpoint(store: SqliteStore) -> None:
    assert [line for line in plan(counts.STATS) if " checkpoints" in line] == []


def test_a_list_of_timelines_joins_the_rows_of_one_page_alone() -> None:
    chosen, _, joined = queries._RECENT.partition(") AS line")
    assert "SELECT t.id FROM" in chosen  # no more is carried along while they are sorted
    assert "LIMIT ?7" in chosen
    assert "timelines AS t" in joined
    found = plan(queries._RECENT)
    assert "SCAN line" in found  # what the limit has left, not the table
    assert "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)" in found


# Encrypted packs, which no version writes yet


def test_an_encrypted_pack_is_refused_and_not_taken_for_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        saved = Line(store).save_tree(an_object("secret " * 50))
    with contextlib.closing(connect(str(path), "power", create=False)) as direct:
        direct.execute("UPDATE packs SET body = ?", (b"\2\7\3key" + bytes(60),))
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        for call in (
            lambda: store.read(None, [saved.root]),
            lambda: store.collect(_no_refs),
            lambda: store.compact(_no_refs),
            store.repair,
        ):
            with pytest.raises(Misuse, match=r"key '6b6579' by algorithm 7.*upgrade Hardsave"):
                call()
    assert not list(tmp_path.glob("*damaged*"))


def test_what_reads_all_of_a_store_refuses_an_encrypted_pack(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Vault(SqliteStore(path, backup=False)) as vault:
        vault.timeline("main").save({"text": "secret " * 50})
        vault.export_file(tmp_path / "before")
    with contextlib.closing(connect(str(path), "power", create=False)) as direct:
        direct.execute("UPDATE packs SET body = ?", (b"\2\7\3key" + bytes(60),))
    with Vault(SqliteStore(path, backup=False)) as vault:
        for call in (
            vault.timeline("main").load,
            lambda: vault.export_file(tmp_path / "after"),
            vault.store.verify,
            lambda: vault.store.purge(text="nowhere"),
            lambda: list(vault._context.store.scan(None)),
        ):
            with pytest.raises(Misuse, match=r"key '6b6579' by algorithm 7.*upgrade Hardsave"):
                call()
        assert vault.import_file(tmp_path / "before").skipped == 1  # which reads no pack
    assert not list(tmp_path.glob("*damaged*"))
    assert not list(tmp_path.glob("after*"))


@pytest.mark.parametrize("body", [b"\2", b"\2\1", b"\2\1\xff"])
def test_a_header_of_an_encrypted_pack_that_is_cut_short_is_refused_too(body: bytes) -> None:
    with pytest.raises(Misuse, match="upgrade"):
        packs.unpack(bytes(24), body, 900)
