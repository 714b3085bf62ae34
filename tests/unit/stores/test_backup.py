"""The second file follows the first: the same rows, of one moment, soon."""

import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects.hashing import digest
from hardsave.stores.base import Batch, Changes, Durability
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.backup import backup_file, copier, row_feed
from hardsave.stores.sqlite.backup.backup_file import Copied
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.backup.row_feed import Outdated
from hardsave.stores.sqlite.gc import merge
from hardsave.stores.sqlite.open import read_only
from hardsave.stores.sqlite.write import operations
from hardsave.testing.batches import Line, a_note, an_entry, refs_of, some_objects
from tests.unit.stores import ruins
from tests.unit.stores.processes import Child, eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """A store whose backup is fed when a test says so."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    monkeypatch.setattr(merge.Merger, "saw", lambda *_: None)
    store = SqliteStore(path)
    yield store
    store.close()


def copy(store: SqliteStore) -> Copied:
    """One pass."""
    assert store._copier is not None
    store._copier.turn()
    copied = backup_file.peek(store.path)
    assert copied is not None
    return copied


def timelines(path: Path) -> set[str]:
    """As a process finds them that opens the store, looks and closes it."""
    with contextlib.closing(SqliteStore(path)) as store:
        return {found.name for found in store.timelines(None, None, 9)}


def rows(connection: apsw.Connection) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for table, key in backup_file.KEYS.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        names = ", ".join(name for name in columns if name not in backup_file.OF_THIS_FILE)
        sql = f"SELECT {names} FROM {table} ORDER BY {key}"  # noqa: S608 # names of ours
        found[table] = connection.execute(sql).fetchall()
    return found


def assert_same(store: SqliteStore) -> None:
    copied = backup_file.look(store.path)
    assert copied is not None
    assert rows(copied) == rows(store._connect())
    copied.close()
    assert store.verify() == []


def test_the_size_of_a_store_is_with_its_backup(store: SqliteStore, path: Path) -> None:
    Line(store).save()
    alone = store.stats(None).disk_bytes
    copy(store)
    copied = [path.with_name(path.name + suffix) for suffix in ("-backup", "-backup-wal")]
    added = sum(file.stat().st_size for file in copied if file.exists())
    assert added > 0
    assert store.stats(None).disk_bytes == alone + added


# One pass


def test_the_first_pass_copies_everything(store: SqliteStore) -> None:
    for user in (None, "kim"):
        line = Line(store, user=user)
        for _ in range(3):
            line.save()
    assert copy(store) == (6, 0)
    assert_same(store)


def test_a_pass_reads_what_is_new_alone(store: SqliteStore) -> None:
    line = Line(store)
    for _ in range(100):
        line.save()
    copy(store)
    line.save()
    scanned: list[int] = []

    def trace(event: dict[str, Any]) -> None:
        scanned.append(event["stmt_status"]["SQLITE_STMTSTATUS_FULLSCAN_STEP"])

    assert store._copier is not None
    store._copier._connected().trace_v2(apsw.SQLITE_TRACE_PROFILE, trace)
    copy(store)
    assert scanned
    assert sum(scanned) < 50


def test_later_passes_copy_what_is_new(store: SqliteStore) -> None:
    line, other = Line(store), Line(store, "other", user="kim")
    for number in range(1, 6):
        line.save()
        assert copy(store).number == 2 * number - 1
        other.save()
        assert_same_number(store, 2 * number)
    assert_same(store)


def assert_same_number(store: SqliteStore, number: int) -> None:
    assert copy(store).number == number


def test_what_operations_change_is_copied_again(store: SqliteStore) -> None:
    line = Line(store)
    saved = [line.save() for _ in range(8)]
    store.commit(a_note("old"))
    copy(store)
    operations: list[Changes] = [
        Changes(hide=[saved[1].id, saved[2].id]),
        Changes(drop=[saved[1].id]),
        Changes(replace=[saved[4]._replace(status="done")]),
        Changes(forget_log=9),
    ]
    for at, operation in enumerate(operations):
        store.commit(Batch(None, an_entry(f"operation {at}"), changes=operation))
        copy(store)
        assert_same(store)
    store.commit(line.moved("back", head=saved[3].id))
    line.standing = store.timeline(None, "main")
    copy(store)
    assert_same(store)


def test_merged_packs_replace_their_parts(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "ENOUGH_PACKS", 4)
    line = Line(store)
    for batch in range(3):
        for _ in range(3):
            line.save()
        if batch != 1:  # once, what is merged has not been copied before
            copy(store)
        while store._merger.merge(store._connect(), 0):
            pass
        line.save()
    copy(store)
    assert_same(store)


def test_packs_ahead_of_their_batch_are_not_forgotten(store: SqliteStore) -> None:
    """What is noted lies above some that were not copied: the highest then says nothing."""
    Line(store).save()
    copy(store)
    for number in range(3):
        store.put(None, some_objects(f"ahead {number}", 2), pin=b"p", seconds=60)
    last = store._connect().execute("SELECT max(id) FROM packs").get
    store._writer.apply(lambda connection: operations.note(connection, "packs", [last]))
    copy(store)
    assert_same(store)


def test_a_pass_with_nothing_new_writes_nothing(store: SqliteStore) -> None:
    Line(store).save()
    copy(store)
    before = Path(f"{store.path}-backup-wal").stat().st_mtime_ns
    assert copy(store).number == 1
    assert Path(f"{store.path}-backup-wal").stat().st_mtime_ns == before


def test_a_pass_is_of_one_moment(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits between two of its statements belong to the next one."""
    line = Line(store)
    line.save()
    copy(store)
    line.save()
    commit_between_statements(line, monkeypatch)
    assert copy(store).number == 2
    monkeypatch.undo()
    found = backup_file.look(store.path)
    assert found is not None
    copied = rows(found)
    found.close()
    assert [row[0] for row in copied["checkpoints"]] == [1, 2]
    assert len(copied["packs"]) == 2
    assert copied["timelines"][0][3] == line.saved[1].id
    copy(store)
    assert_same(store)


