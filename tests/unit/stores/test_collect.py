"""Removing objects from the file, beside others who know of them."""

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Batch, Changes, ObjectsGone
from hardsave.stores.group_commit import Ticket
from hardsave.stores.host import processes
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.gc import collect, vacuum
from hardsave.stores.sqlite.gc.maintenance import Access
from hardsave.stores.sqlite.write import pins
from hardsave.stores.sqlite.write.transaction import Write
from hardsave.testing.batches import (
    Line,
    a_parent,
    an_entry,
    an_object,
    but,
    operate,
    refs_of,
    some_objects,
)
from tests.unit.stores.test_index import NEAR, ONE, TWO

PIN = b"pin"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


@pytest.fixture
def other(path: Path) -> Iterator[SqliteStore]:
    """Another process, as far as memory goes."""
    store = SqliteStore(path)
    yield store
    store.close()


def stray(store: SqliteStore, label: str, count: int = 3) -> dict[Hash, bytes]:
    """Objects that nothing leads to."""
    objects = some_objects(label, count)
    store.commit(Batch(None, an_entry(label), objects=objects))
    return objects


def files_of(store: SqliteStore) -> Access:
    return store._housekeeper._access


def planned(store: SqliteStore, *, exact: bool = True) -> collect.Plan:
    store._merge_waiting(0)
    with store._reading_at_once() as connection:
        return collect.plan(connection, 0, refs_of, exact=exact)


def carried_out(store: SqliteStore, plan: collect.Plan) -> tuple[str, int]:
    outcome, removed = collect._carry_out(files_of(store), plan, refs_of, exact=True)
    return outcome, removed.objects


def rows(store: SqliteStore, sql: str) -> list[Any]:
    with store._reading() as connection:
        found: list[Any] = connection.execute(sql).fetchall()
        return found


# What others have in mind


def test_another_process_does_not_rely_on_what_is_gone(
    store: SqliteStore, other: SqliteStore
) -> None:
    objects = stray(store, "stray")
    line = Line(other)
    line.commit(but(line.next(), requires=list(objects)))
    assert other.missing(None, objects) == set()
    store.collect(refs_of, exact=True)
    with pytest.raises(ObjectsGone):
        line.commit(but(line.next(), requires=list(objects)))
    assert other.missing(None, objects) == set(objects)


def test_another_process_stores_again_what_is_gone(store: SqliteStore, other: SqliteStore) -> None:
    objects = stray(other, "stray")
    assert other.read(None, list(objects)).keys() >= objects.keys()
    store.collect(refs_of, exact=True)
    line = Line(other)
    line.save_tree(objects | a_parent("root", *objects))
    assert store.missing(None, objects) == set()
    assert store.read(None, list(objects)).keys() >= objects.keys()
    assert store.verify() == []


def test_another_process_forgets_the_bytes_of_what_is_gone(
    store: SqliteStore, other: SqliteStore
) -> None:
    objects = stray(store, "stray")
    assert other.read(None, list(objects)).keys() >= objects.keys()
    store.collect(refs_of, exact=True)
    other.missing(None, objects)
    assert not other.read(None, list(objects))


def test_a_reader_in_an_older_transaction_finds_what_is_gone(
    store: SqliteStore, other: SqliteStore
) -> None:
    objects = stray(store, "stray")
    with other._reading_at_once() as connection:
        assert connection.execute("SELECT count(*) FROM packs").get == 1
        store.collect(refs_of, exact=False)
        assert other._objects.index.refresh(connection, 0)
        store.missing(None, objects)
        for address in objects:
            assert other._objects.index.is_stored(connection, 0, address)
    assert other.missing(None, objects) == set(objects)


def test_a_transaction_relies_on_nothing_that_it_removes(store: SqliteStore) -> None:
    objects = stray(store, "stray")
    Line(store, "first").save()
    plan = planned(store)
    with store._reading_at_once() as connection:
        step = [collect._replacement(connection, pack) for pack in plan.doomed.values()]
    sweep = collect._Sweep(plan, refs_of, step, False)
    line = Line(store)
    batch = but(line.next(objects=a_parent("root", *objects)), requires=list(objects))
    tickets: list[Ticket[Any, int]] = [Ticket(sweep), Ticket(Write(batch, list(packed(batch))))]
    store._writer._run(tickets)
    assert (tickets[0].error, tickets[1].error) == (None, None)
    assert sweep.outcome == "late"
    assert store.missing(None, objects) == set()


def packed(batch: Batch) -> Iterator[Any]:
    from hardsave.stores import packs

    return packs.pack(batch.objects.items())


# What happens between the plan and the sweep


def test_what_is_needed_again_is_spared_with_all_that_it_leads_to(store: SqliteStore) -> None:
    leaves = some_objects("leaf", 3)
    inner = a_parent("inner", *leaves)
    gone = stray(store, "gone")
    store.commit(Batch(None, an_entry("tree"), objects=leaves | inner))
    plan = planned(store)
    line = Line(store)
    line.commit(but(line.next(objects=a_parent("root", *inner)), requires=list(inner)))
    assert carried_out(store, plan) == ("done", 3)
    assert store.missing(None, [*leaves, *inner, *gone]) == set(gone)
    assert store.verify() == []


