"""What cannot be restored is refused before anything is changed, with the way out."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.errors import Conflict, Corrupt, HardsaveError, Misuse, NotFound, Unavailable
from hardsave.workspace.git.position import GitPosition, position
from hardsave.workspace.git.unfinished import GitFile
from hardsave.workspace.git_restore import plan
from hardsave.workspace.git_restore.execution import abandon, check_git, restore_git
from tests.unit.workspace.git_room import SECONDS, GitRoom, answers, built, present
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.room import picture


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return built(tmp_path / "work")


def stands(repository: Repository) -> GitPosition:
    found = position(repository.root)
    assert found is not None
    return found


def refused(
    repository: Repository, target: GitPosition, error: type[HardsaveError], words: str
) -> None:
    """And nothing in the repository is another than before."""
    before = present(repository.root, target)
    assert before is not None
    inside = picture(repository.root / ".git")
    with pytest.raises(error, match=words):
        restore_git(repository.root, before, target, id="chk_x", seconds=SECONDS, attempts=2)
    with pytest.raises(error, match=words):
        check_git(repository.root, before, target)
    assert picture(repository.root / ".git") == inside


def test_a_commit_that_git_has_collected(repository: Repository) -> None:
    repository.git("checkout", "-q", "--detach")
    repository.commit("a", "gone\n")
    target = stands(repository)
    repository.git("checkout", "-q", "main")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    refused(repository, target, NotFound, f"the commit {target.commit} is no longer")


def test_a_staged_content_that_git_has_collected(repository: Repository) -> None:
    repository.write("a", "staged\n")
    repository.git("add", "a")
    target = stands(repository)
    repository.git("reset", "-q", "--hard")
    repository.git("gc", "-q", "--prune=now")
    refused(repository, target, NotFound, "the staged content [0-9a-f]{40} is no longer")


def test_a_branch_that_would_lead_to_no_commit(repository: Repository) -> None:
    target = stands(repository)._replace(commit=repository.line("rev-parse", "HEAD^{tree}"))
    refused(repository, target, Corrupt, "'HEAD' cannot come back to [0-9a-f]{40}: it is a tree")


def test_a_commit_that_is_damaged(repository: Repository) -> None:
    target = stands(repository)
    assert target.commit is not None
    repository.commit("a", "x\n")
    path = repository.root / ".git/objects" / target.commit[:2] / target.commit[2:]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    refused(repository, target, Corrupt, "cannot come back to")


def test_a_partial_clone_may_lack_contents(repository: Repository) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("clone", "-q", "--no-local", "--filter=blob:none", ".", "../partial")
    partial = Repository(repository.root.parent / "partial")
    target = stands(partial)
    partial.git("checkout", "-q", "-b", "other", "HEAD~3")
    lost = [path for path in (partial.root / ".git/objects").rglob("*") if path.is_file()]
    before = present(partial.root, target)
    assert before is not None
    restore_git(partial.root, before, target, id="chk_x", seconds=SECONDS)
    assert lost
    assert partial.line("symbolic-ref", "HEAD") == "refs/heads/main"


@pytest.mark.parametrize("name", ["index", "HEAD", "refs/heads/main"])
def test_a_lock_that_another_process_holds(repository: Repository, name: str) -> None:
    target = stands(repository)
    repository.commit("a", "x\n")
    (repository.root / f".git/{name}.lock").write_bytes(b"")
    refused(repository, target, Unavailable, f"'{name}.lock' is there.*remove the file")


def test_a_lock_of_another_restore_that_was_interrupted(repository: Repository) -> None:
    target = stands(repository)
    repository.commit("a", "x\n")
    words = "A restore by hardsave is under way here: chk_other\n"
    (repository.root / ".git/index.lock").write_text(words)
    refused(repository, target, Unavailable, "interrupted .chk_other.: recover that first")


OURS = "A restore by hardsave is under way here: chk_x\n"


def left_of_us(repository: Repository, *names: str) -> None:
    """What a restore leaves that was killed before it could change anything."""
    (repository.root / ".git/hardsave-chk_x").mkdir()
    (repository.root / ".git/hardsave-chk_x/1").write_text("staged")
    for name in names:
        path = repository.root / f".git/{name}.lock"
        path.parent.mkdir(exist_ok=True)
        path.write_text(OURS)


def test_our_own_locks_go_also_if_something_speaks_against_it_by_now(
    repository: Repository,
) -> None:
    target = stands(repository)
    repository.git("checkout", "-q", "side")
    before = present(repository.root, target)
    assert before is not None
    repository.git("worktree", "add", "-q", "../other", "main")
    left_of_us(repository, "index", "HEAD")
    with pytest.raises(Conflict, match="in use"):
        restore_git(repository.root, before, target, id="chk_x", seconds=SECONDS)
    assert not list(repository.root.glob(".git/*.lock"))
    assert not list(repository.root.glob(".git/hardsave-*"))


def test_a_restore_can_be_given_up(repository: Repository) -> None:
    said = answers(repository)
    left_of_us(repository, "index", "HEAD", "packed-refs", "refs/heads/main", "refs/heads/a/b")
    others = repository.root / ".git/refs/heads/side.lock"
    others.write_text("another program's")
    abandon(repository.root, "chk_x")
    assert list(repository.root.glob(".git/**/*.lock")) == [others]
    assert not list(repository.root.glob(".git/hardsave-*"))
    assert answers(repository) == said


def test_a_lock_that_goes_soon_is_waited_for(repository: Repository) -> None:
    target = stands(repository)
    repository.commit("a", "x\n")
    lock = repository.root / ".git/index.lock"
    lock.write_bytes(b"")
    before = present(repository.root, target)
    assert before is not None
    restore_git(
        *(repository.root, before, target),
        id="chk_x",
        seconds=SECONDS,
        attempts=2,
        sleep=lambda _: lock.unlink(),
    )
    assert repository.line("rev-parse", "HEAD") == target.commit


def test_a_branch_that_another_worktree_has_checked_out(repository: Repository) -> None:
    target = stands(repository)
    repository.git("checkout", "-q", "side")
    repository.git("worktree", "add", "-q", "../other", "main")
    refused(repository, target, Conflict, "'refs/heads/main' is in use in the worktree .*other")


def test_a_branch_that_another_worktree_is_rebasing(repository: Repository) -> None:
    target = stands(repository)
    repository.git("checkout", "-q", "side")
    repository.git("worktree", "add", "-q", "../other", "main")
    Repository(repository.root.parent / "other").git("rebase", "side", codes=(1,))
    refused(repository, target, Conflict, "in use in the worktree .*other")


def test_a_branch_that_the_main_worktree_has_checked_out(repository: Repository) -> None:
    repository.git("worktree", "add", "-q", "-b", "linked", "../other")
    linked = Repository(repository.root.parent / "other")
    target = stands(linked)
    linked.git("checkout", "-q", "--detach")
    repository.git("checkout", "-q", "linked")
    before = present(linked.root, target)
    assert before is not None
    with pytest.raises(Conflict, match="in use in the main worktree"):
        restore_git(linked.root, before, target, id="chk_x", seconds=SECONDS)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(("wanted", "other"), [("a", "a/b/c"), ("a/b", "a")])
def test_a_branch_whose_name_is_taken_by_others(
    repository: Repository, wanted: str, other: str, is_packed: bool
) -> None:
    repository.git("checkout", "-q", "-b", wanted)
    target = stands(repository)
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-D", wanted)
    repository.git("branch", other)
    if is_packed:
        repository.git("pack-refs", "--all")
    refused(repository, target, Conflict, f"cannot come back beside 'refs/heads/{other}'")


def test_a_reftable(repository: Repository) -> None:
    target = stands(repository)
    repository.git("config", "core.repositoryFormatVersion", "1")
    repository.git("config", "extensions.refStorage", "reftable")
    refused(repository, target, NotFound, "reftable.*without git")


def test_a_position_that_was_not_captured_whole(repository: Repository) -> None:
    (repository.root / ".git/MERGE_HEAD").symlink_to("HEAD")
    target = stands(repository)
    (repository.root / ".git/MERGE_HEAD").unlink()
    refused(repository, target, NotFound, "MERGE_HEAD: it is a symbolic link")


def test_a_directory_without_a_repository(tmp_path: Path, repository: Repository) -> None:
    target = stands(repository)
    with pytest.raises(NotFound, match="there is no repository"):
        restore_git(tmp_path, target, target, id="chk_x", seconds=SECONDS)


def test_a_repository_with_another_hash(tmp_path: Path, repository: Repository) -> None:
    other = built(tmp_path / "other", "--object-format=sha256")
    refused(other, stands(repository), Misuse, "sha1, and this one has sha256")


def test_a_present_that_does_not_know_the_branch(repository: Repository) -> None:
    target = stands(repository)
    repository.git("checkout", "-q", "side")
    with pytest.raises(Misuse, match="also=branches"):
        plan.plan_git(stands(repository), target)


def test_an_id_that_is_no_name(repository: Repository) -> None:
    target = stands(repository)
    for id in ("", "../x", "a.lock", "a/b", "-x"):
        with pytest.raises(Misuse, match="cannot name pins"):
            restore_git(repository.root, target, target, id=id, seconds=SECONDS)


# Another program at work


def staged(repository: Repository) -> None:
    repository.write("b", "meanwhile\n")
    repository.git("add", "b")


MEANWHILE: dict[str, Callable[[Repository], object]] = {
    "index": staged,
    "HEAD": lambda repository: repository.git("checkout", "-q", "--detach"),
    "refs/heads/main": lambda repository: repository.git("branch", "-f", "main", "main~2"),
    "MERGE_HEAD": lambda repository: repository.git("merge", "main~1", codes=(0, 1)),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_changed_after_the_present_was_saved(repository: Repository, what: str) -> None:
    target = stands(repository)
    repository.commit("b", "x\n")
    repository.git("checkout", "-q", "side")
    before = present(repository.root, target)
    assert before is not None
    MEANWHILE[what](repository)
    said = answers(repository)
    with pytest.raises(Conflict, match=f"at work .*{what}"):
        restore_git(repository.root, before, target, id="chk_x", seconds=SECONDS)
    assert answers(repository) == said
    assert list(repository.root.glob(".git/**/*.lock")) == []


def test_an_index_that_only_looked_at_the_files_again_is_the_same(repository: Repository) -> None:
    target = stands(repository)
    repository.commit("b", "x\n")
    before = present(repository.root, target)
    assert before is not None
    os.utime(repository.root / "a", (1, 1))
    repository.git("status")
    assert stands(repository).own_index != before.own_index
    restore_git(repository.root, before, target, id="chk_x", seconds=SECONDS)
    assert repository.line("rev-parse", "HEAD") == target.commit


# Untrusted positions


def hostile(target: GitPosition) -> dict[str, GitPosition]:
    assert target.own_index is not None

    def file(path: str) -> GitPosition:
        return target._replace(files=(GitFile(path, b"x\n"),))

    return {
        "a hook": file("hooks/post-checkout"),
        "the configuration": file("config"),
        "a way out": file("rebase-merge/../hooks/pre-commit"),
        "a path from the root": file("/etc/passwd"),
        "an object": file("objects/11/11"),
        "HEAD as a note": file("HEAD"),
        "a shared index": target._replace(shared_index=GitFile("sharedindex.x", target.own_index)),
        "a HEAD that says something else": target._replace(head=b"ref: refs/heads/other\n"),
        "a HEAD that leads out": target._replace(
            head=b"ref: refs/../../x\n", ref="refs/../../x", commit=None
        ),
        "a ref that is no branch": target._replace(refs=(("refs/tags/v1", target.commit),)),
        "a branch at no commit": target._replace(refs=(("refs/heads/x", "../x"),)),
        "an index that is none": target._replace(own_index=target.own_index[:-1] + b"x"),
        "a rebase without its branch": target._replace(
            files=(GitFile("rebase-merge/head-name", b"refs/heads/x\n"),)
        ),
    }


HOSTILE = list(hostile(GitPosition(own_index=b"x")))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_position_that_would_write_what_no_position_holds(
    repository: Repository, name: str
) -> None:
    target = hostile(stands(repository))[name]
    before = stands(repository)
    inside = picture(repository.root / ".git")
    with pytest.raises(Corrupt, match="; restore the files without git"):
        restore_git(repository.root, before, target, id="chk_x", seconds=SECONDS)
    assert picture(repository.root / ".git") == inside


@pytest.mark.parametrize("path", [b".git/hooks/x", b"a/.GIT/config", b"../x", b"git~1/x"])
def test_an_index_that_leads_into_git(repository: Repository, path: bytes) -> None:
    good = stands(repository)
    other = Repository(repository.root.parent / "other").init()
    blob = other.line("hash-object", "-w", "-t", "blob", "/dev/null").encode()
    placeholder = b"x" * len(path)
    other.git("update-index", "--index-info", stdin=b"100644 %b\t%b\n" % (blob, placeholder))
    other.git("config", "index.skipHash", "true")
    data = (other.root / ".git/index").read_bytes().replace(placeholder, path)
    target = good._replace(own_index=data[:-20] + bytes(20))
    with pytest.raises(Corrupt, match="the stored index holds"):
        plan.plan_git(good, target)


# Nothing is run


def test_nothing_that_a_repository_names_is_run(tmp_path: Path, repository: Repository) -> None:
    sign, script = tmp_path / "it ran", tmp_path / "canary"
    script.write_text(f"#!/bin/sh\necho \"$0\" >> '{sign}'\ncat\n")
    script.chmod(0o755)
    room = GitRoom(repository.root)
    repository.write("a", "staged\n")
    repository.git("add", "a")
    plant(repository, script)
    target = room.save()
    plain = dict(repository.environment)
    repository.git("-c", "core.fsmonitor=false", "reset", "-q", "--hard", codes=(0, 1, 128))
    assert sign.exists()  # git itself runs it
    repository.environment = plain
    sign.unlink()
    before, done = room.rewind(target)
    room.rewind(before)
    assert not done.plan.is_empty
    assert not sign.exists(), sign.read_text()


def plant(repository: Repository, script: Path) -> None:
    """Everything in a repository that can name a program."""
    hooks = repository.root.parent / "hooks"
    hooks.mkdir()
    for name in (
        *("reference-transaction", "post-index-change", "post-checkout", "pre-commit"),
        *("post-commit", "post-rewrite", "post-merge", "pre-auto-gc", "fsmonitor-watchman"),
    ):
        (hooks / name).symlink_to(script)
        (repository.root / ".git/hooks" / name).unlink(missing_ok=True)
        (repository.root / ".git/hooks").mkdir(exist_ok=True)
        (repository.root / ".git/hooks" / name).symlink_to(script)
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass"),
        *("core.alternateRefsCommand", "core.gitProxy", "gpg.program", "credential.helper"),
        *("filter.f.clean", "filter.f.smudge", "filter.f.process", "diff.d.textconv"),
        *("diff.external", "merge.m.driver", "sequence.editor", "gc.recentObjectsHook"),
        *("uploadpack.packObjectsHook", "remote.origin.uploadpack", "remote.origin.vcs"),
    ):
        repository.git("config", key, str(script))
    for alias in ("status", "update-ref", "cat-file", "read-tree", "rev-parse"):
        repository.git("config", f"alias.{alias}", f"!{script}")
    repository.git("config", "remote.origin.url", f"ext::{script}")
    repository.git("config", "remote.origin.promisor", "true")
    repository.git("config", "core.repositoryFormatVersion", "1")
    repository.git("config", "extensions.partialClone", "origin")
    included = repository.root.parent / "included"
    included.write_text(f'[core]\n\tfsmonitor = "{script}"\n')
    repository.git("config", "includeIf.gitdir:**.path", str(included))
    repository.git("config", "core.hooksPath", str(hooks))
    repository.write(".git/info/attributes", "* filter=f diff=d merge=m\n")
