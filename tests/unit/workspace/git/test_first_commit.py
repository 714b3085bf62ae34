"""The first commit of a repository, as git itself tells it."""

import os
from pathlib import Path

import pytest

from hardsave.workspace.git import first_commit
from tests.unit.workspace.repository import Repository


def begun(root: Path, *options: str) -> tuple[Repository, str]:
    repository = Repository(root).init(*options)
    return repository, repository.commit("a.txt", "first")


def grown(repository: Repository, count: int) -> None:
    for number in range(count):
        repository.commit("a.txt", f"{number} " + "the same words again " * 20)


@pytest.mark.parametrize("format", ["sha1", "sha256"])
@pytest.mark.parametrize("is_packed", [True, False])
def test_the_first_commit_is_found(tmp_path: Path, format: str, is_packed: bool) -> None:
    repository, first = begun(tmp_path / "r", f"--object-format={format}")
    assert first_commit.first_commit(repository.root) == first
    grown(repository, 12)
    if is_packed:
        repository.git("gc", "--aggressive", "--prune=now", "--quiet")
        assert not list((repository.root / ".git/objects").glob("[0-9a-f][0-9a-f]"))
    assert first_commit.first_commit(repository.root) == first


def test_commits_that_are_kept_as_differences_are_read(tmp_path: Path) -> None:
    repository, first = begun(tmp_path / "r")
    message = "a long message, much of which stays the same\n" * 200
    for number in range(10):
        repository.git("commit", "--quiet", "--allow-empty", "--message", f"{message}{number}")
    for by_offset in ("true", "false"):
        repository.git("config", "repack.useDeltaBaseOffset", by_offset)
        repository.git("repack", "-adfq", "--depth=20", "--window=20")
        (index,) = (repository.root / ".git/objects/pack").glob("*.idx")
        told = repository.git("verify-pack", "-v", str(index)).decode().splitlines()
        assert any(" commit " in line and len(line.split()) == 7 for line in told)
        assert first_commit.first_commit(repository.root) == first


def test_merged_histories_begin_where_the_first_of_them_does(tmp_path: Path) -> None:
    repository, first = begun(tmp_path / "r")
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit("b.txt", "other")
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--allow-unrelated-histories", "--no-edit", "other")
    assert first_commit.first_commit(repository.root) == first


def test_without_a_repository_or_a_commit_there_is_none(tmp_path: Path) -> None:
    assert first_commit.first_commit(tmp_path) is None
    assert first_commit.first_commit(Repository(tmp_path / "r").init().root) is None


def test_a_history_that_was_cut_off_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, _ = begun(tmp_path / "r")
    grown(repository, 3)
    shallow = Repository(tmp_path / "s")
    shallow.git("clone", "--quiet", "--depth=1", f"file://{repository.root}", ".")
    assert first_commit.first_commit(shallow.root) == ""
    monkeypatch.setattr(first_commit, "_MOST_COMMITS", 2)
    assert first_commit.first_commit(repository.root) == ""


def test_no_damage_is_more_than_not_knowing(tmp_path: Path) -> None:
    repository, first = begun(tmp_path / "r")
    grown(repository, 3)
    repository.git("gc", "--prune=now", "--quiet")
    packs = repository.root / ".git/objects/pack"
    for file in [*packs.glob("*.pack"), *packs.glob("*.idx")]:
        whole = file.read_bytes()
        file.chmod(0o600)
        for at in range(0, len(whole), 7):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            assert first_commit.first_commit(repository.root) in (first, "")
        for size in range(0, len(whole), 97):
            file.write_bytes(whole[:size])
            assert first_commit.first_commit(repository.root) in (first, "")
        file.write_bytes(whole)
    for file in packs.glob("*.idx"):
        file.unlink()
        os.mkfifo(file)
    assert first_commit.first_commit(repository.root) == ""