def commit_between_statements(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_rows = backup_file.copy_rows

    def slowly(*given: Any) -> None:
        line.save()
        copy_rows(*given)

    monkeypatch.setattr(row_feed, "copy_rows", slowly)


def test_a_pass_of_two_moments_would_be_noticed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug that the test before is there for, planted."""
    line = Line(store)
    line.save()
    copy(store)
    line.save()
    copy_additions = row_feed._copy_additions

    def in_pieces(connection: apsw.Connection, before: Copied) -> None:
        copy_additions(connection, before)
        connection.execute("COMMIT")
        line.save()
        connection.execute("BEGIN")
        backup_file.copy_rows(connection, "checkpoints", "store", "number > ?", (before.number,))

    monkeypatch.setattr(row_feed, "_copy_additions", in_pieces)
    copy(store)
    assert store.verify() != []


def test_copied_changes_are_trimmed(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copier, "TRIM_FROM", 5)  # one that is hidden and its timeline are two
    line = Line(store)
    saved = [line.save() for _ in range(5)]
    copy(store)
    for at, record in enumerate(saved[:4]):
        store.commit(Batch(None, an_entry(f"{at}"), changes=Changes(hide=[record.id])))
        copy(store)
    assert store._connect().execute("SELECT count(*) FROM changes").get == 2
    assert_same(store)


# Building anew


def missed(store: SqliteStore) -> None:
    store._writer.apply(lambda c: (c.execute("DELETE FROM changes"), None)[1])


def damaged(store: SqliteStore) -> None:
    path = Path(backup_file.path_of(store.path))
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096))


def emptied(store: SqliteStore) -> None:
    Path(backup_file.path_of(store.path)).write_bytes(b"")


def removed(store: SqliteStore) -> None:
    Path(backup_file.path_of(store.path)).unlink()


def of_another_version(store: SqliteStore) -> None:
    direct = apsw.Connection(backup_file.path_of(store.path), vfs="cksmvfs")
    direct.pragma("user_version", 3)
    direct.close()


@pytest.mark.parametrize("spoil", [missed, damaged, emptied, removed, of_another_version])
def test_a_backup_that_is_of_no_use_is_built_anew(
    store: SqliteStore, spoil: Callable[[SqliteStore], None]
) -> None:
    line = Line(store)
    record = line.save()
    line.save()
    copy(store)
    assert store._copier is not None
    store._copier._let_go()
    store.commit(Batch(None, an_entry("hide"), changes=Changes(hide=[record.id])))
    spoil(store)
    store._copier.turn()
    store._copier.turn()
    assert_same(store)
    assert {file.name for file in Path(store.path).parent.iterdir()}.isdisjoint(
        {"store.db-backup-new", "store.db-backup-old"}
    )


def test_a_backup_that_is_replaced_while_it_is_looked_at_is_not_there(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    Line(store).save()
    copy(store)
    look = read_only.read_only

    def late(path: str) -> read_only.Reason | None:
        os.rename(path, path + row_feed.OLD)
        return look(path) or read_only.NO_ROOM  # between its two questions

    monkeypatch.setattr(read_only, "read_only", late)
    assert backup_file.peek(store.path) is None


@pytest.mark.parametrize("which", ["-backup", "-backup-wal"])
@pytest.mark.parametrize("how", ["removed", "cut", "replaced"])
def test_a_backup_that_was_taken_away_meanwhile_in_part_is_built_anew(
    store: SqliteStore, path: Path, which: str, how: str
) -> None:
    """What was fed into it since would be gone with the process."""
    line = Line(store)
    line.save()
    copy(store)
    line.save()
    copy(store)
    spoiled = path.with_name(path.name + which)
    if how == "cut":
        os.truncate(spoiled, 0)
    else:
        spoiled.unlink()
    if how == "replaced":
        spoiled.touch()
    for _ in range(3):
        last = line.save().number
        assert copy(store).number == last
    assert_same(store)


def test_a_backup_that_lost_its_marks_is_of_no_use(store: SqliteStore) -> None:
    Line(store).save()
    copy(store)
    direct = apsw.Connection(backup_file.path_of(store.path), vfs="cksmvfs")
    direct.execute("DELETE FROM marks")
    direct.close()
    assert backup_file.peek(store.path) is None


def test_a_backup_of_another_history_is_built_anew(store: SqliteStore) -> None:
    Line(store).save()
    copy(store)
    direct = apsw.Connection(backup_file.path_of(store.path), vfs="cksmvfs")
    direct.execute("UPDATE checkpoints SET id = zeroblob(12)")
    direct.close()
    Line(store, "other").save()
    copy(store)
    copy(store)
    assert_same(store)


def test_a_backup_ahead_of_its_store_is_not_overwritten(store: SqliteStore) -> None:
    Line(store).save()
    copy(store)
    direct = apsw.Connection(backup_file.path_of(store.path), vfs="cksmvfs")
    direct.execute("UPDATE marks SET number = 7")
    direct.close()
    assert store._copier is not None
    connection = row_feed.open_for_feeding(store.path, lambda: False, lambda: True)
    with pytest.raises(Corrupt, match="lost commits"):
        row_feed.feed(connection)
    connection.close()
    assert "ahead" in store.verify()[0]


def test_a_backup_shrinks_when_its_store_does(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_feed, "ENOUGH_FREE", 20)
    second = Path(backup_file.path_of(str(path)))
    line = Line(store)
    for number in range(10):
        data = random.Random(number).randbytes(50_000)
        line.commit(line.next(objects={digest(data): data}))
    copy(store)
    copy(store)
    before = second.stat().st_size
    dropped = [record.id for record in line.saved[:-1]]
    store.commit(Batch(None, an_entry("gone"), changes=Changes(drop=dropped)))
    store.collect(lambda _: ())
    copy(store)
    assert_same(store)
    assert second.stat().st_size < before / 2


def test_a_wal_that_grew_during_a_pass_is_emptied_after_it(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copier, "WAL_BYTES", 100_000)
    monkeypatch.setattr(copier, "LARGE_WAL_BYTES", 100_000)
    line = Line(store)
    line.save()
    copy(store)
    copy_additions = row_feed._copy_additions

    def slowly(connection: apsw.Connection, before: Copied) -> None:
        monkeypatch.setattr(row_feed, "_copy_additions", copy_additions)
        copy_additions(connection, before)
        for number in range(20):
            data = random.Random(number).randbytes(20_000)
            line.commit(line.next(objects={digest(data): data}))
        assert wal.stat().st_size > 400_000

    wal = path.with_name(path.name + "-wal")
    line.save()
    monkeypatch.setattr(row_feed, "_copy_additions", slowly)
    copy(store)
    assert wal.stat().st_size == 0
    line.save()
    copy(store)
    assert_same(store)


def test_building_that_fails_leaves_no_draft(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be what has filled the disk."""
    Line(store).save()

    def full(*_: Any) -> None:
        raise apsw.FullError("disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(row_feed, "copy_rows", full)
        with pytest.raises(Unavailable):
            row_feed.build(store.path, lambda: False, lambda: True)
    assert [file for file in path.parent.iterdir() if "-new" in file.name] == []
    copy(store)
    assert_same(store)


def test_building_that_takes_too_long_is_broken_off(store: SqliteStore) -> None:
    line = Line(store)
    for _ in range(300):
        line.save()
    with pytest.raises(Exception, match="interrupt"):
        row_feed.build(store.path, lambda: True, lambda: True)
    assert not os.path.exists(backup_file.path_of(store.path))
    copy(store)
    assert_same(store)


def test_outdated_is_no_error_of_ours() -> None:
    assert not issubclass(Outdated, Corrupt)


# Who copies, and when


def test_opening_and_reading_start_no_thread(path: Path) -> None:
    others = backup_threads()
    store = SqliteStore(path)
    store.timeline(None, "main")
    assert backup_threads() <= others
    Line(store).save()
    assert len(backup_threads() - others) == 1
    store.close()
    assert backup_threads() <= others


def backup_threads() -> set[threading.Thread]:
    """Those of stores that other tests forgot to close among them: they end by themselves."""
    return {each for each in threading.enumerate() if each.name == "hardsave-backup"}


def number(path: Path) -> int:
    copied = backup_file.peek(str(path))
    return 0 if copied is None else copied.number


def test_commits_are_copied_before_long(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store)
    for _ in range(3):
        line.save()
    assert eventually(lambda: number(path) == 3)
    line.save()
    assert eventually(lambda: number(path) == 4)
    assert eventually(lambda: store.verify() == [])
    store.close()


def test_a_short_life_ends_with_a_pass(path: Path) -> None:
    store = SqliteStore(path)
    Line(store).save()
    store.close()
    left = {file.name for file in path.parent.iterdir()}
    assert left.isdisjoint({f"{path.name}-wal", f"{path.name}-backup-wal"})
    assert number(path) == 1


def test_a_last_pass_that_would_be_long_is_left_to_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copier, "LAST_PASS_COMMITS", 2)
    monkeypatch.setattr(copier, "PASS_SECONDS", 60.0)
    store = SqliteStore(path)
    line = Line(store)
    line.save()
    store.close()
    store = SqliteStore(path)
    for _ in range(3):
        Line(store, f"line {_}").save()
    store.close()
    assert number(path) == 1
    store = SqliteStore(path)
    monkeypatch.setattr(copier, "LAST_PASS_COMMITS", 10)
    Line(store, "last").save()
    store.close()
    assert number(path) == 5
    assert not os.path.exists(f"{path}-wal")


@pytest.mark.parametrize("durability", ["power", "process"])
def test_what_no_pass_has_copied_stays_in_the_wal_of_a_store_that_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability
) -> None:
    monkeypatch.setattr(copier, "LAST_PASS_COMMITS", 0)
    store = SqliteStore(path, durability=durability)
    Line(store, "copied").save()
    assert eventually(lambda: number(path) == 1)
    monkeypatch.setattr(copier, "PASS_SECONDS", 60.0)
    store.close()
    store = SqliteStore(path, durability=durability)
    Line(store, "later").save()
    store.close()
    path.unlink()
    assert timelines(path) == {"copied", "later"}


