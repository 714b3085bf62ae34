"""The commits that a restore leaves behind are those that nothing else leads to."""

import random
from pathlib import Path

import pytest

from hardsave.workspace.git_restore.left_behind import GitCommit, left_behind, walk
from hardsave.workspace.git_restore.plan import plan_git
from tests.unit.workspace.git_room import GitRoom, Saved, built
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return built(tmp_path / "work")


def left(room: GitRoom, target: Saved) -> set[str]:
    found = left_behind(room.root, plan_git(room.save(target.git).git, target.git))
    assert found.is_all
    return {commit.subject for commit in found.commits}


def test_commits_of_a_branch_that_moves_back(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    assert left(room, target) == set()
    repository.commit("a", "one")
    repository.commit("a", "two")
    assert left(room, target) == {"a: one", "a: two"}
    repository.git("gc", "-q")
    assert left(room, target) == {"a: one", "a: two"}


@pytest.mark.parametrize("how", ["branch", "tag", "worktree", "annotated tag"])
def test_commits_that_something_else_leads_to_are_not_left(
    repository: Repository, how: str
) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    repository.commit("a", "one")
    repository.commit("a", "two")
    commands = {
        "branch": ("branch", "keeps", "HEAD~1"),
        "tag": ("tag", "keeps", "HEAD~1"),
        "annotated tag": ("tag", "-am", "t", "keeps", "HEAD~1"),
        "worktree": ("worktree", "add", "-q", "--detach", "../keeps", "HEAD~1"),
    }
    repository.git(*commands[how])
    assert left(room, target) == {"a: two"}


def test_commits_of_a_detached_head(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    repository.git("checkout", "-q", "--detach", "side")
    repository.commit("a", "one")
    assert left(room, target) == {"a: one"}


def test_a_branch_that_is_only_left_keeps_its_commits(repository: Repository) -> None:
    room = GitRoom(repository.root)
    target = room.save()
    repository.git("checkout", "-q", "side")
    repository.commit("a", "one")
    assert left(room, target) == set()


def test_random_histories_are_walked_to_the_same_end_as_a_plain_search() -> None:
    rnd = random.Random(3)
    for _ in range(200):
        commits: dict[str, GitCommit] = {}
        for number in range(rnd.randint(1, 40)):
            parents = tuple(
                rnd.sample(sorted(commits), min(len(commits), rnd.choice([0, 1, 1, 2])))
            )
            newest = max((commits[parent].seconds for parent in parents), default=0)
            seconds = newest + rnd.choice([0, 0, 1, 100_000])
            commits[f"{number:02}"] = GitCommit(f"{number:02}", parents, seconds, "")
        tips, kept = (rnd.choices(sorted(commits), k=rnd.randint(0, 3)) for _ in range(2))
        found = walk(tips, kept, commits.get)
        assert found.is_all
        expected = reached(tips, commits) - reached(kept, commits)
        assert {commit.id for commit in found.commits} == expected


def reached(tips: list[str], commits: dict[str, GitCommit]) -> set[str]:
    found: set[str] = set()
    todo = list(tips)
    while todo:
        id = todo.pop()
        if id not in found:
            found.add(id)
            todo += commits[id].parents
    return found


def test_a_walk_that_would_not_end_says_so() -> None:
    commits = {str(n): GitCommit(str(n), (str(n + 1),), 10_000 - n, "") for n in range(10_000)}
    found = walk(["0"], ["9999"], commits.get, most=50)
    assert not found.is_all
    assert 0 < len(found.commits) <= 50


def test_a_long_way_is_gone_in_one_go() -> None:
    """As many commits as may be read, none of them kept; each is looked at a few times."""
    count = 5_000
    ids = [f"{number:040x}" for number in range(2 * count)]
    commits = {
        id: GitCommit(id, tuple(ids[at - 1 : at]), 1_700_000_000 + at, "")
        for at, id in enumerate(ids)
    }
    found = walk([ids[-1]], [ids[0]], commits.get)
    assert [commit.id for commit in found.commits] == ids[:count:-1]
    assert not found.is_all
