"""What a capture needs of a repository: its position, what it tracks, what it excludes.

A process that stays reads the same repository again and again. So what was read is kept together
with the stamps of everything that it depends on; while these are as they were, nothing is read.
A repository in the middle of a merge or a rebase is read every time.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem import stamps
from hardsave.workspace.filesystem.bounded_read import read_beneath
from hardsave.workspace.filesystem.stamps import Stamp
from hardsave.workspace.git import position as git
from hardsave.workspace.git import refs
from hardsave.workspace.git.git_directory import (
    GITFILE,
    SMALL,
    GitDirectory,
    NoGitDirectory,
    opened,
)
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git.unfinished import DIRECTORIES, NotCaptured


class Repository(NamedTuple):
    """A repository, as far as a capture depends on it."""

    position: GitPosition | None  # None: there is none
    tracked: Callable[[], frozenset[bytes]] = frozenset
    problem: str = ""  # why its index could not be read
    exclude: bytes = b""  # the content of its own excludes file


class CachedRepository(NamedTuple):
    """A repository as it was read, and the stamps that this depends on."""

    top: Path
    branches: tuple[str, ...]
    found: Repository
    stamps: tuple[Stamp, ...] = ()  # none: it must not be used again


def look(
    top: Path,
    branches: Iterable[str] = (),
    last: CachedRepository | None = None,
    *,
    known_index: bytes = b"",
    clock: Callable[[], int] = time.time_ns,
) -> CachedRepository:
    """Read the repository that begins at `top`, or find that it is as the `last` look says.

    An index whose hash is `known_index` was sound before: it is not parsed before it is needed.
    """
    named = tuple(branches)
    if last is not None and last[:2] == (top, named) and stamps.are_same(last.stamps):
        return last
    start_ns = clock()
    with opened(top) as directory:
        match directory:
            case None:
                return CachedRepository(top, named, Repository(None))
            case NoGitDirectory(problem):
                missed = GitPosition(not_captured=(NotCaptured(".git", problem),))
                return CachedRepository(top, named, Repository(missed, problem=problem))
            case GitDirectory():
                position = git.position_in(directory, also=named)
                exclude = git.exclude_in(directory, top)
                tracked = _tracked(directory, position, known_index)
                found = Repository(position, *tracked, exclude)
                return CachedRepository(top, named, found, _stamps(directory, top, found, start_ns))


def _tracked(
    directory: GitDirectory, position: GitPosition, known_index: bytes
) -> tuple[Callable[[], frozenset[bytes]], str]:
    index = position.own_index
    if index and position.index_hash == known_index and position.shared_index is None:
        return partial(git.paths_in, index, directory.hash_name), ""
    found = git.tracked_in(directory, index)
    return lambda: found.paths, found.problem


# What a look depends on


def _stamps(
    directory: GitDirectory, top: Path, found: Repository, start_ns: int
) -> tuple[Stamp, ...]:
    position = found.position
    if position is None or position.refs or position.not_captured or _is_busy(directory):
        return ()
    if position.ref is not None and _leads_elsewhere(directory, position.ref):
        return ()
    return stamps.taken(_paths(directory, top, position), start_ns)


def _is_busy(directory: GitDirectory) -> bool:
    """Whether a rebase or the like is unfinished, which has whole directories of files."""
    return any(
        os.access(path, os.F_OK, dir_fd=directory.own, follow_symlinks=False)
        for path in DIRECTORIES
    )


def _leads_elsewhere(directory: GitDirectory, ref: str) -> bool:
    name = os.fsencode(ref)
    return refs.leads_to(directory, name) != name


def _paths(directory: GitDirectory, top: Path, position: GitPosition) -> Iterator[bytes]:
    """All that was read, and the directories whose lists of names were."""
    dot_git = os.path.join(os.fsencode(top), b".git")
    own = _named(dot_git, position.gitfile)
    data = read_beneath(directory.own, b"commondir", limit=SMALL).data
    common = own if data is None else os.path.join(own, data.rstrip(b"\r\n"))
    yield from (dot_git, own, common)
    inside = [b"HEAD", b"commondir", b"index", *DIRECTORIES]
    inside += [os.fsencode(file.path) for file in position.files]
    if position.shared_index is not None:
        inside.append(os.fsencode(position.shared_index.path))
    shared = [b"config", b"packed-refs", b"info/exclude"]
    if position.ref is not None:
        inside.append(os.fsencode(position.ref))  # one of the two: some belong to a worktree
        shared.append(os.fsencode(position.ref))
    yield from (os.path.join(own, path) for path in inside)
    yield from (os.path.join(common, path) for path in shared)


def _named(dot_git: bytes, gitfile: bytes) -> bytes:
    match = GITFILE.match(gitfile)
    return dot_git if match is None else os.path.join(os.path.dirname(dot_git), match[1])
