"""What events mean, and what has to be looked at because of them: decisions over plain data."""

import errno
import struct

import pytest

from hardsave.workspace.filesystem import mounts
from hardsave.workspace.scan import incremental_walk
from hardsave.workspace.scan.cache import LastScan
from hardsave.workspace.scan.changed_paths import Changed, Mark
from hardsave.workspace.watch import event_meaning, inotify
from hardsave.workspace.watch.event_meaning import Meaning, Pending, Watches
from hardsave.workspace.watch.inotify import Event
from hardsave.workspace.watch.session import WatchSession


def test_what_the_kernel_writes_is_taken_apart() -> None:
    data = struct.pack("=iIII", 7, inotify.CREATE | inotify.IS_DIR, 0, 16) + b"a\xff b".ljust(
        16, b"\0"
    )
    data += struct.pack("=iIII", -1, inotify.Q_OVERFLOW, 0, 0)
    assert list(inotify.events(data)) == [
        Event(7, inotify.CREATE | inotify.IS_DIR, b"a\xff b"),
        Event(-1, inotify.Q_OVERFLOW, b""),
    ]
    assert list(inotify.events(b"")) == []


@pytest.mark.parametrize(
    ("mask", "name", "means"),
    [
        (inotify.MODIFY, b"a", Meaning.CONTENT),
        (inotify.CLOSE_WRITE, b"a", Meaning.CONTENT),
        (inotify.ATTRIB, b"a", Meaning.CONTENT),
        (inotify.ATTRIB | inotify.IS_DIR, b"a", Meaning.CONTENT),
        (inotify.ATTRIB | inotify.IS_DIR, b"", Meaning.NAMES),
        (inotify.CREATE, b"a", Meaning.NAMES),
        (inotify.DELETE, b"a", Meaning.NAMES),
        (inotify.MOVED_FROM, b"a", Meaning.NAMES),
        (inotify.MOVED_TO, b"a", Meaning.NAMES),
        (inotify.CREATE | inotify.IS_DIR, b"a", Meaning.TREE),
        (inotify.DELETE | inotify.IS_DIR, b"a", Meaning.TREE),
        (inotify.MOVED_FROM | inotify.IS_DIR, b"a", Meaning.TREE),
        (inotify.MOVED_TO | inotify.IS_DIR, b"a", Meaning.TREE),
        (inotify.DELETE_SELF, b"", Meaning.ENDED),
        (inotify.MOVE_SELF | inotify.IS_DIR, b"", Meaning.ENDED),
        (inotify.IGNORED, b"", Meaning.ENDED),
        (inotify.UNMOUNT, b"", Meaning.UNMOUNTED),
        (inotify.Q_OVERFLOW, b"", Meaning.OVERFLOW),
    ],
)
def test_every_event_means_something(mask: int, name: bytes, means: Meaning) -> None:
    assert event_meaning.meaning(mask, name) is means


def test_a_directory_is_forgotten_with_all_that_is_beneath_it() -> None:
    watches = Watches()
    for number, path in enumerate([b"", b"a", b"a/b", b"a/b/c", b"ab", b"d"]):
        assert watches.add(path, number) is None
    assert watches.drop(b"a") == {b"a": 1, b"a/b": 2, b"a/b/c": 3}
    assert [path in watches for path in (b"", b"a", b"a/b", b"a/b/c", b"ab")] == [
        *(True, False, False, False, True)
    ]
    assert watches.path(2) is None
    assert watches.path(4) == b"ab"
    assert watches.drop(b"a") == {}
    assert len(watches) == 3


def test_one_directory_under_two_names_is_watched_under_the_last_one() -> None:
    watches = Watches()
    watches.add(b"a", 1)
    watches.add(b"a/b", 2)
    assert watches.add(b"z", 1) == b"a"
    assert watches.path(1) == b"z"
    assert b"a" not in watches
    assert watches.drop(b"a") == {b"a/b": 2}, "what was beneath the old name is found all the same"
    assert watches.add(b"z", 1) is None


def test_what_was_told_after_a_moment_is_pending_since_then() -> None:
    pending = Pending()
    pending.content(b"a", b"one", 1)
    pending.content(b"b", b"x", 1)
    pending.content(b"a", b"two", 2)
    pending.names(b"c", 2)
    pending.tree(b"d/e", 3)
    assert pending.since(1) == (
        {b"a": frozenset({b"two"}), b"c": None, b"d": None},
        frozenset({b"d/e"}),
    )
    assert pending.since(0)[0][b"a"] == frozenset({b"one", b"two"})
    assert pending.since(3) == ({}, frozenset())
    pending.forget(2)
    assert pending.since(0) == ({b"d": None}, frozenset({b"d/e"}))


