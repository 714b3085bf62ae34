"""The first commit of a repository, which stays the same wherever it is moved or cloned."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave.workspace.filesystem.bounded_read import read_beneath
from hardsave.workspace.git import refs
from hardsave.workspace.git.git_directory import SMALL, GitDirectory, opened

if TYPE_CHECKING:
    from hardsave.workspace.git.objects import Objects

_MOST_COMMITS = 10_000  # in about a second; a longer history has no beginning for us
_PARENT = rb"(?m)^parent ([0-9a-f]+)$"


def first_commit(root: Path) -> str | None:
    """The first commit of a repository, by first parents; None if it has no commit yet.

    So merged histories have one beginning too. An empty text if it cannot be told: the history
    is very long, was cut off when it was cloned, or cannot be read.
    """
    with opened(root) as directory:
        if not isinstance(directory, GitDirectory) or not directory.refs_are_files:
            return None
        at = _head(directory)
        if at is None:
            return None
        # Where there is no commit yet, this is asked each time that a store is opened.
        from hardsave.workspace.git.objects import Objects
        from hardsave.workspace.git.packs import Unreadable

        try:
            with Objects(directory) as objects:
                return _beginning(objects, at)
        except (Unreadable, OSError):
            return ""


def _head(directory: GitDirectory) -> str | None:
    head = read_beneath(directory.own, b"HEAD", limit=SMALL).data or b""
    at = refs.target(head, directory.hash_name)
    if at.ref is not None:
        at = refs.resolve(directory, at.ref)
    return None if at.commit is None else at.commit.decode("ascii")


def _beginning(objects: "Objects", at: str) -> str:
    for _ in range(_MOST_COMMITS):
        header = objects.read(at).data.partition(b"\n\n")[0]
        parent = re.search(_PARENT, header)
        if parent is None:
            return at
        at = parent[1].decode("ascii")
    return ""
