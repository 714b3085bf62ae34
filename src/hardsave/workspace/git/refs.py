"""From a ref to a commit, by reading loose and packed refs. No link is followed.

The names are untrusted: one that would lead out of the repository is refused.
"""

import os
import re
from collections.abc import Iterator

from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import open_beneath, read_beneath
from hardsave.workspace.git.git_directory import SMALL, GitDirectory
from hardsave.workspace.git.index import HASH_BYTES

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


def leads_to(directory: GitDirectory, ref: bytes) -> bytes:
    """The ref itself, or the one that it is another name of."""
    for _ in range(_DEEPEST):
        named = _loose(directory, ref).ref
        if named is None:
            break
        ref = named
    return ref


def in_the_way(directory: GitDirectory, ref: bytes) -> bytes | None:
    """A ref beside which this one cannot be: the one's name is a directory of the other's."""
    names = ref.split(b"/")
    for count in range(3, len(names)):
        above = b"/".join(names[:count])
        if resolve(directory, above).commit is not None:
            return above
    return next(iter(below(directory, ref + b"/")), None)


def below(directory: GitDirectory, beginning: bytes) -> list[bytes]:
    """The refs whose names begin like this, up to a slash: loose ones and packed ones."""
    packed = re.findall(
        rb"^[0-9a-f]+ (%b.*?)\r?$" % re.escape(beginning), read_packed(directory), re.MULTILINE
    )
    return sorted({*packed, *_loose_below(directory.common, beginning.rstrip(b"/"))})


def _loose_below(common: int, path: bytes) -> Iterator[bytes]:
    try:
        opened = open_beneath(common, path.split(b"/"))
    except OSError:
        return
    try:
        names = [os.fsencode(name) for name in os.listdir(opened)]
    finally:
        os.close(opened)
    for name in names:
        ref = path + b"/" + name
        if read_beneath(common, ref, limit=SMALL) != (None, ""):
            yield ref
        else:
            yield from _loose_below(common, ref)


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


def read_packed(directory: GitDirectory) -> bytes:
    return read_beneath(directory.common, b"packed-refs", limit=_PACKED_REFS).data or b""


def without(data: bytes, *refs: bytes) -> bytes:
    """The content of packed-refs without some refs, and without what these lead to as tags."""
    gone = {*refs}

    def kept(line: re.Match[bytes]) -> bytes:
        return b"" if line[1] in gone else line[0]

    return re.sub(rb"^[0-9a-f]+ ([^\r\n]+)\r?\n(?:\^.*\n)?", kept, data, flags=re.MULTILINE)


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
