"""Which branches the other worktrees of a repository have in use, read from their files."""

import os
from collections.abc import Iterator

from hardsave.workspace.filesystem.bounded_read import open_beneath, read_beneath
from hardsave.workspace.git import config, refs
from hardsave.workspace.git.git_directory import SMALL, GitDirectory
from hardsave.workspace.git.position import REBASED, rebased
from hardsave.workspace.git.unfinished import GitFile

_CONFIG = 1024 * 1024


def settings(directory: GitDirectory) -> list[config.Setting]:
    """The repository's own configuration, as data."""
    data = read_beneath(directory.common, b"config", limit=_CONFIG).data or b""
    return list(config.parse(data))


def is_true(value: bytes | None) -> bool:
    return (value or b"").lower() in (b"true", b"yes", b"on", b"1")


def in_use_elsewhere(directory: GitDirectory) -> dict[str, str]:
    """Branches that another worktree has checked out or is rebasing, and where that is."""
    found: dict[str, str] = {}
    for opened, where in _others(directory):
        found |= dict.fromkeys(_in_use(opened, directory.hash_name), where)
    return found


def heads(directory: GitDirectory) -> list[str]:
    """The commits at which other worktrees have detached their HEADs."""
    found = [_head(opened, directory.hash_name).commit for opened, _ in _others(directory)]
    return [commit.decode() for commit in found if commit is not None]


def _others(directory: GitDirectory) -> Iterator[tuple[int, str]]:
    """The git directories of the other worktrees, open for a moment, and what they are called."""
    ours = _identity(directory.own)
    is_bare = is_true(config.last(settings(directory), b"core.bare"))
    if ours != _identity(directory.common) and not is_bare:
        yield directory.common, "the main worktree"
    for name in _names(directory.common):
        try:
            opened = open_beneath(directory.common, [b"worktrees", name])
        except OSError:
            continue
        try:
            if _identity(opened) != ours:
                yield opened, _where(opened, name)
        finally:
            os.close(opened)


def _head(opened: int, hash_name: str) -> refs.Target:
    return refs.target(read_beneath(opened, b"HEAD", limit=SMALL).data or b"", hash_name)


def _in_use(opened: int, hash_name: str) -> set[str]:
    head = _head(opened, hash_name)
    read = [(path, read_beneath(opened, path.encode(), limit=_CONFIG).data) for path in REBASED]
    notes = [GitFile(path, data or b"") for path, data in read]
    found = {*rebased(notes)} | ({os.fsdecode(head.ref)} if head.ref is not None else set())
    began = read_beneath(opened, b"BISECT_START", limit=SMALL).data
    return found if began is None else found | {"refs/heads/" + os.fsdecode(began.strip())}


def _names(common: int) -> list[bytes]:
    try:
        opened = open_beneath(common, [b"worktrees"])
    except OSError:
        return []
    try:
        return sorted(os.fsencode(name) for name in os.listdir(opened))
    finally:
        os.close(opened)


def _where(opened: int, name: bytes) -> str:
    path = read_beneath(opened, b"gitdir", limit=SMALL).data or name
    return "the worktree " + os.fsdecode(path.strip().removesuffix(b"/.git"))


def _identity(opened: int) -> tuple[int, int]:
    status = os.fstat(opened)
    return status.st_dev, status.st_ino
