"""What decides about a workspace from outside: the repository around it, the user's excludes.

A workspace may be a repository, lie somewhere inside one, or have none. Git's rules count from
the repository's top down; one that ignores the whole workspace is not asked, because then
nothing would be captured, and nobody meant that.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from hardsave import config
from hardsave.errors import Unavailable
from hardsave.workspace import gitlook, ignore, stamps
from hardsave.workspace.git import GitPosition
from hardsave.workspace.gitlook import Look
from hardsave.workspace.names import IGNORE_FILES
from hardsave.workspace.policy import RootRules, Rules
from hardsave.workspace.reading import read_path
from hardsave.workspace.stamps import Stamp

_IGNORE_FILE = 4 << 20
_ENVIRONMENT = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


class Surroundings(NamedTuple):
    """What a scan of a workspace needs to know of what lies around it."""

    rules: RootRules
    paths: Callable[[], frozenset[bytes]]  # that git tracks, relative to the workspace
    position: GitPosition | None
    is_top: bool  # whether the workspace is where the repository begins
    problem: str  # why git's index could not be read; empty if it could
    excludes: "Excludes | None" = None  # to begin the next look with
    repository: Look | None = None

    @property
    def tracked(self) -> frozenset[bytes]:
        return self.paths()

    @property
    def tracked_key(self) -> bytes | None:
        """The same key, the same paths. None: that cannot be told from git's index."""
        if self.position is None:
            return b""
        if self.position.index is None:
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
    last: "Surroundings | None" = None,
    known_index: bytes = b"",
) -> Surroundings:
    """Read what surrounds a workspace. Runs nothing, writes nothing.

    `branches` are those that the position holds beside its own: before a restore of another
    position, those that it would move. What the `last` look found, and is as it was, is not
    read again; nor is an index with the key `known_index`, until somebody asks.
    """
    top = _top(root)
    mine = _excludes(None if last is None else last.excludes)
    if top is None:
        rules = _rules([mine.content])
        return Surroundings(rules, frozenset, None, is_top=False, problem="", excludes=mine)
    before = None if last is None else last.repository
    repository = gitlook.look(top, branches, before, known_index=known_index)
    is_same = last is not None and repository is before
    if last is not None and is_same and last.is_top and mine is last.excludes:
        return last
    found = repository.found
    names = [os.fsencode(name) for name in root.relative_to(top).parts]
    above = _above(top, names, [mine.content, found.exclude])
    return Surroundings(
        rules=above or _rules([mine.content]),
        paths=last.paths
        if last is not None and is_same
        else cache(partial(_below, found.tracked, b"/".join([*names, b""]))),
        position=found.position,
        is_top=not names,
        problem=found.problem,
        excludes=mine,
        repository=repository,
    )


def _excludes(last: Excludes | None) -> Excludes:
    environment = tuple(map(os.environ.get, _ENVIRONMENT))
    if last is not None and last.environment == environment and stamps.are_same(last.stamps):
        return last
    start_ns = time.time_ns()
    seen: list[Path] = []
    content = ignore.global_excludes(os.environ, _home(), seen)
    taken = stamps.taken(map(os.fsencode, seen), start_ns, follows=True)
    return Excludes(environment, content, taken)


def _home() -> Path:
    try:
        return config.home()
    except Unavailable:
        return Path(os.devnull)  # nothing lies beneath it


def _top(root: Path) -> Path | None:
    """Where the repository begins that holds this directory."""
    if os.path.lexists(os.path.join(root, ".git")):
        return root
    for folder in root.parents:
        if os.path.lexists(folder / ".git"):
            return folder
    return None


def _rules(excludes: Sequence[bytes]) -> RootRules:
    return lambda patterns: ignore.root_rules(exclude_files=excludes, patterns=patterns)


def _above(top: Path, names: Sequence[bytes], excludes: Sequence[bytes]) -> RootRules | None:
    """The rules that lead into the workspace; None if they ignore it."""
    if not names:
        return _rules(excludes)
    rules: Rules = ignore.root_rules(exclude_files=excludes, patterns=_patterns(top))
    folder = top
    for name in names[:-1]:
        if rules.match(name, True):
            return None
        folder = folder / os.fsdecode(name)
        rules = rules.enter(name, _patterns(folder))
    if rules.match(names[-1], True):
        return None
    return _entering(rules.enter, names[-1])


def _entering(enter: Callable[[bytes, Sequence[bytes]], Rules], name: bytes) -> RootRules:
    return lambda patterns: enter(name, patterns)


def _patterns(folder: Path) -> list[bytes]:
    found = [read_path(folder / os.fsdecode(name), limit=_IGNORE_FILE) for name in IGNORE_FILES]
    return [each.data or b"" for each in found]


def _below(tracked: Callable[[], frozenset[bytes]], inside: bytes) -> frozenset[bytes]:
    paths = tracked()
    if not inside:
        return paths
    return frozenset(path[len(inside) :] for path in paths if path.startswith(inside))
