"""From a ref to a commit, by reading loose and packed refs. No link is followed.

The names may come from anybody: one that would lead out of the repository is refused.
"""

import re
from typing import NamedTuple

from hardsave.workspace.gitdir import SMALL, GitDirectory
from hardsave.workspace.gitindex import HASH_BYTES
from hardsave.workspace.reading import read_beneath

_PACKED_REFS = 256 * 1024 * 1024
_DEEPEST = 5  # refs that name refs, as git
_OF_ONE_WORKTREE = (b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/")
_NAME = re.compile(
    rb"refs(?:/(?!\.)(?:(?!\.\.|@\{)[^\x00-\x20\x7f~^:?*\[\\/])+(?<!\.lock)(?<!\.))+"
)
_ID = re.compile(rb"[0-9a-fA-F]+")


def is_name(ref: bytes) -> bool:
    """Whether this can be the full name of a ref."""
    return _NAME.fullmatch(ref) is not None


class Target(NamedTuple):
    """What HEAD or a ref says: the name of another ref, or a commit. Or neither, and why."""

    ref: bytes | None = None
    commit: bytes | None = None
    problem: str = ""


def target(content: bytes, hash_name: str) -> Target:
    """What the content of HEAD or of a loose ref means."""
    text = content.rstrip()
    if text.startswith(b"ref:"):
        name = text[4:].lstrip()
        if _NAME.fullmatch(name):
            return Target(ref=name)
        return Target(problem="it names a ref that cannot be one")
    commit = (text.split() or [b""])[0]
    if _ID.fullmatch(commit) and len(commit) == 2 * HASH_BYTES[hash_name]:
        return Target(commit=commit.lower())
    return Target(problem="it is neither a commit nor the name of a ref")


def resolve(directory: GitDirectory, ref: bytes) -> Target:
    """The commit of a ref. Neither commit nor problem: the ref does not exist yet."""
    for _ in range(_DEEPEST):
        found = _loose(directory, ref)
        if found.ref is None:
            break
        ref = found.ref
    else:
        return Target(problem="refs name each other in a circle")
    if found.commit or found.problem:
        return found
    return _packed(directory, ref)


def _loose(directory: GitDirectory, ref: bytes) -> Target:
    where = directory.own if ref.startswith(_OF_ONE_WORKTREE) else directory.common
    data, problem = read_beneath(where, ref, limit=SMALL)
    if data is None:
        return Target(problem=problem)
    return target(data, directory.hash_name)


def _packed(directory: GitDirectory, ref: bytes) -> Target:
    data, problem = read_beneath(directory.common, b"packed-refs", limit=_PACKED_REFS)
    if data is None:
        return Target(problem=problem and f"packed-refs: {problem}")
    return Target(commit=packed(data, ref, width=2 * HASH_BYTES[directory.hash_name]))


def packed(data: bytes, ref: bytes, *, width: int) -> bytes | None:
    """The commit of a ref in packed-refs: lines of a commit, a space, a name."""
    data = b"\n" + data.replace(b"\r\n", b"\n") + b"\n"
    at = data.find(b" " + ref + b"\n")
    while at >= 0:
        line = data.rfind(b"\n", 0, at) + 1
        if at - line == width and _ID.fullmatch(data, line, at):
            return data[line:at]
        at = data.find(b" " + ref + b"\n", at + 1)
    return None
