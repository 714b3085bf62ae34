"""Where a repository stands, read from its files. Git itself is never run.

Its configuration can name programs, its filters change bytes, its locks collide with those of a
git that is at work: so HEAD, refs, the index and the notes of an unfinished merge or rebase are
read as data, within bounds, and nothing is written. What could not be read is listed.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import read_beneath
from hardsave.workspace.git import index as git_index
from hardsave.workspace.git import refs as git_refs
from hardsave.workspace.git.git_directory import SMALL, GitDirectory, NoGitDirectory, opened
from hardsave.workspace.git.unfinished import GitFile, NotCaptured, UnfinishedFiles

_KEPT_INDEX = 64 * 1024 * 1024  # about half a million files
_LARGEST_INDEX = 1024 * 1024 * 1024
_EXCLUDE = 16 * 1024 * 1024
_OTHER_REFS = "this repository keeps its refs in a reftable, which Hardsave does not read"
_SHARED_INDEX = "sharedindex."
REBASED = ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs")


class GitPosition(NamedTuple):
    """Where a repository stands: enough to take HEAD, index and unfinished work back there."""

    head: bytes = b""  # the content of HEAD
    ref: str | None = None  # what HEAD names, in full; None if it is detached
    commit: str | None = None  # None: the branch has no commit yet
    hash_name: str = "sha1"
    gitfile: bytes = b""  # the content of `.git`, in a linked worktree or a submodule
    own_index: bytes | None = None
    index_hash: bytes = b""
    shared_index: GitFile | None = None  # what a split index is split from
    files: tuple[GitFile, ...] = ()  # of a merge, rebase, cherry-pick, revert or bisect
    refs: tuple[tuple[str, str | None], ...] = ()  # other branches that are part of it
    not_captured: tuple[NotCaptured, ...] = ()

    @property
    def branch(self) -> str | None:
        """The branch by its short name; None if HEAD is detached."""
        return self.ref.removeprefix("refs/heads/") if self.ref is not None else None


def position(root: Path, *, also: Iterable[str] = ()) -> GitPosition | None:
    """Where the repository stands whose worktree begins at `root`; None if there is none.

    `refs` are the branches that an unfinished rebase will move, and those named in `also`.
    Never raises because of what lies there.
    """
    with opened(root) as directory:
        match directory:
            case None:
                return None
            case NoGitDirectory(problem):
                return GitPosition(not_captured=(NotCaptured(".git", problem),))
            case GitDirectory():
                return position_in(directory, also=also)


def position_in(directory: GitDirectory, *, also: Iterable[str] = ()) -> GitPosition:
    """The same, of a repository that is open."""
    missed: list[NotCaptured] = []
    head = _read(directory, b"HEAD", limit=SMALL, missed=missed)
    at = git_refs.Target() if head is None else _commit(directory, head, missed)
    index = _read(directory, b"index", limit=_KEPT_INDEX, missed=missed)
    progress = UnfinishedFiles(directory.own)
    others = {*also, *rebased(progress.files)} - {"" if at.ref is None else os.fsdecode(at.ref)}
    return GitPosition(
        head=head or b"",
        ref=None if at.ref is None else os.fsdecode(at.ref),
        commit=None if at.commit is None else at.commit.decode("ascii"),
        hash_name=directory.hash_name,
        gitfile=directory.gitfile,
        own_index=index,
        index_hash=b"" if index is None else digest(index),
        shared_index=_shared_index(directory, index, progress.names, missed),
        files=tuple(progress.files),
        refs=tuple(_resolved(directory, sorted(others), missed)),
        not_captured=(*missed, *progress.missed),
    )


def _commit(directory: GitDirectory, head: bytes, missed: list[NotCaptured]) -> git_refs.Target:
    """The ref that HEAD names and its commit, as far as they can be told."""
    if not directory.refs_are_files:
        missed.append(NotCaptured("refs", _OTHER_REFS))
        return git_refs.Target()
    at = git_refs.target(head, directory.hash_name)
    if at.problem:
        missed.append(NotCaptured("HEAD", at.problem))
    if at.ref is None:
        return at
    resolved = git_refs.resolve(directory, at.ref)
    if resolved.problem:
        missed.append(NotCaptured(os.fsdecode(at.ref), resolved.problem))
    return at._replace(commit=resolved.commit)


def rebased(files: Iterable[GitFile]) -> Iterator[str]:
    """The branches that a rebase moves when it ends, by its own notes."""
    for file in files:
        if file.path in REBASED:
            yield from filter(_is_branch, os.fsdecode(file.data).splitlines())


def _is_branch(text: str) -> bool:
    return text.startswith("refs/heads/") and git_refs.is_name(os.fsencode(text))


def _resolved(
    directory: GitDirectory, refs: Iterable[str], missed: list[NotCaptured]
) -> Iterator[tuple[str, str | None]]:
    for ref in refs if directory.refs_are_files else ():
        found = git_refs.resolve(directory, os.fsencode(ref))
        if found.problem:
            missed.append(NotCaptured(ref, found.problem))
        yield ref, None if found.commit is None else found.commit.decode("ascii")


def _read(
    directory: GitDirectory, name: bytes, *, limit: int, missed: list[NotCaptured]
) -> bytes | None:
    data, problem = read_beneath(directory.own, name, limit=limit)
    if problem:
        missed.append(NotCaptured(os.fsdecode(name), problem))
    return data


def _shared_index(
    directory: GitDirectory, index: bytes | None, names: list[bytes], missed: list[NotCaptured]
) -> GitFile | None:
    """What a split index is split from.

    Only the end of an index tells whether it is split. So an index is parsed for this only if
    the repository has a shared index.
    """
    if index is None or not any(name.startswith(_SHARED_INDEX.encode()) for name in names):
        return None
    try:
        base = git_index.parse(index, hash_name=directory.hash_name).base
    except git_index.BadIndex as error:
        missed.append(NotCaptured(_SHARED_INDEX, f"the index is damaged: {error}"))
        return None
    path = _SHARED_INDEX + base
    data = _read(directory, path.encode(), limit=_KEPT_INDEX, missed=missed) if base else None
    return None if data is None else GitFile(path, data)


# What git tracks


class Tracked(NamedTuple):
    """The paths in an index; or why they are not known."""

    paths: frozenset[bytes]
    problem: str = ""


def tracked_in(directory: GitDirectory, index: bytes | None = None) -> Tracked:
    """The paths in the index of a repository, which may have been read already.

    A path that ends with a slash stands for all that is below it, outside a sparse checkout.
    """

    def base(name: str) -> bytes:
        path = (_SHARED_INDEX + name).encode()
        data, problem = read_beneath(directory.own, path, limit=_LARGEST_INDEX)
        if data is None:
            raise git_index.BadIndex(f"its {path.decode()}: {problem or 'there is no such file'}")
        return data

    if index is None:
        index, problem = read_beneath(directory.own, b"index", limit=_LARGEST_INDEX)
        if index is None:
            return Tracked(frozenset(), problem)  # without an index nothing is tracked yet
    try:
        return Tracked(paths_in(index, directory.hash_name))
    except _SplitIndex:
        pass
    except git_index.BadIndex as error:
        return Tracked(frozenset(), str(error))
    try:
        return Tracked(git_index.paths(index, hash_name=directory.hash_name, base=base))
    except git_index.BadIndex as error:
        return Tracked(frozenset(), str(error))


class _SplitIndex(Exception):
    """The index is split: these bytes alone do not have all of its paths."""


@lru_cache(maxsize=4)  # a process that stays meets the same index again and again
def paths_in(index: bytes, hash_name: str) -> frozenset[bytes]:
    """The paths in an index that is whole by itself."""

    def base(name: str) -> bytes:
        raise _SplitIndex

    return git_index.paths(index, hash_name=hash_name, base=base)


def exclude_in(directory: GitDirectory, root: Path) -> bytes:
    """The content of a repository's own excludes file, which all its worktrees share."""
    data, problem = read_beneath(directory.common, b"info/exclude", limit=_EXCLUDE)
    if problem:
        log(__name__).warning(
            "info/exclude of %s is left out of the ignore rules: %s", root, problem
        )
    return data or b""
