"""The file of an SQLite store: how it is opened, and what is refused."""

import contextlib
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import hardsave
from hardsave.errors import Corrupt, Misuse, Unavailable
from hardsave.stores.base import Durability
from hardsave.stores.local import database
from hardsave.stores.sqlite import SqliteStore, connection, schema
from hardsave.stores.sqlite.gc import vacuum
from hardsave.testing.batches import Line, a_note
from tests.unit.stores.processes import Child


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def used(path: Path, commits: int = 3) -> Path:
    """A store that was used and closed, and has no backup that would take over."""
    store = SqliteStore(path, backup=False)
    line = Line(store)
    for _ in range(commits):
        line.save()
    store.close()
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def change(path: Path, *statements: str) -> None:
    """Change a closed store behind its back."""
    direct = connection.connect(str(path), "power", create=False)
    for statement in statements:
        direct.execute(statement)
    direct.close()


# What is in force


@pytest.mark.parametrize(("durability", "synchronous"), [("power", 2), ("process", 1)])
def test_every_connection_has_its_pragmas_in_force(
    path: Path, durability: Durability, synchronous: int
) -> None:
    store = SqliteStore(path, durability=durability)
    Line(store).save()
    for used in (store._writer._connection, *store._free, store._connect()):
        pragmas = {
            name: used.pragma(name)
            for name in ("synchronous", "journal_mode", "foreign_keys", "cell_size_check")
        }
        assert pragmas == {
            "synchronous": synchronous,
            "journal_mode": "wal",
            "foreign_keys": 1,
            "cell_size_check": 1,
        }
        assert used.pragma("mmap_size") == 0
        assert used.pragma("auto_vacuum") == 2
        assert used.reserve_bytes(None, -1) == 8
    store.close()


def test_a_reader_is_among_the_connections_looked_at(store: SqliteStore) -> None:
    store.timeline(None, "main")
    assert store._free


def test_a_pragma_that_does_not_hold_is_not_overlooked() -> None:
    with pytest.raises(Unavailable, match="journal_mode"):
        connection.connect(":memory:", "power", create=True)


def test_the_file_says_whose_it_is(path: Path) -> None:
    used(path)
    with sqlite3.connect(path) as any_tool:
        assert any_tool.execute("PRAGMA application_id").fetchone() == (0x48534156,)
        assert any_tool.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert any_tool.execute("SELECT count(*) FROM checkpoints").fetchone() == (3,)
    any_tool.close()


def test_a_flipped_bit_on_disk_is_an_error_and_not_another_row(path: Path) -> None:
    used(path)
    with sqlite3.connect(path) as any_tool:
        page = any_tool.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'checkpoints'"
        ).fetchone()[0]
        size = any_tool.execute("PRAGMA page_size").fetchone()[0]
    any_tool.close()
    data = bytearray(path.read_bytes())
    data[page * size - 100] ^= 1  # inside a row: rows fill a page from its end
    path.write_bytes(data)
    with pytest.raises(Corrupt, match=r"store\.db"):
        SqliteStore(path).checkpoints_between(None, bytes(12), b"\xff" * 12, 10)


def test_loading_the_checksums_changes_no_default() -> None:
    database.load_checksums()
    names = apsw.vfs_names()
    assert database.CHECKSUM_VFS in names
    assert names[0] != database.CHECKSUM_VFS


# Who may read it


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_new_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "new" / "er" / "store.db")
        Line(store).save()
        folder = tmp_path / "new" / "er"
        modes = {file.name: mode(file) for file in folder.iterdir()}
        assert set(modes) >= {"store.db", "store.db-lock", "store.db-mark", "store.db-wal"}
        assert set(modes.values()) == {0o600}
        assert mode(folder) == 0o700
        assert mode(tmp_path / "new") == 0o700
        assert mode(tmp_path) == 0o755
        store.close()
    finally:
        os.umask(before)


# What is refused


def test_a_newer_schema_is_refused_untouched(path: Path) -> None:
    used(path)
    change(path, f"PRAGMA user_version = {schema.VERSION + 1}")
    before = files(path.parent)
    for _ in range(2):
        with pytest.raises(Misuse, match="newer Hardsave"):
            SqliteStore(path)
    after = files(path.parent)
    assert after["store.db"] == before["store.db"]
    assert after["store.db-mark"] == before["store.db-mark"]


