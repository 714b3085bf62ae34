"""Contents last before the first file is replaced, however many there are."""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hardsave.errors import Unavailable
from hardsave.workspace.restore import execution, steps
from hardsave.workspace.restore.file_writer import synced
from tests.unit.workspace.room import Room, leftovers

MANY = 150


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A workspace in which many files have changed."""
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def restore(room: Room, decide: Callable[[], object]) -> None:
    """Take many files that have changed back."""
    written(room, "old")
    target = room.snapshot().root
    written(room, "new")
    plan = room.plan(target)
    root = os.fsencode(room.root)
    execution.restore(root, plan, room.fetch, room.journal, id=b"\x01\x02", decide=decide)


def written(room: Room, text: str) -> None:
    for number in range(MANY):
        (room.root / f"{number}").write_text(f"{text} {number}")


def test_every_content_is_synced_before_it_is_decided(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting: set[int] = set()
    real = os.fsync

    def fsync(file: int) -> None:
        real(file)
        lasting.add(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    staged: list[set[int]] = []

    def decide() -> None:
        inodes = {each.stat().st_ino for each in room.root.iterdir() if not each.name.isdigit()}
        staged.append(inodes)
        assert inodes <= lasting

    restore(room, decide)
    assert [len(each) for each in staged] == [MANY]
    now = {each.stat().st_ino for each in room.root.iterdir()}
    assert now == staged[0]  # and it is these that were put in place


def test_a_file_that_cannot_be_synced_ends_it_before_anything_is_replaced(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    portions: list[int] = []

    def fails(files: Sequence[int]) -> list[OSError | None]:
        portions.append(len(files))
        found = synced(files)
        if len(portions) == 2:
            found[7] = OSError(errno.EIO, os.strerror(errno.EIO))
        return found

    def decide() -> None:
        raise AssertionError("it was decided")

    monkeypatch.setattr(steps, "synced", fails)
    with pytest.raises(Unavailable, match=r"could not be restored: .*no file was changed"):
        restore(room, decide)
    assert leftovers(room.root) == []
    assert not room.journal.exists()
    assert all((room.root / f"{n}").read_text() == f"new {n}" for n in range(MANY))


@pytest.mark.parametrize("count", [0, 1, 40])
def test_what_goes_wrong_is_known_of_each_file(tmp_path: Path, count: int) -> None:
    files = [os.open(tmp_path / str(n), os.O_CREAT | os.O_RDWR) for n in range(count)]
    closed = count // 2
    for file in files[closed:]:
        os.close(file)
    found = synced(files)
    for file in files[:closed]:
        os.close(file)
    assert [error is None for error in found] == [n < closed for n in range(count)]


@pytest.mark.parametrize("threads", [0, 1])
def test_each_file_is_synced_once_where_no_further_thread_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    real, left, tried = threading.Thread.start, [threads], list[int]()

    def start(thread: threading.Thread) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("can't start new thread")
        real(thread)

    def fsync(file: int) -> None:
        tried.append(file)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    files = [os.open(tmp_path / str(n), os.O_CREAT | os.O_RDWR) for n in range(40)]
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        patch.setattr(os, "fsync", fsync)
        found = synced(files)
    for file in files:
        os.close(file)
    assert sorted(tried) == sorted(files)
    assert all(error is not None for error in found)
