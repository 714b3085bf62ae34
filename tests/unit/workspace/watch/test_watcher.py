"""A watched workspace: what is looked at, what is not, and what is never taken for granted."""

import errno
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hardsave.errors import Misuse
from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot import compare, directory
from hardsave.workspace.snapshot.builder import Snapshot, snapshot
from hardsave.workspace.watch.inotify import Event, Inotify
from hardsave.workspace.watch.watcher import watch
from tests.unit.moments import another_moment
from tests.unit.stores.processes import eventually
from tests.unit.workspace.room import WatchedRoom, agree, folders, rules

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

AHEAD_NS = 10**9  # every stamp counts as proof at once: nothing is read twice by chance


class Clock:
    """Says when everything is due to be looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., WatchedRoom]]:
    rooms = []

    def made(**options: object) -> WatchedRoom:
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "cookies").mkdir(exist_ok=True)
        room = WatchedRoom(tmp_path / "work", tmp_path / "cookies", clock=clock, **options)
        room.now_ns = AHEAD_NS
        rooms.append(room)
        return room

    yield made
    for room in rooms:
        room.watch.close()


@pytest.fixture
def room(make: Callable[..., WatchedRoom]) -> WatchedRoom:
    """With some files, and looked at once."""
    room = make()
    fill(room)
    room.snapshot()
    return room


def fill(room: WatchedRoom) -> None:
    for path in ("a", "sub/b", "sub/deep/c", "other/d", "other/e", "build/out"):
        write(room, path)
    write(room, ".gitignore", b"build\nlog")
    another_moment()  # what follows has other stamps


def write(room: WatchedRoom, path: str, content: bytes = b"x") -> Path:
    file = room.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def check(room: WatchedRoom, **options: object) -> Snapshot:
    """An incremental scan finds what a full one does."""
    before = room.incremental
    made = room.snapshot(**options)  # type: ignore[arg-type]
    assert room.incremental == before + 1, room.reasons
    return compared(room, made, **options)


def compared(room: WatchedRoom, made: Snapshot, **options: object) -> Snapshot:
    anew = room.anew(**options)  # type: ignore[arg-type]
    assert (made.root, made.not_captured) == (anew.root, anew.not_captured)
    assert agree(folders(made), folders(anew))
    return made


def number_of_watches() -> int:
    """As the kernel counts them, with the one for cookies."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:inotify":
                count += Path(f"/proc/self/fdinfo/{name}").read_text().count("inotify wd:")
        except FileNotFoundError:
            continue
    return count