def test_a_newer_schema_is_refused_also_while_its_program_is_at_work(path: Path) -> None:
    used(path)
    change(path, f"PRAGMA user_version = {schema.VERSION + 1}")
    newer = connection.connect(str(path), "power", create=False)
    newer.execute("CREATE TABLE things_to_come (x)")
    child = Child(lambda _: _refused(path))
    assert child.end() == 0
    assert newer.execute("SELECT count(*) FROM things_to_come").get == 0
    newer.execute("INSERT INTO things_to_come VALUES (1)")
    newer.close()


def _refused(path: Path) -> None:
    with pytest.raises(Misuse):
        SqliteStore(path)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_programs_database_is_refused_untouched(path: Path, journal: str) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"PRAGMA journal_mode = {journal}")
    other.execute("CREATE TABLE theirs (x)")
    other.execute("INSERT INTO theirs VALUES (42)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(Misuse, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before
    other = sqlite3.connect(path)
    assert other.execute("SELECT x FROM theirs").fetchall() == [(42,)]
    other.close()


def test_a_text_file_is_refused_untouched(path: Path) -> None:
    path.write_text("shopping list: bread, butter\n" * 100)
    with pytest.raises(Misuse, match="not a Hardsave store"):
        SqliteStore(path)
    assert path.read_text() == "shopping list: bread, butter\n" * 100


def test_a_short_text_file_is_refused_untouched(path: Path) -> None:
    path.write_text("x")
    with pytest.raises(Misuse, match="not a Hardsave store"):
        SqliteStore(path)
    assert path.read_text() == "x"


def test_what_is_no_plain_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Misuse, match="no plain file"):
        SqliteStore(tmp_path / "pipe")
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="directory"):
        SqliteStore(tmp_path)


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for below in ("file/store.db", "file/deeper/store.db"):
        with pytest.raises(Unavailable, match="cannot be opened"):
            SqliteStore(tmp_path / below)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("existing", [False, True])
