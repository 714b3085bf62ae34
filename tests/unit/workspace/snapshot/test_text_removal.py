"""Captured files without a text: nothing has it, and everything else is as it was."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardsave.objects.hashing import Hash
from hardsave.workspace.entries import NotCaptured
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git.unfinished import GitFile
from hardsave.workspace.git.unfinished import NotCaptured as GitNotCaptured
from hardsave.workspace.ignore.outer_rules import OuterRules
from hardsave.workspace.snapshot import capture, content, directory
from hardsave.workspace.snapshot.capture import Git, Stored
from hardsave.workspace.snapshot.content import PART_BYTES
from hardsave.workspace.snapshot.text_removal import TextRemoval
from tests.unit.workspace import pieces
from tests.unit.workspace.room import Room

OLD, NEW = b"sesame", b"[purged]"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def put(root: Path, path: str, data: bytes | str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)


class Shelf:
    """The objects of a room, and what is made of them."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.made: dict[Hash, bytes] = {}
        self.rewriting = TextRemoval(OLD, NEW, room.fetch, self.made.__setitem__, {})

    def captured(self, *missed: NotCaptured, git: GitPosition | None = None) -> Hash:
        root = self.room.snapshot().root
        return pieces.written(root, missed, git, self.room.objects.__setitem__)

    def without(self, address: Hash) -> capture.Capture:
        """The capture without the text; no object that it leads to has it."""
        now = self.rewriting.capture(address)
        for data in self.made.values():
            assert OLD not in data
        return capture.read(now, self.fetch)

    def fetch(self, wanted: object) -> dict[Hash, bytes]:
        both = self.room.objects | self.made
        return {address: both[address] for address in wanted}  # type: ignore[attr-defined]

    def files(self, found: capture.Capture) -> dict[bytes, object]:
        """Contents and targets by path."""
        top = directory.read_snapshot(found.snapshot, self.fetch).top
        seen: dict[bytes, object] = {}
        todo = [(b"", top)]
        while todo:
            at, tree = todo.pop()
            for name, entry in directory.read_apart([(None, tree)], self.fetch)[0][1]:
                path = at + name
                if entry.target:
                    seen[path] = entry.target
                elif entry.type == 3:
                    assert entry.hash is not None
                    todo.append((path + b"/", entry.hash))
                else:
                    assert entry.hash is not None
                    seen[path] = b"".join(content.read(entry.hash, entry.size, self.fetch))
        return seen


def test_contents_names_and_targets_lose_it_and_nothing_else_changes(room: Room) -> None:
    put(room.root, "plain", "nothing here")
    put(room.root, "deep/er/text", "open sesame and sesame")
    put(room.root, "sesame-dir/a", "a")
    put(room.root, "x-sesame.txt", "b")
    (room.root / "link").symlink_to("to/sesame")
    shelf = Shelf(room)
    found = shelf.files(shelf.without(shelf.captured()))
    assert found == {
        b"plain": b"nothing here",
        b"deep/er/text": b"open [purged] and [purged]",
        b"[purged]-dir/a": b"a",
        b"x-[purged].txt": b"b",
        b"link": b"to/[purged]",
    }


def test_what_does_not_have_it_keeps_its_address(room: Room) -> None:
    put(room.root, "a", "nothing")
    os.link(room.root / "a", room.root / "b")
    shelf = Shelf(room)
    address = shelf.captured(NotCaptured(b"fifo", "a FIFO"))
    assert shelf.rewriting.capture(address) == address
    assert shelf.made == {}


@pytest.mark.parametrize("shift", [0, 1, 3, 5, 6])
def test_a_text_across_two_parts_goes_and_is_cut_as_a_capture_would(room: Room, shift: int) -> None:
    data = b"x" * (PART_BYTES - shift) + OLD + b"y" * (2 * PART_BYTES) + OLD
    put(room.root, "large", data)
    shelf = Shelf(room)
    found = shelf.without(shelf.captured())
    expected = data.replace(OLD, NEW)
    assert shelf.files(found) == {b"large": expected}
    put(room.root, "large", expected)
    assert room.anew().root == found.snapshot


def test_names_that_become_the_same_are_told_apart(room: Room) -> None:
    for name in ("sesame", "[purged]", "[purged]~2", "sesame" * 40, "sesame" * 41):
        put(room.root, name, name)
    shelf = Shelf(room)
    found = shelf.files(shelf.without(shelf.captured()))
    assert len(found) == 5
    assert found[b"[purged]~3"] == b"[purged]"
    assert max(map(len, found)) <= 255