def looks(room: WatchedRoom, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Which paths in the workspace `lstat` is asked about from now on."""
    real = os.lstat
    scanned: list[bytes] = []

    def lstat(path: bytes, *, dir_fd: int | None = None) -> os.stat_result:
        whole = path if dir_fd is None else os.path.join(os.fsencode(room.root), path)
        if whole.startswith(os.fsencode(room.root) + b"/"):
            scanned.append(whole)
        return real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", lstat)
    return scanned


# What is looked at


def test_nothing_is_looked_at_if_nothing_changed(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = check(room)
    cache = room.cache
    scanned = looks(room, monkeypatch)
    made = room.snapshot()
    assert (scanned, room.looked_at) == ([], [])
    assert (made.root, made.not_captured, made.read) == (first.root, first.not_captured, 0)
    assert made.cache.folders is cache.folders


def test_only_what_changed_is_looked_at_and_what_is_above_is_written(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(room)
    write(room, "other/d", b"new")
    scanned = looks(room, monkeypatch)
    made = room.snapshot()
    monkeypatch.undo()
    assert scanned == [os.fsencode(room.root / "other/d")]
    assert room.looked_at == [b"", b"other"]
    assert made.read == 1
    compared(room, made)


def test_what_was_made_moved_and_removed_is_found(room: WatchedRoom) -> None:
    write(room, "new/deep/er/file")
    check(room)
    (room.root / "new/deep").rename(room.root / "sub/deep/er")
    check(room)
    write(room, "sub/deep/er/er/file", b"changed after it was moved")
    check(room)
    (room.root / "sub").rename(room.root.parent / "outside")
    check(room)
    (room.root.parent / "outside/b").write_bytes(b"changed elsewhere")
    check(room)
    assert b"sub" not in room.looked_at
    (room.root.parent / "outside").rename(room.root / "sub")
    check(room)
    (room.root / "sub").chmod(0o700)
    check(room)


def test_a_file_put_in_the_place_of_a_directory_and_back_is_found(room: WatchedRoom) -> None:
    deep = room.root / "sub/deep"
    (deep / "c").unlink()
    deep.rmdir()
    deep.write_bytes(b"a file")
    check(room)
    deep.unlink()
    deep.symlink_to(room.root / "other")
    check(room)
    deep.unlink()
    write(room, "sub/deep/again/c")
    check(room)
    write(room, "sub/deep/again/c", b"changed")
    check(room)


def test_a_name_that_comes_while_its_directory_is_read_is_found_the_next_time(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch is there before the list of names is read."""
    fresh = write(room, "fresh/one").parent.stat().st_ino
    real = os.listdir

    def listdir(path: int | str) -> list[str]:
        names = real(path)
        if isinstance(path, int) and os.fstat(path).st_ino == fresh:
            write(room, "fresh/two")
        return names

    monkeypatch.setattr(os, "listdir", listdir)
    room.snapshot()
    monkeypatch.undo()
    check(room)
    assert compare.find(top(room), b"fresh/two", room.fetch) is not None


def test_what_happens_between_the_look_from_above_and_the_watch_is_found(
    make: Callable[..., WatchedRoom], tmp_path: Path
) -> None:
    """A stamp that was taken before the watch was there proves nothing."""

    class Late(Inotify):
        def add(self, path: bytes, mask: int) -> int:
            if path.endswith(b"/sub"):
                (tmp_path / "work/sub/in between").write_bytes(b"x")
            return super().add(path, mask)

    room = make(source=Late)
    fill(room)
    write(room, "sub/in between")
    room.cache = plain_scan(room).cache  # as if an earlier process had left it
    (room.root / "sub/in between").unlink()
    room.cache = plain_scan(room).cache
    compared(room, room.snapshot())
    assert compare.find(top(room), b"sub/in between", room.fetch) is not None


def plain_scan(room: WatchedRoom) -> Snapshot:
    found = scan(room.root, rules=rules, cache=room.cache, clock=room.clock)
    return snapshot(found, room.put, clock=room.clock)


def top(room: WatchedRoom) -> bytes:
    return directory.read_snapshot(room.cache.root, room.fetch).top


def test_stamps_that_prove_nothing_are_looked_at_again_although_nothing_was_told(
    room: WatchedRoom,
) -> None:
    room.now_ns = -10 * AHEAD_NS
    write(room, "a", b"young")
    room.snapshot()
    room.snapshot()
    assert b"" in room.looked_at
    room.now_ns = AHEAD_NS
    room.snapshot()
    room.snapshot()
    assert room.looked_at == []


# What is watched


def test_what_is_ignored_is_not_watched(room: WatchedRoom) -> None:
    assert number_of_watches() == 1 + 4
    write(room, "build/node/modules/x")
    room.snapshot()
    assert (room.looked_at, number_of_watches()) == ([], 5)


def test_an_edited_ignore_file_changes_what_is_captured_and_what_is_watched(
    room: WatchedRoom,
) -> None:
    write(room, "build/deep/out")
    write(room, ".gitignore", b"sub")
    check(room)
    assert compare.find(top(room), b"build/deep/out", room.fetch) is not None
    assert compare.find(top(room), b"sub", room.fetch) is None
    assert number_of_watches() == 1 + 4
    write(room, "build/deep/out", b"changed")
    write(room, "sub/b", b"ignored")
    check(room)
    assert b"build/deep" in room.looked_at
    write(room, ".gitignore", b"")
    check(room)
    assert compare.find(top(room), b"sub/deep/c", room.fetch) is not None


def test_an_ignore_file_that_changes_during_a_scan_and_back_leaves_nothing_behind(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = write(room, "sub/deep/new").parent.stat().st_ino
    real = os.listdir

    def listdir(path: int | str) -> list[str]:
        if isinstance(path, int) and os.fstat(path).st_ino == deep:
            write(room, ".gitignore", b"new")
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    room.snapshot()
    monkeypatch.undo()
    assert "ignore file" in room.reasons[-1]
    write(room, ".gitignore", b"build\nlog")
    check(room)


def test_what_git_begins_to_track_is_captured_and_watched(room: WatchedRoom) -> None:
    write(room, "build/tracked")
    tracked = frozenset({b"build/tracked"})
    check(room, tracked=tracked)
    write(room, "build/tracked", b"changed")
    check(room, tracked=tracked)
    assert compare.find(top(room), b"build/tracked", room.fetch) is not None
    check(room, tracked=frozenset({b"a"}))
    assert compare.find(top(room), b"build", room.fetch) is None


def test_another_policy_is_heeded_everywhere(room: WatchedRoom) -> None:
    write(room, "sub/deep/.env")
    check(room)
    check(room, policy=Policy(include=(b".env",)))
    assert compare.find(top(room), b"sub/deep/.env", room.fetch) is not None
    check(room, policy=Policy(max_file_bytes=0))


def test_a_snapshot_above_its_cap_looks_at_everything(room: WatchedRoom) -> None:
    policy = Policy(max_total_bytes=100)
    check(room, policy=policy)
    write(room, "sub/large", b"x" * 100)
    for _ in range(2):
        compared(room, room.snapshot(policy=policy), policy=policy)
        assert not room.reasons[-1].startswith("nothing is taken for granted")
    assert "cap" in room.reasons[-2]
    (room.root / "sub/large").unlink()
    compared(room, room.snapshot(policy=policy), policy=policy)
    check(room, policy=policy)


# Files with several names


def test_a_file_that_changes_under_another_name_is_found(room: WatchedRoom, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"one")
    (room.root / "sub/linked").hardlink_to(tmp_path / "outside")
    check(room)
    for content in (b"two", b"three"):
        (tmp_path / "outside").write_bytes(content)
        another_moment()
        check(room)
    (tmp_path / "outside").unlink()
    check(room)


def test_a_second_name_makes_a_group_with_the_first_wherever_that_is(room: WatchedRoom) -> None:
    """The directory of the first name is told nothing; one more file in it changes."""
    (room.root / "other/linked").hardlink_to(room.root / "sub/deep/c")
    write(room, "sub/deep/x")
    check(room)
    write(room, "sub/deep/x", b"changed")
    (room.root / "a2").hardlink_to(room.root / "sub/deep/x")
    check(room)
    links = directory.read_snapshot(room.cache.root, room.fetch).links
    assert links == ((b"a2", b"sub/deep/x"), (b"other/linked", b"sub/deep/c"))
    write(room, "other/linked", b"changed under the second name")
    check(room)
    (room.root / "other/linked").unlink()
    check(room)
    assert len(directory.read_snapshot(room.cache.root, room.fetch).links) == 1


def test_a_large_file_that_shrinks_under_another_name_is_captured(room: WatchedRoom) -> None:
    policy = Policy(max_file_bytes=10)
    large = write(room, "sub/large", b"x" * 11)
    check(room, policy=policy)
    (room.root / "other/large").hardlink_to(large)  # of which the first name is told nothing
    check(room, policy=policy)
    (room.root / "other/large").write_bytes(b"small")
    check(room, policy=policy)
    assert compare.find(top(room), b"sub/large", room.fetch) is not None
    large.write_bytes(b"x" * 11)
    check(room, policy=policy)
    large.write_bytes(b"small")
    check(room, policy=policy)
    assert compare.find(top(room), b"other/large", room.fetch) is not None


def test_what_is_written_through_a_mapping_is_found_once_it_is_closed(room: WatchedRoom) -> None:
    file = write(room, "sub/mapped", b"x" * 4096)
    check(room)
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0)
    mapped[0:3] = b"new"
    mapped.close()
    check(room)
    assert room.looked_at


def test_everything_is_looked_at_when_it_is_due(room: WatchedRoom, clock: Clock) -> None:
    clock.now = 299
    room.snapshot()
    assert room.incremental == 1
    clock.now = 301
    room.snapshot()
    assert "300 seconds" in room.reasons[-1]
    clock.now = 600
    room.snapshot()
    assert room.incremental == 2


# What is never taken for granted


def test_a_scan_that_is_given_up_leaves_everything_it_was_told_to_the_next(
    room: WatchedRoom,
) -> None:
    write(room, "a", b"changed")
    write(room, "new/file")
    (room.root / "sub/b").unlink()
    room.watch.changed(room.cache)  # asked, and no scan at all
    write(room, "other/d", b"changed later")

    def fail(_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    found = scan(room.root, rules=rules, cache=room.cache, changed=room.changed(), clock=room.clock)
    with pytest.raises(OSError, match="no room"):
        snapshot(found, fail, clock=room.clock)
    check(room)


def test_a_directory_that_a_scan_lost_sight_of_before_it_was_given_up_is_found(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not be listed, and is watched no longer; then that scan came to nothing."""
    deep = (room.root / "sub/deep").stat().st_ino
    real = os.listdir

    def listdir(path: int | str) -> list[str]:
        if isinstance(path, int) and os.fstat(path).st_ino == deep:
            raise PermissionError(13, "Permission denied")
        return real(path)

    write(room, "sub/deep/new")
    monkeypatch.setattr(os, "listdir", listdir)
    scan(room.root, rules=rules, cache=room.cache, changed=room.changed(), clock=room.clock)
    monkeypatch.undo()
    write(room, "sub/deep/newer")
    check(room)
    write(room, "sub/deep/newest")
    check(room)


def test_a_directory_that_was_let_go_by_a_scan_that_came_to_nothing_is_looked_at_again(
    room: WatchedRoom,
) -> None:
    """For that scan it was ignored, and so it is watched no longer."""
    write(room, "build/deep/tracked")
    tracked = frozenset({b"build/deep/tracked"})
    check(room, tracked=tracked)
    changed = room.changed()
    scan(room.root, rules=rules, cache=room.cache, changed=changed, clock=room.clock)
    write(room, "build/deep/tracked", b"changed")
    another_moment()
    check(room, tracked=tracked)
    write(room, "build/deep/tracked", b"changed again")
    check(room, tracked=tracked)


def test_a_directory_that_is_looked_at_twice_is_told_of_once(room: WatchedRoom) -> None:
    """A second name leads back to its parent, whose ignore file is never taken as read."""
    policy = Policy(max_file_bytes=10)
    for path in ("sub/deep/large", "sub/.hardsaveignore"):
        write(room, path, b"\n" * 11)
    check(room, policy=policy)
    write(room, "sub/deep/new")
    (room.root / "linked").hardlink_to(room.root / "a")
    check(room, policy=policy)


def test_an_older_cache_means_a_look_at_everything(room: WatchedRoom) -> None:
    old = room.cache
    for content in (b"1", b"2"):
        write(room, "a", content)
        another_moment()
        check(room)
    room.cache = old
    compared(room, room.snapshot())
    assert "not brought to its end" in room.reasons[-1]


def test_the_cache_of_another_watch_means_a_look_at_everything(
    room: WatchedRoom, make: Callable[..., WatchedRoom]
) -> None:
    other = make()
    other.objects = room.objects
    other.cache = room.cache
    write(room, "a", b"changed")
    compared(other, other.snapshot())
    assert other.reasons == ["nothing is known from an earlier scan"]


def queue_limit() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


@pytest.mark.skipif(
    sys.platform != "linux" or queue_limit() > 200_000, reason="this machine's queue is too long"
)
def test_a_queue_that_overflowed_means_a_look_at_everything_said_once(
    room: WatchedRoom, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        for number in range(queue_limit() + 10):
            (room.root / ("a" if number % 2 else "other/d")).chmod(0o644)
        write(room, "sub/deep/c", os.urandom(5))
        write(room, "new/after the queue was full", os.urandom(5))
        compared(room, room.snapshot())
        assert "than the watcher can tell" in room.reasons[-1]
        write(room, "new/watched again", os.urandom(5))
        another_moment()
        check(room)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "than the watcher can tell" in caplog.text


def test_a_limit_of_watches_means_a_look_at_everything_until_there_is_room(
    make: Callable[..., WatchedRoom], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    room_for = [3]

    class Limited(Inotify):
        def add(self, path: bytes, mask: int) -> int:
            if room_for[0] == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            room_for[0] -= 1
            return super().add(path, mask)

    room = make(source=Limited)
    fill(room)
    room.snapshot()
    for content in (b"one", b"two"):
        write(room, "sub/deep/c", content)
        compared(room, room.snapshot())
        assert "max_user_watches" in room.reasons[-1]
    assert caplog.text.count("max_user_watches") == 1
    assert number_of_watches() == 0
    room_for[0] = 100
    clock.now = 301
    room.snapshot()
    write(room, "sub/deep/c", b"three")
    check(room)


def test_without_an_inotify_instance_everything_is_looked_at(
    make: Callable[..., WatchedRoom], caplog: pytest.LogCaptureFixture
) -> None:
    def none() -> Inotify:
        raise OSError(errno.EMFILE, "Too many open files")

    room = make(source=none, no_events_seconds=0.01)
    fill(room)
    for content in (b"one", b"two"):
        write(room, "a", content)
        assert room.watch.wait()
        compared(room, room.snapshot())
        assert "max_user_instances" in room.reasons[-1]
    assert caplog.text.count("max_user_instances") == 1
    patient = make(source=none, no_events_seconds=1000)
    patient.snapshot()
    assert not patient.watch.wait(timeout=0.01)


def test_a_watcher_that_does_not_answer_is_not_trusted(make: Callable[..., WatchedRoom]) -> None:
    class Deaf(Inotify):
        is_prompt = False

        def read(self) -> list[Event]:
            super().read()
            return []

    room = make(source=Deaf, answer_seconds=0.01)
    fill(room)
    room.snapshot()
    write(room, "a", b"changed")
    compared(room, room.snapshot())
    assert "no event came" in room.reasons[-1]


def test_events_that_come_late_are_waited_for(make: Callable[..., WatchedRoom]) -> None:
    class Slow(Inotify):
        is_prompt = False
        left = 0

        def read(self) -> list[Event]:
            self.left += 1
            return super().read() if self.left % 3 == 0 else []

    room = make(source=Slow)
    fill(room)
    room.snapshot()
    write(room, "a", b"changed")
    check(room)


def test_without_a_place_for_cookies_everything_is_looked_at(
    room: WatchedRoom, tmp_path: Path
) -> None:
    (tmp_path / "cookies").rmdir()
    write(room, "a", b"changed")
    compared(room, room.snapshot())
    assert "cookie" in room.reasons[-1]
    (tmp_path / "cookies").mkdir()


def test_cookies_are_taken_away_again(room: WatchedRoom, tmp_path: Path) -> None:
    (tmp_path / "cookies/.hardsave-cookie-1-1").write_bytes(b"")  # of one that was killed
    check(room)
    room.cache = room.cache._replace(last_scan=None)
    room.snapshot()
    assert list((tmp_path / "cookies").iterdir()) == []


def test_cookies_in_a_captured_directory_are_refused(room: WatchedRoom) -> None:
    with (
        watch(room.root, cookies=room.root / "sub") as eyes,
        pytest.raises(Misuse, match="is captured"),
    ):
        scan(room.root, rules=rules, changed=eyes.changed(room.cache))


def test_a_workspace_that_is_another_directory_is_looked_at_as_a_whole(
    room: WatchedRoom, tmp_path: Path
) -> None:
    room.root.rename(tmp_path / "away")
    write(room, "other/only this")
    compared(room, room.snapshot())
    assert "replaced" in room.reasons[-1]
    write(room, "other/only this", b"changed")
    check(room)


def test_a_workspace_whose_parent_was_exchanged_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "cookies").mkdir()
    above = tmp_path / "above"
    (above / "work").mkdir(parents=True)
    with WatchedRoom(above / "work", tmp_path / "cookies") as room:
        write(room, "a")
        room.snapshot()
        above.rename(tmp_path / "away")
        write(room, "b")
        compared(room, room.snapshot())
        assert "replaced" in room.reasons[-1]


def test_a_workspace_that_is_gone_is_an_error_and_no_empty_snapshot(
    room: WatchedRoom, tmp_path: Path
) -> None:
    room.root.rename(tmp_path / "away")
    with pytest.raises(Misuse, match="cannot be opened"):
        room.snapshot()
    (tmp_path / "away").rename(room.root)
    write(room, "a", b"changed")
    compared(room, room.snapshot())


def test_a_workspace_that_comes_again_is_news_and_is_watched(
    room: WatchedRoom, tmp_path: Path
) -> None:
    room.root.rename(tmp_path / "away")
    assert room.watch.wait(timeout=60)
    with pytest.raises(Misuse, match="cannot be opened"):
        room.snapshot()
    assert not room.watch.wait(timeout=1)  # nothing to save until it is there
    room.root.mkdir()
    write(room, "new")
    assert room.watch.wait(timeout=60)
    compared(room, room.snapshot())
    write(room, "new", b"changed")
    assert room.watch.wait(timeout=60)
    check(room)


@pytest.mark.parametrize("mask", [0x2000, 0x8000], ids=["unmounted", "ended"])
def test_a_watch_that_the_kernel_takes_away_is_noticed(
    make: Callable[..., WatchedRoom], mask: int
) -> None:
    class Losing(Inotify):
        numbers: dict[bytes, int] = {}  # noqa: RUF012 - one instance at a time
        told: list[Event] = []  # noqa: RUF012

        def add(self, path: bytes, mask: int) -> int:
            number = self.numbers[path.rpartition(b"/")[2]] = super().add(path, mask)
            return number

        def read(self) -> list[Event]:
            events, self.told[:] = [*self.told, *super().read()], []
            return events

    room = make(source=Losing)
    fill(room)
    room.snapshot()
    Losing.told.append(Event(Losing.numbers[b"deep"], mask))
    compared(room, room.snapshot())
    assert room.reasons[-1].endswith("unmounted") or b"sub/deep" in room.looked_at
    write(room, "sub/deep/c", b"watched again")
    check(room)


def test_a_file_system_that_others_change_is_not_trusted(
    make: Callable[..., WatchedRoom], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hardsave.workspace.filesystem.mounts.kind_under", lambda root, listed: "nfs4"
    )
    room = make()
    fill(room)
    room.snapshot()
    assert "nfs4" in room.reasons[-1]


def test_something_mounted_in_the_workspace_means_a_look_at_everything(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hardsave.workspace.filesystem.mounts.Mounts.have_changed", lambda self: True
    )
    room.snapshot()
    assert "mounted" in room.reasons[-1]


# Waiting


def test_waiting_ends_when_something_was_captured_that_changed(room: WatchedRoom) -> None:
    assert not room.watch.wait(timeout=0.01)
    write(room, "sub/b", b"changed")
    assert room.watch.wait(quiet=0.01, timeout=60)
    assert room.watch.wait(quiet=0.01, timeout=60), "there was no scan yet"
    check(room)
    assert not room.watch.wait(timeout=0.01)


def test_waiting_goes_on_until_it_is_quiet_or_has_taken_long_enough(room: WatchedRoom) -> None:
    stop = threading.Event()
    count = [0]

    def busy() -> None:
        while not stop.wait(0.002):
            count[0] += 1
            write(room, "sub/b", b"%d" % count[0])

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        assert room.watch.wait(quiet=60, limit=0.1)  # never quiet: the limit ends it
        assert eventually(lambda: count[0] > 1)
    finally:
        stop.set()
        thread.join()
    check(room)


def test_ignored_names_wake_no_thread(room: WatchedRoom) -> None:
    write(room, "log", b"a new name, which has to be looked at once")
    assert room.watch.wait(quiet=0.001, timeout=60)
    check(room)
    for number in range(3):
        write(room, "log", b"%d" % number)
        write(room, "build/out", b"%d" % number)
        assert not room.watch.wait(timeout=0.01)
    write(room, ".gitignore", b"build")
    check(room)
    write(room, "log", b"captured now")
    assert room.watch.wait(quiet=0.001, timeout=60)
    check(room)


def test_waiting_ends_before_anything_was_looked_at(make: Callable[..., WatchedRoom]) -> None:
    assert make().watch.wait(quiet=0.001)


def test_waiting_ends_when_everything_is_due(room: WatchedRoom, clock: Clock) -> None:
    clock.now = 300
    assert room.watch.wait(quiet=0.001)


def start_waiting(room: WatchedRoom, thread: threading.Thread) -> None:
    thread.start()
    while not room.watch._waiting.locked():
        time.sleep(0.001)
    time.sleep(0.02)  # most likely it sleeps by then


@pytest.mark.parametrize("ends", ["wake", "close"])
def test_waiting_can_be_ended_by_another_thread(room: WatchedRoom, ends: str) -> None:
    outcome: list[bool] = []
    thread = threading.Thread(target=lambda: outcome.append(room.watch.wait()))
    start_waiting(room, thread)
    getattr(room.watch, ends)()
    thread.join(60)
    assert outcome == [False]


def test_one_thread_waits_while_another_looks_at_everything(
    room: WatchedRoom, clock: Clock
) -> None:
    """The descriptor that it waits for is another one from then on."""
    outcome: list[bool] = []
    thread = threading.Thread(target=lambda: outcome.append(room.watch.wait(quiet=0.001)))
    start_waiting(room, thread)
    room.cache = room.cache._replace(last_scan=None)
    room.snapshot()
    write(room, "sub/b", b"changed")
    thread.join(60)
    assert outcome == [True]
    check(room)


def test_only_one_thread_waits(room: WatchedRoom) -> None:
    thread = threading.Thread(target=room.watch.wait)
    start_waiting(room, thread)
    with pytest.raises(Misuse, match="another thread"):
        room.watch.wait()
    room.watch.wake()
    thread.join(60)


# Closing


def test_a_closed_watch_leaves_no_descriptor_and_is_not_used(room: WatchedRoom) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with watch(room.root, cookies=room.root.parent / "cookies") as eyes:
        scan(room.root, rules=rules, changed=eyes.changed(room.cache))
        assert len(os.listdir("/proc/self/fd")) > before
    eyes.close()
    assert len(os.listdir("/proc/self/fd")) == before
    for use in (eyes.wait, eyes.wake, lambda: eyes.changed(room.cache)):
        with pytest.raises(Misuse, match="closed"):
            use()


def test_a_forked_child_must_not_use_the_watch_and_takes_nothing_from_it(
    room: WatchedRoom,
) -> None:
    write(room, "a", b"changed")
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (room.changed, room.watch.wait, room.watch.wake):
            try:
                use()
            except Misuse:
                refused += 1
        room.watch.close()
        room.watch.close()
        os._exit(0 if refused == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    check(room)
    assert b"" in room.looked_at
