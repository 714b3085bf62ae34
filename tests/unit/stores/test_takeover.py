"""A damaged store comes back from its backup when it is opened, and says what it lost."""

import logging
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import apsw
import pytest

import hardsave
from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.backup import backup_file, row_feed
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.gc.merge import Merger
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.salvage import takeover
from hardsave.stores.sqlite.salvage.takeover import Plan, Witnesses, decide
from hardsave.testing.batches import Line
from hardsave.timeline.policy import Policy
from tests.unit.stores import ruins
from tests.unit.stores.processes import Child, fresh
from tests.unit.stores.ruins import (
    LATER,
    SAVES,
    assert_intact,
    beside,
    cut,
    flip,
    overwrite,
    set_aside,
    told,
    url,
)

COMMITS = SAVES + 2  # a fork, and a save on it


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.built(tmp_path_factory.mktemp("closed") / "store.db")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.half_copied(tmp_path_factory.mktemp("killed") / "store.db")


@pytest.fixture
def path(closed: Path, tmp_path: Path) -> Path:
    """Copied in full and closed."""
    return ruins.ruined(closed, tmp_path / "copy")


@pytest.fixture
def half(killed: Path, tmp_path: Path) -> Path:
    """The last saves lie in the WAL only."""
    return ruins.ruined(killed, tmp_path / "half")


# Deciding


@pytest.mark.parametrize(
    ("known", "plan"),
    [
        (Witnesses(9, None, 9, True), None),
        (Witnesses(9, None, None, False), None),
        (Witnesses(9, 7, None, False), Plan("backup", 7, False, 9)),
        (Witnesses(0, 7, None, False), Plan("backup", 7, False, 7)),
        (Witnesses(9, 7, 8, True), Plan("store", 8, False, 9)),
        (Witnesses(9, 7, 7, True), Plan("store", 7, False, 9)),
        (Witnesses(9, 7, 5, True), Plan("backup", 7, False, 9)),
        (Witnesses(9, 7, 8, False), Plan("backup", 7, True, 9)),
        (Witnesses(6, 7, 5, False), Plan("backup", 7, True, 7)),
    ],
)
def test_the_best_source_is_taken(known: Witnesses, plan: Plan | None) -> None:
    assert decide(known) == plan


# What the backup held comes back by itself


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    cut(path, 0)


