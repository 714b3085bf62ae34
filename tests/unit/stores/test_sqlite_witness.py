"""What was acknowledged is there, or an error says that it is not."""

import contextlib
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import hardsave
from hardsave.errors import Corrupt, HardsaveError, Unavailable
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.backup import copier
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.connection import PAGE_BYTES, wal_bytes_of
from hardsave.stores.sqlite.gc.merge import Merger
from hardsave.stores.sqlite.open import file_identity
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.open.file_identity import FileIdentity
from hardsave.stores.sqlite.salvage.wal_reader import dropped
from hardsave.stores.sqlite.write import writer
from hardsave.testing.batches import Line, trace
from tests.unit.moments import another_moment
from tests.unit.stores import ruins
from tests.unit.stores.processes import Child, eventually


@pytest.fixture(autouse=True)
def unmerged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread merges packs, and so reads or writes, in the moment in which a file is cut."""
    monkeypatch.setattr(Merger, "_count", lambda *_: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with three commits, and without a backup that would take over."""
    path = tmp_path / "store.db"
    store = SqliteStore(path, backup=False)
    line = Line(store)
    for _ in range(3):
        line.save()
    store.close()
    return path


def mark_of(path: Path) -> Path:
    return path.with_name(path.name + "-mark")


def test_the_mark_follows_every_commit(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(4, 8):
        line = Line(store, f"line {number}")
        line.save()
        found = CommitMark(str(mark_of(path))).read()
        assert found is not None
        assert (found.number, found.relaxed) == (number, False)
    store.close()


def test_a_lock_that_was_removed_is_made_anew_before_the_files_are_judged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others who write hold another one by then, and what they are at looks like damage."""
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.1)
    lock = path.with_name(path.name + "-lock")
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        line = Line(store, "another")
        line.save()
        lock.unlink()
        with contextlib.closing(store._connect()) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        others = FileLock(str(lock))
        others.acquire(1)
        with pytest.raises(Unavailable, match="another process has held"):
            line.save()
        others.close()
        line.save()


def test_a_mark_that_cannot_be_written_is_told_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        mark_of(path).unlink()
        mark_of(path).mkdir()
        store._mark.close()
        for number in range(3):
            Line(store, f"line {number}").save()
        assert len(caplog.records) == 1
        mark_of(path).rmdir()
        Line(store, "the last line").save()
        found = store._mark.read()
    assert "cannot be written" in caplog.text
    assert found is not None
    assert found.number == 7


@pytest.mark.parametrize("remains", [None, b""])
def test_a_store_that_is_gone_is_not_made_anew(path: Path, remains: bytes | None) -> None:
    path.unlink()
    if remains is not None:
        path.write_bytes(remains)
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"3 commits .* delete .*-mark"):
            SqliteStore(path)
    mark_of(path).unlink()  # the way out that the message names
    store = SqliteStore(path)
    assert trace(store) == ([], [], [], (0, 0, 0))
    store.close()


@pytest.fixture
def killed(path: Path, tmp_path: Path) -> Path:
    """What a process has left that was killed after five commits more."""
    where = tmp_path / "killed"
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        line = Line(store, "another")
        for _ in range(5):
            line.save()
        return ruins.ruined(path, where)


@pytest.mark.parametrize("mark", [None, b"", b"HSMK and no more"])
@pytest.mark.parametrize("at", [8, 16, 40, wal_bytes_of(2) + 5, wal_bytes_of(2) + 12])
def test_commits_behind_damage_in_a_wal_are_missed_without_a_mark_too(
    killed: Path, at: int, mark: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    mark_of(killed).unlink()
    if mark is not None:
        mark_of(killed).write_bytes(mark)
    ruins.flip(ruins.beside(killed, "-wal"), 8 * at)
    SqliteStore(killed, backup=False).close()
    assert re.search(
        r"ends at commit [345]: in its WAL [3-9] transactions more are damaged", caplog.text
    )


def test_a_wal_that_is_used_once_more_holds_nothing_behind_its_end(path: Path) -> None:
    with contextlib.closing(SqliteStore(path, backup=False)) as store:
        line = Line(store, "another")
        for _ in range(5):
            line.save()
        with contextlib.closing(store._connect()) as other:
            other.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        assert dropped(str(path)) == 0
        line.save()
        assert dropped(str(path)) == 0
        mark_of(path).unlink()
        SqliteStore(path, backup=False).close()


def test_a_store_that_was_cut_to_rubbish_is_corrupt_and_not_just_another_file(path: Path) -> None:
    path.write_bytes(b"rubbish" * 1000)
    with pytest.raises(Corrupt):
        SqliteStore(path)


def test_an_older_copy_is_noticed(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy")
    store = SqliteStore(path, backup=False)
    Line(store, "other").save()
    store.close()
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(Corrupt, match="ends at commit 3, but commit 4 was acknowledged"):
        SqliteStore(path)


def test_a_mark_that_lags_behind_is_brought_up_to_date(path: Path) -> None:
    mark = CommitMark(str(mark_of(path)))
    mark.write(1, relaxed=False)
    mark.close()
    SqliteStore(path).close()
    found = mark.read()
    assert found is not None
    assert found.number == 3


@pytest.mark.parametrize("damage", [b"", b"x", b"HSMK" + bytes(26), None])
def test_a_damaged_or_missing_mark_is_no_reason_to_refuse(path: Path, damage: bytes | None) -> None:
    mark_of(path).unlink()
    if damage is not None:
        mark_of(path).write_bytes(damage)
    store = SqliteStore(path)
    assert store.count(None, "main") == 3
    store.close()
    found = CommitMark(str(mark_of(path))).read()
    assert found is not None
    assert found.number == 3


def test_what_durability_process_gave_up_in_a_power_loss_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mark = CommitMark(str(mark_of(path)))
    monkeypatch.setattr(mark, "_boot", b"the last")  # eight bytes: an earlier boot
    mark.write(5, relaxed=True)
    mark.close()
    with caplog.at_level(logging.ERROR):
        store = SqliteStore(path, durability="process")
    assert "lost commits 4 to 5" in caplog.text
    assert Line(store, "other").save().number == 4
    store.close()


@pytest.mark.parametrize(("relaxed", "boot"), [(False, b"the last"), (True, None)])
def test_any_other_loss_is_corrupt(
    path: Path, monkeypatch: pytest.MonkeyPatch, relaxed: bool, boot: bytes | None
) -> None:
    mark = CommitMark(str(mark_of(path)))
    if boot is not None:
        monkeypatch.setattr(mark, "_boot", boot)
    mark.write(5, relaxed=relaxed)
    mark.close()
    with pytest.raises(Corrupt, match="commit 5 was acknowledged"):
        SqliteStore(path)


def test_a_mark_that_cannot_be_written_is_reported_and_stops_no_save(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(path)

    def fail(number: int, *, relaxed: bool) -> None:
        raise OSError("no space")

    monkeypatch.setattr(store._mark, "write", fail)
    assert Line(store, "other").save().number == 4
    assert "mark" in caplog.text
    store.close()


@pytest.mark.parametrize("where", ["_mark.write", "_writer._file_identity.check"])
def test_an_alarm_that_goes_off_in_a_save_is_no_failing_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Its handler raises `TimeoutError`, which is an `OSError`."""
    store = SqliteStore(path)

    def alarm(*_: object, **__: object) -> None:
        raise TimeoutError("ten seconds are over")

    *owners, name = where.split(".")
    owner: Any = store
    for each in owners:
        owner = getattr(owner, each)
    with monkeypatch.context() as struck:
        struck.setattr(owner, name, alarm)
        with pytest.raises(TimeoutError, match="ten seconds"):
            Line(store, "other").save()
    Line(store, "another").save()
    store.close()


# While it is open


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    other = SqliteStore(path.with_name("other.db"))
    Line(other, "foreign").save()
    other.close()
    os.replace(path.with_name("other.db"), path)


def remove_everything(path: Path) -> None:
    for file in list(path.parent.iterdir()):
        file.unlink()


def remove_the_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("take_away", [remove, replace, remove_everything, remove_the_folder])
def test_a_store_taken_away_while_open_acknowledges_nothing(
    path: Path, take_away: Callable[[Path], None]
) -> None:
    store = SqliteStore(path)
    line = Line(store, "mine")
    line.save()
    take_away(path)
    for _ in range(2):
        with pytest.raises(Unavailable, match="removed or replaced"):
            line.save()
    store.close()


def test_a_store_put_back_while_open_goes_on(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store, "mine")
    line.save()
    aside = path.with_name("aside")
    path.rename(aside)
    with pytest.raises(Unavailable):
        line.save()
    aside.rename(path)
    line.save()
    store.close()
    again = SqliteStore(path)
    assert again.count(None, "mine") == 2
    again.close()


def test_a_foreign_store_in_its_place_is_left_alone(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store, "mine")
    line.save()
    replace(path)
    with pytest.raises(HardsaveError):
        line.save()
    store.close()
    mark_of(path).unlink()
    for suffix in ("-wal", "-shm", "-backup"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    foreign = SqliteStore(path)
    assert [row.name for row in foreign.timelines(None, None, 9)] == ["foreign"]
    foreign.close()


def test_a_wal_that_is_removed_under_an_open_store_costs_no_acknowledged_save(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path, backup=False)
    line = Line(store)
    saved = [line.save().id for _ in range(5)]
    path.with_name("store.db-wal").unlink()
    for _ in range(2):
        with pytest.raises(Unavailable, match="-wal was removed"):
            store.commit(line.next())
    store.close()
    again = SqliteStore(path)
    assert [record.id for record in again.saved(None, 0, 10)] == saved
    again.close()


def cut_wal(path: Path, share: float) -> None:
    wal = path.with_name(path.name + "-wal")
    os.truncate(wal, int(wal.stat().st_size * share))


@pytest.mark.parametrize("share", [0, 0.5, 0.99])
@pytest.mark.parametrize("saves", [3, 30])  # few are still in the writer's memory
@pytest.mark.parametrize("who", ["the writer", "another"])
def test_a_wal_that_is_cut_under_an_open_store_is_noticed_before_anything_is_lost(
    tmp_path: Path, share: float, saves: int, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would write behind the gap, and copy zeros over the main file in the end."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)  # it is fed only here
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    line = Line(store)
    saved = [line.save().id for _ in range(saves)]
    assert store._copier is not None
    store._copier.turn()
    cut_wal(path, share)
    if who == "the writer":
        for _ in range(2):
            with pytest.raises(Corrupt, match=r"-wal was cut|is damaged"):
                store.commit(line.next())
    else:
        with pytest.raises(Unavailable, match="has to be mended"):
            SqliteStore(path)
    store.close()
    again = SqliteStore(path)
    assert [record.id for record in again.saved(None, 0, 50)] == saved
    assert again.verify() == []
    again.close()


@pytest.fixture
def worn(tmp_path: Path) -> Path:
    """A closed store that has some pages, and a backup that knows all of it."""
    path = tmp_path / "worn.db"
    store = SqliteStore(path)
    line = Line(store)
    for _ in range(60):
        line.save()
    store.close()
    return path


def ids(store: SqliteStore) -> list[bytes]:
    return [record.id for record in store.saved(None, 0, 1_000)]


def ids_of(line: Line) -> list[bytes]:
    return [record.id for record in line.saved]


def quiet(store: SqliteStore) -> Copier:
    """Its copier, which is called only here."""
    assert store._copier is not None
    return store._copier


@pytest.mark.parametrize("share", [0, 0.1, 0.5])
def test_a_store_that_is_cut_while_open_acknowledges_nothing(
    worn: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would go on, and make the file as long as it was, with a hole in it."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    store = SqliteStore(worn)
    line = Line(store, "more")
    line.save()
    quiet(store).turn()
    saved = ids(store)
    os.truncate(worn, int(worn.stat().st_size * share))
    for _ in range(2):
        with pytest.raises(Corrupt, match="was cut while it was open; nothing was saved"):
            store.commit(line.next())
    store.close()
    again = SqliteStore(worn)
    assert ids(again) == saved
    assert again.verify() == []
    again.close()


def test_a_store_that_was_cut_is_noticed_although_its_wal_goes_on_behind_the_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}") as vault:
        for turn in range(100):
            vault.timeline("old").save({"turn": turn, "data": os.urandom(3000)})
    child = os.fork()
    if child == 0:  # dies with commits in its WAL, whose pages lie behind the end of the file
        new = hardsave.open(f"sqlite:///{path}").timeline("new")
        for turn in range(20):
            new.save({"turn": turn, "data": os.urandom(3000)})
        os._exit(0)
    os.waitpid(child, 0)
    os.truncate(path, path.stat().st_size * 3 // 4)
    with caplog.at_level(logging.ERROR), hardsave.open(f"sqlite:///{path}") as vault:
        assert "has been cut short; it was taken over from its backup: no commit" in caplog.text
        turns = [c.state["turn"] for c in vault.timeline("old").checkpoints(limit=200)]
        assert sorted(turns) == list(range(100))
        assert len(vault.timeline("new")) == 20
        assert vault.store.verify().faults == ()


def test_a_file_that_another_process_has_vacuumed_is_no_reason_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}") as vault, hardsave.open(f"sqlite:///{path}") as other:
        vault.timeline("large").save({"data": os.urandom(1 << 20)})
        vault.store.gc()  # which moves it out of the WAL
        line = vault.timeline("small")
        line.save({"turn": 1})
        before = path.stat().st_size
        other.store.purge(timeline="large")
        assert path.stat().st_size < before - (1 << 19)
        line.save({"turn": 2})
        assert vault.store.verify().faults == ()


def test_a_vacuum_piece_by_piece_is_no_reason_to_stop(
    worn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(worn)
    line = Line(store, "more")
    line.save()
    look, pieces = FileIdentity.check, [1, 2, 3]

    def check(file_identity: FileIdentity) -> None:
        if pieces and pieces.pop():
            file_identity._bytes += 1  # another process has made it shorter since
        look(file_identity)

    monkeypatch.setattr(FileIdentity, "check", check)
    line.save()
    assert not pieces
    store.close()


def test_a_store_that_is_overwritten_while_open_is_given_up_by_the_next_copy(
    worn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer has in memory what it needs, and would not notice for long."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    store = SqliteStore(worn)
    line = Line(store, "more")
    line.save()
    quiet(store).turn()
    saved = ids(store)
    file = os.open(worn, os.O_RDWR)  # to close it would take SQLite's locks away
    os.pwrite(file, os.urandom(worn.stat().st_size), 0)
    with contextlib.suppress(Corrupt):  # it may need by now what it has not in memory
        store.commit(line.next())
    quiet(store).turn()
    for _ in range(2):
        with pytest.raises(Corrupt, match="is damaged"):
            store.commit(line.next())
    store.close()
    os.close(file)
    again = SqliteStore(worn)
    assert ids(again)[: len(saved)] == saved
    assert again.verify() == []
    again.close()


def test_whenever_a_store_is_overwritten_nothing_acknowledged_is_lost(
    worn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the backup has not seen is in the WAL: nothing is moved before it was copied."""
    monkeypatch.setattr(copier, "WAL_BYTES", 100_000)
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    store = SqliteStore(worn)
    line = Line(store, "more")
    for turn in range(600):
        line.save()
        if turn % 290 == 289:
            quiet(store).turn()
        if turn % 85 == 84:
            wreck = tmp_path / f"{turn}"
            wreck.mkdir()
            # By another process: to close a file here would take SQLite's locks away.
            subprocess.run(["cp", *map(str, tmp_path.glob("worn.db*")), wreck], check=True)
            ruins.overwrite(wreck / "worn.db")
            again = SqliteStore(wreck / "worn.db")
            assert ids(again)[-turn - 1 :] == ids_of(line)
            assert again.verify() == []
            again.close()
    store.close()


def test_a_store_that_is_copied_over_while_open_acknowledges_nothing(
    worn: Path, tmp_path: Path
) -> None:
    """By an older copy of itself, which is sound: with a newer WAL it is neither old nor new."""
    older = tmp_path / "older.db"
    shutil.copy(worn, older)
    store = SqliteStore(worn)
    line = Line(store, "more")
    for _ in range(60):
        line.save()
    quiet(store).turn()
    store._connect().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    line.save()
    subprocess.run(["cp", older, worn], check=True)
    saved = ids_of(line)
    for _ in range(2):
        with pytest.raises(Corrupt):
            store.commit(line.next())
    store.close()
    again = SqliteStore(worn)
    assert ids(again)[-len(saved) :] == saved
    assert again.verify() == []
    again.close()


def counted_looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What looks at every page have found."""
    looks: list[bool] = []
    is_sound = file_identity._is_sound

    def look(connection: apsw.Connection) -> bool:
        looks.append(is_sound(connection))
        return looks[-1]

    monkeypatch.setattr(file_identity, "_is_sound", look)
    return looks


@pytest.mark.parametrize("how", ["TRUNCATE", "RESTART", "PASSIVE"])
def test_a_wal_that_others_move_is_no_reason_to_look_at_every_page(
    worn: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = counted_looks(monkeypatch)
    one, other = SqliteStore(worn), SqliteStore(worn)
    lines = [Line(one, "one"), Line(other, "other")]
    for turn in range(12):
        for line in lines if turn % 3 else lines[1:]:
            line.save()
        with contextlib.closing(other._connect()) as direct:
            direct.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        another_moment()
        lines[turn % 2].save()
    assert looks == []
    one.close()
    other.close()


def test_a_store_whose_time_was_changed_is_looked_at_and_as_good_as_before(
    worn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for ever: on some file systems the time comes late after each write."""
    looks = counted_looks(monkeypatch)
    store = SqliteStore(worn)
    line = Line(store, "more")
    line.save()
    for moment in range(2 * file_identity.ALARMS):
        os.utime(worn, (moment, moment))
        line.save()
    assert looks == [True] * file_identity.ALARMS
    store.close()


def test_what_was_acknowledged_before_a_file_was_taken_away_is_copied_afterwards(
    worn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    store = SqliteStore(worn)
    line = Line(store, "more")
    line.save()
    quiet(store).turn()
    for _ in range(5):
        line.save()
    saved = ids(store)
    worn.unlink()
    quiet(store).turn()
    with pytest.raises(Unavailable, match="removed or replaced"):
        store.commit(line.next())
    store.close()
    again = SqliteStore(worn)
    assert ids(again) == saved
    assert again.verify() == []
    again.close()


@pytest.mark.parametrize("is_first_to_close", [True, False])
def test_the_index_of_a_wal_removed_under_an_open_store_costs_no_acknowledged_save(
    worn: Path, is_first_to_close: bool
) -> None:
    """A process that opens the store then makes another: they overwrite each other's commits."""
    other = Child(lambda child: save_as_told(child, worn))  # before anything is open here
    mine = SqliteStore(worn)
    line = Line(mine, "mine")
    for _ in range(3):
        line.save()
    worn.with_name("worn.db-shm").unlink()
    other.go()
    other.hear()
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="-shm was removed or replaced"):
                mine.commit(line.next())
        if is_first_to_close:
            mine.close()
    finally:  # a child that is not told to end would never be waited for
        other.go()
        assert other.end() == 0
    mine.close()
    again = SqliteStore(worn)
    assert (again.count(None, "mine"), again.count(None, "theirs")) == (3, 5)
    again.close()


def save_as_told(child: Child, path: Path) -> None:
    child.wait()
    store = SqliteStore(path)
    line = Line(store, "theirs")
    for _ in range(5):
        line.save()
    child.tell()
    child.wait()
    store.close()


def test_a_wal_that_another_has_emptied_is_no_reason_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store, other = SqliteStore(path), SqliteStore(path)
    line = Line(store)
    for _ in range(30):
        line.save()

    def is_emptied() -> bool:  # once the backup has everything
        other.collect(lambda _: ())
        return path.with_name(path.name + "-wal").stat().st_size == 0

    assert eventually(is_emptied)
    line.save()
    other.collect(lambda _: ())
    Line(other, "theirs").save()
    line.save()
    assert store.verify() == []
    store.close()
    other.close()
    again = SqliteStore(path)
    assert len(again.saved(None, 0, 50)) == 33  # 30, and 3 after it was emptied
    again.close()


def test_a_wal_that_is_cut_while_a_commit_returns_is_found_out_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    line = Line(store)
    line.save()
    committed = FileIdentity.committed

    def cut_first(file_identity: FileIdentity, connection: apsw.Connection) -> None:
        cut_wal(path, 0)
        committed(file_identity, connection)

    with monkeypatch.context() as patch:
        patch.setattr(FileIdentity, "committed", cut_first)
        line.save()
    with pytest.raises(Corrupt, match="was cut"):
        store.commit(line.next())
    store.close()


@pytest.fixture
def moving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """A store whose WAL is long with few frames, and that no other process writes to."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    monkeypatch.setattr(Merger, "saw", lambda *_: None)
    store = SqliteStore(tmp_path / "store.db")
    store._writer.long_wal = 30
    yield store
    store.close()


def test_a_long_wal_is_moved_into_the_file_by_a_commit(moving: SqliteStore) -> None:
    line = Line(moving)
    frames = []
    for _ in range(60):
        line.save()
        frames.append(moving._writer._file_identity.frames)
    assert max(frames) < 50
    assert frames[-1] < frames[frames.index(max(frames))]  # it has begun anew
    assert os.path.getsize(moving.path + "-wal") == wal_bytes_of(max(frames))
    assert os.path.getsize(moving.path) > 20 * PAGE_BYTES
    assert moving.verify() == []


def test_a_file_is_known_to_be_as_long_as_it_has_become(moving: SqliteStore) -> None:
    line = Line(moving)
    sizes = {os.path.getsize(moving.path)}
    for _ in range(60):
        line.save()
        sizes.add(os.path.getsize(moving.path))
        assert moving._writer._file_identity._bytes == max(sizes)
    assert len(sizes) > 2


def test_a_wal_that_is_being_read_grows_on_and_begins_anew_afterwards(
    moving: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    line = Line(moving)
    with contextlib.closing(moving._connect()) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM checkpoints").fetchall()
        for _ in range(20):
            line.save()
        assert moving._writer._file_identity.frames > 60  # no writer may begin it anew meanwhile
    for _ in range(2):
        line.save()
    assert moving._writer._file_identity.frames < 30
    assert not caplog.records


def test_what_was_told_of_a_wal_does_not_count_once_it_was_emptied(moving: SqliteStore) -> None:
    line = Line(moving)
    line.save()
    again = line.next()
    moving.commit(again)
    with contextlib.closing(moving._connect()) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for _ in range(2):
        moving.commit(again)  # which is there, and writes nothing
        assert (
            moving._writer._file_identity._wal_bytes == os.path.getsize(moving.path + "-wal") == 0
        )
