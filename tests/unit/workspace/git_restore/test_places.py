"""Repositories of every kind come back: without commits, linked, sparse, packed, borrowed."""

import os
import time
from pathlib import Path

import pytest

from hardsave.workspace.git_restore import plan as gitplan
from hardsave.workspace.git_restore.execution import restore_git
from hardsave.workspace.git_restore.pins import unpin
from tests.unit.workspace.git_room import SECONDS, GitRoom, Saved, answers, built, clean, present
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return built(tmp_path / "work")


def comes_back(repository: Repository, *away: tuple[str, ...]) -> tuple[Saved, Saved]:
    """Saved, led away, restored, and led back again. The target and the present."""
    room = GitRoom(repository.root)
    room.safeties = len(repository.git("for-each-ref", "refs/hardsave").splitlines())
    target, then = room.save(), answers(repository)
    for command in away:
        repository.git(*command, codes=(0, 1))
    moved = answers(repository)
    assert moved != then
    before, _ = room.rewind(target)
    assert answers(repository) == then
    assert repository.git("fsck", "--no-dangling", "--strict", codes=(0,)) == b""
    room.rewind(before)
    assert answers(repository) == moved
    return target, before


COMMIT = ("commit", "--quiet", "--allow-empty", "--all", "--message", "x")


def test_a_branch_without_a_commit_is_without_one_again(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "work").init()
    repository.write("a", "x\n")
    repository.git("add", "a")
    target, _ = comes_back(repository, COMMIT)
    assert target.git.commit is None


def test_a_branch_without_a_commit_that_was_packed_since(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "work").init()
    comes_back(repository, COMMIT, ("tag", "-am", "t", "t"), COMMIT, ("pack-refs", "--all"))
    assert repository.line("rev-parse", "t^{}")


def test_a_repository_of_sha256(tmp_path: Path) -> None:
    repository = built(tmp_path / "work", "--object-format=sha256")
    repository.git("merge", "side", codes=(1,))
    comes_back(repository, ("add", "-A"), COMMIT, ("checkout", "-q", "side"))


def test_packed_refs(repository: Repository) -> None:
    repository.git("pack-refs", "--all")
    comes_back(repository, COMMIT, ("pack-refs", "--all"), ("checkout", "-q", "side"))


def test_a_branch_with_slashes_that_was_deleted_with_its_directory(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "deep/er/branch")
    repository.git("pack-refs", "--all")
    comes_back(repository, ("checkout", "-q", "side"), ("branch", "-D", "deep/er/branch"))


def test_an_empty_directory_is_no_branch_in_the_way(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "deep")
    room = GitRoom(repository.root)
    target = room.save()
    repository.git("checkout", "-q", "side")
    repository.git("branch", "-D", "deep")
    (repository.root / ".git/refs/heads/deep/empty").mkdir(parents=True)
    (repository.root / ".git/logs/refs/heads/deep/empty").mkdir(parents=True)
    room.rewind(target)
    assert repository.line("rev-parse", "deep", "HEAD").split()[0] == target.git.commit


def test_a_branch_that_is_another_name_of_a_branch(repository: Repository) -> None:
    repository.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    repository.git("symbolic-ref", "HEAD", "refs/heads/alias")
    comes_back(repository, COMMIT, ("checkout", "-q", "side"))
    assert repository.line("symbolic-ref", "refs/heads/alias") == "refs/heads/main"


def test_a_linked_worktree_is_taken_back_alone(repository: Repository) -> None:
    repository.git("worktree", "add", "-q", "-b", "linked", "../linked", "main~1")
    linked = Repository(repository.root.parent / "linked")
    linked.git("merge", "side", codes=(1,))
    untouched = answers(repository)
    comes_back(linked, ("add", "-A"), COMMIT, ("checkout", "-q", "--detach", "side"))
    assert answers(repository) == untouched


def test_a_submodule_is_a_repository_of_its_own(repository: Repository) -> None:
    library = built(repository.root.parent / "library")
    repository.git("submodule", "--quiet", "add", "../library", "lib")
    repository.git(*COMMIT)
    inner = Repository(repository.root / "lib")
    inner.write("a", "staged\n")
    inner.git("add", "a")
    comes_back(inner, COMMIT, ("checkout", "-q", "HEAD~2"))
    inner.git("reset", "-q", "--hard")
    comes_back(repository, ("rm", "-q", "--cached", "lib"), COMMIT)
    assert library.line("rev-parse", "main")


