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

from hardsave import config
from hardsave.defaults import IGNORE_FILES
from hardsave.errors import Unavailable
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem import stamps
from hardsave.workspace.filesystem.bounded_read import read_path
from hardsave.workspace.filesystem.stamps import Stamp
from hardsave.workspace.git import config as gitconfig
from hardsave.workspace.git import repository as gitlook
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git.repository import Look
from hardsave.workspace.ignore.outer_rules import Outside, meant
from hardsave.workspace.ignore.rules import RootRules

_IGNORE_FILE = 4 << 20
_ENVIRONMENT = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


class Surroundings(NamedTuple):
    """What a scan of a workspace needs to know of what lies around it."""

    rules: RootRules
    paths: Callable[[], frozenset[bytes]]  # that git tracks, relative to the workspace
    position: GitPosition | None
    is_top: bool  # whether the workspace is where the repository begins
    problem: str  # why git's index could not be read; empty if it could
    outside: Outside = Outside()  # what the rules are made of
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
        outside = Outside(excludes=(mine.content,))
        return Surroundings(_rules(outside), frozenset, None, False, "", outside, mine)
    before = None if last is None else last.repository
    repository = gitlook.look(top, branches, before, known_index=known_index)
    is_same = last is not None and repository is before
    if last is not None and is_same and last.is_top and mine is last.excludes:
        return last
    found = repository.found
    names = [os.fsencode(name) for name in root.relative_to(top).parts]
    outside = _outside(top, names, (mine.content, meant(found.exclude)))
    return Surroundings(
        rules=_rules(outside),
        paths=last.paths
        if last is not None and is_same
        else cache(partial(_below, outside, found.tracked)),
        position=found.position,
        is_top=not names,
        problem=found.problem,
        outside=outside,
        excludes=mine,
        repository=repository,
    )


def _excludes(last: Excludes | None) -> Excludes:
    environment = tuple(map(os.environ.get, _ENVIRONMENT))
    if last is not None and last.environment == environment and stamps.are_same(last.stamps):
        return last
    start_ns = time.time_ns()
    seen: list[Path] = []
    content = meant(gitconfig.global_excludes(os.environ, _home(), seen))
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


def _outside(top: Path, names: Sequence[bytes], excludes: tuple[bytes, ...]) -> Outside:
    """What leads into the workspace; only the user's own excludes if that ignores it."""
    folders = [top.joinpath(*map(os.fsdecode, names[:depth])) for depth in range(len(names))]
    found = Outside(b"/".join(names), excludes, tuple(_patterns(each) for each in folders))
    return found if found.rules() else Outside(found.inside, excludes[:1])


def _rules(outside: Outside) -> RootRules:
    rules = outside.rules()
    assert rules is not None, "rules that ignore the workspace are not asked"
    return rules


def _patterns(folder: Path) -> tuple[bytes, ...]:
    found = [read_path(folder / os.fsdecode(name), limit=_IGNORE_FILE) for name in IGNORE_FILES]
    return tuple(meant(each.data or b"") for each in found)


def _below(outside: Outside, tracked: Callable[[], frozenset[bytes]]) -> frozenset[bytes]:
    return outside.below(tracked())
