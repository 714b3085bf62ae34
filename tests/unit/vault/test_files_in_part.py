"""One level of a directory, and a range of a file: what a front end shows, and no more is read."""

import os
from collections.abc import Collection, Mapping

import pytest

import hardsave
from hardsave.errors import Corrupt, Misuse, NotFound
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.page import every
from hardsave.vault.files import Files, Held, compared
from hardsave.workspace.entries import DIRECTORY, FILE, Entry
from hardsave.workspace.snapshot import content
from hardsave.workspace.snapshot import directory as directories
from tests.unit.vault.desk import Desk, put, refusal


def captured(desk: Desk) -> Files:
    found = desk.line.save({}, workspace=desk.work).files
    assert found is not None
    return found


class Counting:
    """Objects in memory, and how many of them were fetched."""

    def __init__(self) -> None:
        self.objects: dict[Hash, bytes] = {}
        self.fetched = 0

    def put(self, address: Hash, data: bytes) -> None:
        self.objects[address] = data

    def fetch(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        self.fetched += len(wanted)
        return {address: self.objects[address] for address in wanted}


# One level


def test_one_level_of_a_directory_is_listed_and_nothing_below_it(desk: Desk) -> None:
    desk.write(b__c="c", b__a__x="x", a_txt="one")
    (desk.work / "link").symlink_to("b/c")
    files = captured(desk)
    assert [(each.path, each.kind) for each in files.directory()] == [
        ("a.txt", "file"),
        ("b", "directory"),
        ("link", "symlink"),
    ]
    assert [each.path for each in files.directory("b")] == ["b/a", "b/c"]
    assert [each.path for each in files.directory("/b/a/")] == ["b/a/x"]
    assert files.directory().next is None


def test_a_level_comes_in_pages_that_give_every_name_once(desk: Desk) -> None:
    for number in range(100):
        put(desk.work, f"many/{number:03}", "x")
    put(desk.work, "many/\udcff", "no UTF-8")
    files = captured(desk)
    whole = [each.path for each in files.directory("many")]
    pages = every(lambda after: files.directory("many", limit=7, after=after))
    assert [each.path for each in pages] == whole
    assert len(whole) == 101
    assert files.directory("many", limit=101).next is None


def test_what_is_no_directory_or_no_cursor_is_refused(desk: Desk) -> None:
    desk.write(a_txt="one")
    files = captured(desk)
    assert isinstance(refusal(files.directory, "nope"), NotFound)
    assert isinstance(refusal(files.directory, "a.txt"), Misuse)
    for wrong in ("main:3", "zz", 3):
        with pytest.raises(Misuse, match="`next` of an earlier page"):
            files.directory(after=wrong)  # type: ignore[arg-type] # what a caller may pass
    with pytest.raises(Misuse, match="limit"):
        files.directory(limit=0)


def test_of_a_large_directory_only_the_runs_of_the_page_are_read() -> None:
    kept = Counting()
    address, sealed = content.of_bytes(b"")
    kept.put(address, sealed)
    entries = [(b"%06d" % number, Entry(FILE, 0o644, 0, address)) for number in range(50_000)]
    tree = directories.write(entries, kept.put)
    page = directories.read_level(tree, b"040000", 50, kept.fetch)
    assert [name for name, _ in page] == [b"%06d" % number for number in range(40_001, 40_051)]
    assert kept.fetched <= 4
    assert directories.read_level(tree, b"049999", 50, kept.fetch) == []
    assert len(directories.read_level(tree, None, 60_000, kept.fetch)) == 50_000


def test_a_level_with_a_malformed_list_of_runs_is_not_shown() -> None:
    kept = Counting()
    below = directories.write([], kept.put)
    node = directories._put(envelope.DIRECTORY_NODE, [below, below], b"b\0a", kept.put)
    with pytest.raises(Corrupt):
        directories.read_level(node, None, 10, kept.fetch)
    assert Entry(DIRECTORY, 0o755, 0, below).hash == below


# A range


def test_a_range_of_a_file_is_read(desk: Desk) -> None:
    data = os.urandom(3 * content.PART_BYTES + 1000)
    (desk.work / "long.bin").write_bytes(data)
    desk.write(a_txt="abcdef")
    files = captured(desk)
    assert files.read("a.txt", start=2, length=3) == b"cde"
    assert files.read("a.txt", start=4) == b"ef"
    assert files.read("a.txt", start=4, length=100) == b"ef"
    assert files.read("a.txt", start=6) == files.read("a.txt", start=99, length=1) == b""
    assert files.read("a.txt", length=0) == b""
    part = content.PART_BYTES
    for start, length in ((0, 10), (part - 5, 10), (part, part), (2 * part + 7, 2 * part), (5, 0)):
        assert files.read("long.bin", start=start, length=length) == data[start : start + length]
    assert files.read("long.bin") == data


@pytest.mark.parametrize("wrong", [{"start": -1}, {"length": -1}, {"start": "0"}])
def test_a_range_of_no_bytes_is_refused(desk: Desk, wrong: dict[str, int]) -> None:
    desk.write(a_txt="abcdef")
    with pytest.raises(Misuse, match="a number of bytes from 0 on"):
        captured(desk).read("a.txt", **wrong)


def test_of_a_long_file_only_the_parts_of_the_range_are_read() -> None:
    kept = Counting()
    part = content.PART_BYTES
    count = content.FAN_OUT + 44  # two levels of lists
    parts = (bytes([number % 251]) * part for number in range(count))
    address, size = content.of_parts(parts, kept.put)
    start = 270 * part + 3
    assert content.read_range(address, start, start + part, kept.fetch) == (
        bytes([270 % 251]) * (part - 3) + bytes([271 % 251]) * 3
    )
    assert kept.fetched == 4
    with pytest.raises(Corrupt):
        content.read_range(address, size - 1, size + 1, kept.fetch)


# Effort


def test_a_comparison_by_lines_is_left_out_if_the_deadline_does_not_leave_the_time() -> None:
    before = b"".join(b"line %d\n" % number for number in range(5_000))
    after = b"".join(b"line %d\n" % (n if n % 2 else -1 - n) for n in range(5_000))
    with hardsave.deadline(0.5):
        assert "too much of it has changed" in compared("a.txt", Held(before), Held(after))
        assert "+new" in compared("a.txt", Held(b"old\n"), Held(b"new\n"))
