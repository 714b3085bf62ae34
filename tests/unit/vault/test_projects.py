"""A project that was moved is recognised and asked about, never guessed."""

import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hardsave
from hardsave import config
from hardsave.errors import NotFound
from hardsave.vault.workspaces import projects
from hardsave.vault.workspaces.projects import Project, likeness
from tests.unit.workspace.repository import Repository

BASE = Project("/a", 1, 2, 3, "f00d")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("XDG_DATA_HOME", config.STORE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "home"


@pytest.fixture
def enter(home: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def saved(root: Path, turn: int, enter: pytest.MonkeyPatch) -> None:
    enter.chdir(root)
    with hardsave.open() as vault:
        vault.timeline("main").save({"turn": turn})


def loaded(root: Path, enter: pytest.MonkeyPatch) -> object:
    enter.chdir(root)
    with hardsave.open() as vault:
        head = vault.timeline("main").head
        return None if head is None else head.read("turn")


def record(root: Path) -> Path:
    return config.store_folder(os.environ, root, "linux") / projects.RECORD


@pytest.mark.parametrize(
    ("other", "like"),
    [
        (BASE, "same directory"),
        (BASE._replace(root="/b", first_commit=None), "same directory"),
        (BASE._replace(device=9, first_commit=None), "same directory"),
        (BASE._replace(born=4), "same history"),
        (BASE._replace(inode=9), "same history"),
        (BASE._replace(inode=9, first_commit="beef"), None),
        (BASE._replace(inode=9, first_commit=None), None),
        (BASE._replace(born=4, first_commit=None), None),
    ],
)
def test_what_two_records_have_in_common(other: Project, like: str | None) -> None:
    assert likeness(BASE, other) == likeness(other, BASE) == like


def test_where_nothing_else_tells_the_device_does() -> None:
    """As at the top of a disk: every one of them has the same inode there."""
    top = Project("/media/disk", 1, 2, 0, None)
    assert likeness(top, top) == "same directory"
    assert likeness(top, top._replace(device=9)) is None


def test_a_fork_goes_on_with_its_store_after_the_machine_was_started_again(
    tmp_path: Path, enter: pytest.MonkeyPatch, told_apart: None
) -> None:
    (tmp_path / "project").mkdir()
    saved(tmp_path / "project", 7, enter)
    store = projects.store_url(os.environ, tmp_path / "project")
    (tmp_path / "fork").mkdir()
    assert projects.adopt(os.environ, tmp_path / "fork", store)
    noted = json.loads(record(tmp_path / "fork").read_text())
    record(tmp_path / "fork").write_text(json.dumps({**noted, "device": noted["device"] + 1}))
    assert loaded(tmp_path / "fork", enter) == 7
    record(tmp_path / "fork").write_text(json.dumps({**noted, "born": noted["born"] + 1}))
    assert projects.store_url(os.environ, tmp_path / "fork") != store


def test_what_is_not_known_makes_nothing_alike() -> None:
    unknown = Project("/a", 1, 2, None, None)
    assert likeness(unknown, unknown) is None
    unclear = Project("/a", 1, 2, None, "")
    assert likeness(unclear, unclear._replace(inode=7)) is None


def test_a_project_is_remembered_with_its_store(tmp_path: Path, enter: pytest.MonkeyPatch) -> None:
    repository = Repository(tmp_path / "project").init()
    saved(repository.root, 1, enter)
    assert json.loads(record(repository.root).read_text())["first_commit"] is None
    first = repository.commit("a.txt", "x")
    saved(repository.root, 2, enter)
    noted = json.loads(record(repository.root).read_text())
    status = repository.root.stat()
    assert (noted["device"], noted["inode"]) == (status.st_dev, status.st_ino)
    assert (noted["root"], noted["first_commit"]) == (str(repository.root), first)
    assert record(repository.root).stat().st_mode & 0o077 == 0
    before = record(repository.root).stat()
    saved(repository.root, 3, enter)
    assert record(repository.root).stat().st_ino == before.st_ino, "written only if it changed"


def generation(folder: Path) -> int | None:
    return projects._born(folder, folder.stat())


@pytest.fixture
def told_apart(tmp_path: Path) -> None:
    if generation(tmp_path) is None:
        pytest.skip("this file system does not tell directories apart that had one inode")


@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("answer", ["hardsave", "mkdir"])
def test_a_moved_project_is_an_error_that_says_what_to_type(
    tmp_path: Path, enter: pytest.MonkeyPatch, told_apart: None, answer: str, is_linked: bool
) -> None:
    old, new = tmp_path / "old place", tmp_path / "new place"
    (old / "src").mkdir(parents=True)
    saved(old, 7, enter)
    enter.chdir(tmp_path)
    old.rename(new)
    if is_linked:
        old.symlink_to(new)
    with pytest.raises(NotFound, match="old place") as raised:
        loaded(new, enter)
    with pytest.raises(NotFound, match="old place"):
        loaded(new, enter)
    commands = re.findall(r"(?:hardsave|mkdir) [^(;]+", str(raised.value))
    assert [shlex.split(each)[0] for each in commands] == ["hardsave", "mkdir"]
    command = next(each for each in commands if each.startswith(answer))
    program, *words = shlex.split(command)
    bin = Path(sys.executable).with_name(program) if answer == "hardsave" else program
    subprocess.run([bin, *words], check=True)
    assert loaded(new, enter) == (7 if answer == "hardsave" else None)
    saved(new, 8, enter)
    assert loaded(new, enter) == 8
    assert json.loads(record(new).read_text())["root"] == str(new)


def test_the_same_history_elsewhere_is_a_warning_once_the_old_place_is_gone(
    tmp_path: Path, enter: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    repository = Repository(tmp_path / "old").init()
    repository.commit("a.txt", "x")
    saved(repository.root, 7, enter)
    shutil.copytree(repository.root, tmp_path / "twin")
    with caplog.at_level(logging.WARNING):
        assert loaded(tmp_path / "twin", enter) is None
    assert caplog.text == "", "both are there: one is a copy"
    enter.chdir(tmp_path)
    shutil.copytree(repository.root, tmp_path / "new")
    shutil.rmtree(repository.root)
    shutil.rmtree(tmp_path / "twin")
    with caplog.at_level(logging.WARNING):
        assert loaded(tmp_path / "new", enter) is None
    (named,) = re.findall(rf"{repository.root} had .* {config.STORE_VARIABLE}=(\S+)", caplog.text)
    enter.setenv(config.STORE_VARIABLE, named)
    assert loaded(tmp_path / "new", enter) == 7


def test_another_directory_that_got_the_same_inode_is_a_stranger(
    tmp_path: Path, enter: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "old").mkdir()
    saved(tmp_path / "old", 7, enter)
    noted = json.loads(record(tmp_path / "old").read_text())
    (tmp_path / "new").mkdir()
    status = (tmp_path / "new").stat()
    noted |= {"device": status.st_dev, "inode": status.st_ino, "born": -1}
    record(tmp_path / "old").write_text(json.dumps(noted))
    enter.chdir(tmp_path)
    shutil.rmtree(tmp_path / "old")
    with caplog.at_level(logging.WARNING):
        assert loaded(tmp_path / "new", enter) is None
    assert caplog.text == ""


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"garbage", b'{"root": 1, "inode": "x"}'])
def test_a_record_that_cannot_be_used_is_written_anew(
    tmp_path: Path, enter: pytest.MonkeyPatch, content: bytes
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "other").mkdir()
    saved(tmp_path / "project", 1, enter)
    record(tmp_path / "project").write_bytes(content)
    assert loaded(tmp_path / "other", enter) is None
    assert loaded(tmp_path / "project", enter) == 1
    assert projects.read(record(tmp_path / "project").parent) is not None


def test_a_record_that_cannot_be_written_stops_nobody(
    tmp_path: Path, enter: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "project").mkdir()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with enter.context() as patched:
        patched.setattr(os, "replace", fail)
        saved(tmp_path / "project", 1, patched)
    assert "is not recognised" in caplog.text
    assert [each.name for each in record(tmp_path / "project").parent.glob("*.json*")] == []
    assert loaded(tmp_path / "project", enter) == 1
