"""After any work with git, from any position: it comes back, and goes again."""

import random
from pathlib import Path

import pytest

from hardsave.errors import Conflict
from tests.unit.workspace.git_room import GitRoom, Saved, answers, built
from tests.unit.workspace.repository import Repository

FILES = ("a", "b", "c", "d", "e", "sub/f", "sub/g")
ANY_END = (*range(256), -11)  # git 2.39 itself faults on `bisect good` without a commit
BRANCHES = ("main", "side", "main/x", "deep/er", "sub")


class Developer:
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
        commands = self._commands()
        for command in commands:
            self.repository.git(*command, codes=ANY_END)
        return "; ".join(" ".join(command) for command in commands)

    def _commands(self) -> tuple[tuple[str, ...], ...]:
        kind = self.random.choices(("plain", "begin", "end", "rare"), (8, 6, 2, 3))[0]
        choices = {"plain": self._plain, "begin": self._begin, "end": self._end}
        return choices.get(kind, self._rare)()

    def _plain(self) -> tuple[tuple[str, ...], ...]:
        path, branch = self.random.choice(FILES), self.random.choice(BRANCHES)
        return self.random.choice(
            (
                (("add", path),),
                (("add", "-A"),),
                (("add", "-N", path),),
                (("rm", "-q", "--cached", path),),
                (("commit", "-qam", "all"),),
                (("commit", "-q", "--amend", "--allow-empty", "-m", "amended"),),
                (("reset", "-q", "--hard", self._commit()),),
                (("reset", "-q", self._commit()),),
                (("checkout", "-q", branch),),
                (("checkout", "-q", "-f", "-B", branch),),
                (("checkout", "-q", "--detach", self._commit()),),
            )
        )

    def _begin(self) -> tuple[tuple[str, ...], ...]:
        """What may stop halfway; more often if everything is committed before."""
        begun = self.random.choice(
            (
                ("merge", "-q", "--no-edit", self._commit()),
                ("rebase", "-q", self._commit()),
                ("rebase", "-q", "--apply", self._commit()),
                ("rebase", "-q", "--rebase-merges", self._commit()),
                ("rebase", "-q", "--update-refs", self._commit()),
                ("rebase", "-q", "--autostash", self._commit()),
                ("cherry-pick", self._commit()),
                ("cherry-pick", "main~1", "side"),
                ("revert", "--no-edit", self._commit()),
                ("bisect", "start", "HEAD", "HEAD~2"),
            )
        )
        clean = (("add", "-A"), ("commit", "-qm", "before"))
        return (*clean, begun) if self.random.random() < 0.8 else (begun,)

    def _end(self) -> tuple[tuple[str, ...], ...]:
        how = self.random.choice(("--continue", "--abort", "--skip", "--quit"))
        done = [(verb, how) for verb in ("merge", "rebase", "cherry-pick", "revert")]
        return (("add", "-A"), self.random.choice((*done, ("bisect", "good"), ("bisect", "reset"))))

    def _rare(self) -> tuple[tuple[str, ...], ...]:
        branch = self.random.choice(BRANCHES)
        return self.random.choice(
            (
                (("checkout", "-q", "--orphan", branch),),
                (("branch", "-D", branch),),
                (("stash",),),
                (("stash", "pop"),),
                (("pack-refs", "--all"),),
                (("repack", "-adq"),),
                (("update-index", "--split-index"),),
                (("update-index", "--no-split-index"),),
                (("update-index", "--index-version", "4"),),
            )
        )

    def _commit(self) -> str:
        return self.random.choice((*BRANCHES, "HEAD~1", "HEAD~2", "main~1", "side~1"))


def comes_and_goes(root: Path, seed: int) -> int:
    """How often something was taken back."""
    repository = built(root)
    developer = Developer(repository, seed)
    room = GitRoom(repository.root)
    developer.work(developer.random.randint(0, 15))
    saved: list[tuple[Saved, dict[str, bytes]]] = []
    done = 0
    for _ in range(4):
        saved.append((room.save(), says(repository)))
        did = developer.work(developer.random.randint(1, 10))
        target, then = developer.random.choice(saved)
        now = says(repository)
        try:
            before, _ = room.rewind(target)
        except Conflict as error:
            assert "cannot come back beside" in str(error), (seed, did)  # noqa: PT017 # one of two ends
            continue
        done += 1
        assert says(repository) == then, (seed, did)
        if developer.random.random() < 0.5:
            room.rewind(before)
            assert says(repository) == now, (seed, did)
    assert repository.git("fsck", "--no-dangling", "--connectivity-only") == b""
    return done


def says(repository: Repository) -> dict[str, bytes]:
    """All but what is no part of a position: other branches, the stash."""
    said = answers(repository)
    return {ask: said[ask] for ask in said if not ask.startswith(("for-each-ref", "stash"))}


def test_random_work_comes_back(tmp_path: Path) -> None:
    assert sum(comes_and_goes(tmp_path / str(seed), seed) for seed in (3,))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 200))
def test_much_random_work_comes_back(tmp_path: Path, seed: int) -> None:
    comes_and_goes(tmp_path / "work", seed)