def cut_in_half(path: Path) -> None:
    cut(path, path.stat().st_size // 2 + 77)


def spoil_header(path: Path) -> None:
    flip(path, 3)


def spoil_all_but_the_header(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + random.Random(1).randbytes(len(data) - 4096))


ALL = [remove, empty, cut_in_half, overwrite, spoil_header, spoil_all_but_the_header]


@pytest.mark.parametrize("has_mark", [True, False])
@pytest.mark.parametrize("ruin", ALL)
def test_a_ruined_store_comes_back_whole(
    path: Path, ruin: Callable[[Path], None], has_mark: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ruin(path)
    remains = path.read_bytes() if path.exists() else None
    if not has_mark:
        beside(path, "-mark").unlink()
    with caplog.at_level(logging.ERROR):
        assert_intact(path)
    assert ("no commit is lost" if has_mark else "no commit is known to be lost") in caplog.text
    (entry,) = told(path)
    assert entry["source"] == "backup"
    assert "first_lost" not in entry
    if remains is not None:
        assert (path.parent / set_aside(path)[0]).read_bytes() == remains
    mark = CommitMark(str(beside(path, "-mark"))).read()
    assert mark is not None
    assert mark.number == COMMITS + 2  # with the takeover's own entry, and the next save


@pytest.mark.parametrize("seed", range(6))
def test_a_flipped_bit_is_healed_or_does_no_harm(path: Path, seed: int) -> None:
    dice = random.Random(seed)
    flip(path, dice.randrange(path.stat().st_size * 8))
    read_everything(path)
    with hardsave.open(url(path)) as vault:
        if not vault.store.verify().ok:  # a page that no read has met yet
            vault.store.repair()
    assert_intact(path)


def read_everything(path: Path) -> None:
    """Every read is right, or raises `Corrupt`."""
    with hardsave.open(url(path)) as vault:
        for number in range(1, SAVES + 1):
            try:
                found = vault.timeline("main").load(f"main:{number}")
            except Corrupt:
                continue
            assert found == ruins.state(number)


def test_an_older_copy_of_the_file_is_brought_up_to_date(path: Path) -> None:
    shutil.copy(path, path.with_name("old"))
    with hardsave.open(url(path)) as vault:
        for number in range(SAVES + 1, SAVES + 4):
            vault.timeline("main").save(ruins.state(number))
    shutil.copy(path.with_name("old"), path)
    for suffix in ("-mark", "-wal", "-shm"):
        beside(path, suffix).unlink(missing_ok=True)
    assert_intact(path, SAVES + 3)


def test_users_and_hidden_checkpoints_come_back_as_they_were(path: Path) -> None:
    for user in ("kim", "sam"):
        with hardsave.open(url(path), user=user) as vault:
            vault.timeline("main").save({"of": user})
    path.unlink()
    for user in ("kim", "sam"):
        with hardsave.open(url(path), user=user) as vault:
            assert vault.timeline("main").load() == {"of": user}
            assert vault.store.verify().ok


# What it did not hold is named


@pytest.mark.parametrize("ruin", [remove, overwrite])
def test_saves_that_were_not_copied_are_named(
    half: Path, ruin: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    ruin(half)
    beside(half, "-wal").unlink()
    with caplog.at_level(logging.ERROR):
        assert_intact(half)
    first, last = COMMITS + 1, COMMITS + LATER
    assert f"commits {first} to {last} are lost" in caplog.text
    (entry,) = told(half)
    assert (entry["first_lost"], entry["last_lost"], entry["lost"]) == (first, last, LATER)


@pytest.mark.parametrize("ruin", [remove, empty, overwrite])
def test_a_wal_that_is_lost_costs_what_it_held_and_says_so(
    half: Path, ruin: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    ruin(beside(half, "-wal"))
    with caplog.at_level(logging.ERROR):
        assert_intact(half)
    assert f"to {COMMITS + LATER} are lost" in caplog.text
    assert told(half)[0]["source"] == "store"


@pytest.mark.parametrize("is_empty", [True, False])
@pytest.mark.parametrize("has_mark", [True, False])
def test_what_only_the_wal_of_a_lost_file_holds_comes_back(
    tmp_path: Path,
    is_empty: bool,
    has_mark: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A young store, all of which is still in its WAL."""
    monkeypatch.setattr(Copier, "saw", lambda copier: None)  # it is fed only here
    store = SqliteStore(tmp_path / "store.db")
    line = Line(store)
    saved = [line.save().id for _ in range(5)]
    assert store._copier is not None
    store._copier.turn()
    saved += [line.save().id for _ in range(5)]
    path = ruins.ruined(tmp_path / "store.db", tmp_path / "killed")
    store.close()
    empty(path) if is_empty else path.unlink()
    if not has_mark:
        beside(path, "-mark").unlink()
    with caplog.at_level(logging.ERROR):
        again = SqliteStore(path)
    assert [record.id for record in again.saved(None, 0, 50)] == saved
    assert again.verify() == []
    again.close()
    assert ("no commit is lost" in caplog.text) == has_mark
    assert not list(path.parent.glob("*-pages*"))


@pytest.mark.parametrize("ruin", [remove, empty, overwrite])
def test_what_a_wal_holds_comes_back_without_the_pages_that_lead_there(
    half: Path, ruin: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    ruin(half)
    with caplog.at_level(logging.ERROR):
        assert_intact(half, SAVES + LATER)
    assert "no commit is lost" in caplog.text


def test_what_is_not_known_to_be_lost_is_not_said_to_be_there(
    half: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No file has the saves after the last copy any more."""
    overwrite(half)
    overwrite(beside(half, "-wal"))
    beside(half, "-mark").unlink()
    with caplog.at_level(logging.ERROR):
        assert_intact(half)
    assert "no commit is lost" not in caplog.text
    assert "no commit is known to be lost" in caplog.text
    assert f"commits after {COMMITS} may be lost" in " ".join(told(half)[0]["notes"])


def test_numbers_that_were_lost_are_not_given_out_again(half: Path) -> None:
    beside(half, "-wal").unlink()
    with hardsave.open(url(half)) as vault:
        vault.timeline("main").save({})
        numbers = [each.number for each in vault._context.store.saved(None, COMMITS, 9)]
        assert numbers == [COMMITS + LATER + 2]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT min(pageno) FROM dbstat WHERE name = 'packs' AND pagetype = 'leaf'",
        "SELECT rootpage FROM sqlite_schema WHERE name = 'packs'",
    ],
    ids=["leaf", "root"],
)
def test_what_is_newer_than_the_backup_is_taken_from_the_damaged_file(half: Path, sql: str) -> None:
    """A leaf: what the backup has. The root: all objects are on pages that cannot be checked."""
    SqliteStore(half, backup=False).close()  # moves the WAL into the file
    page = page_of(half, sql)
    flip(half, (page * 4096 - 12) * 8)
    beside(half, "-suspect").touch()
    assert_intact(half, SAVES + LATER)


def page_of(path: Path, sql: str) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute(sql).get)
    finally:
        connection.close()


# Nothing to take over from


def test_without_a_backup_damage_stays_damage(path: Path) -> None:
    beside(path, "-backup").unlink()
    overwrite(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"hardsave\.repair"):
            hardsave.open(url(path))
    assert path.read_bytes() == before
    assert set_aside(path) == []


def test_no_error_points_to_a_backup_that_is_not_there(path: Path) -> None:
    beside(path, "-backup").unlink()
    spoil_all_but_the_header(path)
    with pytest.raises(Corrupt, match=r"is damaged \([^;]*\)\. It has no backup: close it"):
        hardsave.open(url(path))


def test_of_a_damaged_backup_it_is_said_that_it_is_made_anew(path: Path) -> None:
    overwrite(beside(path, "-backup"))
    with hardsave.open(url(path)) as vault:
        (fault,) = vault.store.verify().faults
        assert fault.startswith(f"{beside(path, '-backup')} is damaged")
        assert fault.endswith("; it is made anew with the next commit")
        vault.timeline("main").save(ruins.state(SAVES + 1))
    assert_intact(path, SAVES + 1)


def test_both_damaged_is_an_error_and_never_an_empty_store(path: Path) -> None:
    overwrite(path)
    overwrite(beside(path, "-backup"))
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for has_mark in (True, False):
        if not has_mark:
            beside(path, "-mark").unlink()
        with pytest.raises(Corrupt, match=r"hardsave\.repair"):
            hardsave.open(url(path))
        with pytest.raises(Corrupt, match="nothing can be read"):
            hardsave.repair(url(path))
    path.unlink()
    with pytest.raises(Corrupt):
        hardsave.open(url(path))
    assert beside(path, "-backup").read_bytes() == before["store.db-backup"]


def test_both_damaged_in_different_places_give_one_whole_store(path: Path) -> None:
    """What is in neither is named; here nothing is."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    second = beside(path, "-backup")
    flip(second, (second.stat().st_size - 5000) * 8)
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        readable = [n for n in range(1, SAVES + 1) if is_right(line, n)]
        said = {fault for entry in told(path) for fault in entry["notes"]}
        lost = SAVES - len(readable)
        assert len([note for note in said if "has lost something" in note]) >= lost
        line.save(ruins.state(1), expect=hardsave.ANY_HEAD)
        assert line.load() == ruins.state(1)


def test_commits_that_neither_of_two_damaged_files_can_give_are_named(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with hardsave.open(url(path)) as vault:
        ids = [vault.timeline("many").save({"turn": turn}).id for turn in range(200)]
    overwrite(path)
    second = beside(path, "-backup")
    place = second.read_bytes().index(bytes.fromhex(ids[60].removeprefix("chk_")))
    flip(second, place * 8)
    with hardsave.open(url(path)) as vault:
        there = {each.id for each in vault.timeline("many").checkpoints(limit=500)}
        missing = [id for id in ids if id not in there]
        assert ids[60] in missing
        assert len(there) + len(missing) == 200
    assert [entry["lost"] for entry in told(path)] == [len(missing)]
    assert f"commits {COMMITS + 1 + ids.index(missing[0])} to " in caplog.text


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ([], "no commit is lost"),
        ([7, 8, 9], "commits 7 to 9 are lost"),
        ([2, 3, 9], "3 commits between 2 and 9 are lost"),
    ],
)
def test_no_more_is_said_to_be_lost_than_is(lost: list[int], said: str) -> None:
    assert takeover.loss(lost, is_certain=True) == said


def is_right(line: hardsave.Timeline, number: int) -> bool:
    try:
        found = line.load(f"main:{number}")
    except hardsave.HardsaveError:
        return False
    assert found == ruins.state(number)
    return True


def test_another_store_in_its_place_is_left_alone(path: Path) -> None:
    with hardsave.open(url(path.with_name("other.db"))) as vault:
        vault.timeline("other").save({})
    os.replace(path.with_name("other.db"), path)
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="another store"):
        hardsave.open(url(path))
    assert path.read_bytes() == before
    for suffix in ("-backup", "-mark"):  # the way out that the message names
        beside(path, suffix).unlink()
    with hardsave.open(url(path)) as vault:
        assert [line.name for line in vault.timelines()] == ["other"]


# Another process has it open


def test_a_store_that_another_process_has_open_is_not_taken_over(path: Path) -> None:
    """The process that has it open loses no save that was acknowledged."""

    def work(child: Child) -> None:
        store = SqliteStore(path, backup=False)
        line = Line(store, "mine")
        line.save()
        child.tell()
        child.wait()
        with pytest.raises(Unavailable, match="removed or replaced"):
            line.save()

    child = Child(work)
    child.hear()
    path.rename(path.with_name("away"))
    with pytest.raises(Unavailable, match=rf"process {child.pid} has it open"):
        hardsave.open(url(path))
    child.go()
    assert child.end() == 0
    assert not path.exists()
    path.with_name("away").rename(path)
    with hardsave.open(url(path)) as vault:
        assert vault.timeline("mine").head is not None


def test_a_store_that_is_open_here_is_not_taken_over(path: Path) -> None:
    store = SqliteStore(path)
    path.rename(path.with_name("away"))
    with pytest.raises(Unavailable, match=f"process {os.getpid()}"):
        SqliteStore(path)
    store.close()
    with hardsave.open(url(path)) as vault:
        assert len(vault.timeline("main")) == SAVES


# In the middle of use


def test_a_damaged_object_is_read_from_the_backup(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage_packs(path)
    with hardsave.open(url(path)) as vault, caplog.at_level(logging.ERROR):
        line = vault.timeline("main")
        for number in (1, SAVES):
            assert line.load(f"main:{number}") == ruins.state(number)
        assert not vault.store.verify().ok  # the damage itself is not hidden
    assert caplog.text.count("read from the backup") == 1


def test_damage_that_was_met_is_healed_by_the_next_to_open(path: Path) -> None:
    damage_packs(path)
    with hardsave.open(url(path)) as vault:
        vault.timeline("main").load()
    assert beside(path, "-suspect").exists()
    assert_intact(path)
    assert not beside(path, "-suspect").exists()


def damage_packs(path: Path) -> None:
    """The page checksums of all packs but the last fail."""
    import apsw

    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT pageno FROM dbstat WHERE name = 'packs' AND pagetype != 'internal'"
    pages = [int(row[0]) for row in connection.execute(sql)]
    connection.close()
    for page in pages[:-1]:
        flip(path, (page * 4096 - 100) * 8)


def test_an_object_whose_second_copy_is_damaged_too_is_corrupt(path: Path) -> None:
    damage_packs(path)
    with hardsave.open(url(path)) as vault:
        second = beside(path, "-backup")
        data = second.read_bytes()
        second.write_bytes(data[:8192] + bytes(len(data) - 8192))
        with pytest.raises(Corrupt):
            vault.timeline("main").load()


def test_a_suspicion_without_cause_is_dropped(path: Path) -> None:
    beside(path, "-suspect").touch()
    SqliteStore(path).close()
    assert not beside(path, "-suspect").exists()
    assert set_aside(path) == []


# A tool that knows no checksums


def write_with_another_tool(path: Path) -> None:
    """To open the file writable is enough: closing it moves the WAL into it."""
    other = sqlite3.connect(path)
    other.execute("SELECT count(*) FROM checkpoints").fetchall()
    other.execute("PRAGMA user_version = 2")
    other.close()


def test_what_another_tool_did_to_a_copied_store_is_healed(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("UPDATE checkpoints SET description = description")
    other.commit()
    other.close()
    beside(path, "-suspect").touch()
    assert_intact(path)


def test_what_another_tool_did_to_the_rest_is_for_repair(half: Path) -> None:
    write_with_another_tool(half)
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"without a valid checksum.*repair"):
            hardsave.open(url(half))
    report = hardsave.repair(url(half))
    assert report.faults == ()
    assert report.unchecked > 0
    assert report.set_aside is not None
    assert_intact(half, SAVES + LATER)


# A crash in the middle


def test_a_takeover_that_was_broken_off_is_finished(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    overwrite(path)

    def die(path: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(takeover, "put_in_place", die)
    with pytest.raises(KeyboardInterrupt):
        hardsave.open(url(path))
    assert beside(path, "-takeover").exists()
    monkeypatch.undo()
    with caplog.at_level(logging.ERROR):
        assert_intact(path)
    assert "broken off is finished" in caplog.text
    assert len(set_aside(path)) == 1


def test_a_takeover_that_did_not_get_far_leaves_everything_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overwrite(path)
    before = path.read_bytes()

    def die(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("hardsave.stores.sqlite.salvage.rebuild.sync", die)
    with pytest.raises(Unavailable):
        hardsave.open(url(path))
    assert path.read_bytes() == before
    assert not beside(path, "-takeover").exists()
    monkeypatch.undo()
    assert_intact(path)


def test_the_backup_follows_the_new_file(path: Path) -> None:
    overwrite(path)
    SqliteStore(path).close()
    old = row_feed.open_for_feeding(str(path), lambda: False, lambda: True)
    with pytest.raises(row_feed.Outdated):  # the new file is not what it was copied from
        row_feed.feed(old)
    old.close()
    assert_intact(path)
    copied = backup_file.peek(str(path))
    assert copied is not None
    assert copied.number == COMMITS + 2
    overwrite(path)
    assert_intact(path, SAVES + 1)
    assert len(told(path)) == 2


@pytest.mark.parametrize(
    "error", [apsw.IOError("disk I/O error"), apsw.CantOpenError("unable to open database file")]
)
def test_a_disk_that_fails_for_a_moment_is_not_taken_for_a_backup_that_is_of_no_use(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: apsw.Error
) -> None:
    def fail(connection: apsw.Connection) -> None:
        raise error

    spoil_header(path)
    with monkeypatch.context() as patch:
        patch.setattr(backup_file, "copied", fail)
        with pytest.raises(Unavailable):
            hardsave.open(url(path))
    assert set_aside(path) == []
    assert_intact(path)


# What was done to earlier rows after the backup's last pass


def _operate(path: Path, what: str) -> None:
    fresh(_OPERATED, str(path), what)


_OPERATED = """
import os, sys
from pathlib import Path
from unittest import mock
import hardsave
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.gc.merge import Merger
from hardsave.timeline.policy import Policy
from tests.unit.stores import ruins
mock.patch.object(Copier, "saw").start()
mock.patch.object(Merger, "_count").start()
vault = hardsave.open(ruins.url(Path(sys.argv[1])))
line = vault.timeline("main")
if sys.argv[2] == "rewind":
    line.rewind("main:5")
elif sys.argv[2] == "delete":
    vault.delete("main:5")
elif sys.argv[2] == "delete a timeline":
    vault.timeline("fork").delete()
elif sys.argv[2] == "complete":
    with vault.tasks.attempt("first"):
        pass
elif sys.argv[2] == "undo":
    line.rewind("main:5")
    line.rewind("main:8")
    line.undo()
elif sys.argv[2] in ("gc", "compact"):
    ruins._fill(vault, ruins.SAVES + 1, ruins.SAVES + ruins.LATER)
    getattr(vault.store, sys.argv[2])()
elif sys.argv[2] == "save":
    line.save({"again": True})
elif sys.argv[2] == "forget":
    vault.tasks.forget(keep_completed=0)
    vault.tasks.add("second")
else:
    for verb in sys.argv[2].split(" and "):
        if verb == "import":
            vault.import_file(sys.argv[1] + ".export")
        else:
            vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=20)))