def test_a_directory_whose_names_changed_is_in_doubt_as_a_whole() -> None:
    pending = Pending()
    pending.names(b"a", 1)
    pending.content(b"a", b"one", 1)
    pending.content(b"a", b"two", 2)
    assert pending.since(0) == ({b"a": None}, frozenset())
    assert pending.since(1) == ({b"a": frozenset({b"two"})}, frozenset())
    pending.names(b"a", 2)
    assert pending.since(1) == ({b"a": None}, frozenset())


def test_what_is_said_of_an_earlier_moment_takes_nothing_back() -> None:
    pending = Pending()
    pending.tree(b"a/b", 5)
    pending.content(b"c", b"x", 5)
    pending.tree(b"a/b", 4)
    pending.content(b"c", b"y", 4)
    directories, trees = pending.since(4)
    assert directories.keys() == {b"a", b"c"}
    assert trees == frozenset({b"a/b"})


@pytest.mark.parametrize(
    ("what", "directories", "trees"),
    [
        (Meaning.CONTENT, {b"a": {b"n"}}, set()),
        (Meaning.NAMES, {b"a": None}, set()),
        (Meaning.TREE, {b"a": None}, {b"a/n"}),
        (Meaning.ENDED, {b"": None}, {b"a"}),
    ],
)
def test_an_event_puts_in_doubt_what_it_could_be_about(
    what: Meaning, directories: dict[bytes, object], trees: set[bytes]
) -> None:
    pending = Pending()
    event_meaning.note(pending, b"a", b"n", what, 1)
    told = pending.since(0)
    assert told[0] == directories
    assert told[1] == frozenset(trees)


def test_a_limit_of_the_system_is_named_with_what_to_do_about_it() -> None:
    assert "fs.inotify.max_user_watches" in event_meaning.refusal(OSError(errno.ENOSPC, ""))
    assert "fs.inotify.max_user_instances" in event_meaning.refusal(OSError(errno.EMFILE, ""))
    assert "cookies" in event_meaning.refusal(OSError(errno.ENOENT, ""))
    assert "Function not" in event_meaning.refusal(
        OSError(errno.ENOSYS, "Function not implemented")
    )


# Whether an incremental scan is enough


def changed(
    watch: int = 1, full_scan_reason: str = "", identity: tuple[int, int] = (1, 2)
) -> Changed:
    watcher = WatchSession.__new__(WatchSession)
    return Changed(Mark(watch, 5), watcher, identity, full_scan_reason)


MEMORY = LastScan(Mark(1, 4), frozenset, b"", 0, {}, {}, frozenset(), {})


def test_an_incremental_scan_is_enough_for_what_the_same_watch_has_seen() -> None:
    assert incremental_walk.objection(changed(), MEMORY, (1, 2)) == ""
    assert incremental_walk.objection(changed(full_scan_reason="doubt"), MEMORY, (1, 2)) == "doubt"
    assert "nothing is known" in incremental_walk.objection(changed(), None, (1, 2))
    assert "nothing is known" in incremental_walk.objection(changed(watch=2), MEMORY, (1, 2))
    assert "another directory" in incremental_walk.objection(changed(), MEMORY, (1, 3))


def test_what_git_begins_or_ceases_to_track_is_looked_for_on_the_way_to_it() -> None:
    one, other = frozenset({b"a/b/c", b"d"}), frozenset({b"d", b"e/f"})
    assert incremental_walk.above_what_differs(one, one) == set()
    assert incremental_walk.above_what_differs(one, frozenset(one)) == set()
    assert incremental_walk.above_what_differs(one, other) == {b"", b"a", b"a/b", b"e"}
    with pytest.raises(incremental_walk.FullWalkNeeded):
        incremental_walk.above_what_differs(one, frozenset({b"vendor/"}))


# Mounts

LISTED = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
40 22 0:50 / /home/me/my\040work rw shared:7 master:1 - nfs4 server:/x rw
41 40 0:51 / /home/me/my\040work/sub\134dir rw - tmpfs tmpfs rw
42 22 0:52 / /home/me/my\040works rw - fuse.sshfs x rw
"""


def test_the_mounts_under_and_in_a_workspace_are_found() -> None:
    work = b"/home/me/my work"
    assert mounts.kind_under(b"/home/me", LISTED) == "ext4"
    assert mounts.kind_under(work + b"/x", LISTED) == "nfs4"
    assert mounts.kind_under(work + b"s", LISTED) == "fuse.sshfs"
    assert mounts.kind_under(b"/home", b"") == ""
    points = {each.point for each in mounts.inside(work, LISTED)}
    assert points == {work, work + b"/sub\\dir"}


def test_on_file_systems_that_other_machines_change_not_all_is_told() -> None:
    assert [mounts.tells_all(kind) for kind in ("ext4", "xfs", "tmpfs", "fuseblk", "")] == [
        True
    ] * 5
    assert [mounts.tells_all(kind) for kind in ("nfs", "9p", "fuse.sshfs", "fuse")] == [False] * 4