def test_a_checkpoint_of_an_old_state_spares_it(store: SqliteStore) -> None:
    leaves = some_objects("leaf", 3)
    root = a_parent("root", *leaves)
    line = Line(store)
    record = line.save_tree(leaves | root)
    line.save()
    operate(store, "drop", Changes(drop=[record.id]))
    plan = planned(store)
    line.commit(but(line.next(objects={}), event=_at(line, next(iter(root))), requires=list(root)))
    assert carried_out(store, plan) == ("done", 0)
    assert store.missing(None, [*leaves, *root]) == set()


def _at(line: Line, root: Hash) -> CheckpointRecord:
    event = line.next().event
    assert isinstance(event, CheckpointRecord)
    return event._replace(root=root)


@pytest.mark.parametrize("what", ["replace", "collect", "compact"])
def test_a_plan_is_void_once_packs_or_roots_have_changed(
    store: SqliteStore, other: SqliteStore, what: str
) -> None:
    line = Line(other)
    record = line.save()
    stray(other, "one")
    other._merge_waiting(0)
    stray(other, "two")
    plan = planned(store)
    if what == "replace":
        operate(other, "replace", Changes(replace=[record]))
    elif what == "collect":
        other.collect(refs_of, exact=True)
    else:
        other.compact(refs_of)
    assert carried_out(store, plan) == ("changed", 0)
    store.collect(refs_of, exact=True)
    assert store.stats(None).objects == 1


def test_a_pin_ends_the_work(store: SqliteStore) -> None:
    stray(store, "stray")
    plan = planned(store)
    store.put(None, an_object("ahead"), pin=PIN, seconds=60)
    assert carried_out(store, plan) == ("pinned", 0)
    assert store.stats(None).objects == 4


def test_pins_of_processes_that_have_ended_are_forgotten(store: SqliteStore) -> None:
    store.put(None, an_object("ahead"), pin=PIN, seconds=0)
    store.collect(refs_of)
    assert rows(store, "SELECT * FROM pins") == []


