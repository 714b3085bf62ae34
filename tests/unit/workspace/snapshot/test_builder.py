"""Objects of a workspace: one address for one tree, small steps, bounded batches."""

import os
import random
from pathlib import Path

import pytest

from hardsave.objects import envelope
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK
from hardsave.workspace.scan import cache as caches
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot import compare, content, directory
from hardsave.workspace.snapshot.builder import snapshot
from tests.unit.workspace.room import Room, rules

KIB = 1024


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def test_equal_trees_have_equal_roots_wherever_and_however_they_came_about(
    room: Room, tmp_path: Path
) -> None:
    for name in ("b", "a", "c"):
        (room.root / name).write_bytes(name.encode())
    other = Room(tmp_path / "other")
    other.root.mkdir()
    for name in ("c", "x", "b", "a"):
        (other.root / name).write_bytes(name.encode())
    assert other.snapshot().root != room.snapshot().root
    (other.root / "x").unlink()
    assert other.snapshot().root == room.snapshot().root


def test_every_kind_of_entry_is_kept(room: Room) -> None:
    (room.root / "run").write_bytes(b"#!")
    (room.root / "run").chmod(0o750)
    (room.root / "empty").mkdir(mode=0o700)
    (room.root / "link").symlink_to("nowhere/at all")
    os.mkdir(os.fsencode(room.root) + b"/not\xff\nutf-8")
    top = directory.read_snapshot(room.snapshot().root, room.fetch).top
    ((_, entries),) = directory.read_apart([(None, top)], room.fetch)
    found = dict(entries)
    run = found[b"run"]
    assert (run.type, run.mode, run.size) == (FILE, 0o750, 2)
    assert (found[b"empty"].type, found[b"empty"].mode) == (DIRECTORY, 0o700)
    assert (found[b"link"].type, found[b"link"].target) == (SYMLINK, b"nowhere/at all")
    assert found[b"not\xff\nutf-8"].type == DIRECTORY


def test_rights_that_go_beyond_the_owners_are_not_kept(room: Room) -> None:
    (room.root / "tool").write_bytes(b"")
    (room.root / "tool").chmod(0o6755)
    top = directory.read_snapshot(room.snapshot().root, room.fetch).top
    found = compare.find(top, b"tool", room.fetch)
    assert found is not None
    assert found.mode == 0o755


def test_hard_links_are_groups_of_paths_and_their_directories_know_nothing_of_them(
    room: Room,
) -> None:
    (room.root / "sub").mkdir()
    (room.root / "b").write_bytes(b"same")
    (room.root / "sub/a").write_bytes(b"same")
    apart = directory.read_snapshot(room.snapshot().root, room.fetch)
    (room.root / "sub/a").unlink()
    (room.root / "sub/a").hardlink_to(room.root / "b")
    linked = directory.read_snapshot(room.snapshot().root, room.fetch)
    assert (apart.links, linked.links) == ((), ((b"b", b"sub/a"),))
    assert apart.top == linked.top


def test_a_hard_link_to_the_outside_is_a_file(room: Room, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"x")
    (room.root / "in").hardlink_to(tmp_path / "outside")
    assert directory.read_snapshot(room.snapshot().root, room.fetch).links == ()


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.torture)])
def test_one_more_name_among_many_writes_a_run_and_the_list(room: Room, count: int) -> None:
    for number in range(count):
        os.close(os.open(room.root / f"{number:x}", os.O_CREAT | os.O_WRONLY))
    first = room.snapshot()
    before = room.put_bytes
    (room.root / "new").touch()
    second = room.snapshot()
    assert room.put_bytes - before < 100 * KIB
    room.fetched = 0
    assert compare.diff(first.root, second.root, room.fetch).added == (b"new",)
    assert room.fetched < 20
    top = directory.read_snapshot(second.root, room.fetch).top
    for name in (b"0", b"new", b"%x" % (count - 1)):
        assert compare.find(top, name, room.fetch) is not None
    assert compare.find(top, b"newer", room.fetch) is None
    assert compare.find(top, b"!", room.fetch) is None


def test_deep_paths_are_captured(room: Room) -> None:
    deep = room.root.joinpath(*["deep"] * 200)
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x")
    top = directory.read_snapshot(room.snapshot().root, room.fetch).top
    path = b"/".join([b"deep"] * 200 + [b"file"])
    assert compare.find(top, path, room.fetch) is not None


