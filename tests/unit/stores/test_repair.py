"""What can be read is saved; what cannot is named; nothing is deleted."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Corrupt, Misuse, NotFound, Unavailable
from hardsave.objects.records import Id
from hardsave.stores import packs
from hardsave.stores.base import Batch, Changes
from hardsave.stores.results import Report
from hardsave.stores.sqlite import SqliteStore, connection
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.testing.batches import Line, a_note, an_entry
from tests.unit.stores import ruins
from tests.unit.stores.ruins import SAVES, assert_intact, beside, flip, overwrite, told, url


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.built(tmp_path_factory.mktemp("original") / "store.db")


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return ruins.ruined(original, tmp_path / "copy")


@pytest.fixture
def alone(path: Path) -> Path:
    """Without a backup."""
    beside(path, "-backup").unlink()
    return path


def change(path: Path, *statements: str) -> None:
    """Behind the back of the store, with valid page checksums."""
    direct = connection.connect(str(path), "power", create=False)
    direct.pragma("foreign_keys", 0)
    for statement in statements:
        direct.execute(statement)
    direct.close()


def test_a_sound_store_is_left_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    assert hardsave.repair(url(path)) == Report(SAVES + 1, 0, (), None)
    assert path.read_bytes() == before
    assert_intact(path)


def test_a_store_that_lost_everything_comes_from_its_backup(path: Path) -> None:
    overwrite(path)
    report = hardsave.repair(url(path))
    assert report.ok
    assert report.set_aside is not None
    assert Path(report.set_aside).read_bytes().startswith(b"garbage")
    assert_intact(path)
    assert told(path, "repair")[0]["source"] == "backup"


def test_a_store_without_its_index_gets_it_back(path: Path) -> None:
    path.unlink()
    SqliteStore(path).close()  # taken over, and indexed to the last object
    beside(path, "-backup").unlink()
    change(path, "DELETE FROM objects")
    with hardsave.open(url(path)) as vault:
        assert not vault.store.verify().ok
        assert vault.store.repair().ok
        assert vault.store.verify().ok
    assert_intact(path)


def test_an_index_row_that_leads_nowhere_is_named_and_goes(alone: Path) -> None:
    change(alone, "INSERT INTO objects (user, prefix, pack) VALUES (0, 81985529216486895, 1)")
    with hardsave.open(url(alone)) as vault:
        (fault,) = vault.store.verify().faults
        assert "02468acf13579bd" in fault
        vault.store.repair()
        assert vault.store.verify().ok


def test_a_head_that_is_gone_falls_back_to_the_newest_that_is_not(alone: Path) -> None:
    newest = "(SELECT max(number) FROM checkpoints WHERE timeline = 1)"
    change(alone, f"DELETE FROM checkpoints WHERE number = {newest}")  # noqa: S608 # a test
    report = hardsave.repair(url(alone))
    assert any("head of timeline 'main'" in fault for fault in report.faults)
    with hardsave.open(url(alone)) as vault:
        line = vault.timeline("main")
        assert line.load() == ruins.state(SAVES - 1)
        assert line.save({}).seq == SAVES + 1  # a number is never given out twice


def test_a_timeline_that_lost_its_row_gets_a_name(alone: Path) -> None:
    change(alone, "DELETE FROM timelines WHERE name = 'main'")
    report = hardsave.repair(url(alone))
    assert any("'recovered-1'" in fault for fault in report.faults)
    with hardsave.open(url(alone)) as vault:
        assert vault.timeline("recovered-1").load() == ruins.state(SAVES)


def forge(path: Path, victim: int) -> None:
    """Change the state of one checkpoint beneath valid page checksums."""
    direct = connection.connect(str(path), "power", create=False)
    sql = "SELECT root FROM checkpoints WHERE timeline = 1 AND seq = ?"
    root: Any = direct.execute(sql, (victim,)).get
    rows: list[Any] = direct.execute("SELECT id, directory, body, size FROM packs").fetchall()
    for id, directory, body, size in rows:
        objects = packs.unpack(directory, body, size)
        if root in objects:
            objects[root] = objects[root][:-1] + b"!"
            (made,) = packs.pack(objects.items(), target=None)
            direct.execute("UPDATE packs SET body = ? WHERE id = ?", (made.body, id))
    direct.close()


def test_an_object_that_does_not_match_its_hash_comes_from_the_backup(path: Path) -> None:
    forge(path, 7)
    report = hardsave.repair(url(path))
    assert report.set_aside is not None
    assert not any("has lost something" in fault for fault in report.faults)
    assert_intact(path)


def test_a_checkpoint_that_loses_something_is_named(alone: Path) -> None:
    forge(alone, 7)
    report = hardsave.repair(url(alone))
    named = [fault for fault in report.faults if "has lost something" in fault]
    assert len(named) == 1
    assert "(main:7)" in named[0]
    with hardsave.open(url(alone)) as vault:
        assert vault.timeline("main").load("main:8") == ruins.state(8)


@pytest.mark.parametrize("seed", range(4))
def test_without_a_backup_what_can_be_read_is_kept(alone: Path, seed: int) -> None:
    """A flipped bit: the page is read without its checksum, or what was on it is named."""
    dice = random.Random(seed)
    flip(alone, dice.randrange(4096 * 8, alone.stat().st_size * 8))
    report = hardsave.repair(url(alone))
    with hardsave.open(url(alone)) as vault:
        line = vault.timeline("main")
        assert len(line) >= SAVES - 10
        wrong = sum(not is_right(line, each.id, each.seq) for each in line.checkpoints(limit=99))
        assert wrong == 0 or report.faults or report.unchecked
        line.save(ruins.state(1), expect=hardsave.ANY_HEAD)
        assert line.load() == ruins.state(1)


def is_right(line: hardsave.Timeline, ref: str, number: int) -> bool:
    try:
        return bool(line.load(ref) == ruins.state(number))
    except hardsave.HardsaveError:
        return False


def test_tombstones_are_honoured(path: Path) -> None:
    store = SqliteStore(path)
    victim: Any = (
        store._connect().execute("SELECT id FROM checkpoints WHERE timeline = 1 AND seq = 3").get
    )
    store.close()
    beside(path, "-backup").rename(beside(path, "-old"))
    store = SqliteStore(path, backup=False)
    store.commit(Batch(None, an_entry("drop"), changes=Changes(drop=[victim])))
    store.close()
    beside(path, "-old").rename(beside(path, "-backup"))  # it has not heard of that
    direct = connection.connect(str(path), "power", create=False)
    page: Any = direct.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'packs'").get
    direct.close()
    flip(path, ((page - 1) * connection.PAGE_BYTES + 2_000) * 8)
    hardsave.repair(url(path))
    store = SqliteStore(path)
    assert store.checkpoint(None, victim) is None
    assert store.tombstone(None, victim) is not None
    store.close()


def test_nothing_to_repair_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store at"):
        hardsave.repair(url(tmp_path / "nothing.db"))
    with pytest.raises(Misuse, match="repaired"):
        hardsave.repair("memory://")


def test_a_store_that_another_process_has_open_is_not_repaired(path: Path) -> None:
    with hardsave.open(url(path)), pytest.raises(Unavailable, match="has it open"):
        hardsave.repair(url(path))


def test_a_vault_goes_on_after_its_repair(path: Path) -> None:
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        line.append({"turn": 1})
        assert vault.store.repair().ok
        line.append({"turn": 2})
        assert line.load()["turn"] == 2


def test_a_store_in_memory_has_nothing_to_repair() -> None:
    with hardsave.open("memory://") as vault:
        vault.timeline("main").save({})
        assert vault.store.repair() == Report(1, 0, (), None)


def test_a_header_that_only_the_wal_still_has_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path, backup=False)
    line = Line(store)
    saved = [line.save().id for _ in range(5)]
    copy = tmp_path / "copy"  # as a kill leaves it: everything is in the WAL
    copy.mkdir()
    for suffix in ("", "-wal", "-mark"):
        (copy / f"store.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    store.close()
    with (copy / "store.db").open("r+b") as file:
        file.write(b"garbage!" * 12)
    assert hardsave.repair(url(copy / "store.db")).set_aside is not None
    again = SqliteStore(copy / "store.db")
    assert [record.id for record in again.saved(None, 0, 10)] == saved
    again.close()


def lone_wal(tmp_path: Path, saves: int, *, moved: int = 0) -> tuple[Path, list[Id]]:
    """What is left when the main file of a process that was killed is removed."""
    path = tmp_path / "store.db"
    store = SqliteStore(path, backup=False)
    line = Line(store)
    saved = []
    for number in range(saves):
        if number == moved:
            store._connect().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        saved.append(line.save().id)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "store.db-wal").write_bytes(Path(f"{path}-wal").read_bytes())
    store.close()
    return copy / "store.db", saved


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_lone_wal_that_holds_everything_gives_everything(tmp_path: Path, is_empty: bool) -> None:
    path, saved = lone_wal(tmp_path, 40, moved=-1)
    if is_empty:
        path.touch()
    with pytest.raises(Corrupt, match=r"hardsave\.repair"):
        SqliteStore(path)
    report = hardsave.repair(url(path))
    assert (report.checkpoints, report.faults) == (40, ())
    again = SqliteStore(path)
    assert [record.id for record in again.saved(None, 0, 50)] == saved
    assert again.verify() == []
    again.close()
    assert not list(path.parent.glob("*-pages*"))


def test_a_lone_wal_that_was_cut_gives_what_lies_before(tmp_path: Path) -> None:
    path, saved = lone_wal(tmp_path, 40, moved=-1)
    wal = path.with_name("store.db-wal")
    os.truncate(wal, wal.stat().st_size * 2 // 3)
    report = hardsave.repair(url(path))
    assert 0 < report.checkpoints < 40
    again = SqliteStore(path)
    found = [record.id for record in again.saved(None, 0, 50)]
    assert found == saved[: len(found)]
    again.close()


def test_a_lone_wal_without_the_first_pages_gives_what_is_in_it(tmp_path: Path) -> None:
    path, saved = lone_wal(tmp_path, 3, moved=2)
    assert hardsave.repair(url(path)).ok  # so few rows that each page has all of a table
    again = SqliteStore(path)
    assert [record.id for record in again.saved(None, 0, 50)] == saved
    again.close()
    assert not list(path.parent.glob("*-pages*"))


def test_what_lies_between_the_backup_and_single_pages_of_a_wal_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copier, "saw", lambda copier: None)
    store = SqliteStore(tmp_path / "store.db")
    line = Line(store)
    line.save()
    assert store._copier is not None
    store._copier.turn()
    store.commit(a_note("first"))  # on a page of their own
    store.commit(a_note("second"))
    with store._reading() as reader:
        reader.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    line.save()
    path = ruins.ruined(tmp_path / "store.db", tmp_path / "copy")
    store.close()
    path.unlink()
    report = hardsave.repair(url(path))
    assert report.faults[-1] == "commits between 2 and 3 cannot be read: 2"


def test_where_nothing_can_be_read_the_way_out_is_named_and_leads_out(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path, backup=False)
    Line(store).save()
    store.close()
    path.write_bytes(b"SQLite format 3\0".ljust(8192, b"x"))
    with pytest.raises(Corrupt, match=r"move them and .*store\.db-mark away to begin anew"):
        hardsave.repair(url(path))
    for name in ("store.db", "store.db-mark"):
        path.with_name(name).rename(path.with_name(f"{name}.away"))
    SqliteStore(path).close()
