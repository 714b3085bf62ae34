"""What decides about a workspace from outside."""

import os
import subprocess
from pathlib import Path

import pytest

from hardsave.workspace.ignore.rules import Rules
from hardsave.workspace.scan import git_context
from hardsave.workspace.scan.git_context import GitContext


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    return folder


def git(folder: Path, *command: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", *command], cwd=folder, check=True, env=environment)


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def top_rules(found: GitContext, *patterns: bytes) -> Rules:
    return found.rules([*patterns, b""])


def test_without_a_repository_only_the_users_own_excludes_count(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    put(tmp_path / "home/.config/git/ignore", "*.swp\n")
    found = git_context.look(work)
    assert (found.position, found.tracked, found.is_top) == (None, frozenset(), False)
    assert found.problem == ""
    rules = top_rules(found, b"*.log\n")
    assert rules.match(b"x.swp", False)
    assert rules.match(b"x.log", False)
    assert not rules.match(b"x.txt", False)


def test_the_top_of_a_repository_has_its_excludes_and_its_index(repository: Path) -> None:
    put(repository / ".git/info/exclude", "*.local\n")
    put(repository / "tracked.log")
    git(repository, "add", "-f", "tracked.log")
    found = git_context.look(repository)
    assert found.is_top
    assert found.tracked == {b"tracked.log"}
    assert found.position is not None
    assert found.position.branch == "trunk"
    assert top_rules(found).match(b"x.local", False)


def test_in_a_subdirectory_rules_from_above_count_and_paths_are_its_own(repository: Path) -> None:
    put(repository / ".gitignore", "*.log\n/sub/deep/only-here\n/elsewhere\n")
    put(repository / "sub/.gitignore", "!kept.log\n")
    put(repository / "sub/deep/tracked")
    put(repository / "outside")
    git(repository, "add", "sub/deep/tracked", "outside")
    found = git_context.look(repository / "sub/deep")
    rules = top_rules(found)
    assert rules.match(b"x.log", False)
    assert not rules.match(b"kept.log", False)
    assert rules.match(b"only-here", False)
    assert not rules.match(b"elsewhere", False)
    assert found.tracked == {b"tracked"}
    assert not found.is_top
    assert found.position is not None


def test_a_repository_that_ignores_the_workspace_is_not_asked(repository: Path) -> None:
    """Else nothing at all would be captured."""
    for ignored in ("/build/\n", "build\n", "*\n"):
        put(repository / ".gitignore", ignored)
        work = repository / "build/work"
        work.mkdir(parents=True, exist_ok=True)
        rules = top_rules(git_context.look(work), b"own\n")
        assert not rules.match(b"anything", False)
        assert rules.match(b"own", False)


def test_an_index_that_cannot_be_read_is_told(repository: Path) -> None:
    put(repository / ".git/index", "no index at all, and long enough to be one")
    found = git_context.look(repository)
    assert found.problem
    assert found.tracked == frozenset()


def test_a_linked_worktree_and_a_broken_pointer(repository: Path, tmp_path: Path) -> None:
    put(repository / "a")
    git(repository, "add", "a")
    git(repository, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "a")
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    found = git_context.look(tmp_path / "side")
    assert found.position is not None
    assert found.position.branch == "side"
    assert found.tracked == {b"a"}
    put(tmp_path / "broken/.git", "gitdir: /nowhere/at/all\n")
    assert git_context.look(tmp_path / "broken").tracked == frozenset()


@pytest.fixture
def settled(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitContext:
    """A first look, whose stamps count as proof however young they are."""
    monkeypatch.setattr("hardsave.workspace.filesystem.stamps.may_change_unseen", lambda *_: False)
    put(tmp_path / "home/.gitconfig", "[include]\n path = more\n")
    put(tmp_path / "home/more", "[core]\n excludesFile = ~/mine\n")
    put(tmp_path / "home/mine", "*.mine\n")
    return git_context.look(repository)


def test_what_is_as_it_was_is_not_looked_at_again(settled: GitContext, repository: Path) -> None:
    assert git_context.look(repository, last=settled) is settled


@pytest.mark.parametrize("file", [".gitconfig", "more", "mine"])
def test_the_users_excludes_are_read_again_when_any_of_their_files_changed(
    settled: GitContext, repository: Path, tmp_path: Path, file: str
) -> None:
    texts = {".gitconfig": "", "more": "[core]\n excludesFile = ~/other\n", "mine": "*.other\n"}
    put(tmp_path / "home" / file, texts[file])
    found = git_context.look(repository, last=settled)
    assert not top_rules(found).match(b"x.mine", False)
    assert top_rules(settled).match(b"x.mine", False)


def test_another_home_has_other_excludes(
    settled: GitContext, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    found = git_context.look(repository, last=settled)
    assert not top_rules(found).match(b"x.mine", False)


def test_a_repository_that_comes_or_goes_is_found(settled: GitContext, repository: Path) -> None:
    os.rename(repository / ".git", repository / "aside")
    gone = git_context.look(repository, last=settled)
    assert gone.position is None
    os.rename(repository / "aside", repository / ".git")
    assert git_context.look(repository, last=gone).position is not None


def test_nothing_is_run_and_nothing_is_written(repository: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "filter.x.clean",
        "diff.external",
    ):
        git(repository, "config", key, f"touch {canary}")
    hook = put(repository / ".git/hooks/post-index-change", f"#!/bin/sh\ntouch {canary}\n")
    hook.chmod(0o755)
    put(repository / ".gitattributes", "* filter=x text=auto\n")
    put(repository / "a", "a\r\n")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    git_context.look(repository)
    assert not canary.exists()
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before
