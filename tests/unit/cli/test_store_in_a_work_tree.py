"""A store inside of a work tree, which git is not to offer: git itself is asked."""

from pathlib import Path

import pytest

import hardsave
from hardsave import config
from tests.unit.cli.conftest import Run
from tests.unit.workspace.repository import Repository

ODD = "odd [1]* \\x.db "


@pytest.fixture
def repository(project: Path) -> Repository:
    made = Repository(project).init()
    made.commit("a.txt", "one\n")
    return made


def excluded(git: Path) -> list[str]:
    lines = (git / "info" / "exclude").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["x.db", "deep/er/x.db", ODD])
def test_git_offers_neither_the_store_nor_what_lies_beside_it(
    repository: Repository, run: Run, name: str
) -> None:
    (repository.root / name).parent.mkdir(parents=True, exist_ok=True)
    assert run("--store", name, "save").code == 0
    run("--store", name, "search", "one")
    with hardsave.open(f"sqlite:///{name}") as vault:
        vault.timeline("main").save({"open": "now"})  # with its WAL and its shared memory
        assert repository.git("status", "--porcelain", "--untracked-files=all") == b""
        vault.store.compact()
    assert repository.git("status", "--porcelain", "--untracked-files=all") == b""
    repository.write(f"{name}2", "another file")
    assert repository.git("status", "--porcelain") != b""
    assert len(excluded(repository.root / ".git")) == 2  # also after several openings


def test_the_store_that_a_settings_file_names_is_kept_out_too(
    repository: Repository, run: Run
) -> None:
    (repository.root / config.PROJECT_FILE).write_text(f"store: {repository.root}/own.db\n")
    repository.git("add", config.PROJECT_FILE)
    repository.git("commit", "--quiet", "--message", "settings")
    run("trust", "--yes")
    assert run("save").code == 0
    assert (repository.root / "own.db").exists()
    assert repository.git("status", "--porcelain") == b""


def test_a_linked_worktree_and_a_submodule_have_their_excludes_elsewhere(
    repository: Repository, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    repository.git("submodule", "--quiet", "add", str(repository.root / ".git"), "sub")
    repository.git("commit", "--quiet", "--message", "a submodule")
    for root in (tmp_path / "linked", repository.root / "sub"):
        with hardsave.open(f"sqlite:///{root}/x.db") as vault:
            vault.timeline("main").save({})
        assert Repository(root).git("status", "--porcelain") == b""
    assert repository.git("status", "--porcelain") == b""


def test_a_store_outside_writes_nothing_into_a_repository(
    repository: Repository, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the whole home directory is one, for a project's own store."""
    before = excluded(repository.root / ".git")
    monkeypatch.setenv("XDG_DATA_HOME", str(repository.root / "home"))
    assert run("save").code == 0
    assert run("--store", "../outside.db", "save").code == 0
    assert run("--store", ".git/inside.db", "save").code == 0
    assert excluded(repository.root / ".git") == before
