"""Small packs become larger ones, and no reader or writer notices."""

import gc
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Unavailable
from hardsave.objects.hashing import Hash, digest
from hardsave.stores.base import Batch
from hardsave.stores.object_cache import ObjectCache
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.backup.backup_file import peek
from hardsave.stores.sqlite.gc import merge
from hardsave.stores.sqlite.gc.merge import (
    ENOUGH_BYTES,
    ENOUGH_PACKS,
    FEW_PACKS,
    MANY_SAVES,
    QUIET_SECONDS,
    SAVE_OBJECTS,
    SINGLE_BYTES,
    SMALL_BYTES,
    PackRow,
    choose,
    gather,
)
from hardsave.stores.sqlite.read.object_index import bounds, indexed_upto
from hardsave.testing.batches import Line, an_entry, an_object, some_objects
from tests.unit.stores.processes import eventually
from tests.unit.stores.test_index import count_packs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def rows(*sizes: int) -> list[PackRow]:
    return [PackRow(id, size) for id, size in enumerate(sizes, 100)]


# Deciding


def sizes(groups: list[list[PackRow]]) -> list[list[int]]:
    return [[row.size for row in group] for group in groups]


def test_few_small_packs_are_left_alone() -> None:
    assert choose([]) == []
    assert choose(rows(*[10] * (ENOUGH_PACKS - 1))) == []


def test_enough_small_packs_become_one() -> None:
    waiting = rows(*[10] * (ENOUGH_PACKS + 5))
    assert choose(waiting) == [waiting]


def test_enough_bytes_are_merged_however_few_the_packs() -> None:
    half = SMALL_BYTES // 2
    fit = ENOUGH_BYTES // half
    assert choose(rows(*[half] * (fit - 1))) == []
    assert sizes(choose(rows(*[half] * (fit + 3)))) == [[half] * fit, [half] * 3]


def test_what_is_left_over_waits_for_more_instead_of_staying_small() -> None:
    half = SMALL_BYTES // 2
    fit = ENOUGH_BYTES // half
    assert sizes(choose(rows(*[half] * (fit + 1)))) == [[half] * fit]
    assert sizes(choose(rows(SMALL_BYTES, *[10] * (ENOUGH_PACKS - 1)))) == [[SMALL_BYTES]]


def test_large_packs_stay_as_they_are_and_are_not_merged_across() -> None:
    some = [10] * 16
    found = choose(rows(*some, SMALL_BYTES, *some))
    assert sizes(found) == [some, [SMALL_BYTES]]
    found = choose(rows(*some, SMALL_BYTES, *some, SMALL_BYTES))
    assert sizes(found) == [some, [SMALL_BYTES], some, [SMALL_BYTES]]
    assert sizes(choose(rows(*[SMALL_BYTES] * 40))) == [[SMALL_BYTES]] * 40


def test_a_pack_is_small_up_to_its_bound() -> None:
    assert sizes(choose(rows(*[SMALL_BYTES - 1] * 5))) == [[SMALL_BYTES - 1] * 4]
    assert sizes(choose(rows(*[SMALL_BYTES] * 4))) == [[SMALL_BYTES]] * 4


@given(st.lists(st.integers(1, ENOUGH_BYTES * 2), max_size=200))
def test_groups_are_neighbours_in_order_and_none_is_too_large(some: list[int]) -> None:
    waiting = rows(*some)
    groups = choose(waiting)
    chosen = [row for group in groups for row in group]
    assert chosen == waiting[: len(chosen)]  # from the oldest on, without a gap
    for group in groups:
        assert group
        if len(group) > 1:
            assert sum(row.size for row in group) <= ENOUGH_BYTES
            assert all(row.size < SMALL_BYTES for row in group)
    if len(waiting) >= ENOUGH_PACKS:
        assert chosen


def test_the_packs_of_a_few_saves_are_gathered() -> None:
    few = rows(*[10] * FEW_PACKS)
    assert gather(few, FEW_PACKS) == few
    assert gather(few[1:], FEW_PACKS) == []
    assert gather([], FEW_PACKS) == []


def test_what_was_gathered_is_not_gathered_again() -> None:
    some = rows(SINGLE_BYTES, *[10] * FEW_PACKS)
    assert gather(some, FEW_PACKS) == some[1:]
    assert gather([*some, PackRow(200, SINGLE_BYTES)], FEW_PACKS) == []


# Doing


def saved(
    store: SqliteStore, commits: int, label: str, user: str | None = None
) -> dict[Hash, bytes]:
    """Many commits of one small object each; all that they stored."""
    stored: dict[Hash, bytes] = {}
    for number in range(commits):
        objects = an_object(f"{label} {number}", 100)
        store.commit(Batch(user, an_entry(f"{label} {number}"), objects=objects))
        stored |= objects
    return stored


def is_complete(store: SqliteStore, stored: dict[Hash, bytes], user: str | None = None) -> bool:
    assert store.missing(user, stored) == set()
    for address, data in stored.items():
        assert store.read(user, [address])[address] == data
    found = store.read(user, list(stored))
    return {address: found[address] for address in stored} == stored