def test_a_place_that_is_not_writable_is_refused(existing: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if existing:
            used(folder / "store.db")
            (folder / "store.db").chmod(0o444)
        before = files(folder)
        folder.chmod(0o555)

        def work(_: Child) -> None:
            if os.geteuid() == 0:  # whom nothing is forbidden
                os.seteuid(65534)
            with pytest.raises(Unavailable, match=r"store\.db"):
                SqliteStore(folder / "store.db")

        assert Child(work).end() == 0
        assert files(folder) == before
        folder.chmod(0o755)


def test_a_name_too_long_for_the_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        SqliteStore(tmp_path / ("x" * 300))


def test_a_name_that_is_not_utf8_is_refused_or_works(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db")
    try:
        store = SqliteStore(path)
    except (Misuse, Unavailable):
        return
    Line(store).save()
    store.close()


def test_odd_names_work(tmp_path: Path) -> None:
    for name in ("with space.db", "ünï😀.db", "a%20b.db", "q?x=1#y.db", ":memory:", "-wal"):
        path = tmp_path / name
        used(path)
        assert path.is_file()
        again = SqliteStore(path)
        assert again.count(None, "main") == 3
        again.close()


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    used(path)
    assert path.stat().st_size > 0


@pytest.mark.parametrize("reserved", [0, 4, 12])
def test_a_file_that_lost_its_checksums_is_corrupt(path: Path, reserved: int) -> None:
    used(path)
    data = bytearray(path.read_bytes())
    data[20] = reserved  # the header's "bytes kept free at the end of each page"
    path.write_bytes(data)
    with pytest.raises(Corrupt, match=r"store\.db"):
        SqliteStore(path)


def test_a_refused_open_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database at all" * 10)

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    with pytest.raises(Misuse):
        SqliteStore(tmp_path / "text.db")
    before = open_files()
    for _ in range(10):
        with pytest.raises(Misuse):
            SqliteStore(tmp_path / "text.db")
    assert open_files() == before


def test_a_closed_store_leaves_no_file_open(path: Path) -> None:
    used(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        used_again = SqliteStore(path)
        used_again.timeline(None, "main")
        used_again.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_store_out_of_reach_is_closed_all_the_same(tmp_path: Path) -> None:
    """With the files of a workspace: what else lies beside it cannot be written either."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").touch()
    (tmp_path / "share").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    with hardsave.open(f"sqlite:///{tmp_path}/share/store.db") as vault:
        vault.timeline("main").save(1, workspace=tmp_path / "work")
        (tmp_path / "share").rename(tmp_path / "away")
        (tmp_path / "share").touch()
    assert len(os.listdir("/proc/self/fd")) == before


def test_opening_a_store_changes_nothing_in_it(path: Path) -> None:
    used(path)
    before = files(path.parent)
    SqliteStore(path).close()
    assert files(path.parent) == before


def test_migrating_twice_changes_nothing(store: SqliteStore) -> None:
    number = Line(store).save().number
    schema.migrate(store._connect())
    assert store.commit(a_note("next")) == number + 1


# Places that are no good


def mount_info(path: Path, mounts: list[tuple[str, str]]) -> str:
    """A file that stands in for the kernel's list of mounts."""
    lines = [
        f"{n} 1 0:{n} / {point} rw,relatime shared:1 - {kind} source rw"
        for n, (point, kind) in enumerate(mounts, 20)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("mounts", "refused"),
    [
        ([("/", "ext4")], False),
        ([("/", "nfs4")], True),
        ([("/", "ext4"), ("{here}", "nfs4")], True),
        ([("/", "ext4"), ("{here}", "fuse.sshfs")], True),
        ([("{here}", "cifs"), ("/", "ext4")], True),
        ([("/", "nfs"), ("{here}", "ext4")], False),
        ([("/", "ext4"), ("{here}", "ext4"), ("{here}", "9p")], True),  # mounted over it
        ([("/", "ext4"), ("{here}-and-more", "nfs")], False),
        ([("/", "ext4"), ("{here}/inside", "nfs")], False),
    ],
)
def test_a_network_file_system_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mounts: list[tuple[str, str]],
    refused: bool,
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    here = str(folder).replace(" ", "\\040")
    placed = [(point.replace("{here}", here), kind) for point, kind in mounts]
    monkeypatch.setattr(connection, "_MOUNTS", mount_info(tmp_path / "mountinfo", placed))
    if refused:
        with pytest.raises(Misuse, match="network file system"):
            SqliteStore(folder / "store.db")
        assert list(folder.iterdir()) == []
    else:
        SqliteStore(folder / "store.db").close()


@pytest.mark.parametrize(("mounted", "refused"), [("store.db", True), ("other.db", False)])
def test_a_file_that_is_mounted_without_its_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounted: str, refused: bool
) -> None:
    """What is saved into a WAL that lies in a container goes with the container."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "store.db").touch()
    point = str(folder / mounted).replace(" ", "\\040")
    mounts = mount_info(tmp_path / "mountinfo", [("/", "overlay"), (point, "ext4")])
    monkeypatch.setattr(connection, "_MOUNTS", mounts)
    if refused:
        with pytest.raises(Misuse, match="is mounted by itself"):
            SqliteStore(folder / "store.db")
        assert [file.name for file in folder.iterdir()] == ["store.db"]
    else:
        SqliteStore(folder / "store.db").close()


def test_a_file_with_several_names_is_refused_until_each_has_its_own(tmp_path: Path) -> None:
    """Each name would have a WAL of its own, and one of them would be lost."""
    one, two = tmp_path / "one", tmp_path / "two"
    with contextlib.closing(SqliteStore(one / "store.db")) as store:
        saved = Line(store).save()
    shutil.copytree(one, two, copy_function=os.link)
    for folder in (one, two):
        with pytest.raises(Misuse, match="several names"):
            SqliteStore(folder / "store.db")
    shutil.copytree(two, tmp_path / "copies")
    shutil.rmtree(two)
    shutil.move(tmp_path / "copies", two)
    for folder in (one, two):
        with contextlib.closing(SqliteStore(folder / "store.db")) as store:
            assert store.checkpoint(None, saved.id) is not None
            store.commit(a_note("next"))


def test_without_a_list_of_mounts_any_place_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_MOUNTS", str(tmp_path / "nothing"))
    SqliteStore(tmp_path / "store.db").close()


def test_an_error_that_a_caller_keeps_does_not_keep_the_wal_from_being_emptied(
    store: SqliteStore, path: Path
) -> None:
    line = Line(store)
    line.save()

    def fail() -> None:
        with store._reading_at_once() as reader:
            reader.execute("SELECT count(*) FROM checkpoints").fetchall()
            raise Corrupt("a read has met damage")

    with pytest.raises(Corrupt) as kept:
        fail()
    line.save()
    with store._reading() as reader:
        assert vacuum.truncate_wal(reader, 60, store._at_rest)
    assert os.path.getsize(f"{path}-wal") == 0
    assert kept.tb.tb_next is not None  # with the frames, and all that they hold
