"""A workspace that is a repository: saved with its position, and taken back with it."""

import atexit
import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hardsave.workspace.git import index
from hardsave.workspace.git import position as git
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git_restore import plan as gitplan
from hardsave.workspace.git_restore.execution import GitRestored, check_git, restore_git
from hardsave.workspace.ignore.rules import Rules, root_rules
from hardsave.workspace.restore.plan import plan
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot.builder import snapshot
from tests.unit.workspace import pieces
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.room import Room

SECONDS = 1_800_000_000


class Saved(NamedTuple):
    """What a checkpoint would hold."""

    files: bytes
    git: GitPosition


def present(root: Path, target: GitPosition) -> GitPosition | None:
    """Where a repository stands now, with all that a restore of the target would change."""
    return git.position(root, also=gitplan.branches(target))


class GitRoom(Room):
    """With git's own rules, and its index."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.safeties = 0

    def save(self, target: GitPosition | None = None) -> Saved:
        found = scan(self.root, rules=self.rules, tracked=lambda: self.tracked, cache=self.cache)
        made = snapshot(found, self.put)
        self.cache = made.cache
        stands = git.position(self.root) if target is None else present(self.root, target)
        assert stands is not None
        assert stands.not_captured == ()
        return Saved(made.root, stands)

    def rewind(self, target: Saved) -> tuple[Saved, GitRestored]:
        """As a vault would: a safety checkpoint, the files, then git. What was there before."""
        before = self.save(target.git)
        check_git(self.root, before.git, target.git)
        self.restore_files(before, target)
        self.safeties += 1
        id = f"chk_{self.safeties}"
        done = restore_git(self.root, before.git, target.git, id=id, seconds=SECONDS)
        clean(self.root)
        return before, done

    def restore_files(self, before: Saved, target: Saved) -> None:
        made = plan(
            before.files,
            target.files,
            self.fetch,
            rules=self.rules,
            present_tracked=tracked(before.git),
            target_tracked=tracked(target.git),
        )
        assert self.carry_out(made).conflicts == ()

    def rules(self, patterns: Sequence[bytes]) -> Rules:
        return root_rules(exclude_files=[pieces.info_exclude(self.root)], patterns=patterns)

    @property
    def tracked(self) -> frozenset[bytes]:
        return pieces.tracked(self.root) or frozenset()


def tracked(position: GitPosition) -> frozenset[bytes]:
    if position.own_index is None:
        return frozenset()
    shared = b"" if position.shared_index is None else position.shared_index.data
    return index.paths(position.own_index, hash_name=position.hash_name, base=lambda _: shared)


def clean(root: Path) -> None:
    """Nothing of ours is left in a git directory but pins."""
    directory = Path(
        Repository(root).line("rev-parse", "--path-format=absolute", "--git-common-dir")
    )
    for path in directory.rglob("*"):
        assert not path.name.startswith("hardsave-"), path
        assert path.suffix != ".lock", path


# What git says


QUESTIONS = (
    ("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all"),
    ("status",),
    ("diff", "--binary"),
    ("diff", "--cached", "--binary"),
    ("ls-files", "--stage", "-v", "-z"),
    ("rev-parse", "--verify", "-q", "HEAD"),
    ("symbolic-ref", "-q", "HEAD"),
    ("stash", "list"),
    ("for-each-ref", "refs/heads/m*", "refs/heads/side", "refs/bisect", "refs/rewritten"),
)


# What HEAD was detached from, git knows by its reflog, which is no part of a position.
DETACHED = re.compile(rb"^HEAD detached (at|from) .*$", re.MULTILINE)


def answers(repository: Repository) -> dict[str, bytes]:
    """Everything that git says about a repository, without being allowed to write."""
    asked = Repository(repository.root)
    asked.environment = {**repository.environment, "GIT_OPTIONAL_LOCKS": "0"}
    said = {" ".join(each): asked.git(*each, codes=(0, 1, 128)) for each in QUESTIONS}
    return {question: DETACHED.sub(b"", answer) for question, answer in said.items()}


def outcome(repository: Repository, commands: Sequence[tuple[str, ...]]) -> object:
    """What these commands would do and lead to, tried on a copy of everything."""
    copy = repository.root.parent / "copy"
    shutil.copytree(repository.root, copy, symlinks=True)
    try:
        tried = Repository(copy)
        printed = [tried.git(*command, codes=(0, 1, 128)) for command in commands]
        files = {
            path.relative_to(copy): path.read_bytes()
            for path in sorted(copy.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(copy).parts
        }
        return printed, answers(tried), files
    finally:
        shutil.rmtree(copy)


def built(root: Path, *options: str) -> Repository:
    """Two branches that changed the same line, and more on both. A copy: git takes its time."""
    shutil.copytree(_model(options) / "work", root, symlinks=True)
    return Repository(root)


@cache
def _model(options: tuple[str, ...]) -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    made = Repository(folder / "work").init(*options)
    made.commit("a", "one\n")
    made.commit("b", "one\n")
    made.commit("c", "one\n")
    made.git("checkout", "-q", "-b", "side")
    made.commit("a", "side\n")
    made.commit("d", "side\n")
    made.git("checkout", "-q", "main")
    made.commit("a", "main\n")
    made.commit("e", "main\n")
    return folder