os._exit(0)
"""


def _standing(path: Path) -> dict[str, list[str]]:
    with hardsave.open(url(path)) as vault:
        assert vault.store.verify().ok
        return {
            line.name: [str(line.head and line.head.id), *(each.id for each in found)]
            for line in map(vault.timeline, ("main", "fork"))
            for found in [line.checkpoints(limit=99)]
        }


@pytest.mark.parametrize("ruin", [remove, cut_in_half, overwrite, spoil_header])
@pytest.mark.parametrize("what", ["rewind", "delete", "delete a timeline", "undo", "retain"])
def test_an_operation_that_only_the_wal_has_stays_done(
    path: Path, tmp_path: Path, what: str, ruin: Callable[[Path], None]
) -> None:
    _operate(path, what)
    expected = _standing(ruins.ruined(path, tmp_path / "sound"))
    ruin(path)
    assert _standing(path) == expected


@pytest.mark.parametrize("what", ["gc", "compact"])
def test_what_was_saved_right_before_a_vacuum_comes_back(path: Path, what: str) -> None:
    _operate(path, what)
    path.unlink()
    assert_intact(path, SAVES + LATER)


def test_a_timeline_that_a_save_has_brought_back_is_there(path: Path) -> None:
    with hardsave.open(url(path)) as vault:
        vault.timeline("main").delete()
    _operate(path, "save")
    path.unlink()
    with hardsave.open(url(path)) as vault:
        assert "main" in [line.name for line in vault.timelines()]
        assert vault.timeline("main").load() == {"again": True}


@pytest.mark.parametrize("is_dropped", [True, False])
@pytest.mark.parametrize("what", ["import", "retain and import", "import and retain"])
def test_a_checkpoint_that_was_dropped_and_came_back_is_there_once(
    path: Path, tmp_path: Path, what: str, is_dropped: bool
) -> None:
    """An import gives it another number: by its id it is in the backup, in the WAL, or in both."""
    with hardsave.open(url(path)) as vault:
        vault.export_file(f"{path}.export")
        if is_dropped:
            vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=20)))
    _operate(path, what if is_dropped else f"retain and {what}")
    expected = _standing(ruins.ruined(path, tmp_path / "sound"))
    path.unlink()
    assert _standing(path) == expected
    assert "first_lost" not in told(path)[0]
    with hardsave.open(url(path)) as vault:
        vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=10)))
        assert vault.store.verify().ok


def test_a_task_has_nothing_of_one_that_was_forgotten_in_its_place(path: Path) -> None:
    with hardsave.open(url(path)) as vault:
        vault.tasks.add("first")
        with vault.tasks.attempt("first") as attempt:
            attempt.step("one", lambda: "of the first")
    _operate(path, "forget")
    path.unlink()
    with hardsave.open(url(path)) as vault:
        assert [task.id for task in vault.tasks.find()] == ["second"]
        assert [each.kind for each in vault.tasks.history("second")] == ["added"]
        assert vault._context.store.journal(None, "second", 1) == []
        assert vault.store.verify().ok


def test_a_task_does_not_wait_for_one_that_only_the_wal_knows_to_be_completed(path: Path) -> None:
    with hardsave.open(url(path)) as vault:
        vault.tasks.add("first")
        vault.tasks.add("second", after=["first"])
    _operate(path, "complete")
    path.unlink()
    with hardsave.open(url(path)) as vault:
        assert vault.tasks.get("first").state == "completed"
        with vault.tasks.attempt("second"):
            pass


MANY = 120


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "store.db"
    with mock.patch.object(Merger, "_count"), hardsave.open(url(path)) as vault:
        vault.timeline("main").save({"n": 0})
        vault.delete("main:1")  # which makes the indexes of the log, and changes the first page
        for number in range(1, MANY):
            vault.timeline("main").save({"n": number})
    return path


@pytest.fixture
def many(original: Path, tmp_path: Path) -> Path:
    """Rows on so many pages that a WAL has but the last of them; and not the first of the file."""
    return ruins.ruined(original, tmp_path / "many")


def _assert_all_but(path: Path, *gone: int) -> None:
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        expected = [seq for seq in range(MANY, 0, -1) if seq not in gone]
        assert [each.seq for each in line.checkpoints(limit=999)] == expected
        assert all(line.load(f"main:{seq}") == {"n": seq - 1} for seq in expected)


@pytest.mark.parametrize("ruin", [remove, overwrite])
def test_a_repair_takes_from_the_backup_what_the_wal_alone_does_not_have(
    many: Path, ruin: Callable[[Path], None]
) -> None:
    _operate(many, "delete")
    ruin(many)
    assert hardsave.repair(url(many)).ok
    assert told(many, "repair")[0]["source"] == "backup and store"
    _assert_all_but(many, 1, 5)


def _spoil(path: Path, *pages: int) -> None:
    for page in pages:
        flip(path, (page * 4096 - 100) * 8)


def _leaves(path: Path, table: str) -> list[int]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
    try:
        return [int(row[0]) for row in connection.execute(sql, (table,))]
    finally:
        connection.close()


@pytest.mark.parametrize("is_backup_behind", [True, False])
def test_a_repair_of_single_pages_takes_from_each_file_what_the_other_does_not_have(
    many: Path, is_backup_behind: bool
) -> None:
    files = [beside(many, "-backup"), many]
    behind, ahead = files if is_backup_behind else files[::-1]
    _spoil(behind, 1, _leaves(behind, "checkpoints")[-1])
    _spoil(ahead, 1, _leaves(ahead, "checkpoints")[0])
    assert hardsave.repair(url(many)).ok
    _assert_all_but(many, 1)


@pytest.mark.parametrize("is_repair", [True, False])
@pytest.mark.parametrize("table", ["checkpoints", "packs"])
def test_a_page_of_the_backup_that_leads_to_others_takes_none_of_these_along(
    many: Path, table: str, is_repair: bool
) -> None:
    second = beside(many, "-backup")
    sql = f"SELECT rootpage FROM sqlite_schema WHERE name = '{table}'"  # noqa: S608 # a test
    _spoil(second, page_of(second, sql))
    many.unlink()
    if is_repair:
        assert hardsave.repair(url(many)).ok
    _assert_all_but(many, 1)
    assert not list(many.parent.glob("*-pages*"))


def test_keys_that_cannot_be_read_are_not_tried_for_ever(many: Path) -> None:
    _operate(many, "delete")
    SqliteStore(many, backup=False).close()  # moves the WAL into the file
    _spoil(many, _leaves(many, "checkpoints")[-1])
    beside(many, "-suspect").touch()
    _assert_all_but(many, 1, 5)
