"""What a repository inside of a workspace tracks is captured, even if outer rules ignore it."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.workspace.entries import DIRECTORY, NotCaptured
from hardsave.workspace.snapshot import compare, directory
from hardsave.workspace.snapshot.builder import Snapshot
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.room import Room, WatchedRoom


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


@pytest.fixture
def inner(room: Room) -> Repository:
    """Tracks two files that the workspace's own rules ignore."""
    write(room, ".gitignore", "log\nbuild/\n")
    made = Repository(room.root / "sub").init()
    made.commit("log", "tracked")
    made.commit("build/out", "tracked")
    write(room, "sub/deep/log", "not tracked")
    return made


def write(room: Room, path: str, content: str) -> None:
    file = room.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def files(room: Room, made: Snapshot) -> set[bytes]:
    top = directory.read_snapshot(made.root, room.fetch).top
    empty = directory.write([], room.objects.__setitem__)
    found = compare.differences(empty, top, room.fetch)
    return {each.path for each in found if each.new and each.new.type != DIRECTORY}


def test_what_an_inner_repository_tracks_is_captured_and_no_more(
    room: Room, inner: Repository
) -> None:
    assert files(room, room.snapshot()) == {b".gitignore", b"sub/log", b"sub/build/out"}
    assert files(room, room.snapshot()) == {b".gitignore", b"sub/log", b"sub/build/out"}


def test_a_directory_that_outer_rules_ignore_is_ignored_with_the_repository_in_it(
    room: Room, inner: Repository
) -> None:
    write(room, ".gitignore", "log\nbuild/\nsub/\n")
    assert files(room, room.snapshot()) == {b".gitignore"}
    tracked = frozenset({b"sub"})  # a submodule of the outer repository
    assert files(room, room.snapshot(tracked=tracked)) == {
        *(b".gitignore", b"sub/log", b"sub/build/out")
    }


def test_a_submodule_and_a_linked_worktree_are_such_repositories(tmp_path: Path) -> None:
    outer = Repository(tmp_path / "work").init()
    other = Repository(tmp_path / "other").init()
    other.commit("log", "tracked")
    outer.git("submodule", "--quiet", "add", str(other.root), "module")
    outer.write(".gitignore", "log\n")
    other.git("worktree", "add", "--quiet", "--detach", str(outer.root / "tree"))
    room = Room(outer.root)
    assert {b"module/log", b"tree/log"} <= files(room, room.snapshot())


def test_an_index_that_cannot_be_read_is_told_of_if_it_could_matter(
    room: Room, inner: Repository
) -> None:
    (inner.root / ".git/index").write_bytes(b"DIRC, and no more")
    for _ in range(2):
        made = room.snapshot()
        assert files(room, made) == {b".gitignore"}
        why = "git's index could not be read, so ignored files count as untracked: it is too short"
        assert NotCaptured(b"sub/.git/index", why) in made.not_captured
    write(room, ".gitignore", "")
    assert b"sub/.git/index" not in [each.path for each in room.snapshot().not_captured]


def test_a_git_that_is_ignored_by_name_is_one_all_the_same(room: Room, inner: Repository) -> None:
    write(room, ".gitignore", ".git\nlog\nbuild/\n")
    for _ in range(2):
        assert b"sub/log" in files(room, room.snapshot())


@pytest.fixture
def watched(tmp_path: Path, room: Room) -> Iterator[WatchedRoom]:
    (tmp_path / "cookies").mkdir()
    with WatchedRoom(room.root, tmp_path / "cookies") as found:
        yield found


ACTS = {
    "track": ["add", "--force", "."],
    "track one": ["add", "--force", "deep"],
    "forget": ["rm", "-r", "--quiet", "--cached", "--ignore-unmatch", "deep", "log"],
    "commit": ["commit", "--quiet", "--allow-empty", "--message", "x"],
    "split": ["update-index", "--split-index"],
    "whole": ["update-index", "--no-split-index"],
    "reset": ["reset", "--quiet"],
}


@pytest.mark.parametrize("seed", range(3))
def test_what_a_nested_repository_comes_to_track_is_captured(
    room: Room, watched: WatchedRoom, inner: Repository, seed: int
) -> None:
    """By a process that stays, by one that starts anew, and by one without a cache."""
    choice = random.Random(seed)
    room.now_ns = watched.now_ns = 10**9  # stamps count as proof at once
    hidden = room.root.parent / "hidden"
    for number in range(30):
        act = choice.choice([*ACTS, "write", "end", "begin"])
        if act == "write":
            write(room, f"sub/{choice.choice(['deep/', 'build/', ''])}log", str(number))
        elif act == "end" and not hidden.exists():
            (inner.root / ".git").rename(hidden)
        elif act == "begin" and hidden.exists():
            hidden.rename(inner.root / ".git")
        elif act in ACTS and not hidden.exists():
            inner.git(*ACTS[act])
        listed = b"" if hidden.exists() else inner.git("ls-files", "-z")
        wanted = {b"sub/" + each for each in listed.split(b"\0") if each}
        seen = [each.snapshot() for each in (watched, room)] + [watched.anew()]
        assert len({made.root for made in seen}) == 1, (number, act)
        there = {path for path in wanted if (room.root / path.decode()).exists()}
        assert files(room, seen[1]) == {b".gitignore", *there}, (number, act)
    assert watched.incremental
