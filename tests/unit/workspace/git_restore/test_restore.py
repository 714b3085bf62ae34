"""A repository that was taken back says and does what it would have said and done then."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hardsave.workspace.git_restore.plan import branches
from tests.unit.workspace.git_room import GitRoom, answers, built, outcome
from tests.unit.workspace.repository import Repository

Command = tuple[str, ...]


class State(NamedTuple):
    """How a repository gets somewhere, goes on from there, and what it would do next."""

    make: Callable[[Repository], object]
    away: tuple[Command, ...] = ()
    following: tuple[Command, ...] = (("commit", "--allow-empty", "-am", "next"),)


ELSEWHERE: tuple[Command, ...] = (
    ("checkout", "--force", "--quiet", "-B", "elsewhere", "side"),
    ("commit", "--quiet", "--allow-empty", "-m", "elsewhere"),
)
RESOLVED: tuple[Command, ...] = (("add", "-A"),)


def mixed(repository: Repository) -> None:
    repository.write("a", "staged\n")
    repository.write("new", "staged\n")
    repository.git("add", "a", "new")
    repository.write("a", "other!\n")  # of the same length, in the same second
    repository.write("untracked", "x\n")
    repository.git("rm", "-q", "--cached", "b")


def intent_to_add(repository: Repository) -> None:
    repository.write("later", "x\n")
    repository.git("add", "--intent-to-add", "later")


def run(*command: str) -> Callable[[Repository], object]:
    return lambda repository: repository.git(*command, codes=(0, 1, 128))


def several(*steps: Callable[[Repository], object]) -> Callable[[Repository], object]:
    def make(repository: Repository) -> None:
        for step in steps:
            step(repository)

    return make


def am(repository: Repository) -> None:
    patch = repository.git("format-patch", "--stdout", "main..side")
    repository.git("am", "-3", codes=(1, 128), stdin=patch)


def bisect(repository: Repository) -> None:
    repository.git("bisect", "start", "main", "main~2")


def stash(repository: Repository) -> None:
    repository.write("a", "for later\n")
    repository.git("stash")
    repository.write("a", "now\n")


def split(repository: Repository) -> None:
    repository.git("update-index", "--split-index")
    mixed(repository)


def flagged(repository: Repository) -> None:
    repository.git("update-index", "--assume-unchanged", "a")
    repository.git("update-index", "--skip-worktree", "b")


def rebase_merges(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "merged", "main~1")
    repository.commit("m", "m\n")
    repository.git("merge", "-q", "--no-edit", "-X", "ours", "side")
    repository.git("rebase", "--rebase-merges", "main", codes=(0, 1))


STATES = {
    "clean": State(lambda _: None, (("commit", "--allow-empty", "-qm", "x"),)),
    "mixed": State(mixed, (("add", "-A"), ("commit", "-qm", "all"))),
    "mixed, then hard reset": State(mixed, (("reset", "-q", "--hard", "HEAD~1"),)),
    "intent to add": State(intent_to_add, (("add", "-A"), ("commit", "-qm", "x"))),
    "amended": State(mixed, (("commit", "-q", "--amend", "-am", "amended"),)),
    "merge": State(
        run("merge", "side"),
        (("merge", "--abort"),),
        (*RESOLVED, ("merge", "--continue")),
    ),
    "merge, then done": State(
        run("merge", "side"),
        (*RESOLVED, ("commit", "-qm", "merged")),
        (("merge", "--abort"),),
    ),
    "rebase": State(
        run("rebase", "side"),
        (*RESOLVED, ("rebase", "--continue")),
        (*RESOLVED, ("rebase", "--continue")),
    ),
    "rebase, then aborted": State(
        run("rebase", "side"), (("rebase", "--abort"),), (("rebase", "--skip"),)
    ),
    "rebase by patches": State(
        run("rebase", "--apply", "side"),
        (*RESOLVED, ("rebase", "--continue")),
        (*RESOLVED, ("rebase", "--continue")),
    ),
    "rebase with merges": State(
        rebase_merges,
        (*RESOLVED, ("rebase", "--continue")),
        (*RESOLVED, ("rebase", "--continue")),
    ),
    "rebase of several branches": State(
        several(run("branch", "middle", "main~1"), run("rebase", "--update-refs", "side")),
        (*RESOLVED, ("rebase", "--continue")),
        (*RESOLVED, ("rebase", "--continue")),
    ),
    "rebase with an autostash": State(
        several(lambda r: r.write("c", "dirty\n"), run("rebase", "--autostash", "side")),
        (*RESOLVED, ("rebase", "--continue")),
        (*RESOLVED, ("rebase", "--continue")),
    ),
    "cherry-pick": State(
        run("cherry-pick", "side~1", "side"),
        (*RESOLVED, ("cherry-pick", "--continue")),
        (*RESOLVED, ("cherry-pick", "--continue")),
    ),
    "revert": State(
        run("revert", "--no-edit", "main~1"),
        (("revert", "--abort"),),
        (*RESOLVED, ("revert", "--continue")),
    ),
    "am": State(am, (("am", "--abort"),), (*RESOLVED, ("am", "--continue"))),
    "bisect": State(bisect, (("bisect", "good"), ("bisect", "reset")), (("bisect", "bad"),)),
    "detached": State(run("checkout", "-q", "--detach", "main~1")),
    "stash": State(stash, (("commit", "-qam", "x"),), (("stash", "pop"),)),
    "split index": State(split, (("add", "-A"), ("commit", "-qm", "x"))),
    "flags": State(flagged, (("update-index", "--no-assume-unchanged", "a"),)),
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return built(tmp_path / "work")


def go(repository: Repository, commands: tuple[Command, ...]) -> None:
    for command in commands:
        repository.git(*command, codes=(0, 1, 128))


@pytest.mark.parametrize("name", STATES)
def test_every_state_comes_back_and_goes_again(repository: Repository, name: str) -> None:
    state = STATES[name]
    state.make(repository)
    room = GitRoom(repository.root)
    target = room.save()
    then = answers(repository), outcome(repository, state.following)

    go(repository, (*state.away, *ELSEWHERE))
    if "refs/heads/main" in branches(target.git):
        repository.git("branch", "-D", "main")
    moved = answers(repository)
    assert moved != then[0]
    before, _ = room.rewind(target)
    assert answers(repository) == then[0]
    assert outcome(repository, state.following) == then[1]
    assert repository.git("fsck", "--no-dangling", "--strict") == b""

    room.rewind(before)
    assert answers(repository) == moved
