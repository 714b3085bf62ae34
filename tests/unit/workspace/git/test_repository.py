"""A look at a repository is kept while all that it depends on is as it was."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.workspace.git import position
from hardsave.workspace.git import repository as gitlook
from hardsave.workspace.git.repository import CachedRepository
from tests.unit.workspace import pieces
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work").init()
    made.commit("a", "1")
    return made


def later() -> int:
    """A clock that takes nothing for young."""
    return time.time_ns() + 60_000_000_000


def seen(root: Path, last: CachedRepository | None = None) -> CachedRepository:
    return gitlook.look(root, last=last, clock=later)


def assert_is_true(found: CachedRepository) -> None:
    assert found.found.position == position.position(found.top)
    tracked = pieces.tracked_or_why(found.top)
    assert tracked is None or (found.found.tracked(), found.found.problem) == tracked
    assert found.found.exclude == pieces.info_exclude(found.top)


def test_a_repository_that_is_as_it_was_is_not_read_again(repository: Repository) -> None:
    first = seen(repository.root)
    assert_is_true(first)
    assert seen(repository.root, first) is first


def test_what_is_as_young_as_the_clock_is_coarse_is_read_again(repository: Repository) -> None:
    os.utime(repository.root / ".git/index")
    first = gitlook.look(repository.root)
    assert first.stamps == ()
    assert gitlook.look(repository.root, last=first) is not first


EMPTY_BLOB = "100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,b"
CHANGES: dict[str, Callable[[Repository], object]] = {
    "a commit": lambda r: r.git("commit", "-q", "--allow-empty", "-m", "two"),
    "a staged file": lambda r: r.git("update-index", "--add", "--cacheinfo", EMPTY_BLOB),
    "another branch": lambda r: r.git("checkout", "-qb", "other"),
    "a detached head": lambda r: r.git("checkout", "-q", "--detach"),
    "packed refs": lambda r: r.git("pack-refs", "--all"),
    "an excludes file": lambda r: (r.root / ".git/info/exclude").write_text("x\n"),
    "a note of a merge": lambda r: (r.root / ".git/MERGE_MSG").write_text("m\n"),
    "a rebase": lambda r: (r.root / ".git/rebase-merge").mkdir(),
    "a bisect": lambda r: r.git("bisect", "start", "HEAD"),
    "a ref written in place": lambda r: (r.root / ".git" / "refs/heads/main").write_text("0" * 40),
    "a ref that is a name": lambda r: r.git(
        "symbolic-ref", "refs/heads/main", "refs/heads/elsewhere"
    ),
    "an index written in place": lambda r: (r.root / ".git/index").write_bytes(b"broken"),
    "no index": lambda r: (r.root / ".git/index").unlink(),
    "no repository": lambda r: shutil.rmtree(r.root / ".git"),
    "a setting": lambda r: r.git("config", "extensions.refStorage", "reftable"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_found(repository: Repository, change: str) -> None:
    first = seen(repository.root)
    CHANGES[change](repository)
    second = seen(repository.root, first)
    assert second is not first
    assert_is_true(second)


def test_a_note_that_is_written_again_in_place_is_found(repository: Repository) -> None:
    note = repository.root / ".git/MERGE_MSG"
    note.write_text("one\n")
    first = seen(repository.root)
    note.write_text("another\n")
    assert_is_true(seen(repository.root, first))


def test_a_rebase_is_read_every_time(repository: Repository) -> None:
    (repository.root / ".git/rebase-merge").mkdir()
    first = seen(repository.root)
    assert seen(repository.root, first) is not first


def test_a_ref_behind_another_is_read_every_time(repository: Repository) -> None:
    repository.git("branch", "real")
    repository.git("symbolic-ref", "refs/heads/main", "refs/heads/real")
    first = seen(repository.root)
    repository.git("update-ref", "-d", "refs/heads/real")
    assert_is_true(seen(repository.root, first))


def test_a_linked_worktree_is_kept_and_its_changes_are_found(
    repository: Repository, tmp_path: Path
) -> None:
    side = tmp_path / "side"
    repository.git("worktree", "add", "-q", "-b", "side", str(side))
    first = seen(side)
    assert_is_true(first)
    assert seen(side, first) is first
    repository.git("update-ref", "-d", "refs/heads/side")
    assert_is_true(seen(side, first))


def test_an_index_that_was_sound_before_is_parsed_when_it_is_needed(
    repository: Repository,
) -> None:
    known = position.position(repository.root)
    assert known is not None
    position.paths_in.cache_clear()
    found = gitlook.look(repository.root, known_index=known.index_hash)
    assert position.paths_in.cache_info().misses == 0
    assert_is_true(found)
    (repository.root / ".git/index").write_bytes(b"broken")
    assert gitlook.look(repository.root, known_index=known.index_hash).found.problem


def test_other_branches_are_another_look(repository: Repository) -> None:
    first = seen(repository.root)
    second = gitlook.look(repository.root, ["refs/heads/x"], first, clock=later)
    assert second.found.position == position.position(repository.root, also=["refs/heads/x"])
