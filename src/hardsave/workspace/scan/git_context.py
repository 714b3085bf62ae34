"""What git says about a workspace: the repository around it, its index, the outer ignore rules.

A workspace may be a repository, lie somewhere inside one, or have none. Git's rules count from the
repository's top down. Where they ignore the whole workspace they are not used, because then nothing
would be captured.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path

from hardsave import config
from hardsave.defaults import IGNORE_FILES
from hardsave.errors import Unavailable
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem import stamps
from hardsave.workspace.filesystem.bounded_read import read_path
from hardsave.workspace.filesystem.stamps import Stamp
from hardsave.workspace.git import config as git_config
from hardsave.workspace.git import repository as git_repository
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git.repository import CachedRepository
from hardsave.workspace.ignore.outer_rules import OuterRules, if_any_rule
from hardsave.workspace.ignore.rules import RootRules

_IGNORE_FILE = 4 << 20
_ENVIRONMENT = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


class GitContext(NamedTuple):
    """What a scan of a workspace needs to know of git."""

    rules: RootRules
    paths: Callable[[], frozenset[bytes]]  # that git tracks, relative to the workspace
    position: GitPosition | None
    is_top: bool  # whether the workspace is where the repository begins
    problem: str  # why git's index could not be read; empty if it could
    outer_rules: OuterRules = OuterRules()  # what the rules are made of
    excludes: "Excludes | None" = None  # to begin the next look with
    repository: CachedRepository | None = None

    @property
    def tracked(self) -> frozenset[bytes]:
        return self.paths()

    @property
    def tracked_key(self) -> bytes | None:
        """The same key means the same paths. None: git's index does not tell."""
        if self.position is None:
            return b""
        if self.position.own_index is None:
            return None
        return self.position.index_hash if not self.problem else b"!" + self.position.index_hash


class Excludes(NamedTuple):
    """The user's own excludes, for all repositories, and what they depend on."""

    environment: tuple[str | None, ...]
    content: bytes
    stamps: tuple[Stamp, ...]


def look(
    root: Path,
    *,
    branches: Iterable[str] = (),
    last: "GitContext | None" = None,
    known_index: bytes = b"",
) -> GitContext:
    """Read the context of a workspace. Runs nothing, writes nothing.

    `branches` are those that the position holds beside its own: before a restore of another
    position, those that it would move. What the `last` look found, and is as it was, is not
    read again; an index with the key `known_index` is not parsed until its paths are needed.
    """
    top = _top(root)
    mine = _excludes(None if last is None else last.excludes)
    if top is None:
        outer_rules = OuterRules(excludes=(mine.content,))
        return GitContext(_rules(outer_rules), frozenset, None, False, "", outer_rules, mine)
    before = None if last is None else last.repository
    repository = git_repository.look(top, branches, before, known_index=known_index)
    is_same = last is not None and repository is before
    if last is not None and is_same and last.is_top and mine is last.excludes:
        return last
    found = repository.found
    names = [os.fsencode(name) for name in root.relative_to(top).parts]
    outer_rules = _outer_rules(top, names, (mine.content, if_any_rule(found.exclude)))
    return GitContext(
        rules=_rules(outer_rules),
        paths=last.paths
        if last is not None and is_same
        else cache(partial(_below, outer_rules, found.tracked)),
        position=found.position,
        is_top=not names,
        problem=found.problem,
        outer_rules=outer_rules,
        excludes=mine,
        repository=repository,
    )


def _excludes(last: Excludes | None) -> Excludes:
    environment = tuple(map(os.environ.get, _ENVIRONMENT))
    if last is not None and last.environment == environment and stamps.are_same(last.stamps):
        return last
    start_ns = time.time_ns()
    seen: list[Path] = []
    content = if_any_rule(git_config.global_excludes(os.environ, _home(), seen))
    taken = stamps.taken(map(os.fsencode, seen), start_ns, follows=True)
    return Excludes(environment, content, taken)


def _home() -> Path:
    try:
        return config.home()
    except Unavailable:
        return Path(os.devnull)  # nothing lies beneath it


def _top(root: Path) -> Path | None:
    """Where the repository begins that holds this directory."""
    if config.has_repository(root):
        return root
    for folder in root.parents:
        if config.has_repository(folder):
            return folder
    return None


def _outer_rules(top: Path, names: Sequence[bytes], excludes: tuple[bytes, ...]) -> OuterRules:
    """The rules from the repository's top down; only the user's own excludes if they ignore the
    workspace."""
    folders = [top.joinpath(*map(os.fsdecode, names[:depth])) for depth in range(len(names))]
    found = OuterRules(b"/".join(names), excludes, tuple(_patterns(each) for each in folders))
    return found if found.rules() else OuterRules(found.inside, excludes[:1])


def _rules(outer_rules: OuterRules) -> RootRules:
    rules = outer_rules.rules()
    assert rules is not None, "rules that ignore the workspace are not asked"
    return rules


def _patterns(folder: Path) -> tuple[bytes, ...]:
    found = [read_path(folder / os.fsdecode(name), limit=_IGNORE_FILE) for name in IGNORE_FILES]
    return tuple(if_any_rule(each.data or b"") for each in found)


def _below(outer_rules: OuterRules, tracked: Callable[[], frozenset[bytes]]) -> frozenset[bytes]:
    return outer_rules.below(tracked())
