"""A rewind with git, the whole way: files, state and repository go back, and forth again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Conflict, NotFound
from tests.unit.workspace.git_room import answers, built, clean
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return built(tmp_path / "work")


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        yield vault


@pytest.fixture
def line(vault: hardsave.Vault) -> hardsave.Timeline:
    return vault.timeline("main")


def stopped(repository: Repository) -> None:
    """A rebase in the middle, with something staged beside."""
    repository.git("rebase", "side", codes=(1,))
    repository.write("b", "staged\n")
    repository.git("add", "b")
    repository.write("b", "not staged\n")


def elsewhere(repository: Repository) -> None:
    repository.git("add", "-A")
    repository.git("rebase", "--continue")
    repository.git("checkout", "-q", "side")
    repository.write("a", "staged elsewhere\n")
    repository.git("add", "a")


def test_a_stopped_rebase_comes_back_and_undo_and_redo_walk_over_it(
    repository: Repository, line: hardsave.Timeline
) -> None:
    stopped(repository)
    target, then = line.save({"n": 1}, workspace=repository.root), answers(repository)
    elsewhere(repository)
    line.save({"n": 2}, workspace=repository.root)
    now = answers(repository)
    done = line.rewind(target.id, git=True)
    assert done.files is not None
    assert done.files.git is not None
    assert (done.files.git.before.branch, done.files.git.after.in_progress) == ("side", "rebase")
    assert done.files.kept == ()
    assert answers(repository) == then
    line.undo()
    assert answers(repository) == now
    line.redo()
    assert answers(repository) == then
    clean(repository.root)


def test_a_restore_with_git_takes_the_repository_back(
    repository: Repository, vault: hardsave.Vault, line: hardsave.Timeline
) -> None:
    stopped(repository)
    target, then = line.save({"n": 1}, workspace=repository.root), answers(repository)
    elsewhere(repository)
    done = vault.workspace(repository.root).restore(target.id, git=True)
    assert done.files is not None
    assert done.files.git is not None
    assert answers(repository) == then


def test_without_git_only_files_come_back(repository: Repository, line: hardsave.Timeline) -> None:
    target = line.save({"n": 1}, workspace=repository.root)
    repository.commit("a", "later\n")
    commit = repository.line("rev-parse", "HEAD")
    line.rewind(target.id)
    assert (repository.root / "a").read_text() == "main\n"
    assert repository.line("rev-parse", "HEAD") == commit


def test_a_dry_run_leaves_git_alone(repository: Repository, line: hardsave.Timeline) -> None:
    stopped(repository)
    target = line.save({"n": 1}, workspace=repository.root)
    elsewhere(repository)
    now = answers(repository)
    told = line.rewind(target.id, git=True, dry_run=True)
    assert told.files is not None
    assert told.files.git
    assert answers(repository) == now


def test_what_speaks_against_git_stops_the_files_too(
    repository: Repository, line: hardsave.Timeline
) -> None:
    target = line.save({"n": 1}, workspace=repository.root)
    repository.git("checkout", "-q", "side")
    repository.git("worktree", "add", "-q", "../other", "main")
    now = answers(repository)
    with pytest.raises(Conflict, match="in use"):
        line.rewind(target.id, git=True)
    assert answers(repository) == now
    assert line.load() == {"n": 1}


def test_a_preview_names_the_commits_that_no_branch_would_lead_to(
    repository: Repository, line: hardsave.Timeline
) -> None:
    target = line.save({"n": 1}, workspace=repository.root)
    repository.commit("a", "one\n")
    repository.commit("a", "two\n")
    told = line.rewind(target.id, git=True, dry_run=True)
    assert told.files is not None
    assert told.files.git is not None
    assert told.files.git.is_all
    subjects = {each.subject for each in told.files.git.left_behind}
    assert len(subjects) == 2
    assert all(subject.startswith("a: ") for subject in subjects)


# Pins


def pins(repository: Repository) -> set[str]:
    refs = repository.git("for-each-ref", "--format=%(refname)", "refs/hardsave/")
    return {ref.split("/")[2] for ref in refs.decode().split()}


def test_what_was_pinned_for_a_dropped_checkpoint_goes_with_the_next_restore(
    repository: Repository, vault: hardsave.Vault
) -> None:
    line = vault.timeline("main")
    target = line.save({"n": 1}, workspace=repository.root)
    repository.commit("a", "one\n")
    first = line.rewind(target.id, git=True).before
    assert first is not None
    assert pins(repository) == {first.id}
    repository.git("update-ref", "refs/hardsave/mine/HEAD", "HEAD")
    repository.git("update-ref", f"refs/hardsave/chk_{'ab' * 12}/HEAD", "HEAD")
    others = {"mine", f"chk_{'ab' * 12}"}
    vault.store.purge(first.id)
    assert pins(repository) == {first.id, *others}  # nobody has asked to write there
    repository.commit("a", "two\n")
    second = line.rewind(target.id, git=True).before
    assert second is not None
    assert pins(repository) == {second.id, *others}


# Staged contents that git has collected


def unstaged(repository: Repository) -> None:
    """Nothing names what was staged any more, and git has let it go."""
    repository.git("reset", "-q", "--hard")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")


@pytest.mark.parametrize("kind", ["file", "lines", "symlink", "new"])
def test_what_was_staged_comes_back_although_git_has_collected_it(
    repository: Repository, line: hardsave.Timeline, kind: str
) -> None:
    if kind == "lines":
        repository.git("config", "core.autocrlf", "true")
    if kind == "symlink":
        (repository.root / "link").symlink_to("somewhere")
    elif kind == "new":
        repository.write("new/file", "new and staged\n")
    else:
        repository.write("b", "staged\r\n" if kind == "lines" else "staged\n")
    repository.git("add", "-A")
    target, then = line.save({"n": 1}, workspace=repository.root), answers(repository)
    staged = repository.git("diff", "--cached")
    unstaged(repository)
    before = answers(repository)
    shown = line.rewind(target.id, git=True, dry_run=True)
    assert answers(repository) == before  # a preview writes nothing
    done = line.rewind(target.id, git=True)
    assert done.files is not None
    assert shown.files is not None
    assert (shown.files.git, shown.files.kept) == (done.files.git, ())
    assert done.files.kept == ()
    assert repository.git("diff", "--cached") == staged
    repository.git("fsck", "--strict", "--no-dangling")
    assert answers(repository) == then
    line.undo()
    assert answers(repository) == before


def test_what_was_staged_and_edited_since_is_refused_if_git_has_collected_it(
    repository: Repository, line: hardsave.Timeline
) -> None:
    repository.write("b", "staged\n")
    repository.git("add", "b")
    repository.write("b", "edited since\n")
    target = line.save({"n": 1}, workspace=repository.root)
    unstaged(repository)
    before = answers(repository)
    with pytest.raises(NotFound, match=r"the staged content [0-9a-f]{40} is no longer"):
        line.rewind(target.id, git=True)
    assert answers(repository) == before
    line.rewind(target.id)  # without git
    assert (repository.root / "b").read_text() == "edited since\n"
