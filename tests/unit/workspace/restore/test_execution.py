"""A restore brings back what was captured, and touches nothing else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Corrupt, Misuse, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.workspace.entries import DIRECTORY, FILE, Entry
from hardsave.workspace.restore import execution, steps
from hardsave.workspace.snapshot import directory
from tests.unit.workspace.room import Room, leftovers, picture


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def write(room: Room, path: str, text: str = "x", mode: int = 0o644) -> Path:
    file = room.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def remove(room: Room, path: str) -> None:
    (room.root / path).unlink()


def reasons(restored: steps.Restored) -> dict[bytes, str]:
    return dict(restored.conflicts)


# What comes back


def test_bytes_modes_links_and_empty_directories_come_back(room: Room) -> None:
    """What copies made by way of git lose."""
    write(room, ".gitattributes", "* text=auto\n")
    (room.root / "crlf").write_bytes(b"one\r\ntwo\r\n")
    write(room, "private", mode=0o600)
    write(room, "run", mode=0o755)
    (room.root / "empty").mkdir()
    (room.root / "one").write_bytes(b"linked")
    (room.root / "two").hardlink_to(room.root / "one")
    (room.root / "nowhere").symlink_to("not/there")
    (room.root / "outside").symlink_to("/etc")
    (room.root / "loop").symlink_to("loop")
    write(room, "nested/.git/HEAD", "ref: refs/heads/main\n")
    write(room, "nested/dirty", "dirty")
    (room.root / "sub/shut").mkdir(parents=True)
    write(room, "sub/shut/file")
    (room.root / "sub/shut").chmod(0o500)
    before = picture(room.root)
    target = room.snapshot().root
    for name in ("crlf", "private", "run", "one", "two", "nowhere", "loop", "nested/dirty"):
        remove(room, name)
    (room.root / "outside").unlink()
    (room.root / "outside").mkdir()
    (room.root / "empty").rmdir()
    (room.root / "sub/shut").chmod(0o700)
    write(room, "sub/shut/file", "other")
    write(room, "new/file")
    after = picture(room.root)
    middle = room.snapshot().root
    assert room.restore(target).conflicts == ()
    assert picture(room.root) == before
    assert room.restore(middle).conflicts == ()
    assert picture(room.root) == after


def test_modes_that_are_changed_are_on_the_disk_when_the_journal_goes(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(room, "file")
    write(room, "folder/file")
    made = room.snapshot().root
    (room.root / "file").chmod(0o700)
    (room.root / "folder").chmod(0o711)
    plan = room.plan(made)
    changed, synced = list[int](), list[int]()
    real = os.fchmod, os.fsync

    def fchmod(file: int, mode: int) -> None:
        changed.append(os.fstat(file).st_ino)
        real[0](file, mode)

    def fsync(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        real[1](file)

    monkeypatch.setattr(os, "fchmod", fchmod)
    monkeypatch.setattr(os, "fsync", fsync)
    room.carry_out(plan)
    assert {*changed} == {(room.root / name).stat().st_ino for name in ("file", "folder")}
    assert {*changed} <= {*synced}


def test_only_what_differs_is_written_and_other_times_stay(room: Room) -> None:
    for name in ("same", "edited", "sub/same"):
        write(room, name)
    target = room.snapshot().root
    stamps = {name: (room.root / name).stat().st_mtime_ns for name in ("same", "sub/same")}
    inodes = {name: (room.root / name).stat().st_ino for name in ("same", "sub/same")}
    write(room, "edited", "other")
    made = room.plan(target)
    assert len(made.steps) == 1
    assert room.carry_out(made).done == 1
    for name, stamp in stamps.items():
        status = (room.root / name).stat()
        assert (status.st_mtime_ns, status.st_ino) == (stamp, inodes[name])


def test_files_and_directories_change_places(room: Room) -> None:
    write(room, "a/deep/file")
    write(room, "b")
    (room.root / "c").symlink_to("b")
    before = picture(room.root)
    target = room.snapshot().root
    remove(room, "a/deep/file")
    (room.root / "a/deep").rmdir()
    (room.root / "a").rmdir()
    write(room, "a", "a file")
    remove(room, "b")
    write(room, "b/deep/file", "below")
    remove(room, "c")
    write(room, "c/file")
    after = picture(room.root)
    middle = room.snapshot().root
    for root, expected in ((target, before), (middle, after), (target, before)):
        assert room.restore(root).conflicts == ()
        assert picture(room.root) == expected


def test_chosen_paths_come_back_alone(room: Room) -> None:
    for name in ("a/b/one", "a/b/two", "a/c", "d"):
        write(room, name, "old")
    target = room.snapshot().root
    for name in ("a/b/one", "a/b/two", "a/c", "d"):
        write(room, name, "new")
    room.restore(target, paths=[b"a/b/one", b"d"])
    assert {
        name: (room.root / name).read_text() for name in ("a/b/one", "a/b/two", "a/c", "d")
    } == {
        "a/b/one": "old",
        "a/b/two": "new",
        "a/c": "new",
        "d": "old",
    }
    room.restore(target, paths=[b"a/"])
    assert (room.root / "a/b/two").read_text() == (room.root / "a/c").read_text() == "old"


def test_a_chosen_path_brings_the_directories_that_it_needs(room: Room) -> None:
    write(room, "a/b/one")
    write(room, "a/other")
    target = room.snapshot().root
    for name in ("a/b/one", "a/other"):
        remove(room, name)
    (room.root / "a/b").rmdir()
    (room.root / "a").rmdir()
    room.restore(target, paths=[b"a/b/one"])
    assert set(picture(room.root)) == {b"a", b"a/b", b"a/b/one"}


def test_a_chosen_path_that_was_not_there_goes(room: Room) -> None:
    target = room.snapshot().root
    write(room, "new")
    write(room, "other")
    room.restore(target, paths=[b"new"])
    assert set(picture(room.root)) == {b"other"}


@pytest.mark.parametrize("path", [b"/etc", b"../up", b"a/../b", b".git/config", b"a//b", b""])
def test_a_chosen_path_outside_is_misuse(room: Room, path: bytes) -> None:
    root = room.snapshot().root
    with pytest.raises(Misuse, match="not a path in a workspace"):
        room.plan(root, paths=[path])


def test_holes_come_back_as_holes(room: Room) -> None:
    size = 8 << 20
    with (room.root / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(size - 3)
        file.write(b"end")
    before = (room.root / "sparse").read_bytes()
    target = room.snapshot().root
    remove(room, "sparse")
    room.restore(target)
    assert (room.root / "sparse").read_bytes() == before
    assert (room.root / "sparse").stat().st_blocks * 512 < size // 4


def test_a_large_file_comes_back(room: Room) -> None:
    data = os.urandom(700_000)
    (room.root / "large").write_bytes(data)
    target = room.snapshot().root
    (room.root / "large").write_bytes(data[:-5] + b"other")
    room.restore(target)
    assert (room.root / "large").read_bytes() == data


def test_a_deep_path_comes_back(room: Room) -> None:
    deep = "/".join(["deep"] * 200)
    write(room, f"{deep}/file")
    before = picture(room.root)
    target = room.snapshot().root
    remove(room, f"{deep}/file")
    while deep:
        (room.root / deep).rmdir()
        deep = deep.rpartition("/")[0]
    room.restore(target)
    assert picture(room.root) == before


# Hard links


def link(room: Room, path: str, to: str) -> None:
    file = room.root / path
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.hardlink_to(room.root / to)


Act = Callable[[Room], object]


def links(path: str, to: str) -> Act:
    return lambda room: link(room, path, to)


GROUPINGS: list[list[Act]] = [
    [],
    [links("b", "a")],
    [links("b", "a"), links("sub/c", "a")],
    [links("d", "sub/c"), links("b", "a")],
    [links("d", "a"), links("b", "sub/c")],
    [links("b", "a"), lambda room: (room.root / "a").write_text("both")],
    [links("b", "a"), lambda room: (room.root / "a").chmod(0o600)],
    [links("b", "a"), lambda room: remove(room, "a")],
]


@pytest.mark.parametrize("one", range(len(GROUPINGS)))
@pytest.mark.parametrize("other", range(len(GROUPINGS)))
def test_files_are_joined_and_parted(room: Room, one: int, other: int) -> None:
    pictures, roots = [], []
    for number in (one, other):
        for name in ("a", "b", "sub/c", "d"):
            (room.root / name).unlink(missing_ok=True)
            write(room, name, "same")
        for act in GROUPINGS[number]:
            act(room)
        pictures.append(picture(room.root))
        roots.append(room.snapshot().root)
    for root, expected in ((roots[0], pictures[0]), (roots[1], pictures[1])):
        assert room.restore(root).conflicts == ()
        assert picture(room.root) == expected
    if one == other:
        assert room.plan(roots[0]).steps == ()


def test_a_file_that_was_not_chosen_keeps_its_links_and_content(room: Room) -> None:
    write(room, "a", "old")
    link(room, "b", "a")
    link(room, "c", "a")
    target = room.snapshot().root
    (room.root / "a").write_text("new")
    assert room.restore(target, paths=[b"a"]).conflicts == ()
    assert (room.root / "a").read_text() == "old"
    assert (room.root / "b").read_text() == "new"
    assert (room.root / "b").stat().st_ino == (room.root / "c").stat().st_ino


# What is left alone


def test_ignored_files_survive_a_restore_across_a_change_of_rules(room: Room) -> None:
    """What an older list of rules does not name is not deleted because of that."""
    write(room, ".gitignore", "old\n")
    write(room, "old", "build of then")
    target = room.snapshot().root
    write(room, ".gitignore", "old\nbuild/\n")
    write(room, "build/out", "hours of work")
    write(room, "old", "build of now")
    room.restore(target)
    assert (room.root / ".gitignore").read_text() == "old\n"
    assert (room.root / "build/out").read_text() == "hours of work"
    assert (room.root / "old").read_text() == "build of now"


def test_what_the_target_captured_and_the_present_ignores_is_left_alone(room: Room) -> None:
    write(room, "data", "captured")
    write(room, "folder/data", "captured")
    target = room.snapshot().root
    write(room, ".gitignore", "data\nfolder/\n")
    write(room, "data", "now ignored")
    write(room, "folder/data", "now ignored")
    room.restore(target)
    assert (room.root / "data").read_text() == "now ignored"
    assert (room.root / "folder/data").read_text() == "now ignored"
    assert not (room.root / ".gitignore").exists()


def test_what_the_present_captured_and_the_target_ignores_is_left_alone(room: Room) -> None:
    write(room, ".gitignore", "data\n")
    target = room.snapshot().root
    remove(room, ".gitignore")
    write(room, "data", "made since")
    write(room, "sub/data", "made since")
    room.restore(target)
    assert (room.root / "data").read_text() == "made since"
    assert (room.root / "sub/data").read_text() == "made since"


def test_a_tracked_file_comes_back_although_it_is_ignored(room: Room) -> None:
    tracked = frozenset({b"build/tracked"})
    write(room, ".gitignore", "build/\n")
    write(room, "build/tracked", "old")
    write(room, "build/other", "old")
    target = room.snapshot(tracked=tracked).root
    write(room, "build/tracked", "new")
    write(room, "build/other", "new")
    room.restore(target, present_tracked=tracked, target_tracked=tracked)
    assert (room.root / "build/tracked").read_text() == "old"
    assert (room.root / "build/other").read_text() == "new"


def test_what_was_never_captured_is_neither_deleted_nor_overwritten(room: Room) -> None:
    write(room, "file", "captured")
    target = room.snapshot().root
    remove(room, "file")
    write(room, ".env", "SECRET=1")
    os.mkfifo(room.root / "pipe")
    room.restore(target)
    assert (room.root / ".env").read_text() == "SECRET=1"
    assert (room.root / "pipe").exists()


def test_what_appeared_after_the_present_was_saved_is_kept(room: Room) -> None:
    write(room, "gone")
    target = room.snapshot().root
    remove(room, "gone")
    write(room, "away/file")
    made = room.plan(target)
    write(room, "gone", "another program's new work")
    write(room, "away/new", "another program's new work")
    write(room, "other", "another program's new work")
    restored = room.carry_out(made)
    assert reasons(restored) == {b"gone": "appeared after the present was saved"}
    assert restored.kept == (b"away",)
    assert (room.root / "gone").read_text() == "another program's new work"
    assert set(picture(room.root)) == {b"gone", b"away", b"away/new", b"other"}
    assert leftovers(room.root) == []


@pytest.mark.parametrize("what", ["content", "mode", "kind"])
def test_what_changed_after_the_present_was_saved_is_a_conflict(room: Room, what: str) -> None:
    write(room, "edited", "old!")
    target = room.snapshot().root
    write(room, "edited", "new!")
    write(room, "added", "new!")
    made = room.plan(target)
    for name in ("edited", "added"):
        if what == "content":
            write(room, name, "mine")
        elif what == "mode":
            (room.root / name).chmod(0o600)
        else:
            remove(room, name)
            (room.root / name).symlink_to("elsewhere")
    before = picture(room.root)
    restored = room.carry_out(made)
    assert reasons(restored) == dict.fromkeys(
        (b"added", b"edited"), "changed after the present was saved"
    )
    assert picture(room.root) == before


def test_a_directory_with_something_new_in_it_does_not_become_a_file(room: Room) -> None:
    write(room, "a", "a file")
    target = room.snapshot().root
    remove(room, "a")
    write(room, "a/known")
    made = room.plan(target)
    write(room, "a/new", "another program's new work")
    restored = room.carry_out(made)
    assert b"a" in reasons(restored)
    assert (room.root / "a/new").read_text() == "another program's new work"


# The outside


def test_a_parent_that_becomes_a_symlink_leads_nowhere(room: Room, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(room, "sub/edited", "old")
    write(room, "sub/gone", "old")
    target = room.snapshot().root
    write(room, "sub/edited", "new")
    remove(room, "sub/gone")
    write(room, "sub/added", "new")
    made = room.plan(target)
    (room.root / "sub").rename(room.root / "moved")
    for name in ("edited", "added"):
        (outside / name).write_text("new")
    (room.root / "sub").symlink_to(outside)
    restored = room.carry_out(made)
    assert set(reasons(restored)) == {b"sub/edited", b"sub/gone", b"sub/added"}
    assert {each.name: each.read_text() for each in outside.iterdir()} == {
        "edited": "new",
        "added": "new",
    }


def test_a_parent_swapped_between_any_two_calls_leads_nowhere(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "edited").write_text("outside")
    write(room, "sub/edited", "old")
    target = room.snapshot().root
    for at in range(1, 12):
        write(room, "sub/edited", "new")
        made = room.plan(target)
        calls = 0

        def swap(at: int = at) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                (room.root / "sub").rename(room.root / "moved")
                (room.root / "sub").symlink_to(outside)

        with monkeypatch.context() as patch:
            for name in ("stat", "open", "rename", "fsync"):
                patch.setattr(os, name, _before(getattr(os, name), swap))
            room.carry_out(made)
        assert {each.name: each.read_text() for each in outside.iterdir()} == {"edited": "outside"}
        if calls >= at:
            (room.root / "sub").unlink()
            (room.root / "moved").rename(room.root / "sub")


def _before(real: Callable[..., Any], first: Callable[[], None]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        first()
        return real(*given, **named)

    return call


def test_a_hostile_tree_is_refused_before_anything_is_written(room: Room) -> None:
    def put(address: Hash, data: bytes) -> None:
        room.objects[address] = data

    write(room, "mine")
    before = picture(room.root)
    present = room.snapshot().root
    content = Entry(FILE, 0o644, 1, next(iter(room.objects)))
    for name in (b"..", b".GIT", b"a/b", b"/etc"):
        hooks = directory.write([(name, content)], put)
        top = directory.write([(b"sub", Entry(DIRECTORY, 0o755, 0, hooks))], put)
        target = directory.write_snapshot(directory.Snapshot(top), put)
        with pytest.raises(Corrupt):
            room.restore(target)
    assert picture(room.root) == before
    assert room.plan(present).steps == ()


def test_content_that_is_missing_is_noticed_before_anything_is_replaced(room: Room) -> None:
    write(room, "a", "old")
    write(room, "b/c", "old, too")
    target = room.snapshot().root
    write(room, "a", "new")
    remove(room, "b/c")
    (room.root / "b").rmdir()
    made = room.plan(target)
    before = picture(room.root)

    def fetch(wanted: Any) -> Any:
        raise Corrupt("object is missing")

    with pytest.raises(Corrupt, match="no file was changed"):
        execution.restore(os.fsencode(room.root), made, fetch, room.journal, id=b"1")
    assert picture(room.root) == before
    assert not room.journal.exists()


def test_a_second_restore_does_not_begin_while_one_is_unfinished(room: Room) -> None:
    made = room.plan(room.snapshot().root)
    execution.begin(os.fsencode(room.root), made, room.journal, id=b"1")
    with pytest.raises(Unavailable, match="recover it first"):
        room.carry_out(made)
    assert execution.recover(room.journal, room.fetch) is not None
    assert execution.recover(room.journal, room.fetch) is None


def test_another_directory_at_the_same_place_is_not_written_to(room: Room) -> None:
    write(room, "a", "old")
    target = room.snapshot().root
    write(room, "a", "new")
    made = room.plan(target)
    execution.begin(os.fsencode(room.root), made, room.journal, id=b"1")
    room.root.rename(room.root.with_name("moved"))
    with pytest.raises(Unavailable, match="cannot be opened"):
        execution.recover(room.journal, room.fetch)
    write(room, "a", "new")
    with pytest.raises(Misuse, match="not the directory"):
        execution.recover(room.journal, room.fetch)
    assert (room.root / "a").read_text() == "new"


def test_a_damaged_journal_is_an_error_and_no_restore(room: Room) -> None:
    write(room, "a")
    made = room.plan(room.snapshot().root)
    execution.begin(os.fsencode(room.root), made, room.journal, id=b"1")
    data = room.journal.read_bytes()
    room.journal.write_bytes(data[:-1])
    with pytest.raises(Corrupt, match="journal"):
        execution.recover(room.journal, room.fetch)