def test_small_packs_merge_by_themselves(store: SqliteStore) -> None:
    stored = saved(store, 200, "turn")
    assert eventually(lambda: count_packs(store) <= ENOUGH_PACKS + 10)
    assert is_complete(store, stored)
    assert store.verify() == []


def test_packs_that_stay_below_the_bound_are_not_merged(store: SqliteStore) -> None:
    saved(store, FEW_PACKS - 1, "turn")
    store._merger.close()
    assert count_packs(store) == FEW_PACKS - 1


def test_gathered_packs_wait_on_without_index_rows(store: SqliteStore) -> None:
    stored = saved(store, FEW_PACKS, "turn")
    assert eventually(lambda: count_packs(store) == 1)
    assert store._connect().execute("SELECT count(*) FROM objects").get == 0
    assert is_complete(store, stored)
    other = SqliteStore(store.path)
    assert is_complete(other, stored)
    other.close()
    assert store.verify() == []


class NeverQuiet:
    """A clock that stands: the last save was just now."""

    @staticmethod
    def monotonic() -> float:
        return 0.0


def test_saves_without_a_pause_are_left_in_peace_until_many_have_come_together(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "time", NeverQuiet)
    stored = saved(store, MANY_SAVES - 1, "turn")
    time.sleep(5 * QUIET_SECONDS)
    assert count_packs(store) == MANY_SAVES - 1
    stored |= saved(store, 1, "last")
    assert eventually(lambda: count_packs(store) == 1)
    assert is_complete(store, stored)