_PINS_AND_WAITS = """
import sys
from hardsave.stores.registry import open_store
store = open_store(sys.argv[1])
store.put(None, {}, pin=b"p" * 12, seconds=3600)
print("pinned", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not processes.can_ask(), reason="this system has no /proc")
def test_what_a_killed_process_held_is_free_at_once_though_others_have_the_store_open(
    store: SqliteStore,
) -> None:
    stray(store, "stray")
    with contextlib.closing(SqliteStore(store.path)), held_by_another(store) as holder:
        assert store.collect(refs_of).left == (None,)
        holder.kill()
        holder.wait()
        assert store.collect(refs_of).left == ()
    assert rows(store, "SELECT * FROM pins") == []


@contextlib.contextmanager
def held_by_another(store: SqliteStore) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PINS_AND_WAITS, f"sqlite:///{store.path}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "pinned\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_whether_the_process_that_holds_a_pin_has_ended() -> None:
    began = {7: 100, 9: processes.UNKNOWN}
    here, elsewhere = b"numbered", b"another."
    pin = b"p" * 12
    for held, has_ended in (
        (pin, False),  # by an older version, which names no process
        (pin + pins._HOLDER.pack(here, 7, 100), False),
        (pin + pins._HOLDER.pack(here, 7, 99), True),  # another process has its number
        (pin + pins._HOLDER.pack(here, 8, 100), True),
        (pin + pins._HOLDER.pack(here, 9, 100), False),  # it is there, and may not be looked at
        (pin + pins._HOLDER.pack(here, 8, 0), False),  # it could not be known when it began
        (pin + pins._HOLDER.pack(elsewhere, 8, 100), False),  # numbers there mean nothing here
    ):
        assert pins.has_ended(held, here, began.get) == has_ended


# What the order of packs does not tell


def test_an_object_stored_before_what_it_refers_to_keeps_it(store: SqliteStore) -> None:
    child = an_object("child")
    line = Line(store)
    line.save_tree(a_parent("root", *child))
    store._merge_waiting(0)
    store.commit(Batch(None, an_entry("late"), objects=child | some_objects("stray", 2)))
    assert store.collect(refs_of, exact=True).objects == 2
    assert store.missing(None, child) == set()


def test_objects_that_collide_in_the_index_go_alone(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {b"one": ONE, b"two": TWO, b"near": NEAR}
    monkeypatch.setattr(collect, "digest", names.__getitem__)
    line = Line(store)
    line.save_tree({ONE: b"one"})
    store.commit(Batch(None, an_entry("two"), objects={TWO: b"two", NEAR: b"near"}))
    store.compact(refs_of)
    assert store.collect(refs_of, exact=True).objects == 2
    assert store.missing(None, [ONE, TWO, NEAR]) == {TWO, NEAR}
    assert store.read(None, [ONE])[ONE] == b"one"
    assert store.verify() == []


@pytest.mark.parametrize("what", ["collect", "compact"])
def test_the_backup_is_told_of_every_pack_that_changed(store: SqliteStore, what: str) -> None:
    line = Line(store)
    for at in range(6):
        line.save()
        stray(store, f"stray {at}")
        store._merge_waiting(0)
    known = dict(rows(store, "SELECT id, directory FROM packs"))
    ((before,),) = rows(store, "SELECT max(id) FROM changes")
    store.collect(refs_of, exact=True) if what == "collect" else store.compact(refs_of)
    now = dict(rows(store, "SELECT id, directory FROM packs"))
    told = rows(store, f"SELECT low, high FROM changes WHERE what = 'packs' AND id > {before}")  # noqa: S608
    changed = [id for id in known.keys() | now.keys() if known.get(id) != now.get(id)]
    assert len(changed) == 6
    assert all(any(low <= id <= high for low, high in told) for id in changed)


def test_the_backup_follows(store: SqliteStore) -> None:
    assert store._copier is not None
    line = Line(store)
    for at in range(8):
        line.save()
        stray(store, f"stray {at}")
        store._merge_waiting(0)
        store._copier.turn()
    for way in (store.collect, store.compact):
        way(refs_of)
        line.save()  # above what was removed
        store._copier.turn()
        assert store.verify() == []
        found = backup_file.look(store.path)
        assert found is not None
        with contextlib.closing(found):
            copied = found.execute("SELECT id, directory, body FROM packs ORDER BY id").fetchall()
        assert copied == rows(store, "SELECT id, directory, body FROM packs ORDER BY id")


def test_the_backup_is_told_of_merges(store: SqliteStore) -> None:
    for at in range(5):
        stray(store, f"stray {at}")
    store._merge_waiting(0)
    assert rows(store, "SELECT what, low, high FROM changes") == [("packs", 1, 5)]


# Damage


def test_what_does_not_match_its_hash_is_not_followed(store: SqliteStore) -> None:
    gone = stray(store, "stray")
    Line(store).save_tree({**an_object("sound"), Hash(b"\1" * 20): b"forged"})
    with pytest.raises(Corrupt, match="does not match its hash"):
        store.collect(refs_of)
    assert store.missing(None, gone) == set()


def test_one_users_damage_is_no_other_users(store: SqliteStore) -> None:
    Line(store).save_tree(a_parent("root", *an_object("absent")))
    store.commit(Batch("ada", an_entry("stray"), objects=an_object("stray")))
    with pytest.raises(Corrupt, match="is missing"):
        store.collect(refs_of)
    assert store.missing("ada", an_object("stray")) == set(an_object("stray"))


# The files


def test_exactly_means_that_no_byte_is_left(path: Path) -> None:
    draw = random.Random(5)
    store = SqliteStore(path, backup=False)
    line = Line(store)
    dead: list[bytes] = []
    live: list[bytes] = []
    drop: list[bytes] = []
    for at in range(300):
        size = draw.choice([60, 300, 900, 3_000, 9_000, 60_000])
        data = draw.randbytes(size)
        record = line.save_tree({digest(data): data})
        if at % 3 and at < 299:
            drop.append(record.id)
            dead.append(data)
        else:
            live.append(data)
        if at % 96 == 0:
            operate(store, f"drop {at}", Changes(drop=drop))
            drop = []
            store.collect(refs_of, exact=False)
    operate(store, "drop", Changes(drop=drop))
    store.collect(refs_of, exact=True)
    found = b"".join(file.read_bytes() for file in path.parent.iterdir())
    pieces = [data[at : at + 24] for data in dead for at in range(0, len(data) - 24, 1_000)]
    assert not [piece for piece in pieces if piece in found]
    assert all(data[:24] in found for data in live)  # what is looked for would be found
    store.close()


def test_a_collection_waits_for_no_backup_that_is_not_there(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    Line(store).save()
    stray(store, "stray")
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    assert store.collect(refs_of).objects > 0
    store.compact(refs_of)
    assert waited == []


def test_a_reader_that_holds_old_pages_is_named(
    store: SqliteStore, other: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(Copier, "saw", lambda copier: None)  # a backup is told in the WAL
    stray(store, "stray")
    with other._reading_at_once() as connection:
        assert connection.execute("SELECT count(*) FROM packs").get == 1
        with pytest.raises(Unavailable, match="close them and repeat"):
            store.collect(refs_of, exact=True)
        assert store.collect(refs_of, exact=False).objects == 0
    monkeypatch.setattr(vacuum, "PATIENCE_SECONDS", 60.0)
    store.collect(refs_of, exact=True)
    assert Path(f"{store.path}-wal").stat().st_size == 0


def test_no_free_page_is_left(store: SqliteStore) -> None:
    noise = random.Random(1).randbytes(3_000_000)
    store.commit(Batch(None, an_entry("noise"), objects={digest(noise): noise}))
    Line(store).save()
    freed = store.collect(refs_of).freed_bytes
    assert freed > 2_900_000
    assert rows(store, "PRAGMA freelist_count") == [(0,)]
    assert apsw.Connection(store.path, flags=apsw.SQLITE_OPEN_READONLY).pragma("page_count") < 100
