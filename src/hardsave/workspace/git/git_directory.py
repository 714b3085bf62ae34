"""Where a workspace's repository keeps its files: `.git`, or the directories that it names.

A linked worktree and a submodule have a `.git` file with the path of a directory; a linked
worktree's directory names in turn the one that all worktrees share. Those are opened as git
would; beneath them no link is followed.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hardsave.errors import NotFound
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import failure, open_directory, read_beneath
from hardsave.workspace.git import config
from hardsave.workspace.git.index import HASH_BYTES

SMALL = 4096  # for files of one line
_CONFIG = 1024 * 1024
GITFILE = re.compile(rb"gitdir: ?([^\0\r\n]+)[\r\n]*\Z")


class GitDirectory(NamedTuple):
    """The open directories of a repository. In most repositories both are `.git`."""

    own: int  # of this worktree: HEAD, index, what is in progress
    common: int  # of all worktrees: refs, configuration
    gitfile: bytes  # the content of `.git`, if it is a file
    hash_name: str
    refs_are_files: bool


class NoGitDirectory(NamedTuple):
    """There is a `.git`, but nothing that could be read as a repository."""

    problem: str


@contextmanager
def opened(root: Path) -> Iterator[GitDirectory | NoGitDirectory | None]:
    """The repository whose worktree begins at `root`; None if there is no `.git`."""
    with ExitStack() as stack:
        try:
            top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        except OSError as error:
            yield NoGitDirectory(failure(error).problem)
            return
        stack.callback(os.close, top)
        yield _found(top, stack)


@contextmanager
def repository(root: Path) -> Iterator[GitDirectory]:
    """The same, but `NotFound` if there is none that can be used."""
    with opened(root) as directory:
        if directory is None:
            raise NotFound(f"there is no repository in {str(root)!r}; go on without git")
        if not isinstance(directory, GitDirectory):
            raise NotFound(f"the repository in {str(root)!r} cannot be used: {directory.problem}")
        yield directory


def _found(top: int, stack: ExitStack) -> GitDirectory | NoGitDirectory | None:
    gitfile = b""
    try:
        own = open_directory(b".git", parent=top)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        named = _named_by_file(top)
        if isinstance(named, NoGitDirectory):
            return named
        own, gitfile = named
    except OSError as error:
        return NoGitDirectory(failure(error).problem)
    stack.callback(os.close, own)
    return _described(own, gitfile, stack)


def _named_by_file(top: int) -> tuple[int, bytes] | NoGitDirectory:
    data, problem = read_beneath(top, b".git", limit=SMALL)
    if data is None:
        return NoGitDirectory(problem or "it is not a file")
    match = GITFILE.match(data)
    if match is None:
        return NoGitDirectory("it is a file that names no directory")
    try:
        return open_directory(match[1], parent=top), data
    except OSError as error:
        reason = failure(error).problem or "there is no such directory"
        return NoGitDirectory(f"it names {os.fsdecode(match[1])}: {reason}")


def _described(own: int, gitfile: bytes, stack: ExitStack) -> GitDirectory | NoGitDirectory:
    common = _common(own)
    if isinstance(common, NoGitDirectory):
        return common
    stack.callback(os.close, common)
    for directory, name in ((own, b"HEAD"), (common, b"objects"), (common, b"refs")):
        if not _is_there(directory, name):
            return NoGitDirectory(f"it is no repository: there is no {name.decode()}")
    return GitDirectory(own, common, gitfile, *_formats(common))


def _common(own: int) -> int | NoGitDirectory:
    """The directory that all worktrees share: the one that `commondir` names, or this one."""
    data, problem = read_beneath(own, b"commondir", limit=SMALL)
    if data is None and not problem:
        return os.dup(own)
    path = (data or b"").rstrip(b"\r\n")
    if not path or b"\0" in path:
        return NoGitDirectory(f"commondir: {problem or 'it names no directory'}")
    try:
        return open_directory(path, parent=own)
    except OSError as error:
        return NoGitDirectory(
            f"commondir: {failure(error).problem or 'there is no such directory'}"
        )


def _is_there(directory: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


def _formats(common: int) -> tuple[str, bool]:
    """Which hash names objects, and whether refs are kept in files."""
    data = read_beneath(common, b"config", limit=_CONFIG).data or b""
    settings = list(config.parse(data))
    hash_name = config.last(settings, b"extensions.objectformat") or b"sha1"
    refs = config.last(settings, b"extensions.refstorage") or b"files"
    name = hash_name.decode("ascii", "replace").lower()
    return name if name in HASH_BYTES else "sha1", refs == b"files"