def test_one_save_of_many_packs_is_left_in_peace_unless_its_objects_are_very_many(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_indexed() -> bool:
        with store._reading() as connection:
            return indexed_upto(connection, store._user(None)) > bounds(store._user(None))[0]

    monkeypatch.setattr(merge, "time", NeverQuiet)
    large = {digest(data): data for data in map(os.urandom, [ENOUGH_BYTES] * 2 * MANY_SAVES)}
    store.put(None, large, pin=b"p", seconds=60)
    time.sleep(5 * QUIET_SECONDS)
    assert not is_indexed()
    store.put(None, some_objects("many", MANY_SAVES * SAVE_OBJECTS), pin=b"p", seconds=60)
    assert eventually(is_indexed)


def test_what_comes_after_many_is_gathered_once_there_is_a_pause(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(merge, "time", NeverQuiet)
        stored = saved(store, MANY_SAVES, "turn")
        assert eventually(lambda: count_packs(store) == 1)
        stored |= saved(store, 3, "rest")
        assert count_packs(store) == 1 + 3
    assert eventually(lambda: count_packs(store) <= 2)
    assert is_complete(store, stored)


def test_a_close_does_not_wait_for_a_quiet_moment(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "time", NeverQuiet)
    saved(store, FEW_PACKS, "turn")
    store.close()  # or it would never end


def test_a_store_that_is_only_read_leaves_a_few_packs_alone(path: Path) -> None:
    store = SqliteStore(path)
    stored = saved(store, FEW_PACKS - 1, "turn")
    store.close()
    again = SqliteStore(path)
    stored |= saved(again, FEW_PACKS - 1, "later")
    again.close()
    reader = SqliteStore(path)
    assert is_complete(reader, stored)
    assert reader._merger._thread is None
    assert count_packs(reader) == 2 * (FEW_PACKS - 1)
    reader.close()


def test_each_users_packs_merge_apart(store: SqliteStore) -> None:
    stored = {user: saved(store, 70, "turn", user) for user in (None, "ada")}
    stored["ada"] |= saved(store, 1, "another", "ada")
    assert eventually(lambda: count_packs(store) <= 2 * ENOUGH_PACKS)
    for user, objects in stored.items():
        assert is_complete(store, objects, user)
    secret = set(stored["ada"]) - set(stored[None])
    assert store.missing(None, secret) == secret
    assert store.verify() == []


def test_a_reader_with_a_warm_cache_still_reads_after_merges(path: Path) -> None:
    writer, reader = SqliteStore(path), SqliteStore(path)
    stored: dict[Hash, bytes] = {}
    for turn in range(8):
        stored |= saved(writer, 25, f"turn {turn}")
        assert is_complete(reader, stored)
    assert eventually(lambda: count_packs(writer) <= ENOUGH_PACKS + 10)
    assert is_complete(reader, stored)
    reader.close()
    writer.close()


def test_reading_while_merging(store: SqliteStore) -> None:
    stored = saved(store, 20, "before")
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                store._objects._cache = ObjectCache(limit=1)  # nothing is kept: all reads are real
                is_complete(store, stored)
        except BaseException as error:  # noqa: BLE001 # handed to the test
            failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    saved(store, 200, "meanwhile")
    done.set()
    thread.join()
    assert failures == []


def test_two_processes_may_merge_at_once(path: Path) -> None:
    stores = [SqliteStore(path), SqliteStore(path)]
    stored: list[dict[Hash, bytes]] = [{}, {}]

    def work(number: int) -> None:
        stored[number] = saved(stores[number], 120, f"writer {number}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store._merger.close()
    everything = stored[0] | stored[1]
    assert len(everything) == 240
    assert is_complete(stores[0], everything)
    assert is_complete(stores[1], everything)
    assert stores[0].verify() == []
    for store in stores:
        store.close()


def test_everything_is_there_after_merges_and_reopening(path: Path) -> None:
    store = SqliteStore(path)
    stored = saved(store, 100, "turn") | some_objects("bulk", 10)
    store.commit(Batch(None, an_entry("bulk"), objects=some_objects("bulk", 10)))
    stored |= saved(store, 100, "later")
    store.close()
    again = SqliteStore(path)
    assert is_complete(again, stored)
    assert again.verify() == []
    again.close()


def test_objects_stored_more_than_once_are_no_fault_after_a_merge(store: SqliteStore) -> None:
    for number in range(70):
        objects = an_object(f"of two {number % 2}")
        store.commit(Batch(None, an_entry(f"turn {number}"), objects=objects))
    assert eventually(lambda: count_packs(store) <= ENOUGH_PACKS + 10)
    assert store.verify() == []
    assert is_complete(store, an_object("of two 0") | an_object("of two 1"))


def test_a_merge_uses_up_no_number(store: SqliteStore) -> None:
    line = Line(store)
    numbers = [line.save().number for _ in range(100)]
    assert numbers == list(range(1, 101))


def test_a_merge_that_fails_is_reported_and_stops_no_save(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> int:
        raise Unavailable("no space left")

    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        broken.setattr(merge, "_replace", fail)
        stored = saved(store, 40, "turn")
        assert eventually(lambda: "could not be merged" in caplog.text)
        assert is_complete(store, stored)
    stored |= saved(store, 64, "after")  # and merges again once it can
    assert eventually(lambda: count_packs(store) <= ENOUGH_PACKS + 10)
    assert is_complete(store, stored)


def test_closing_waits_for_a_merge_under_way(path: Path) -> None:
    for _ in range(5):
        store = SqliteStore(path)
        line = Line(store)
        line.standing = store.timeline(None, "main")
        for _turn in range(33):
            line.save()
        store.close()
        assert not [t for t in threading.enumerate() if t.name == "hardsave-merge"]


def test_a_merge_that_could_not_connect_is_made_later(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect = store._merger._connect
    refused = threading.Event()

    def refuse() -> apsw.Connection:
        refused.set()
        raise Unavailable("too many open files")

    monkeypatch.setattr(store._merger, "_connect", refuse)
    line = Line(store)
    for _ in range(FEW_PACKS):
        line.save()
    assert refused.wait(60)
    assert eventually(lambda: "could not be merged" in caplog.text)
    monkeypatch.setattr(store._merger, "_connect", connect)
    for _ in range(FEW_PACKS):
        line.save()
    assert eventually(lambda: count_packs(store) < FEW_PACKS)


def test_a_save_needs_no_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a process that may have no more of them, or whose interpreter shuts down."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        store = SqliteStore(path)
        line = Line(store)
        for _ in range(FEW_PACKS):
            line.save()
        assert store.count(None, "main") == FEW_PACKS
        assert "can't start new thread" in caplog.text
    line.save()
    for _ in range(FEW_PACKS):
        line.save()
    assert eventually(lambda: count_packs(store) < FEW_PACKS)  # it is tried again
    store.close()
    assert peek(str(path)) is not None


def test_the_backup_is_made_when_a_store_closes_that_had_no_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    store = SqliteStore(path)
    number = Line(store).save().number
    store.close()
    copied = peek(str(path))
    assert copied is not None
    assert copied.number == number


def test_a_store_that_is_forgotten_leaves_nothing_behind(path: Path) -> None:
    SqliteStore(path).close()
    gc.collect()
    files, before = len(os.listdir("/proc/self/fd")), ours()
    line = Line(SqliteStore(path))
    for _ in range(4 * FEW_PACKS):
        line.save()
    assert len(ours()) == len(before) + 2  # the merger and the copier
    del line

    def is_gone() -> bool:
        time.sleep(0.1)  # all other threads wait while garbage is collected: let them go on
        gc.collect()
        return ours() == before and len(os.listdir("/proc/self/fd")) == files

    assert eventually(is_gone)


def ours() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("hardsave-")}


def test_a_ctrl_c_that_comes_with_the_start_of_the_thread_does_not_hinder_closing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(path)
    line = Line(store)
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "hardsave-merge":
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _save_often(line)
    line.standing = store.timeline(None, "main")
    _save_often(line)
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(timeout=60)
    assert not closing.is_alive()
    assert eventually(lambda: not [t for t in threading.enumerate() if t.name == "hardsave-merge"])


def _save_often(line: Line) -> None:
    for _ in range(33):
        line.save()