FORGETFUL = """
import sys
from hardsave.stores.sqlite import SqliteStore
from hardsave.testing.batches import Line
store = SqliteStore(sys.argv[1])
Line(store, "copied").save()
store._copier.turn()
Line(store, "later").save()
"""


def test_a_program_that_ends_and_closes_nothing_leaves_what_was_not_copied_in_the_wal(
    path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", FORGETFUL, str(path)], check=True)
    path.unlink()
    assert timelines(path) == {"copied", "later"}


def test_who_reads_after_a_crash_moves_nothing_that_is_in_no_backup(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    store = SqliteStore(path)
    Line(store, "copied").save()
    copy(store)
    Line(store, "later").save()
    crashed = ruins.ruined(path, tmp_path / "crashed")
    store.close()
    assert timelines(crashed) == {"copied", "later"}
    crashed.unlink()
    assert timelines(crashed) == {"copied", "later"}


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("spoil", [missed, removed, of_another_version])
def test_a_short_life_builds_a_small_backup_anew_and_leaves_a_large_one_to_others(
    path: Path,
    spoil: Callable[[SqliteStore], None],
    is_large: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copier, "PASS_SECONDS", 60.0)
    store = SqliteStore(path)
    record = Line(store, "first").save()
    store.close()
    store = SqliteStore(path)
    Line(store, "second").save()
    store.commit(Batch(None, an_entry("hide"), changes=Changes(hide=[record.id])))
    spoil(store)
    monkeypatch.setattr(copier, "LAST_PASS_BYTES", 0 if is_large else 1 << 20)
    store.close()
    copied = backup_file.peek(str(path))
    assert (copied is not None and copied.number == 3) is not is_large


def test_one_copies_for_all_and_another_follows(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    Line(first, "first").save()
    assert eventually(lambda: number(path) == 1)
    line = Line(second, "second")
    line.save()
    assert eventually(lambda: number(path) == 2)
    assert (is_elected(first), is_elected(second)) == (True, False)
    first.close()
    line.save()
    assert eventually(lambda: number(path) == 3)
    assert is_elected(second)
    second.close()


def is_elected(store: SqliteStore) -> bool:
    assert store._copier is not None
    return store._copier._is_elected


def test_a_copier_whose_lock_was_removed_feeds_no_more(path: Path) -> None:
    """There may be another by now: two would be in each other's way."""
    first, second = SqliteStore(path), SqliteStore(path)
    copiers = [each._copier for each in (first, second) if each._copier is not None]
    for ours in copiers:
        ours.turn()
        assert ours._is_elected
        path.with_name(path.name + "-backup-lock").unlink()
    for ours in reversed(copiers):
        ours.turn()
    assert [ours._is_elected for ours in copiers] == [False, True]
    for store in (first, second):
        store.close()


def test_another_process_takes_over_from_one_that_was_killed(path: Path) -> None:
    def work(child: Child) -> None:
        mine = SqliteStore(path)
        Line(mine, "child").save()
        eventually(lambda: mine._copier is not None and mine._copier._is_elected)
        child.tell()
        child.wait()

    child = Child(work)
    child.hear()
    store = SqliteStore(path)
    line = Line(store)
    line.save()
    os.kill(child.pid, signal.SIGKILL)
    assert child.end() == -signal.SIGKILL
    line.save()
    assert eventually(lambda: number(path) == 3)
    assert eventually(lambda: store.verify() == [])
    store.close()


def test_no_thread_crosses_a_fork(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store)
    line.save()

    def work(_: Child) -> None:
        assert not backup_threads()
        Line(store, "child").save()
        assert len(backup_threads()) == 1
        store.close()

    child = Child(work)
    line.save()
    assert child.end() == 0
    store.close()
    assert number(path) in (2, 3)  # the rest: the next one
    again = SqliteStore(path)
    Line(again, "again").save()
    again.close()
    assert number(path) == 4


def test_a_backup_that_fails_fails_no_save_and_is_reported_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(row_feed, "build", fail)
    store = SqliteStore(path)
    assert store._copier is not None
    line = Line(store)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            line.save()
            store._copier.turn()
    told = [record for record in caplog.records if "not backed up" in record.message]
    assert len(told) == 1
    monkeypatch.undo()
    line.save()
    store.close()
    assert number(path) == 4


def test_a_backup_that_cannot_be_opened_is_told_in_words_and_not_by_a_traceback(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(path)
    Path(f"{path}-backup").mkdir()
    with caplog.at_level(logging.ERROR):
        Line(store).save()
        store.close()
    (told,) = (record for record in caplog.records if "not backed up" in record.message)
    assert "-backup cannot be opened" in told.message
    assert not told.exc_info


def test_a_store_without_a_backup_has_none(path: Path) -> None:
    others = backup_threads()
    store = SqliteStore(path, backup=False)
    Line(store).save()
    assert backup_threads() <= others
    store.close()
    assert not os.path.exists(backup_file.path_of(str(path)))


def test_a_file_that_was_put_in_its_place_is_not_copied(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copier, "PASS_SECONDS", 60.0)  # nothing is copied before it is closed
    store = SqliteStore(path)
    Line(store).save()
    other = SqliteStore(path.with_name("other.db"))
    Line(other, "foreign").save()
    Line(other, "foreign too").save()
    other.close()
    os.replace(path.with_name("other.db"), path)
    before = path.read_bytes()
    store.close()
    assert path.read_bytes() == before
    assert number(path) == 0


@pytest.mark.parametrize("has_backup", [False, True])
def test_a_file_that_is_put_in_its_place_while_it_is_looked_at_is_not_touched(
    path: Path, monkeypatch: pytest.MonkeyPatch, has_backup: bool
) -> None:
    """A connection that closes a file moves its WAL into it: here ours, into another's file."""
    monkeypatch.setattr(copier, "PASS_SECONDS", 60.0)  # no thread looks but this one
    store = SqliteStore(path)
    assert store._copier is not None
    Line(store).save()
    if has_backup:
        store._copier.turn()
        store._copier._disconnect()
        Line(store, "later").save()
    other = SqliteStore(path.with_name("other.db"))
    for turn in range(5):
        Line(other, f"foreign {turn}").save()
    other.close()
    before = path.with_name("other.db").read_bytes()
    elect = Copier._elect

    def late(copier: Copier) -> bool:
        with contextlib.suppress(FileNotFoundError):  # at its second look
            os.replace(path.with_name("other.db"), path)
        return elect(copier)

    monkeypatch.setattr(Copier, "_elect", late)
    known = number(path)
    store._copier.turn()
    store.close()
    assert path.read_bytes() == before
    assert number(path) == known


def test_a_backup_that_is_locked_for_a_moment_is_waited_for(store: SqliteStore) -> None:
    """As by the process that closes it last, or recovers its WAL."""
    Line(store).save()
    assert store._copier is not None
    store._copier.turn()
    copied = backup_file.peek(store.path)
    assert copied is not None
    store.close()

    def work(child: Child) -> None:
        path = backup_file.path_of(store.path)
        other = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs="cksmvfs")
        other.pragma("locking_mode", "exclusive")
        other.execute("BEGIN IMMEDIATE; CREATE TABLE more (number)")
        child.tell()
        time.sleep(0.2)
        other.execute("ROLLBACK")
        other.close()

    child = Child(work)
    child.hear()
    assert backup_file.peek(store.path) == copied
    assert child.end() == 0


def test_a_backup_cannot_be_opened_as_a_store(path: Path) -> None:
    store = SqliteStore(path)
    Line(store).save()
    store.close()
    with pytest.raises(Exception, match="another program"):
        SqliteStore(backup_file.path_of(str(path)))


def test_the_backup_is_for_its_owner_only(path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqliteStore(path)
        Line(store).save()
        assert eventually(lambda: number(path) == 1)
        modes = {}
        for file in path.parent.iterdir():
            with contextlib.suppress(FileNotFoundError):  # some come and go
                modes[file.name] = file.stat().st_mode & 0o777
        assert {path.name, backup_file.path_of(path.name)} <= set(modes)
        assert set(modes.values()) == {0o600}
        store.close()
    finally:
        os.umask(before)


def test_a_backup_that_misses_changes_when_the_wal_is_moved_is_built_by_the_next_turn(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copier, "WAL_BYTES", 0)
    line = Line(store)
    line.save()
    copy(store)
    pause = store._writer.pause

    def late() -> contextlib.AbstractContextManager[None]:
        store._writer.apply(lambda connection: (copier._skip(connection), None)[1])
        return pause()

    with monkeypatch.context() as patch:
        patch.setattr(store._writer, "pause", late)
        line.save()
        copy(store)
    line.save()
    copy(store)
    assert_same(store)


def test_a_reader_that_stays_costs_no_commit_a_turn_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reader reads cannot be moved, however often that is tried."""
    monkeypatch.setattr(copier, "WAL_BYTES", 100_000)
    monkeypatch.setattr(merge.Merger, "saw", lambda *_: None)
    store = SqliteStore(path)
    ours = store._copier
    assert ours is not None
    line = Line(store)
    line.save()
    copy(store)
    pauses: list[int] = []
    pause = store._writer.pause

    def counted() -> contextlib.AbstractContextManager[None]:
        pauses.append(1)
        return pause()

    monkeypatch.setattr(store._writer, "pause", counted)
    monkeypatch.setattr(ours._wake, "wait", lambda _: ours._stop.wait(60))  # only this one
    monkeypatch.setattr(ours._wake, "set", ours.turn)
    with contextlib.closing(store._connect()) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM checkpoints").fetchall()
        for _ in range(200):
            line.save()
        size = store._writer.wal_bytes
    assert size > 1_000_000
    assert 1 < len(pauses) <= size // 100_000
    ours.turn()
    line.save()
    assert store._writer.wal_bytes < 100_000  # it was moved, and begins anew
    store.close()


def test_a_wal_is_emptied_once_the_backup_that_another_process_feeds_has_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)  # it is fed only here
    monkeypatch.setattr(copier, "PASS_SECONDS", 0.1)
    elected, store = SqliteStore(path), SqliteStore(path)
    assert elected._copier is not None
    Line(elected, "theirs").save()
    elected._copier.turn()
    Line(store, "ours").save()
    store.compact(refs_of)
    assert os.path.getsize(f"{path}-wal") > 0
    elected._copier.turn()
    store.compact(refs_of)
    assert os.path.getsize(f"{path}-wal") == 0
    store.close()
    elected.close()


def test_a_save_does_not_wait_for_a_backup_whose_feeder_is_stuck(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was stopped by a signal: only who wants the room of the WAL finds that out."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    monkeypatch.setattr(copier, "PASS_SECONDS", 0.2)
    stuck, store = SqliteStore(path), SqliteStore(path)
    assert stuck._copier is not None
    Line(stuck, "theirs").save()
    stuck._copier.turn()
    Line(store, "ours").save()
    pause = store._writer.pause
    paused: list[bool] = []
    waits: list[bool] = []

    @contextlib.contextmanager
    def noted() -> Iterator[None]:
        with pause():
            paused.append(True)
            yield
            paused.append(False)

    def sleep(seconds: float) -> None:
        waits.append(paused[-1:] == [True])
        time.sleep(seconds)

    monkeypatch.setattr(store._writer, "pause", noted)
    monkeypatch.setattr(copier, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    store.compact(refs_of)
    assert os.path.getsize(f"{path}-wal") > 0
    assert paused
    assert set(waits) == {False}
    store.close()
    stuck.close()


def test_others_go_on_for_most_of_the_time_until_a_busy_store_is_copied(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    busy, store = SqliteStore(path), SqliteStore(path)
    assert busy._copier is not None
    feed, line = busy._copier.turn, Line(busy)
    line.save()
    feed()
    Line(store, "ours").save()
    waits: list[tuple[float, bool]] = []
    pause = store._writer.pause
    paused: list[bool] = []

    @contextlib.contextmanager
    def noted() -> Iterator[None]:
        with pause():
            paused.append(True)
            yield
            paused.clear()

    def sleep(seconds: float) -> None:
        waits.append((seconds, bool(paused)))
        feed()
        if not paused:
            line.save()

    monkeypatch.setattr(store._writer, "pause", noted)
    monkeypatch.setattr(copier, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    store.compact(refs_of)
    assert os.path.getsize(f"{path}-wal") == 0
    assert waits == [(0.025, False), (0.35, False), (0.025, True)]
    monkeypatch.undo()
    store.close()
    busy.close()