def test_a_large_directory_is_written_anew(room: Room) -> None:
    for number in range(1_100):
        put(room.root, f"many/{number:04}-{'sesame' if number == 500 else 'other'}", b"")
    shelf = Shelf(room)
    found = shelf.files(shelf.without(shelf.captured()))
    assert len(found) == 1_100
    assert b"many/0500-[purged]" in found


def test_rules_from_outside_are_rewritten_too(room: Room) -> None:
    shelf = Shelf(room)
    outside = OuterRules(b"a/sesame", (b"sesame.log\n", b""), ((b"x\n",), (b"y\nsesame\n", b"")))
    put = room.objects.__setitem__
    found = shelf.without(pieces.written(room.snapshot().root, (), None, put, outside))
    assert capture.read_outer_rules(found.outer_rules, shelf.fetch) == OuterRules(
        b"a/[purged]", (b"[purged].log\n", b""), ((b"x\n",), (b"y\n[purged]\n", b""))
    )
    plain = pieces.written(room.snapshot().root, (), None, put, OuterRules(b"a", (b"b\n",)))
    assert shelf.rewriting.capture(plain) == plain


def test_hard_links_stay_as_far_as_their_paths_can_be_said(room: Room) -> None:
    put(room.root, "a", "linked")
    put(room.root, "d-sesame/x", "x")
    put(room.root, "ses/ame", "x")
    for path in ("d-sesame/b", "c", "ses/link"):
        os.link(room.root / "a", room.root / path)
    shelf = Shelf(room)
    shelf.rewriting._old = b"ses/"  # a path that is cut between two names
    with_slash = shelf.rewriting.capture(shelf.captured())
    links = directory.read_snapshot(capture.read(with_slash, shelf.fetch).snapshot, shelf.fetch)
    assert links.links == ((b"a", b"c", b"d-sesame/b"),)
    shelf = Shelf(room)
    found = shelf.without(shelf.captured())
    links = directory.read_snapshot(found.snapshot, shelf.fetch)
    assert links.links == ((b"a", b"c", b"d-[purged]/b", b"ses/link"),)


def test_what_was_left_out_and_what_git_noted_lose_it(room: Room) -> None:
    position = GitPosition(
        head=b"ref: refs/heads/sesame\n",
        ref="refs/heads/sesame",
        commit="sesame",
        hash_name="sha1",
        gitfile=b"gitdir: /sesame",
        own_index=b"no index, but sesame",
        index_hash=bytes(20),
        shared_index=None,
        files=(GitFile("MERGE_MSG", b"merge sesame"), GitFile("BISECT_sesame", b"x")),
        refs=(("refs/heads/other-sesame", "sesame"), ("refs/heads/gone", None)),
        not_captured=(GitNotCaptured("rebase/sesame", "large"),),
    )
    shelf = Shelf(room)
    found = shelf.without(shelf.captured(NotCaptured(b"sesame.fifo", "a FIFO"), git=position))
    assert found.not_captured == (NotCaptured(b"[purged].fifo", "a FIFO"),)
    git = found.git
    assert git is not None
    assert (git.head, git.branch, git.gitfile) == (
        b"ref: refs/heads/[purged]\n",
        "[purged]",
        b"gitdir: /[purged]",
    )
    assert (git.own_index, git.index_hash) == (None, b"")
    assert git.commit == "[purged]"
    assert git.refs == (("refs/heads/other-[purged]", "[purged]"), ("refs/heads/gone", None))
    whole = capture.position(git, shelf.fetch)
    assert [(each.path, each.data) for each in whole.files] == [
        ("MERGE_MSG", b"merge [purged]"),
        ("BISECT_[purged]", b"x"),
    ]
    assert [each.path for each in whole.not_captured] == ["rebase/[purged]", "index"]


def test_an_index_that_does_not_have_it_stays(room: Room) -> None:
    shelf = Shelf(room)
    position = GitPosition(
        head=b"x", ref=None, commit=None, hash_name="sha1", gitfile=b"", own_index=b"DIRC",
        index_hash=bytes(20), shared_index=None,
        files=(GitFile("MERGE_MSG", b"sesame"),), not_captured=(),
    )  # fmt: skip
    git = shelf.without(shelf.captured(git=position)).git
    assert isinstance(git, Git)
    assert isinstance(git.own_index, Stored)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=12), st.integers(1, 40))
def test_a_stream_is_replaced_as_if_it_were_whole(pieces: list[bytes], every: int) -> None:
    data = OLD.join(pieces)
    parts = [data[at : at + every] for at in range(0, len(data), every)]
    rewriting = TextRemoval(OLD, NEW, lambda wanted: {}, lambda address, data: None, {})
    assert b"".join(rewriting._replaced(parts)) == data.replace(OLD, NEW)
    assert rewriting._has(parts) == (OLD in data)
