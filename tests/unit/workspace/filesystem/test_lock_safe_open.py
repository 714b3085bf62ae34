"""To read a file that this process has open elsewhere takes no lock away."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hardsave.workspace.filesystem import lock_safe_open
from hardsave.workspace.filesystem.lock_safe_open import reading
from tests.unit.stores.background import start
from tests.unit.stores.processes import fresh
from tests.unit.workspace.room import Room

TRY = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
    print("free")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def always_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_safe_open, "_FRESH_SECONDS", -1)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


@pytest.fixture(params=["delete", "wal"])
def database(room: Room, request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    """In the middle of a transaction."""
    with closing(sqlite3.connect(room.root / "app.db", isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {request.param}")
        database.execute("CREATE TABLE numbers (number)")
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO numbers VALUES (1)")
        yield database


def is_locked(room: Room) -> bool:
    return fresh(TRY, str(room.root / "app.db")).strip() == "database is locked"


def open_files(path: Path) -> int:
    links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link) == str(path) for link in links)


def test_a_database_of_this_process_is_captured_and_stays_locked(
    room: Room, database: sqlite3.Connection
) -> None:
    assert is_locked(room)
    made = room.snapshot()
    assert made.read >= 2  # the file itself, and its journal or its WAL
    assert is_locked(room)
    database.execute("COMMIT")
    assert not is_locked(room)


def test_captures_do_not_add_up_to_open_files_and_let_go_in_the_end(
    room: Room, database: sqlite3.Connection
) -> None:
    for number in range(5):
        os.utime(room.root / "app.db", ns=(number, number))  # so that it is read again
        room.snapshot()
    assert open_files(room.root / "app.db") == 2
    assert is_locked(room)
    database.close()
    (room.root / "other").write_bytes(b"x")
    room.snapshot()
    assert open_files(room.root / "app.db") == 0


def test_a_file_that_is_kept_is_read_from_its_beginning_by_several_at_once(room: Room) -> None:
    (room.root / "file").write_bytes(bytes(range(256)) * 4096)
    directory = os.open(room.root, os.O_RDONLY)

    def read() -> bytes:
        with reading(b"file", directory) as file:
            data = b""
            while part := os.read(file, 1000):
                data += part
            return data

    with open(room.root / "file", "rb"):
        for _ in range(3):
            found = [start(read) for _ in range(4)]
            assert {each.result(60) for each in found} == {bytes(range(256)) * 4096}
        assert open_files(room.root / "file") <= 5
    read()
    assert open_files(room.root / "file") == 0
    os.close(directory)


@pytest.mark.parametrize("database", ["delete"], indirect=True)  # a WAL would be replaced
def test_a_restore_that_looks_at_a_database_leaves_it_locked(
    room: Room, database: sqlite3.Connection
) -> None:
    database.execute("COMMIT")
    target = room.snapshot().root
    (room.root / "app.db").chmod(0o600)
    database.execute("BEGIN IMMEDIATE")
    assert is_locked(room)
    room.carry_out(room.plan(target))
    assert (room.root / "app.db").stat().st_mode & 0o777 == 0o644
    assert is_locked(room)
