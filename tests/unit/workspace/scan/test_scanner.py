"""What a scan takes, what it leaves out and says so, and what it reads again."""

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Misuse
from hardsave.workspace.filesystem import safe_open
from hardsave.workspace.filesystem.stamps import may_change_unseen
from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot import compare, content, directory
from hardsave.workspace.snapshot.builder import Snapshot, snapshot
from tests.unit.workspace.room import Room, paths_of, rules

OLD_NS = 1_600_000_000_123_456_789


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def write(room: Room, path: str, content: bytes = b"x") -> Path:
    file = room.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def captured(room: Room, made: Snapshot) -> set[bytes]:
    top = directory.read_snapshot(made.root, room.fetch).top
    empty = directory.write([], room.objects.__setitem__)
    return {each.path for each in compare.differences(empty, top, room.fetch)}


# What is left out


def test_ignored_names_are_left_out_and_not_reported(room: Room) -> None:
    write(room, ".gitignore", b"build/\nlog")
    write(room, "build/out")
    write(room, "sub/log")
    write(room, "sub/kept")
    made = room.snapshot()
    assert captured(room, made) == {b".gitignore", b"sub", b"sub/kept"}
    assert made.not_captured == ()


def test_tracked_files_are_captured_although_they_are_ignored(room: Room) -> None:
    write(room, ".gitignore", b"build/\nlog")
    write(room, "build/deep/tracked")
    write(room, "build/deep/other")
    write(room, "log")
    tracked = frozenset({b"build/deep/tracked", b"log"})
    for _ in range(2):  # anew, and with the cache
        made = room.snapshot(tracked=tracked)
        assert captured(room, made) == {
            *(b".gitignore", b"log"),
            *(b"build", b"build/deep", b"build/deep/tracked"),
        }


def test_what_git_begins_or_ends_to_track_is_noticed_without_a_change_on_disk(room: Room) -> None:
    write(room, ".gitignore", b"log")
    write(room, "sub/log")
    settle(room)
    assert b"sub/log" not in captured(room, room.snapshot())
    assert b"sub/log" in captured(room, room.snapshot(tracked=frozenset({b"sub/log"})))
    assert b"sub/log" not in captured(room, room.snapshot())


def test_an_edited_ignore_file_is_heeded_in_directories_that_did_not_change(room: Room) -> None:
    ignore = write(room, ".gitignore", b"one")
    write(room, "sub/one")
    write(room, "sub/two")
    settle(room)
    assert captured(room, room.snapshot()) == {b".gitignore", b"sub", b"sub/two"}
    ignore.write_bytes(b"two")
    assert captured(room, room.snapshot()) == {b".gitignore", b"sub", b"sub/one"}


def test_a_directory_with_the_name_of_an_ignore_file_is_a_directory(room: Room) -> None:
    write(room, ".gitignore/a", b"b")
    write(room, "b")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert captured(room, room.snapshot()) == {b".gitignore", b".gitignore/a", b"b"}
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_an_ignore_file_that_is_too_large_to_be_captured_is_heeded_all_the_same(
    room: Room,
) -> None:
    policy = Policy(max_file_bytes=3)
    ignore = write(room, ".gitignore", b"a\n\n\n")
    for name in "ab":
        write(room, name)
    settle(room)
    assert captured(room, room.snapshot(policy=policy)) == {b"b"}
    ignore.write_bytes(b"b\n\n\n")
    assert captured(room, room.snapshot(policy=policy)) == {b"a"}


def test_an_ignore_file_that_changes_after_the_scan_is_heeded_by_the_next_one(room: Room) -> None:
    ignore = write(room, ".gitignore", b"one")
    for name in ("one", "two"):
        write(room, name)
    settle(room)
    found = scan(room.root, rules=rules, clock=room.clock)
    ignore.write_bytes(b"two")
    room.cache = snapshot(found, room.put, clock=room.clock).cache
    assert captured(room, room.snapshot()) == {b".gitignore", b"one"}


