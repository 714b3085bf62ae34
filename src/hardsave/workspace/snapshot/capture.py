"""A capture: a snapshot with the list of what was left out, git's position, and the outer ignore
rules.

It is one object, so a checkpoint needs one address for all of its files. The snapshot's own
address says nothing but what the files are: two captures of the same files share it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.types import Types
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured
from hardsave.workspace.git import index as git_index
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git.unfinished import GitFile
from hardsave.workspace.git.unfinished import NotCaptured as GitNotCaptured
from hardsave.workspace.ignore.outer_rules import OuterRules
from hardsave.workspace.snapshot import content
from hardsave.workspace.snapshot.content import PART_BYTES, Fetch, Put

_CODEC = Codec(Types())
_WITHOUT_REFS = 10  # parts of git's position, in captures from before its other branches were kept


class Content(NamedTuple):
    """The size and the address of a stored content."""

    size: int
    address: Hash


class Stored(NamedTuple):
    """A file of git's, whose content is an object of its own."""

    path: str
    size: int
    address: Hash


class Git(NamedTuple):
    """Where a repository stood. Contents are read when they are asked for."""

    head: bytes
    ref: str | None
    commit: str | None
    hash_name: str
    gitfile: bytes
    index_hash: bytes
    own_index: Stored | None
    shared_index: Stored | None
    files: tuple[Stored, ...]
    refs: tuple[tuple[str, str | None], ...]  # other branches that are part of it
    not_captured: tuple[GitNotCaptured, ...]

    @property
    def branch(self) -> str | None:
        """The branch by its short name; None if HEAD is detached."""
        return None if self.ref is None else self.ref.removeprefix("refs/heads/")


class StoredOuterRules(NamedTuple):
    """The outer ignore rules, whose contents are objects of their own."""

    inside: bytes
    excludes: tuple[Content, ...]
    above: tuple[tuple[Content, ...], ...]

    @property
    def contents(self) -> Iterator[Content]:
        return chain(self.excludes, *self.above)


class Capture(NamedTuple):
    """What a checkpoint knows of its workspace."""

    snapshot: Hash
    not_captured: tuple[NotCaptured, ...] = ()
    git: Git | None = None
    outer_rules: StoredOuterRules | None = None  # None: there were none


# Writing


def write(capture: Capture, put: Put) -> Hash:
    """Store a capture; what it refers to is stored already."""
    git = capture.git
    files = [] if git is None else [git.own_index, git.shared_index, *git.files]
    refs = [capture.snapshot, *[each.address for each in files if each is not None]]
    body = [[list(each) for each in capture.not_captured], None if git is None else _plain(git)]
    outer_rules = capture.outer_rules
    if outer_rules is not None:
        refs += [each.address for each in outer_rules.contents]
        sizes = [
            [each.size for each in some] for some in (outer_rules.excludes, *outer_rules.above)
        ]
        body.append([outer_rules.inside, *sizes])
    sealed = envelope.seal(envelope.CAPTURE, refs, _CODEC.encode(body))
    address = digest(sealed)
    put(address, sealed)
    return address


def write_git(at: GitPosition, put: Put) -> Git:
    """Store the contents of git's files."""

    def stored(path: str, data: bytes) -> Stored:
        address, size = content.of_parts(_cut(data), put)
        return Stored(path, size, address)

    shared = at.shared_index
    return Git(
        *(at.head, at.ref, at.commit, at.hash_name, at.gitfile, at.index_hash),
        own_index=None if at.own_index is None else stored("index", at.own_index),
        shared_index=None if shared is None else stored(shared.path, shared.data),
        files=tuple(stored(file.path, file.data) for file in at.files),
        refs=at.refs,
        not_captured=at.not_captured,
    )


def write_outer_rules(read_outer_rules: OuterRules, put: Put) -> StoredOuterRules | None:
    """Store the contents of ignore files; None if there are none."""

    def stored(contents: Iterable[bytes]) -> tuple[Content, ...]:
        found = [content.of_parts(_cut(data), put) for data in contents]
        return tuple(Content(size, address) for address, size in found)

    if read_outer_rules.is_nothing:
        return None
    return StoredOuterRules(
        read_outer_rules.inside,
        stored(read_outer_rules.excludes),
        tuple(map(stored, read_outer_rules.above)),
    )


def _plain(git: Git) -> list[Any]:
    def named(file: Stored | None) -> list[Any] | None:
        return None if file is None else [file.path, file.size]

    return [
        *(git.head, git.ref, git.commit, git.hash_name, git.gitfile, git.index_hash),
        named(git.own_index),
        named(git.shared_index),
        [named(file) for file in git.files],
        [list(each) for each in git.refs],
        [[each.path, each.reason] for each in git.not_captured],
    ]