def test_a_sparse_checkout_with_a_sparse_index(repository: Repository) -> None:
    for path in ("in/a", "out/deep/a", "out/b"):
        repository.commit(path, "x\n")
    repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    repository.write("in/a", "staged\n")
    repository.git("add", "in/a")
    target, _ = comes_back(repository, COMMIT, ("checkout", "-q", "side"))
    assert b"sdir" in (target.git.own_index or b"")


def test_a_split_index_whose_other_half_is_gone(repository: Repository) -> None:
    repository.git("update-index", "--split-index")
    repository.write("a", "staged\n")
    repository.git("add", "a")
    assert list(repository.root.glob(".git/sharedindex.*"))
    room = GitRoom(repository.root)
    target, then = room.save(), answers(repository)
    repository.git("update-index", "--no-split-index")
    for path in repository.root.glob(".git/sharedindex.*"):
        path.unlink()
    repository.git(*COMMIT)
    room.rewind(target)
    assert answers(repository) == then


def test_a_damaged_index_is_replaced(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target, then = room.save(), answers(repository)
    index = repository.root / ".git/index"
    index.write_bytes(b"garbage" * 10)
    repository.git("status", codes=(128,))
    before = present(repository.root, target.git)
    assert before is not None
    restore_git(repository.root, before, target.git, id="chk_1", seconds=SECONDS)
    assert answers(repository) == then


@pytest.mark.parametrize("extension", ["untracked-cache", "fsmonitor"])
def test_an_index_with_extensions(repository: Repository, extension: str) -> None:
    if extension == "fsmonitor":
        script = repository.root.parent / "monitor"
        script.write_text("#!/bin/sh\nprintf 'token\\0/\\0'\n")
        script.chmod(0o755)
        repository.git("config", "core.fsmonitor", str(script))
    else:
        repository.git("config", "core.untrackedCache", "true")
    repository.write("untracked", "x\n")
    repository.git("status")
    data = (repository.root / ".git/index").read_bytes()
    assert (b"FSMN" if extension == "fsmonitor" else b"UNTR") in data
    comes_back(repository, ("add", "-A"), COMMIT, ("checkout", "-q", "side"))


def test_objects_that_are_borrowed_or_packed_are_there(repository: Repository) -> None:
    borrower = Repository(repository.root.parent / "borrower")
    repository.git("clone", "-q", "--shared", ".", "../borrower")
    comes_back(borrower, ("reset", "-q", "--hard", "HEAD~2"), COMMIT)
    repository.git("gc", "-q")
    comes_back(borrower, ("reset", "-q", "--hard", "HEAD~1"))


def test_a_changed_file_that_looks_unchanged_is_not_believed(repository: Repository) -> None:
    """Written in the second of the index, with the same length: only contents tell them apart."""
    repository.write("a", "other\n")
    repository.git("add", "a")
    repository.write("a", "racy!\n")
    status = (repository.root / "a").stat()
    index = repository.root / ".git/index"
    os.utime(index, ns=(status.st_mtime_ns, status.st_mtime_ns))
    room = GitRoom(repository.root)
    target, then = room.save(), answers(repository)
    assert b"racy!" in then["diff --binary"]
    time.sleep(1.1)  # git compares whole seconds
    repository.git("add", "b", "c", "e")
    repository.git("update-index", "--force-remove", "b")
    room.rewind(target)
    assert (repository.root / "a").stat().st_ino == status.st_ino  # it was not written anew
    assert answers(repository) == then
    repository.git("status")
    assert answers(repository) == then


# What is left behind


def test_what_the_present_names_survives_git_gc(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    repository.commit("lost", "lost\n")
    repository.git("checkout", "-q", "--detach")
    repository.commit("more", "lost\n")
    repository.write("staged", "only in the index\n")
    repository.git("add", "staged")
    repository.write("staged", "and changed\n")
    moved = answers(repository)
    before, done = room.rewind(target)
    assert {ref.removeprefix("refs/hardsave/chk_1/") for ref in done.pins} >= {"HEAD", "index"}
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    assert repository.git("fsck", "--no-dangling", "--strict") == b""
    room.rewind(before)
    assert answers(repository) == moved


@pytest.mark.parametrize("add", [("add",), ("add", "--intent-to-add")])
def test_an_empty_file_is_staged_again_though_git_has_collected_it(
    repository: Repository, add: tuple[str, ...]
) -> None:
    """Git does not know the empty content by heart: it would neither commit nor collect."""
    room = GitRoom(repository.root)
    (repository.root / "__init__.py").touch()
    repository.git(*add, "__init__.py")
    target, then = room.save(), answers(repository)
    repository.git("rm", "-q", "--cached", "__init__.py")
    (repository.root / "__init__.py").unlink()
    repository.git("gc", "-q", "--prune=now")
    before, _ = room.rewind(target)
    assert answers(repository) == then
    assert repository.git("fsck", "--no-dangling", "--strict") == b""
    repository.git("add", "__init__.py")
    repository.git("commit", "-q", "-m", "empty")
    repository.git("gc", "-q", "--prune=now")
    room.rewind(before)
    repository.git("gc", "-q", "--prune=now")
    assert repository.git("fsck", "--no-dangling", "--strict") == b""


def test_what_only_a_note_of_the_target_names_survives_git_gc(repository: Repository) -> None:
    tip = repository.commit("a", "x\n")
    repository.git("reset", "-q", "--hard", "HEAD~1")
    room = GitRoom(repository.root)
    target = room.save()
    assert [file.data for file in target.git.files if file.path == "ORIG_HEAD"] == [
        tip.encode() + b"\n"
    ]
    repository.git("checkout", "-q", "--detach", tip)
    before, _ = room.rewind(target)
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    room.rewind(before)
    assert repository.line("rev-parse", "HEAD") == tip


def test_a_merge_under_way_survives_git_gc(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    repository.git("branch", "gone", "side")
    repository.git("checkout", "-q", "gone")
    tip = repository.commit("gone", "gone\n")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "gone", codes=(1,))
    repository.git("branch", "-D", "gone")
    before, _ = room.rewind(target)
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    room.rewind(before)
    repository.git("add", "-A")
    repository.git("commit", "-qm", "merged")
    assert repository.line("rev-parse", "HEAD^2") == tip


@pytest.mark.parametrize("is_packed", [False, True])
def test_pins_go_with_their_checkpoint_and_no_others(
    repository: Repository, is_packed: bool
) -> None:
    room = GitRoom(repository.root)
    targets = [room.save()]
    for number in range(2):
        repository.commit("a", f"{number}\n")
        before, done = room.rewind(targets[-1])
        targets.append(before)
        assert done.pins
    repository.git("tag", "-am", "t", "t")
    if is_packed:
        repository.git("pack-refs", "--all")
        repository.git("update-ref", "refs/hardsave/chk_1/HEAD", "main")  # loose and packed
    refs = repository.line("for-each-ref").splitlines()
    kept = [line for line in refs if "/chk_1/" not in line]
    assert unpin(repository.root, "chk_1") == len(refs) - len(kept) > 0
    assert repository.line("for-each-ref").splitlines() == kept
    assert unpin(repository.root, "chk_1") == 0
    assert repository.line("rev-parse", "t^{}")
    clean(repository.root)


def test_people_find_their_way_in_the_reflogs(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    left = repository.commit("a", "left\n")
    repository.git("checkout", "-q", "side")
    room.rewind(target)
    assert repository.line("reflog", "-1", "--format=%gs", "main") == "hardsave: rewind (chk_1)"
    assert repository.line("rev-parse", "main@{1}") == left
    said = repository.line("reflog", "-2", "--format=%gs", "HEAD").splitlines()
    assert said == ["checkout: moving from side to main", "hardsave: rewind (chk_1)"]
    assert repository.line("rev-parse", "--abbrev-ref", "@{-1}") == "side"


def test_without_reflogs_none_are_made(repository: Repository) -> None:
    repository.git("config", "core.logAllRefUpdates", "false")
    repository.git("reflog", "expire", "--expire=now", "--all")
    for path in sorted((repository.root / ".git/logs").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    comes_back(repository, COMMIT)
    assert not [path for path in (repository.root / ".git/logs").rglob("*") if path.is_file()]


def test_what_is_there_already_is_left_alone(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    _, done = room.rewind(target)
    assert done.plan.is_empty
    assert done.pins == ()


def test_a_preview_tells_what_would_be_done(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    repository.git("merge", "side", codes=(1,))
    before = room.save(target.git)
    plan = gitplan.plan_git(before.git, target.git)
    assert (plan.before, plan.after) == ("merge", None)
    assert "MERGE_HEAD" in {change.path for change in plan.files if change.after is None}
    assert plan.refs == ()


def test_files_that_several_people_share_stay_shared(tmp_path: Path) -> None:
    repository = built(tmp_path / "work", "--shared=group")
    room = GitRoom(repository.root)
    target = room.save()
    repository.commit("a", "x\n")
    room.rewind(target)
    for name in ("index", "HEAD", "refs/heads/main"):
        assert (repository.root / ".git" / name).stat().st_mode & 0o777 == 0o664
