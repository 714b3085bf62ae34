"""Snapshots of real repositories, in any state that git leaves them in. Git is never run."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hardsave.workspace.ignore.rules import Rules, root_rules
from hardsave.workspace.restore.plan import plan
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot import directory
from hardsave.workspace.snapshot.builder import snapshot
from hardsave.workspace.snapshot.compare import differences
from tests.unit.workspace import pieces
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.room import Room, picture


class GitRoom(Room):
    """A workspace with git's own rules, and its index."""

    def save(self) -> bytes:
        found = scan(self.root, rules=self.rules, tracked=lambda: self.tracked, cache=self.cache)
        made = snapshot(found, self.put)
        self.cache = made.cache
        return made.root

    def rewind(self, target: bytes) -> None:
        made = plan(
            self.save(),
            target,
            self.fetch,
            rules=self.rules,
            present_tracked=self.tracked,
            target_tracked=self.tracked,
        )
        assert self.carry_out(made).conflicts == ()

    def rules(self, patterns: Sequence[bytes]) -> Rules:
        exclude = pieces.info_exclude(self.root)
        return root_rules(exclude_files=[exclude], patterns=patterns)

    @property
    def tracked(self) -> frozenset[bytes]:
        return pieces.tracked(self.root) or frozenset()

    def files(self, root: bytes) -> set[bytes]:
        top = directory.read_snapshot(root, self.fetch).top
        empty = directory.write([], self.objects.__setitem__)
        found = differences(empty, top, self.fetch)
        return {each.path for each in found if each.new and each.new.type != 3}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work").init()
    made.commit("kept", "one\n")
    return made


def everything_but_git(root: Path) -> dict[bytes, object]:
    return {
        path: seen
        for path, seen in picture(root).items()
        if path != b".git" and not path.startswith(b".git/")
    }


def test_what_is_captured_is_what_git_would_add_and_what_it_tracks(repository: Repository) -> None:
    repository.write(".gitignore", "*.log\n/build/\n!keep.log\nsub/**/tmp\n")
    repository.write("sub/.gitignore", "!important.log\nlocal\n")
    repository.write(".git/info/exclude", "mine\n")
    for name in ("a.log", "keep.log", "build/out", "sub/build/out", "sub/important.log", "mine"):
        repository.write(name, "x")
    for name in ("sub/local", "sub/x/tmp", "sub/x/y", "forced.log", "build/forced", "build/other"):
        repository.write(name, "x")
    repository.git("add", "--force", "forced.log", "build/forced")
    room = GitRoom(repository.root)
    listed = repository.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert room.files(room.save()) == {name for name in listed.split(b"\0") if name}


STATES = ["no commits", "detached", "conflict", "rebase", "staged"]


@pytest.mark.parametrize("state", STATES)
def test_a_repository_in_any_state_is_captured_and_comes_back(
    tmp_path: Path, repository: Repository, state: str
) -> None:
    bring_into(repository, state, tmp_path)
    room = GitRoom(repository.root if state != "no commits" else tmp_path / "empty")
    inside = picture(room.root / ".git")
    before = everything_but_git(room.root)
    target = room.save()
    (room.root / "kept").write_bytes(b"changed\r\n")
    (room.root / "new").write_bytes(b"x")
    room.rewind(target)
    assert everything_but_git(room.root) == before
    assert picture(room.root / ".git") == inside


def bring_into(repository: Repository, state: str, tmp_path: Path) -> None:
    if state == "no commits":
        Repository(tmp_path / "empty").init().write("kept", "x")
    elif state == "detached":
        repository.git("checkout", "--quiet", "--detach")
    elif state == "staged":
        repository.write("kept", "two\n")
        repository.git("add", "kept")
        repository.write("kept", "three\n")
    else:
        repository.git("checkout", "--quiet", "-b", "side")
        repository.commit("kept", "side\n")
        repository.git("checkout", "--quiet", "main")
        repository.commit("kept", "main\n")
        verb = ["merge", "side"] if state == "conflict" else ["rebase", "side"]
        repository.git(*verb, codes=(1,))


def test_nested_repositories_submodules_and_worktrees_keep_their_files(
    tmp_path: Path, repository: Repository
) -> None:
    other = Repository(tmp_path / "other").init()
    other.commit("module", "x\n")
    repository.git("submodule", "--quiet", "add", str(other.root), "module")
    repository.git("worktree", "add", "--quiet", "tree")
    nested = Repository(repository.root / "nested").init()
    nested.commit("committed", "x\n")
    dirty = {"nested/committed": "dirty\n", "module/module": "dirty\n", "tree/kept": "dirty\n"}
    for path, text in dirty.items():
        repository.write(path, text)
    room = GitRoom(repository.root)
    target = room.save()
    for path in dirty:
        repository.write(path, "worse\n")
    inside = {name: picture(repository.root / name) for name in (".git", "nested/.git")}
    room.rewind(target)
    for path, text in dirty.items():
        assert (repository.root / path).read_text() == text
    assert inside == {name: picture(repository.root / name) for name in inside}


def test_nothing_that_a_repository_names_is_run(tmp_path: Path, repository: Repository) -> None:
    canary = tmp_path / "canary"
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\ntouch {canary}\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "filter.f.clean", "filter.f.smudge"):
        repository.git("config", key, str(script))
    repository.git("config", "core.hooksPath", str(tmp_path))
    repository.git("config", "diff.f.textconv", str(script))
    for hook in ("post-checkout", "post-index-change", "pre-commit"):
        (tmp_path / hook).symlink_to(script)
    repository.write(".gitattributes", "* filter=f diff=f text=auto\n")
    room = GitRoom(repository.root)
    target = room.save()
    (room.root / "kept").write_bytes(b"x")
    room.rewind(target)
    assert not canary.exists()


def test_a_directory_that_a_sparse_index_tracks_as_a_whole_is_not_ignored(tmp_path: Path) -> None:
    room = Room(tmp_path / "work")
    (room.root / "all/deep").mkdir(parents=True)
    (room.root / "all/deep/file").write_bytes(b"x")
    (room.root / ".gitignore").write_bytes(b"deep/")
    assert room.contents(room.snapshot()) == {b"deep/"}
    assert room.contents(room.snapshot(tracked=frozenset({b"all/"}))) == {b"deep/", b"x"}
