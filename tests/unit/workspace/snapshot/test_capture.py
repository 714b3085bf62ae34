"""A capture comes back as it was written, or not at all."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.types import Types
from hardsave.workspace.entries import NotCaptured
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git.unfinished import GitFile
from hardsave.workspace.git.unfinished import NotCaptured as GitNotCaptured
from hardsave.workspace.ignore.outer_rules import OuterRules
from hardsave.workspace.snapshot import capture, content, directory
from tests.unit.workspace import pieces

ENCODE = Codec(Types(), verbatim=True).encode


class Shelf(dict[Hash, bytes]):
    def fetch(self, wanted: Any) -> dict[Hash, bytes]:
        return {address: self[address] for address in wanted}

    def put(self, address: Hash, data: bytes) -> None:
        for ref in envelope.refs(data):
            assert ref in self, "stored before what it refers to"
        self[address] = data


def at(*, ref: str | None, index: bytes | None) -> GitPosition:
    return GitPosition(
        head=b"x",
        ref=ref,
        commit=None,
        hash_name="sha1",
        gitfile=b"",
        own_index=index,
        index_hash=b"",
        shared_index=None,
        files=(),
        not_captured=(),
    )


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


TEXT = st.text(max_size=20)
BYTES = st.binary(max_size=40)
FILES = st.builds(GitFile, TEXT, BYTES)
POSITIONS = st.builds(
    GitPosition,
    head=BYTES,
    ref=st.none() | TEXT,
    commit=st.none() | TEXT,
    hash_name=st.sampled_from(["sha1", "sha256"]),
    gitfile=BYTES,
    own_index=st.none() | BYTES,
    index_hash=BYTES,
    shared_index=st.none() | FILES,
    files=st.lists(FILES, max_size=3).map(tuple),
    refs=st.lists(st.tuples(TEXT, st.none() | TEXT), max_size=3).map(tuple),
    not_captured=st.lists(st.builds(GitNotCaptured, TEXT, TEXT), max_size=3).map(tuple),
)
MISSED = st.lists(st.builds(NotCaptured, BYTES, TEXT), max_size=4).map(tuple)


CONTENTS = st.lists(BYTES, min_size=1, max_size=2).map(tuple)


@st.composite
def outsides(draw: st.DrawFn) -> OuterRules:
    names = draw(st.lists(st.sampled_from([b"a", b"b"]), max_size=3))
    above = tuple(draw(CONTENTS) for _ in names) if draw(st.booleans()) else ()
    return OuterRules(b"/".join(names), draw(CONTENTS), above)


@settings(max_examples=60, deadline=None)
@given(MISSED, st.none() | POSITIONS, outsides())
def test_what_was_written_comes_back(
    missed: tuple[NotCaptured, ...], position: GitPosition | None, outside: OuterRules
) -> None:
    shelf = Shelf()
    root = directory.write_empty(shelf.put)
    address = pieces.written(root, missed, position, shelf.put, outside)
    found = capture.read(address, shelf.fetch)
    assert (found.snapshot, found.not_captured) == (root, missed)
    expected = OuterRules() if outside.is_nothing else outside
    assert capture.read_outer_rules(found.outer_rules, shelf.fetch) == expected
    if position is None:
        assert found.git is None
    else:
        assert found.git is not None
        assert capture.position(found.git, shelf.fetch) == position
    assert capture.write(found, shelf.put) == address


def test_large_files_of_git_are_kept_in_parts(shelf: Shelf) -> None:
    data = b"i" * (3 * content.PART_BYTES + 7)
    position = at(ref=None, index=data)
    root = directory.write_empty(shelf.put)
    git = capture.read(pieces.written(root, (), position, shelf.put), shelf.fetch).git
    assert git is not None
    assert git.own_index is not None
    assert git.own_index.size == len(data)
    assert capture.position(git, shelf.fetch).own_index == data


def test_the_branch_is_called_by_its_short_name(shelf: Shelf) -> None:
    root = directory.write_empty(shelf.put)
    for ref, branch in (("refs/heads/a/b", "a/b"), (None, None)):
        position = at(ref=ref, index=None)
        git = capture.read(pieces.written(root, (), position, shelf.put), shelf.fetch).git
        assert git is not None
        assert git.branch == branch


def test_the_same_files_have_one_snapshot_also_with_another_git_position(shelf: Shelf) -> None:
    root = directory.write_empty(shelf.put)
    one = pieces.written(root, (), None, shelf.put)
    two = pieces.written(root, (NotCaptured(b"x", "why"),), None, shelf.put)
    assert one != two
    assert capture.read(one, shelf.fetch).snapshot == capture.read(two, shelf.fetch).snapshot


GIT: list[Any] = [b"h", None, None, "sha1", b"", b"", None, None, [], [], []]
WRONG: dict[str, tuple[int, list[Hash], bytes]] = {
    "another kind": (envelope.SNAPSHOT, [bytes(20)], ENCODE([[], None])),
    "no snapshot": (envelope.CAPTURE, [], ENCODE([[], None])),
    "more references than it names": (envelope.CAPTURE, [bytes(20)] * 2, ENCODE([[], None])),
    "fewer than it names": (
        envelope.CAPTURE, [bytes(20)], ENCODE([[], [*GIT[:6], ["i", 1], *GIT[7:]]]),
    ),
    "no list": (envelope.CAPTURE, [bytes(20)], ENCODE(7)),
    "a file of git's without its content": (
        envelope.CAPTURE, [bytes(20)], ENCODE([[], [*GIT[:8], [["MERGE_HEAD", 1]], *GIT[9:]]]),
    ),
    "rules that are none": (envelope.CAPTURE, [bytes(20)], ENCODE([[], None, None])),
    "rules for too few directories": (
        envelope.CAPTURE, [bytes(20)] * 3, ENCODE([[], None, [b"a/b", [1], [1]]]),
    ),
    "rules without contents": (envelope.CAPTURE, [bytes(20)], ENCODE([[], None, [b"", [1]]])),
    "rules of no size": (envelope.CAPTURE, [bytes(20)] * 2, ENCODE([[], None, [b"", [-1]]])),
    "four parts": (envelope.CAPTURE, [bytes(20)], ENCODE([[], None, [b"", []], None])),
    "a path that is a text": (envelope.CAPTURE, [bytes(20)], ENCODE([[["a", "b"]], None])),
    "a reason that is bytes": (envelope.CAPTURE, [bytes(20)], ENCODE([[[b"a", b"b"]], None])),
    "an unknown hash": (envelope.CAPTURE, [bytes(20)], ENCODE([[], [*GIT[:3], "md5", *GIT[4:]]])),
    "a size below nothing": (
        envelope.CAPTURE, [bytes(20)] * 2, ENCODE([[], [*GIT[:6], ["i", -1], *GIT[7:]]]),
    ),
    "a size that is a truth": (
        envelope.CAPTURE, [bytes(20)] * 2, ENCODE([[], [*GIT[:6], ["i", True], *GIT[7:]]]),
    ),
    "a head that is a text": (envelope.CAPTURE, [bytes(20)], ENCODE([[], ["h", *GIT[1:]]])),
    "a commit that is a number": (
        envelope.CAPTURE, [bytes(20)], ENCODE([[], [*GIT[:2], 7, *GIT[3:]]]),
    ),
    "a branch that is a number": (
        envelope.CAPTURE, [bytes(20)], ENCODE([[], [*GIT[:9], [[7, None]], *GIT[10:]]]),
    ),
    "a branch without a commit": (
        envelope.CAPTURE, [bytes(20)], ENCODE([[], [*GIT[:9], [["refs/heads/x"]], *GIT[10:]]]),
    ),
    "rubbish": (envelope.CAPTURE, [bytes(20)], b"\xc1\xff"),
    "cut short": (envelope.CAPTURE, [bytes(20)], ENCODE([[], GIT])[:-1]),
}  # fmt: skip


def test_what_is_wrong_below_is_wrong_in_that_alone(shelf: Shelf) -> None:
    """Or the refusals would prove nothing."""
    root = directory.write_empty(shelf.put)
    data = envelope.seal(envelope.CAPTURE, [root], ENCODE([[[b"a", "b"]], GIT]))
    shelf.put(digest(data), data)
    assert capture.read(digest(data), shelf.fetch).git is not None


def test_a_capture_from_before_other_branches_were_kept_has_none(shelf: Shelf) -> None:
    root = directory.write_empty(shelf.put)
    missed = [["index", "too large"]]
    data = envelope.seal(envelope.CAPTURE, [root], ENCODE([[], [*GIT[:9], missed]]))
    shelf.put(digest(data), data)
    git = capture.read(digest(data), shelf.fetch).git
    assert git is not None
    assert (git.refs, git.not_captured) == ((), (GitNotCaptured("index", "too large"),))


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_no_capture_looks_like_is_corrupt(
    shelf: Shelf, wrong: tuple[int, list[Hash], bytes]
) -> None:
    data = envelope.seal(*wrong)
    shelf[digest(data)] = data
    with pytest.raises(Corrupt):
        capture.read(digest(data), shelf.fetch)


def test_an_index_that_cannot_be_read_tracks_nothing(shelf: Shelf) -> None:
    root = directory.write_empty(shelf.put)
    for index in (None, b"rubbish"):
        position = at(ref=None, index=index)
        git = capture.read(pieces.written(root, (), position, shelf.put), shelf.fetch).git
        assert capture.tracked(git, shelf.fetch) == frozenset()
    assert capture.tracked(None, shelf.fetch) == frozenset()
