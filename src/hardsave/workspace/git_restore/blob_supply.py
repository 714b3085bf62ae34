"""Staged contents that git has collected, from the files that were captured with the position.

A staged content that nothing else names is gone after it was unstaged and `git gc --prune=now` was
run. Mostly it was captured as well: what was added to the index and not edited since is a file of
the snapshot. Each is recognised by git's own hash, so none is mistaken for another.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from hardsave.objects.hashing import Hash
from hardsave.workspace.entries import FILE, SYMLINK
from hardsave.workspace.git.objects import object_id
from hardsave.workspace.git.packs import LARGEST, Object
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git_restore import staged_contents
from hardsave.workspace.snapshot import compare, content, directory
from hardsave.workspace.snapshot.content import Fetch

Supply = Callable[[Collection[str]], Mapping[str, Object]]
"""From ids of staged contents to those that we have."""


def nothing(ids: Collection[str]) -> Mapping[str, Object]:
    return {}


def of_snapshot(position: GitPosition, snapshot: Hash, fetch: Fetch) -> Supply:
    """The files of a snapshot, for the index that was captured with it."""

    def supply(ids: Collection[str]) -> Mapping[str, Object]:
        if not ids:
            return {}
        top = directory.read_snapshot(snapshot, fetch).top
        found: dict[str, Object] = {}
        for entry in staged_contents.entries(position):
            if entry.id in ids and entry.id not in found:
                for data in _as_staged(top, entry.name, fetch):
                    made = Object("blob", data)
                    if object_id(made, position.hash_name) == entry.id:
                        found[entry.id] = made
        return found

    return supply


def _as_staged(top: Hash, path: bytes, fetch: Fetch) -> Iterator[bytes]:
    """What git may have made of a file: the same bytes, or the same lines with its own ends."""
    entry = compare.find(top, path, fetch) if path else None
    if entry is None or entry.size > LARGEST:
        return
    if entry.type == SYMLINK:
        yield entry.target
    elif entry.type == FILE and entry.hash is not None:
        data = b"".join(content.read(entry.hash, entry.size, fetch))
        yield data
        if b"\r\n" in data:
            yield data.replace(b"\r\n", b"\n")
