"""Removes a text from captures: from contents, names, link targets, and files of git.

From the bottom up, so that no object is left that has it. What does not have it keeps its
address. A content is searched as a whole, because a text may lie across two parts of it.

A name that has the text gets another, and of two that become the same one is numbered. Two
things cannot be rewritten and stay true: git's index, which is dropped if a path in it has the
text; and a hard link whose path has it across a slash, which becomes a file of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from hardsave.objects.hashing import Hash
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry, NotCaptured
from hardsave.workspace.git import index
from hardsave.workspace.git.unfinished import NotCaptured as GitNotCaptured
from hardsave.workspace.snapshot import capture, compare, content, directory
from hardsave.workspace.snapshot.capture import Capture, Content, Git, Stored, StoredOuterRules
from hardsave.workspace.snapshot.content import PART_BYTES, Fetch, Put
from hardsave.workspace.snapshot.directory import Named, Snapshot

_NAME_BYTES = 255  # more than that, hardly any file system takes
_DROPPED = GitNotCaptured("index", "a text was purged that one of its paths had")


class Known(Protocol):
    """What became of objects: their addresses now, and for contents their sizes."""

    def get(self, address: Hash, /) -> tuple[Hash, int] | None: ...
    def __setitem__(self, address: Hash, now: tuple[Hash, int], /) -> None: ...


class TextRemoval:
    """Rewrites captures, and keeps in `known` what became of each object. `put` gets what is new,
    none before what it refers to."""

    def __init__(self, old: bytes, new: bytes, fetch: Fetch, put: Put, known: Known) -> None:
        self._old = old
        self._new = new
        self._fetch = fetch
        self._put = put
        self._known = known
        self._names: dict[Hash, dict[bytes, bytes]] = {}  # of directories with other names now

    def capture(self, address: Hash) -> Hash:
        """The address of a capture without the text: the same, if it does not have it."""
        known = self._known.get(address)
        if known is None:
            was = capture.read(address, self._fetch)
            now = Capture(
                self._snapshot(was.snapshot),
                tuple(NotCaptured(self._bytes(p), self._text(why)) for p, why in was.not_captured),
                None if was.git is None else self._git(was.git),
                None if was.outer_rules is None else self._outer_rules(was.outer_rules),
            )
            known = (address if now == was else capture.write(now, self._put)), 0
            self._known[address] = known
        return known[0]

    # Snapshots and directories

    def _snapshot(self, root: Hash) -> Hash:
        known = self._known.get(root)
        if known is None:
            was = directory.read_snapshot(root, self._fetch)
            now = Snapshot(self._tree(was.top), tuple(self._links(was)))
            known = (root if now == was else directory.write_snapshot(now, self._put)), 0
            self._known[root] = known
        return known[0]

    def _links(self, snapshot: Snapshot) -> Iterator[tuple[bytes, ...]]:
        for group in snapshot.links:
            renamed = (self._renamed(snapshot.top, path) for path in group)
            kept = [path for path in renamed if self._old not in path]
            if len(kept) > 1:
                yield tuple(sorted(kept))

    def _renamed(self, top: Hash, path: bytes) -> bytes:
        """A path with the new names."""
        tree: Hash | None = top
        names: list[bytes] = []
        for name in path.split(b"/"):
            names.append(self._names.get(tree, {}).get(name, name) if tree is not None else name)
            entry = None if tree is None else compare.find(tree, name, self._fetch)
            tree = entry.hash if entry is not None and entry.type == DIRECTORY else None
        return b"/".join(names)

    def _tree(self, top: Hash) -> Hash:
        """Directories before those that hold them, however deep they lie."""
        stack = [top]
        while stack:
            tree = stack[-1]
            if self._known.get(tree) is not None:
                stack.pop()
                continue
            entries = directory.read_apart([(None, tree)], self._fetch)[0][1]
            below = [each.hash for _, each in entries if each.type == DIRECTORY and each.hash]
            waiting = [each for each in below if self._known.get(each) is None]
            stack += waiting
            if not waiting:
                self._known[tree] = self._directory(tree, entries), 0
        return self._now(top)

    def _now(self, tree: Hash) -> Hash:
        found = self._known.get(tree)
        assert found is not None  # the walk has been there
        return found[0]

    def _directory(self, tree: Hash, entries: Sequence[Named]) -> Hash:
        names = self._other_names([name for name, _ in entries])
        if names:
            self._names[tree] = names
        now = sorted((names.get(name, name), self._entry(entry)) for name, entry in entries)
        return tree if now == list(entries) else directory.write(now, self._put)

    def _other_names(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """New names for those that have the text; names that are free in this directory."""
        taken = {name for name in names if self._old not in name}
        others: dict[bytes, bytes] = {}
        for name in names:
            if self._old in name:
                others[name] = self._free(self._bytes(name), taken)
                taken.add(others[name])
        return others

    def _free(self, name: bytes, taken: set[bytes]) -> bytes:
        start = self._new if self._old in name else name  # it may have come about anew
        candidate, number = start[:_NAME_BYTES], 1
        while candidate in taken or self._old in candidate:
            number += 1
            ending = b"~%d" % number
            candidate = start[: _NAME_BYTES - len(ending)] + ending
        return candidate

    def _entry(self, entry: Entry) -> Entry:
        if entry.type == SYMLINK:
            target = self._bytes(entry.target)
            return (
                entry if target == entry.target else entry._replace(target=target, size=len(target))
            )
        assert entry.hash is not None
        if entry.type == FILE:
            address, size = self._content(entry.hash, entry.size)
            return entry._replace(hash=address, size=size)
        return entry._replace(hash=self._now(entry.hash))

    # Contents

    def _content(self, address: Hash, size: int) -> tuple[Hash, int]:
        found = self._known.get(address)
        if found is None:
            found = address, size
            if self._has(content.read(address, size, self._fetch)):
                parts = self._replaced(content.read(address, size, self._fetch))
                found = content.of_parts(_cut(parts), self._put)
            self._known[address] = found
        return found

    def _has(self, parts: Iterable[bytes]) -> bool:
        end = b""
        for part in parts:
            if self._old in end + part:
                return True
            end = (end + part)[-len(self._old) :]
        return False

    def _replaced(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Holds back so much of each part as could be the beginning of the text."""
        rest = b""
        for part in parts:
            *done, last = (rest + part).split(self._old)
            keep = max(len(last) - len(self._old) + 1, 0)
            yield self._new.join([*done, last[:keep]])
            rest = last[keep:]
        yield rest

    # What goes with the files

    def _git(self, git: Git) -> Git:
        now = git._replace(
            head=self._bytes(git.head),
            ref=self._text_or_none(git.ref),
            commit=self._text_or_none(git.commit),
            gitfile=self._bytes(git.gitfile),
            files=tuple(self._stored(each) for each in git.files),
            refs=tuple((self._text(ref), self._text_or_none(at)) for ref, at in git.refs),
            not_captured=tuple(
                GitNotCaptured(self._text(each.path), self._text(each.reason))
                for each in git.not_captured
            ),
        )
        if not self._is_in_index(git):
            return now
        missed = (*now.not_captured, _DROPPED)
        return now._replace(own_index=None, shared_index=None, index_hash=b"", not_captured=missed)

    def _outer_rules(self, outer_rules: StoredOuterRules) -> StoredOuterRules:
        return StoredOuterRules(
            self._bytes(outer_rules.inside),
            self._rules(outer_rules.excludes),
            tuple(map(self._rules, outer_rules.above)),
        )

    def _rules(self, some: Iterable[Content]) -> tuple[Content, ...]:
        found = [self._content(each.address, each.size) for each in some]
        return tuple(Content(size, address) for address, size in found)

    def _stored(self, file: Stored) -> Stored:
        address, size = self._content(file.address, file.size)
        return Stored(self._text(file.path), size, address)

    def _is_in_index(self, git: Git) -> bool:
        """Whether its bytes have the text, or one of its paths, which may be compressed."""
        for stored in (git.own_index, git.shared_index):
            if stored is None:
                continue
            data = b"".join(content.read(stored.address, stored.size, self._fetch))
            names: Sequence[bytes] = ()
            with suppress(index.BadIndex):
                names = index.parse(data, hash_name=git.hash_name).names
            if self._old in data or any(self._old in name for name in names):
                return True
        return False

    def _bytes(self, data: bytes) -> bytes:
        return data.replace(self._old, self._new)

    def _text_or_none(self, text: str | None) -> str | None:
        return None if text is None else self._text(text)

    def _text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogateescape")
        return self._bytes(data).decode("utf-8", "surrogateescape") if self._old in data else text


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts as a capture would cut them."""
    rest = b""
    for piece in pieces:
        rest += piece
        while len(rest) > PART_BYTES:
            yield rest[:PART_BYTES]
            rest = rest[PART_BYTES:]
    if rest:
        yield rest
