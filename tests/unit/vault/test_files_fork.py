"""A checkpoint's files in a directory of their own, as often as wanted; one of them adopted."""

import errno
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import hardsave
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.vault.request_key import Request
from hardsave.vault.restore import copy_into as copying
from hardsave.workspace.restore import steps
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.vault.stage import Watched
from tests.unit.workspace.room import picture


def test_forks_are_equal_to_the_byte_and_independent(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one", sub__b="b")
    (desk.work / "sub/b").chmod(0o600)
    (desk.work / "empty").mkdir()
    (desk.work / "link").symlink_to("nowhere")
    (desk.work / "two").hardlink_to(desk.work / "a.txt")
    one = desk.save(1)
    then = desk.seen()
    desk.write(a_txt="later")
    workspace = desk.vault.workspace(desk.work)
    forks = [workspace.fork(one, tmp_path / f"try-{n}") for n in range(5)]
    assert [fork.timeline.name for fork in forks] == [f"try-{n}" for n in range(5)]
    for n, fork in enumerate(forks):
        assert picture(fork.workspace.path) == then
        put(fork.workspace.path, "a.txt", f"try {n}")
        fork.timeline.save({"try": n}, workspace=fork.workspace)
    assert desk.read("a.txt") == "later"
    assert [fork.timeline.load()["try"] for fork in forks] == [*range(5)]
    assert desk.line.load() == {"turn": 1}


def test_what_was_saved_although_rules_ignore_it_is_in_a_fork(desk: Desk, tmp_path: Path) -> None:
    """At the top, and in a directory that has ignore files of its own."""
    put(desk.work, ".gitignore", "gen/\n")
    put(desk.work, "sub/.gitignore", "*.log\ngen/\n")
    desk.write(gen__b="b", sub__a_log="a", sub__gen__deep__c="c")
    workspace = desk.vault.workspace(desk.work, include=["*.log", "gen", "c", "deep", "b"])
    fork = workspace.fork(desk.save(1), tmp_path / "try")
    assert picture(fork.workspace.path) == desk.seen()


def test_one_of_several_tries_is_adopted(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one", kept="k")
    desk.save(1)
    before = desk.seen()
    workspace = desk.vault.workspace(desk.work)
    for n in range(3):
        fork = workspace.fork("@", tmp_path / f"try-{n}")
        put(fork.workspace.path, "a.txt", f"try {n}")
        put(fork.workspace.path, f"new/{n}", "n")
        fork.timeline.save({"try": n}, workspace=fork.workspace)
    done = desk.line.rewind("try-1:2")
    assert done.files is not None
    assert done.files.workspace == str(desk.work)
    assert (desk.read("a.txt"), desk.read("new/1"), desk.read("kept")) == ("try 1", "n", "k")
    assert desk.line.load() == {"try": 1}
    assert (tmp_path / "try-2/a.txt").read_text() == "try 2"
    desk.line.undo()
    assert (desk.seen(), desk.line.load()) == (before, {"turn": 1})


def test_whoever_has_adopted_a_try_goes_on_where_he_was(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    fork = desk.vault.workspace(desk.work).fork(one, tmp_path / "try")
    put(fork.workspace.path, "a.txt", "tried")
    desk.line.rewind(fork.timeline.save({"turn": 2}, workspace=fork.workspace))
    assert desk.read("a.txt") == "tried"
    desk.line.rewind(one)
    assert desk.read("a.txt") == "one"
    assert (tmp_path / "try/a.txt").read_text() == "tried"


def test_adopting_a_try_respects_what_others_did_here_meanwhile(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one", theirs="0", both="0")
    desk.save(1)
    fork = desk.vault.workspace(desk.work).fork("@", tmp_path / "try")
    desk.write(theirs="1", both="1")
    desk.save(1, desk.vault.timeline("other"))
    put(fork.workspace.path, "a.txt", "tried")
    put(fork.workspace.path, "both", "tried")
    fork.timeline.save({"try": 1}, workspace=fork.workspace)
    assert isinstance(refusal(desk.line.rewind, "try:2"), Conflict)
    done = desk.line.rewind("try:2", scope="mine")
    assert [desk.read(each) for each in ("a.txt", "theirs", "both")] == ["tried", "1", "1"]
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["both", "theirs"]


def test_a_fork_is_one_operation(desk: Desk, tmp_path: Path, store: Watched) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    commits = len(store.batches)
    fork = desk.vault.workspace(desk.work).fork("@", tmp_path / "try")
    assert len(store.batches) == commits + 1
    head = fork.timeline.head
    assert head is not None
    assert (head.timeline, head.seq, head.read()) == ("try", 1, {"turn": 1})
    assert fork.workspace.last == head
    assert not fork.workspace.status().files
    desk.vault.undo()
    assert [line.name for line in desk.vault.timelines()] == ["main"]
    assert (tmp_path / "try/a.txt").read_text() == "one"
    desk.vault.redo()
    assert fork.timeline.load() == {"turn": 1}
    fork.timeline.rewind("try:1", what="files")


def test_a_fork_rewinds_in_its_own_directory(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    desk.write(a_txt="two")
    desk.save(2)
    fork = desk.vault.workspace(desk.work).fork("@", tmp_path / "try")
    fork.timeline.rewind("main:1")
    assert (tmp_path / "try/a.txt").read_text() == "one"
    assert desk.read("a.txt") == "two"


def test_directories_that_are_used_and_names_that_are_taken_are_refused(
    desk: Desk, tmp_path: Path
) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    put(tmp_path, "used/file", "mine")
    fork = desk.vault.workspace(desk.work).fork
    assert isinstance(refusal(fork, "@", tmp_path / "used"), Misuse)
    assert (tmp_path / "used/file").read_text() == "mine"
    (tmp_path / "nowhere").symlink_to("not-there")
    for wrong in ("used/file", "used/file/below/it", "nowhere", "nowhere/in/it"):
        assert isinstance(refusal(fork, "@", tmp_path / wrong), Misuse), wrong
    assert not (tmp_path / "not-there").exists()
    assert isinstance(refusal(fork, "@", tmp_path / "new", name="main"), Conflict)
    assert isinstance(refusal(fork, "@~7", tmp_path / "new"), NotFound)
    desk.line.save({"turn": 2})
    assert isinstance(refusal(fork, "@", tmp_path / "new"), NotFound)
    assert [line.name for line in desk.vault.timelines()] == ["main"]


def test_a_name_that_is_taken_meanwhile_leaves_nothing_behind(
    desk: Desk, tmp_path: Path, store: Watched
) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    store.before_commit = Conflict("taken")
    assert isinstance(
        refusal(desk.vault.workspace(desk.work).fork, "@", tmp_path / "try"), Conflict
    )
    assert not (tmp_path / "try").exists()
    desk.vault.workspace(desk.work).fork("@", tmp_path / "try")


@pytest.mark.parametrize("is_committed", [False, True])
def test_an_interrupted_fork_is_finished_or_gone(
    tmp_path: Path, is_committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    work = tmp_path / "work"
    put(work, "a.txt", "one")
    put(work, "sub/b", "b")
    vault = hardsave.open(url)
    vault.timeline("main").save({"turn": 1}, workspace=work)

    def broken(self: object) -> None:
        raise Unavailable("the disk fails")

    where = "take" if is_committed else "prepare"
    monkeypatch.setattr(steps.Steps, where, broken)
    monkeypatch.setattr(steps.Steps, "abandon", broken)
    assert isinstance(refusal(vault.workspace(work).fork, "@", tmp_path / "try"), Unavailable)
    vault.close()
    monkeypatch.undo()
    with hardsave.open(url) as vault:
        names = [line.name for line in vault.timelines()]
        assert names == (["main", "try"] if is_committed else ["main"])
        assert (tmp_path / "try").exists() == is_committed
        if is_committed:
            assert picture(tmp_path / "try") == picture(work)
        else:
            vault.workspace(work).fork("@", tmp_path / "try")
            assert picture(tmp_path / "try") == picture(work)


def test_an_empty_directory_that_was_there_stays_after_an_interrupted_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, work = f"sqlite:///{tmp_path}/store.db", tmp_path / "work"
    put(work, "sub/b", "b")
    (tmp_path / "mine").mkdir()
    with hardsave.open(url) as vault:
        vault.timeline("main").save({}, workspace=work)
        monkeypatch.setattr(steps.Steps, "take", mock.Mock(side_effect=KeyboardInterrupt))
        context, source = vault._context, vault.timeline("main").get()._record
        request = Request(context.new_id())
        with pytest.raises(KeyboardInterrupt):
            copying.fill(context, source, tmp_path / "mine", lambda place: None, request)
        monkeypatch.undo()
        assert (tmp_path / "mine/sub").exists()
    hardsave.open(url).close()
    assert [*(tmp_path / "mine").iterdir()] == []


def test_directories_that_a_fork_has_made_are_synced_into_those_above(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    real = os.fsync
    synced: set[int] = set()

    def note(file: int) -> None:
        synced.add(os.fstat(file).st_ino)
        real(file)

    monkeypatch.setattr(os, "fsync", note)
    desk.vault.workspace(desk.work).fork("@", tmp_path / "new/deep/try")
    folders = [tmp_path, tmp_path / "new", tmp_path / "new/deep", tmp_path / "new/deep/try"]
    assert {folder.stat().st_ino for folder in folders} <= synced


def test_a_directory_that_cannot_be_written_to_makes_no_timeline(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one", sub__b="b")
    desk.save(1)
    real = os.open

    def refused(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if flags & os.O_CREAT and b"hardsave-tmp" in os.fsencode(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *given, **named)

    monkeypatch.setattr(os, "open", refused)  # whoever runs tests may be allowed everything
    error = refusal(desk.vault.workspace(desk.work).fork, "@", tmp_path / "try")
    monkeypatch.undo()
    assert isinstance(error, Unavailable)
    assert "no file was changed" in str(error)
    assert [line.name for line in desk.vault.timelines()] == ["main"]
    assert not (tmp_path / "try").exists()


def test_a_directory_that_cannot_be_looked_into_is_refused(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one")
    desk.save(1)

    def refused(path: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    fork = desk.vault.workspace(desk.work).fork
    (tmp_path / "try").mkdir()
    monkeypatch.setattr(os, "listdir", refused)
    assert isinstance(refusal(fork, "@", tmp_path / "try"), Misuse)


def test_what_somebody_put_beside_a_fork_that_was_refused_stays(
    desk: Desk, tmp_path: Path, store: Watched
) -> None:
    desk.write(sub__b="b")
    desk.save(1)
    real = steps.Steps.abandon

    def late(self: steps.Steps) -> None:
        put(tmp_path, "try/sub/mine", "somebody's")
        real(self)

    store.before_commit = Conflict("taken")
    with mock.patch.object(steps.Steps, "abandon", late):
        error = refusal(desk.vault.workspace(desk.work).fork, "@", tmp_path / "try")
    assert isinstance(error, Conflict)
    assert list(picture(tmp_path / "try")) == [b"sub", b"sub/mine"]