def _cut(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PART_BYTES):
        yield data[start : start + PART_BYTES]


# Reading


def read(address: Hash, fetch: Fetch) -> Capture:
    return parsed(address, *envelope.unseal(fetch([address])[address]))


def parsed(address: Hash, kind: int, refs: Sequence[Hash], payload: bytes) -> Capture:
    """Parse a capture; `Corrupt` if it is not what `write` makes."""
    if kind != envelope.CAPTURE or not refs:
        raise Corrupt(f"object {address.hex()} is not a capture; run verify")
    try:
        left_out, git, *outer_rules = _CODEC.decode(payload)
        contents = iter(refs[1:])
        found = Capture(
            refs[0],
            tuple(NotCaptured(_bytes(path), _text(why)) for path, why in left_out),
            None if git is None else _git(git, contents),
            _outer_rules(outer_rules, contents),
        )
    except (TypeError, ValueError, StopIteration) as error:
        raise Corrupt(f"the capture {address.hex()} is malformed; run verify") from error
    if next(contents, None) is not None:
        raise Corrupt(f"the capture {address.hex()} refers to more than it names; run verify")
    return found


# In lists, not in generators: there, a content that is missing would be a RuntimeError.


def _git(plain: list[Any], contents: Iterator[Hash]) -> Git:
    if len(plain) == _WITHOUT_REFS:
        plain = [*plain[:-1], [], plain[-1]]
    head, ref, commit, hash_name, gitfile, index_hash, index, shared, files, refs, missed = plain
    if hash_name not in ("sha1", "sha256"):
        raise ValueError(hash_name)
    return Git(
        _bytes(head),
        _text_or_none(ref),
        _text_or_none(commit),
        hash_name,
        _bytes(gitfile),
        _bytes(index_hash),
        _stored(index, contents),
        _stored(shared, contents),
        tuple([each for file in files if (each := _stored(file, contents)) is not None]),
        tuple((_text(name), _text_or_none(commit)) for name, commit in refs),
        tuple(GitNotCaptured(_text(path), _text(why)) for path, why in missed),
    )


def _outer_rules(last: list[Any], contents: Iterator[Hash]) -> StoredOuterRules | None:
    """The last part of a capture, if it has one."""
    if not last:
        return None
    [(inside, excludes, *above)] = last
    if above and len(above) != _bytes(inside).count(b"/") + 1:
        raise ValueError(inside)

    def stored(sizes: list[Any]) -> tuple[Content, ...]:
        return tuple([Content(_size(size), next(contents)) for size in sizes])

    return StoredOuterRules(_bytes(inside), stored(excludes), tuple(map(stored, above)))


def _size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _stored(plain: list[Any] | None, contents: Iterator[Hash]) -> Stored | None:
    if plain is None:
        return None
    path, size = plain
    return Stored(_text(path), _size(size), next(contents))


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(type(value))
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise TypeError(type(value))
    return value


def read_outer_rules(outer_rules: StoredOuterRules | None, fetch: Fetch) -> OuterRules:
    """The outer ignore rules with their contents."""
    if outer_rules is None:
        return OuterRules()

    def read_all(some: Iterable[Content]) -> tuple[bytes, ...]:
        return tuple(b"".join(content.read(each.address, each.size, fetch)) for each in some)

    return OuterRules(
        outer_rules.inside, read_all(outer_rules.excludes), tuple(map(read_all, outer_rules.above))
    )


def position(git: Git, fetch: Fetch) -> GitPosition:
    """The whole position, with the contents of its files."""

    def data(stored: Stored) -> bytes:
        return b"".join(content.read(stored.address, stored.size, fetch))

    return GitPosition(
        head=git.head,
        ref=git.ref,
        commit=git.commit,
        hash_name=git.hash_name,
        gitfile=git.gitfile,
        own_index=None if git.own_index is None else data(git.own_index),
        index_hash=git.index_hash,
        shared_index=None
        if git.shared_index is None
        else GitFile(git.shared_index.path, data(git.shared_index)),
        files=tuple(GitFile(each.path, data(each)) for each in git.files),
        refs=git.refs,
        not_captured=git.not_captured,
    )


def tracked(git: Git | None, fetch: Fetch) -> frozenset[bytes]:
    """The paths that git tracked then; none if that cannot be told."""
    if git is None or git.own_index is None:
        return frozenset()
    at = position(git._replace(files=()), fetch)
    assert at.own_index is not None

    def base(name: str) -> bytes:
        if at.shared_index is None:
            raise git_index.BadIndex("its shared index was not captured")
        return at.shared_index.data

    try:
        return git_index.paths(at.own_index, hash_name=at.hash_name, base=base)
    except git_index.BadIndex:
        return frozenset()