def test_an_ignore_file_that_changes_during_a_scan_and_back_leaves_nothing_behind(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The top directory was taken from the cache; one below it goes by other rules."""
    ignore = write(room, ".gitignore", b"one")
    write(room, "sub/two")
    settle(room)
    room.snapshot()
    sub = write(room, "sub/three").parent.stat().st_ino
    real = os.listdir

    def listdir(path: int | str) -> list[str]:
        if isinstance(path, int) and os.fstat(path).st_ino == sub:
            ignore.write_bytes(b"three")
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    room.snapshot()
    monkeypatch.undo()
    ignore.write_bytes(b"one")
    assert room.snapshot().root == room.anew().root


def test_ignore_files_are_captured_even_if_they_ignore_themselves(room: Room) -> None:
    write(room, "venv/.gitignore", b".gitignore\nlib")
    write(room, "venv/lib")
    assert captured(room, room.snapshot()) == {b"venv", b"venv/.gitignore"}


def test_secrets_are_left_out_and_listed_unless_they_are_asked_for(room: Room) -> None:
    for name in (".env", ".env.local", "deep/id_rsa", "server.pem", "credentials.json"):
        write(room, name)
    write(room, ".env.example")
    made = room.snapshot()
    assert captured(room, made) == {b".env.example", b"deep"}
    assert set(paths_of(made)) == {
        *(b".env", b".env.local", b"deep/id_rsa", b"server.pem", b"credentials.json")
    }
    asked = room.snapshot(policy=Policy(include=(b".env", b"deep/*")))
    assert {b".env", b"deep/id_rsa"} <= captured(room, asked)
    assert paths_of(asked) == [b".env.local", b"credentials.json", b"server.pem"]


def test_an_ignored_file_that_is_asked_for_is_captured(room: Room) -> None:
    write(room, ".gitignore", b".env")
    write(room, ".env")
    assert b".env" not in captured(room, room.snapshot())
    assert b".env" in captured(room, room.snapshot(policy=Policy(include=(b".env",))))


def test_gits_own_directories_are_left_out_and_a_nested_ones_files_are_captured(room: Room) -> None:
    write(room, ".git/config")
    write(room, "nested/.git/config")
    write(room, "nested/dirty")
    write(room, "module/.git", b"gitdir: elsewhere")
    write(room, "odd/.GIT/config")
    made = room.snapshot()
    assert captured(room, made) == {b"nested", b"nested/dirty", b"module", b"odd"}
    assert paths_of(made) == [b"module/.git", b"nested/.git", b"odd/.GIT"]


def test_what_is_no_file_is_left_out_and_listed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(room.root / "pipe")
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(room.root)  # the path of a socket must be short
    server.bind("socket")
    server.close()
    made = room.snapshot()
    assert captured(room, made) == set()
    assert [(each.path, each.reason) for each in made.not_captured] == [
        (b"pipe", "a FIFO"),
        (b"socket", "a socket"),
    ]
    assert room.snapshot().not_captured == made.not_captured  # with the cache, too


def test_our_own_files_in_a_workspace_are_left_out(room: Room) -> None:
    for name in ("data/store.db", "data/store.db-wal", "data/mine", ".hardsave-tmp-1"):
        write(room, name)
    made = room.snapshot(policy=Policy(own=(b"data/store.db",)))
    assert captured(room, made) == {b"data", b"data/mine"}
    assert paths_of(made) == [b".hardsave-tmp-1", b"data/store.db", b"data/store.db-wal"]


def test_our_own_files_are_no_ignored_work(room: Room) -> None:
    """A store inside of a repository has git ignore its files."""
    for name in ("store.db", "mine.db"):
        write(room, name)
    write(room, ".gitignore", b"store.db\nmine.db")
    settle(room)
    for _ in range(2):  # with the cache, too
        made = room.snapshot(policy=Policy(own=(b"store.db",)))
        assert paths_of(made) == [b"mine.db"]


def test_a_file_above_its_cap_is_left_out_until_it_shrinks(room: Room) -> None:
    policy = Policy(max_file_bytes=10)
    file = write(room, "log", b"x" * 11)
    settle(room)
    assert paths_of(room.snapshot(policy=policy)) == [b"log"]
    assert paths_of(room.snapshot(policy=policy)) == [b"log"]
    file.write_bytes(b"x" * 10)
    made = room.snapshot(policy=policy)
    assert (captured(room, made), made.not_captured) == ({b"log"}, ())
    file.write_bytes(b"x" * 11)
    made = room.snapshot(policy=policy)
    assert (captured(room, made), paths_of(made)) == (set(), [b"log"])


def test_a_snapshot_above_its_cap_goes_without_the_largest_files(room: Room) -> None:
    policy = Policy(max_total_bytes=25)
    for name, size in (("a", 8), ("b", 20), ("sub/c", 19), ("sub/d", 7)):
        write(room, name, b"x" * size)
    for _ in range(2):
        made = room.snapshot(policy=policy)
        assert captured(room, made) == {b"a", b"sub", b"sub/d"}
        assert paths_of(made) == [b"b", b"sub/c"]
    (room.root / "b").unlink()
    (room.root / "a").unlink()
    assert b"sub/c" not in paths_of(room.snapshot(policy=Policy(max_total_bytes=26)))


def test_a_cap_that_is_lowered_is_heeded_in_directories_that_did_not_change(room: Room) -> None:
    write(room, "sub/deep/a", b"x" * 11)
    settle(room)
    assert room.snapshot().not_captured == ()
    made = room.snapshot(policy=Policy(max_file_bytes=10))
    assert paths_of(made) == [b"sub/deep/a"]
    assert b"sub/deep/a" in captured(room, room.snapshot())


def test_a_file_that_the_cap_leaves_out_is_in_no_group_of_hard_links(room: Room) -> None:
    file = write(room, "a", b"x" * 20)
    write(room, "b", b"x" * 8)
    for name in ("sub", "c"):
        (room.root / name).hardlink_to(file)
    made = room.snapshot(policy=Policy(max_total_bytes=30))
    assert paths_of(made) == [b"a", b"c"]
    assert directory.read_snapshot(made.root, room.fetch).links == ()


def test_a_symlink_is_captured_and_never_followed(room: Room, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"x")
    (room.root / "link").symlink_to(tmp_path / "outside")
    assert captured(room, room.snapshot()) == {b"link"}


def test_a_file_that_cannot_be_read_is_listed_and_others_are_captured(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(room, "bad")
    write(room, "good")
    real = os.read
    bad = (room.root / "bad").stat().st_ino

    def read(descriptor: int, size: int) -> bytes:
        if os.fstat(descriptor).st_ino == bad:
            raise OSError(5, "Input/output error")
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    made = room.snapshot()
    assert captured(room, made) == {b"good"}
    assert [tuple(each) for each in made.not_captured] == [
        (b"bad", "cannot be read: Input/output error")
    ]
    monkeypatch.undo()
    assert captured(room, room.snapshot()) == {b"bad", b"good"}


def test_a_directory_that_cannot_be_listed_is_left_out_and_never_shown_as_empty(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(room, "bad/file")
    write(room, "good")
    real = os.listdir
    bad = (room.root / "bad").stat().st_ino

    def listdir(path: int | str) -> list[str]:
        if isinstance(path, int) and os.fstat(path).st_ino == bad:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    for _ in range(2):
        made = room.snapshot()
        assert captured(room, made) == {b"good"}
        assert paths_of(made) == [b"bad"]
    monkeypatch.undo()
    assert captured(room, room.snapshot()) == {b"bad", b"bad/file", b"good"}


def test_a_name_that_cannot_be_looked_at_is_listed_and_looked_at_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(room, "good")
    write(room, "bad")
    room.now_ns = 10**10  # old stamps: the directory would not be listed again for being young
    real = os.stat

    def look(name: Any, **how: Any) -> os.stat_result:
        if name == b"bad":
            raise PermissionError(13, "Permission denied")
        return real(name, **how)

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", look)
            made = room.snapshot()
        assert captured(room, made) == {b"good"}
        assert paths_of(made) == [b"bad"]
    assert captured(room, room.snapshot()) == {b"bad", b"good"}


@pytest.mark.parametrize("swapped", ["sub/file", "sub"])
def test_what_becomes_a_link_before_it_is_read_is_not_followed(
    room: Room, tmp_path: Path, swapped: str
) -> None:
    write(room, "sub/file")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"secret")
    found = scan(room.root, rules=rules)
    (room.root / swapped).rename(tmp_path / "aside")
    (room.root / swapped).symlink_to(tmp_path / "outside" / swapped.removeprefix("sub").strip("/"))
    made = snapshot(found, room.put)
    assert b"sub/file" not in captured(room, made)
    assert paths_of(made) == [b"sub/file"]
    assert not any(b"secret" in data for data in room.objects.values())


def test_a_mount_point_is_not_crossed(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    write(room, "mounted/file")
    real = os.stat

    def look(name: Any, **how: Any) -> os.stat_result:
        status = real(name, **how)
        if name != b"mounted":
            return status
        return os.stat_result((*status[:2], status.st_dev + 1, *status[3:10]))

    monkeypatch.setattr(os, "stat", look)
    made = room.snapshot()
    assert captured(room, made) == set()
    assert [tuple(each) for each in made.not_captured] == [(b"mounted", "a mount point")]


def test_a_file_that_is_mounted_over_another_is_not_read(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, mounted = os.fstat, write(room, "mounted").stat().st_ino

    def look(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        if status.st_ino != mounted:
            return status
        return os.stat_result((*status[:2], status.st_dev + 1, *status[3:10]))

    monkeypatch.setattr(os, "fstat", look)
    monkeypatch.setattr(safe_open, "_openat2", lambda: None)  # as on an old kernel
    made = room.snapshot()
    assert captured(room, made) == set()
    assert paths_of(made) == [b"mounted"]


def test_an_ignore_file_that_is_a_pipe_is_none(room: Room) -> None:
    write(room, "file")
    for place in ("", "sub"):
        (room.root / place).mkdir(exist_ok=True)
        os.mkfifo(room.root / place / ".gitignore")
    writer = os.open(room.root / ".gitignore", os.O_RDWR)  # with a process at its other end
    try:
        made = room.snapshot()
    finally:
        os.close(writer)
    assert captured(room, made) == {b"file", b"sub"}
    assert paths_of(made) == [b".gitignore", b"sub/.gitignore"]


@pytest.mark.parametrize("root", ["/", "~", "~/.."])
def test_a_whole_home_is_refused_without_a_yes(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    with pytest.raises(Misuse, match="sure=True"):
        scan(os.path.expanduser(root), rules=rules)


def test_a_home_is_scanned_by_those_who_are_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert scan(tmp_path, rules=rules, sure=True).found


def test_a_workspace_that_is_not_there_is_misuse_and_no_empty_snapshot(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be opened"):
        scan(tmp_path / "nothing", rules=rules)


# What is read again


def settle(room: Room) -> None:
    """Make every stamp old enough to prove something. The next snapshot then trusts it."""
    room.now_ns = 10_000_000_000


def keep_young(room: Room) -> None:
    """Make every stamp as young as can be, however long the test takes."""
    room.now_ns = -10_000_000_000


def test_nothing_is_read_if_nothing_changed(room: Room) -> None:
    write(room, "a")
    write(room, "sub/b")
    settle(room)
    first = room.snapshot()
    assert first.read == 2
    again = room.snapshot()
    assert (again.root, again.read) == (first.root, 0)
    assert again.requires == {first.root, directory.read_snapshot(first.root, room.fetch).top}


def test_only_what_changed_is_read(room: Room) -> None:
    for name in ("a", "b", "sub/c", "sub/d"):
        write(room, name)
    settle(room)
    room.snapshot()
    write(room, "sub/c", b"longer")
    made = room.snapshot()
    assert made.read == 1
    assert made.root == room.anew().root


def test_an_edit_within_the_clocks_granularity_is_found(room: Room) -> None:
    """Same size, same time stamps: only the rule that such stamps prove nothing helps."""
    file = write(room, "a", b"one")
    keep_young(room)
    first = room.snapshot()
    status = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    room.frozen[os.fsencode(file)] = status
    made = room.snapshot()
    assert made.root != first.root
    assert made.root == room.anew().root


def test_a_symlink_that_leads_elsewhere_within_the_clocks_granularity_is_read_again(
    room: Room,
) -> None:
    """One that was removed and made again may have the inode that it had."""
    link = room.root / "link"
    link.symlink_to("one")
    keep_young(room)
    first = room.snapshot()
    room.frozen[os.fsencode(link)] = link.lstat()
    link.unlink()
    link.symlink_to("two")
    made = room.snapshot()
    assert made.root != first.root
    assert made.root == room.anew().root


def test_a_name_added_within_the_clocks_granularity_is_found(room: Room) -> None:
    write(room, "sub/a")
    keep_young(room)
    room.snapshot()
    status = (room.root / "sub").stat()
    write(room, "sub/b")
    room.frozen[os.fsencode(room.root / "sub")] = status
    assert b"sub/b" in captured(room, room.snapshot())


@pytest.mark.parametrize(
    ("mtime", "ctime", "start", "may"),
    [
        (OLD_NS, OLD_NS, OLD_NS, True),
        (OLD_NS, OLD_NS, OLD_NS + 19_000_000, True),
        (OLD_NS, OLD_NS, OLD_NS + 21_000_000, False),
        (0, OLD_NS, OLD_NS, True),  # the modification time was set by hand
        (OLD_NS, 0, OLD_NS, True),
        (10**18, 10**18, 10**18 + 1_999_999_999, True),  # whole seconds: a coarse clock
        (10**18, 10**18, 10**18 + 2_000_000_001, False),
        (OLD_NS + 10**9, OLD_NS, OLD_NS + 10**8, True),  # from the future
    ],
)
def test_stamps_prove_nothing_while_they_are_young(
    mtime: int, ctime: int, start: int, may: bool
) -> None:
    assert may_change_unseen(mtime, ctime, start) is may


def test_a_mode_that_changed_is_noticed_for_files_and_directories(room: Room) -> None:
    file = write(room, "sub/a")
    settle(room)
    roots = [room.snapshot().root]
    file.chmod(0o600)
    roots.append(room.snapshot().root)
    (room.root / "sub").chmod(0o700)
    roots.append(room.snapshot().root)
    assert len(set(roots)) == 3
    assert roots[-1] == room.anew().root


def test_a_file_that_changes_while_it_is_read_is_read_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(room, "a", b"one")
    write(room, "b")
    settle(room)
    changes = [b"two!", b"three"]

    def change() -> None:
        if changes:
            file.write_bytes(changes.pop(0))

    after_each_read(file, change, monkeypatch)
    made = room.snapshot()
    monkeypatch.undo()
    assert made.not_captured == ()
    assert made.root == room.anew().root


def test_a_file_that_never_holds_still_is_listed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(room, "a", b"one")
    write(room, "b")
    settle(room)
    after_each_read(file, lambda: file.write_bytes(file.read_bytes() + b"+"), monkeypatch)
    made = room.snapshot()
    assert captured(room, made) == {b"b"}
    assert [tuple(each) for each in made.not_captured] == [
        (b"a", "kept changing while it was read")
    ]


def test_a_file_that_grows_faster_than_it_is_read_ends_all_the_same(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(room, "log", b"x" * 3 * content.PART_BYTES)
    write(room, "other")
    settle(room)
    read, reads = os.read, 0

    def growing(descriptor: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        assert reads < 1_000, "it is read for ever"
        with file.open("ab") as writing:
            writing.write(b"y" * size)
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", growing)
    made = room.snapshot()
    monkeypatch.undo()
    assert captured(room, made) == {b"other"}
    assert paths_of(made) == [b"log"]


def test_a_file_that_does_not_hold_still_any_more_keeps_its_last_content(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(room, "a", b"one")
    settle(room)
    first = room.snapshot()
    file.write_bytes(b"two!")
    after_each_read(file, lambda: file.write_bytes(file.read_bytes() + b"+"), monkeypatch)
    made = room.snapshot()
    assert made.root == first.root
    assert "an earlier content is kept" in made.not_captured[0].reason
    monkeypatch.undo()
    settle(room)
    assert room.snapshot().root == room.anew().root != first.root


def test_a_write_that_leaves_young_stamps_alone_does_not_tear_a_file(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first read sees half of a write; its stamps are the same before and after."""
    file = write(room, "a", b"new new")
    keep_young(room)
    real = os.read
    reads = []

    def read(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        reads.append(data)
        return b"new old" if len(reads) == 1 else data

    monkeypatch.setattr(os, "read", read)
    made = room.snapshot()
    monkeypatch.undo()
    assert len(reads) == 3
    assert made.root == room.anew().root
    assert file.read_bytes() in room.contents(made)


def after_each_read(file: Path, change: object, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.read
    inode = file.stat().st_ino

    def read(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        if os.fstat(descriptor).st_ino == inode:
            change()  # type: ignore[operator]
        return data

    monkeypatch.setattr(os, "read", read)


def test_a_file_that_becomes_a_directory_and_back_is_noticed(room: Room) -> None:
    write(room, "a")
    settle(room)
    room.snapshot()
    (room.root / "a").unlink()
    write(room, "a/b")
    assert captured(room, room.snapshot()) == {b"a", b"a/b"}
    (room.root / "a/b").unlink()
    (room.root / "a").rmdir()
    write(room, "a")
    assert captured(room, room.snapshot()) == {b"a"}


def test_a_scan_reads_no_content(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    write(room, "a")
    monkeypatch.setattr(os, "read", None)
    found = scan(room.root, rules=rules)
    monkeypatch.undo()
    assert found.found[0].files == [b"a"]
    assert stat.S_ISREG(found.found[0].file_stamp(0).mode)
    assert snapshot(found, room.put).read == 1