def test_an_append_to_a_large_file_stores_its_end(room: Room) -> None:
    noise = random.Random(1).randbytes(3 * 1024 * KIB)
    file = room.root / "log"
    file.write_bytes(noise)
    room.snapshot()
    before = room.put_bytes
    with file.open("ab") as end:
        end.write(b"one more line\n")
    made = room.snapshot()
    assert room.put_bytes - before < 2 * content.PART_BYTES
    entry = compare.find(directory.read_snapshot(made.root, room.fetch).top, b"log", room.fetch)
    assert entry is not None
    assert entry.hash is not None
    assert b"".join(content.read(entry.hash, entry.size, room.fetch)) == noise + b"one more line\n"


def test_batches_are_bounded_and_nothing_comes_before_what_it_refers_to(room: Room) -> None:
    for number in range(40):
        (room.root / str(number)).write_bytes(os.urandom(20 * KIB))
    (room.root / "large").write_bytes(os.urandom(2048 * KIB))
    sizes: list[int] = []

    def put(batch: dict[bytes, bytes]) -> None:
        sizes.append(sum(map(len, batch.values())))
        room.put(batch)

    found = scan(room.root, rules=rules)
    snapshot(found, put, batch_bytes=256 * KIB)  # type: ignore[arg-type]
    assert len(sizes) > 8
    assert max(sizes) < 256 * KIB + content.PART_BYTES + KIB


def test_a_file_that_was_only_touched_stores_nothing(room: Room) -> None:
    (room.root / "a").write_bytes(b"x")
    room.snapshot()
    before = room.put_bytes, room.batches
    os.utime(room.root / "a")
    room.snapshot()
    assert room.put_bytes == before[0]


@pytest.mark.parametrize(
    "size",
    [
        *(0, 1, content.PART_BYTES - 1, content.PART_BYTES, content.PART_BYTES + 1),
        *(3 * content.PART_BYTES, 257 * content.PART_BYTES + 5),
    ],
)
def test_content_of_any_length_comes_back(size: int) -> None:
    objects: dict[bytes, bytes] = {}
    pattern = bytes(range(251))
    data = (pattern * (size // len(pattern) + 1))[:size]
    parts = [data[at : at + content.PART_BYTES] for at in range(0, size, content.PART_BYTES)]
    address, total = content.of_parts(parts, objects.__setitem__)
    assert total == size
    assert b"".join(content.read(address, size, lambda _: objects)) == data
    if size <= content.PART_BYTES:
        assert address == content.of_bytes(data)[0]
    seen, todo = set(), [address]
    while todo:
        each = todo.pop()
        seen.add(each)
        todo += envelope.unseal(objects[each]).refs
    assert seen == objects.keys()


# The cache


def test_a_cache_comes_back_from_its_bytes(room: Room) -> None:
    (room.root / "sub").mkdir()
    (room.root / "sub/a").write_bytes(b"x")
    (room.root / "sub/pipe.pem").write_bytes(b"x")
    made = room.snapshot()
    loaded = caches.load(caches.dump(made.cache))
    for path in (b"", b"sub"):
        assert loaded.get(path) == made.cache.get(path) is not None
    assert loaded.get(b"other") is None


def test_a_damaged_cache_is_no_cache(room: Room) -> None:
    (room.root / "a").write_bytes(b"x")
    room.snapshot()
    data = caches.dump(room.cache)
    for at in range(0, len(data), 7):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert caches.load(damaged) == caches.EMPTY
        assert caches.load(data[:at]) == caches.EMPTY


def test_a_cache_is_kept_in_a_file_for_its_owner_alone(room: Room, tmp_path: Path) -> None:
    made = room.snapshot()
    file = tmp_path / "cache"
    assert caches.read_file(file) == caches.EMPTY
    caches.write_file(file, made.cache)
    assert file.stat().st_mode & 0o777 == 0o600
    assert caches.read_file(file).get(b"") == made.cache.get(b"")
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["cache"]


def test_a_cache_that_cannot_be_written_leaves_nothing(room: Room, tmp_path: Path) -> None:
    made = room.snapshot()
    (tmp_path / "cache").mkdir()
    with pytest.raises(IsADirectoryError):
        caches.write_file(tmp_path / "cache", made.cache)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == []
