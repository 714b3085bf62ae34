"""Which files git would call changed: real git is asked the same."""

import os
from pathlib import Path

import pytest

from hardsave.workspace.git.position import position
from hardsave.workspace.git.uncommitted import dirty
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "repository").init()
    for path in ("same", "text", "mode", "gone", "pipe", "folder/file", "kind"):
        repository.write(path, f"{path}\n")
    (repository.root / "link").symlink_to("same")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "all")
    return repository


def found(repository: Repository) -> list[bytes]:
    at = position(repository.root)
    assert at is not None
    return dirty(repository.root, at, [])


def test_what_is_as_it_was_staged_is_not_dirty(repository: Repository) -> None:
    assert found(repository) == []


def test_what_git_calls_changed_is_dirty(repository: Repository, tmp_path: Path) -> None:
    root = repository.root
    (root / "text").write_text("other\n")
    (root / "mode").chmod(0o755)
    (root / "gone").unlink()
    (root / "link").unlink()
    (root / "link").symlink_to("text")
    (root / "kind").unlink()
    (root / "kind").symlink_to("same")
    (root / "folder").rename(tmp_path / "folder")
    (root / "folder").symlink_to(tmp_path / "folder")  # the same file is there, beyond a link
    told = repository.git("diff", "--name-only", "-z").split(b"\0")[:-1]
    assert found(repository) == sorted(told)
    assert b"folder/file" in told


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(repository: Repository) -> None:
    (repository.root / "pipe").unlink()
    os.mkfifo(repository.root / "pipe")
    assert found(repository) == [b"pipe"]


def test_a_file_may_be_longer_than_memory_should_hold(repository: Repository) -> None:
    (repository.root / "text").write_bytes(bytes(range(256)) * 4096)
    repository.git("add", "text")
    assert found(repository) == []
