"""The difference of two snapshots is that of their trees, and costs what differs."""

from pathlib import Path

import pytest

from hardsave.objects import envelope
from hardsave.workspace.snapshot import compare, directory
from hardsave.workspace.snapshot.compare import Diff
from tests.unit.workspace.room import Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def test_added_removed_and_changed_paths_are_told_apart(room: Room) -> None:
    for name in ("same", "edited", "gone", "mode"):
        (room.root / name).write_bytes(name.encode())
    (room.root / "old").mkdir()
    (room.root / "old/file").write_bytes(b"")
    first = room.snapshot().root
    (room.root / "edited").write_bytes(b"other")
    (room.root / "gone").unlink()
    (room.root / "mode").chmod(0o700)
    (room.root / "old/file").unlink()
    (room.root / "old").rmdir()
    (room.root / "new/deep").mkdir(parents=True)
    second = room.snapshot().root
    assert compare.diff(first, second, room.fetch) == Diff(
        (b"new", b"new/deep"), (b"gone", b"old", b"old/file"), (b"edited", b"mode")
    )
    assert compare.diff(second, first, room.fetch).added == (b"gone", b"old", b"old/file")
    assert compare.diff(first, first, room.fetch) == Diff((), (), ())


def test_a_file_that_became_a_directory_is_changed_and_its_files_are_added(room: Room) -> None:
    (room.root / "a").write_bytes(b"")
    first = room.snapshot().root
    (room.root / "a").unlink()
    (room.root / "a").mkdir()
    (room.root / "a/b").write_bytes(b"")
    second = room.snapshot().root
    assert compare.diff(first, second, room.fetch) == Diff((b"a/b",), (), (b"a",))
    assert compare.diff(second, first, room.fetch) == Diff((), (b"a/b",), (b"a",))


def test_files_that_became_one_are_changed(room: Room) -> None:
    for name in ("a", "b"):
        (room.root / name).write_bytes(b"same")
    first = room.snapshot().root
    (room.root / "b").unlink()
    (room.root / "b").hardlink_to(room.root / "a")
    second = room.snapshot().root
    assert compare.diff(first, second, room.fetch) == Diff((), (), (b"a", b"b"))


def test_a_directory_whose_mode_changed_is_changed_and_what_is_in_it_is_not(room: Room) -> None:
    (room.root / "sub").mkdir(mode=0o755)
    (room.root / "sub/a").write_bytes(b"")
    first = room.snapshot().root
    (room.root / "sub").chmod(0o700)
    assert compare.diff(first, room.snapshot().root, room.fetch) == Diff((), (), (b"sub",))


def test_only_differing_subtrees_are_read(room: Room) -> None:
    for number in range(50):
        (room.root / f"{number}/deep").mkdir(parents=True)
        (room.root / f"{number}/deep/file").write_bytes(b"%d" % number)
    first = room.snapshot().root
    (room.root / "7/deep/file").write_bytes(b"other")
    second = room.snapshot().root
    room.fetched = 0
    assert compare.diff(first, second, room.fetch).changed == (b"7/deep/file",)
    assert room.fetched <= 2 + 2 * 2 * 3  # roots; three directories of both, looked at twice


def test_a_directory_that_is_cut_otherwise_is_the_same(room: Room) -> None:
    """As an earlier version wrote it: up to 1,024 entries in one object."""
    for number in range(300):
        (room.root / f"{number:03}").write_bytes(b"%d" % number)
    now = room.snapshot().root
    top = directory.read_snapshot(now, room.fetch).top
    assert envelope.unseal(room.objects[top]).kind == envelope.DIRECTORY_NODE
    ((_, entries),) = directory.read_apart([(None, top)], room.fetch)
    whole = directory.write_run(entries, room.objects.__setitem__)
    before = directory.write_snapshot(directory.Snapshot(whole), room.objects.__setitem__)
    assert compare.diff(before, now, room.fetch) == Diff((), (), ())
    assert directory.find(whole, b"007", room.fetch) == directory.find(top, b"007", room.fetch)
    (room.root / "007").write_bytes(b"other")
    assert compare.diff(before, room.snapshot().root, room.fetch).changed == (b"007",)


def test_a_change_among_many_names_rewrites_little(room: Room) -> None:
    for number in range(1_000):
        (room.root / f"{number:04}").write_bytes(b"")
    room.now_ns = 10**9
    first = room.snapshot()
    room.put_bytes = 0
    (room.root / "0500").write_bytes(b"changed")
    second = room.snapshot()
    assert compare.diff(first.root, second.root, room.fetch).changed == (b"0500",)
    assert room.put_bytes < 6_000  # one run, and the list of about sixty
    assert second.root == room.anew().root
