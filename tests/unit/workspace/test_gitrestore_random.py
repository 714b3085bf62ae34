"""Whatever people do with git, and wherever they stand: it comes back, and goes again."""

import random
from pathlib import Path

import pytest

from hardsave.errors import Conflict
from tests.unit.workspace.git_room import GitRoom, Saved, answers, built
from tests.unit.workspace.repository import Repository

FILES = ("a", "b", "c", "d", "e", "sub/f", "sub/g")
BRANCHES = ("main", "side", "main/x", "deep/er", "sub")


class Somebody:
    """Works with git at random. Commands may fail, as they do with people."""

    def __init__(self, repository: Repository, seed: int) -> None:
        self.repository = repository
        self.random = random.Random(seed)

    def work(self, count: int) -> list[str]:
        return [self._one() for _ in range(count)]

    def _one(self) -> str:
        if self.random.random() < 0.35:
            path = self.random.choice(FILES)
            target = self.repository.root / path
            if target.parent.is_dir() or not target.parent.exists():
                self.repository.write(path, self.random.choice("xyz") + "\n")
            return f"write {path}"
        command = self._command()
        self.repository.git(*command, codes=(0, 1, 2, 3, 4, 128, 129))
        return " ".join(command)

    def _command(self) -> tuple[str, ...]:
        choose = self.random.choice
        path, branch = choose(FILES), choose(BRANCHES)
        commit = choose((*BRANCHES, "HEAD~1", "HEAD~2", "main~1", "side~1"))
        return choose(
            (
                ("add", path),
                ("add", "-A"),
                ("add", "-N", path),
                ("rm", "-q", "--cached", path),
                ("commit", "-qm", self.random.choice("123")),
                ("commit", "-qam", "all"),
                ("commit", "-q", "--amend", "--allow-empty", "-m", "amended"),
                ("reset", "-q", "--hard", commit),
                ("reset", "-q", commit),
                ("checkout", "-q", branch),
                ("checkout", "-q", "-f", "-B", branch),
                ("checkout", "-q", "--detach", commit),
                ("checkout", "-q", "--orphan", branch),
                ("branch", "-D", branch),
                ("merge", "-q", "--no-edit", commit),
                ("merge", "--abort"),
                ("rebase", "-q", commit),
                ("rebase", "-q", "--apply", commit),
                ("rebase", "--continue"),
                ("rebase", "--abort"),
                ("cherry-pick", commit),
                ("cherry-pick", "--abort"),
                ("revert", "--no-edit", commit),
                ("revert", "--continue"),
                ("stash",),
                ("stash", "pop"),
                ("bisect", "start", "HEAD", "HEAD~2"),
                ("bisect", "good"),
                ("bisect", "reset"),
                ("pack-refs", "--all"),
                ("update-index", "--split-index"),
                ("update-index", "--no-split-index"),
                ("update-index", "--index-version", "4"),
                ("status",),
            )
        )


def comes_and_goes(root: Path, seed: int) -> int:
    """How often something was taken back."""
    repository = built(root)
    somebody = Somebody(repository, seed)
    room = GitRoom(repository.root)
    somebody.work(somebody.random.randint(0, 15))
    saved: list[tuple[Saved, dict[str, bytes]]] = []
    done = 0
    for _ in range(4):
        saved.append((room.save(), says(repository)))
        did = somebody.work(somebody.random.randint(1, 10))
        target, then = somebody.random.choice(saved)
        now = says(repository)
        try:
            before, _ = room.rewind(target)
        except Conflict as error:
            assert "cannot come back beside" in str(error), (seed, did)  # noqa: PT017 # one of two ends
            continue
        done += 1
        assert says(repository) == then, (seed, did)
        if somebody.random.random() < 0.5:
            room.rewind(before)
            assert says(repository) == now, (seed, did)
    assert repository.git("fsck", "--no-dangling", "--connectivity-only") == b""
    return done


def says(repository: Repository) -> dict[str, bytes]:
    """All but what is no part of a position: other branches, the stash."""
    said = answers(repository)
    return {ask: said[ask] for ask in said if not ask.startswith(("for-each-ref", "stash"))}


def test_random_work_comes_back(tmp_path: Path) -> None:
    assert sum(comes_and_goes(tmp_path / str(seed), seed) for seed in range(2))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 200))
def test_much_random_work_comes_back(tmp_path: Path, seed: int) -> None:
    comes_and_goes(tmp_path / "work", seed)
