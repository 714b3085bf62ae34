"""The paths in an index are those that git lists, in every version."""

import hashlib
import os
import random
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.workspace.git import index as gitindex
from hardsave.workspace.git.index import BadIndex
from hardsave.workspace.git.position import position
from tests.unit.objects.strategies import examples
from tests.unit.workspace.pieces import tracked, tracked_or_why
from tests.unit.workspace.repository import Repository

EMPTY_BLOB = {"sha1": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}
EMPTY_BLOB["sha256"] = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"


@pytest.fixture(params=["sha1", "sha256"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    return Repository(tmp_path / "work").init(f"--object-format={request.param}")


def add(repository: Repository, paths: list[bytes], mode: bytes = b"100644") -> None:
    """Put paths into the index without files."""
    blob = EMPTY_BLOB[repository.line("rev-parse", "--show-object-format")].encode()
    lines = b"".join(b"%b %b\t%b\0" % (mode, blob, path) for path in paths)
    repository.git("update-index", "-z", "--index-info", stdin=lines)


def same(repository: Repository, *options: str) -> None:
    listed = repository.git("ls-files", "-z", *options).split(b"\0")[:-1]
    assert tracked_or_why(repository.root) == (frozenset(listed), "")
    assert listed


def some_paths(count: int) -> list[bytes]:
    rnd = random.Random(count)
    names = [b"a", b"bb", b"src", b"\xff", b"a b", b"x\ny", b"tests", b"very" * 20]
    paths = {b"/".join(rnd.choices(names, k=rnd.randint(1, 5))) + b"%d" % n for n in range(count)}
    return sorted(paths)


@pytest.mark.parametrize("version", [2, 4])
def test_entries_are_those_that_git_lists(repository: Repository, version: int) -> None:
    repository.git("update-index", "--index-version", str(version))
    add(repository, some_paths(100))
    add(repository, [b"link"], mode=b"120000")
    lines = b"".join(b"100755 %b %d\tboth\0" % (b"1" * 40, stage) for stage in (1, 2, 3))
    if repository.line("rev-parse", "--show-object-format") == "sha1":
        repository.git("update-index", "-z", "--index-info", stdin=lines)
    repository.write("new", "")
    repository.git("add", "--intent-to-add", "new")
    data = (repository.root / ".git/index").read_bytes()
    name = repository.line("rev-parse", "--show-object-format")
    found = gitindex.entries(data, gitindex.parse(data, hash_name=name), hash_name=name)
    listed = [
        b"%06o %b %d\t%b" % (each.mode, each.id.encode(), each.flags[0] >> 4 & 3, each.name)
        for each in found
    ]
    assert listed == repository.git("ls-files", "--stage", "-z").split(b"\0")[:-1]
    assert [each.name for each in found if each.flags[2:3] == b"\x20"] == [b"new"]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_is_read(repository: Repository, version: int) -> None:
    add(repository, some_paths(300))
    repository.git("update-index", "--index-version", str(version))
    if version == 3:  # git writes version 3 only if something needs it
        repository.write("new", "")
        repository.git("add", "--intent-to-add", "new")
    data = (repository.root / ".git/index").read_bytes()
    assert struct.unpack_from(">I", data, 4) == (version,)
    same(repository)


@pytest.mark.parametrize("version", ["2", "4"])
def test_long_names_are_read(repository: Repository, version: str) -> None:
    lengths = (4093, 4094, 4095) if version == "4" else (4093, 4094, 4095, 4096, 5000)
    add(repository, [(b"d/" * 3000)[: length - 1] + b"x" for length in lengths])
    repository.git("update-index", "--index-version", version)
    same(repository)


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_split_index_is_read_with_its_base(repository: Repository, version: str) -> None:
    repository.git("config", "splitIndex.maxPercentChange", "100")
    paths = some_paths(300)
    add(repository, paths)
    repository.git("update-index", "--index-version", version)
    repository.git("update-index", "--split-index")
    same(repository)
    add(repository, paths[5:8] + paths[70:150], mode=b"0")  # removed
    add(repository, paths[200:210], mode=b"100755")  # replaced
    add(repository, [b"new/one", b"zz"])
    same(repository)
    found = position(repository.root)
    assert found is not None
    assert found.shared_index is not None
    assert (repository.root / ".git" / found.shared_index.path).read_bytes() == (
        found.shared_index.data
    )


def test_a_split_index_without_its_base_is_not_taken_for_whole(repository: Repository) -> None:
    add(repository, some_paths(10))
    older = (repository.root / ".git/index").read_bytes()
    add(repository, some_paths(20))
    repository.git("update-index", "--split-index")
    (shared,) = (repository.root / ".git").glob("sharedindex.*")
    for other in (shared.read_bytes()[:-1] + b"\0", older):
        shared.write_bytes(other)
        assert tracked(repository.root) is None
    shared.unlink()
    assert tracked(repository.root) is None
    found = tracked_or_why(repository.root)
    assert found is not None
    assert "sharedindex." in found.problem


def test_a_sparse_index_keeps_whole_directories_as_they_are(tmp_path: Path) -> None:
    made = Repository(tmp_path / "work").init()
    for path in ("a/x", "b/c/y", "b/z", "top"):
        made.commit(path, path)
    made.git("sparse-checkout", "set", "--cone", "--sparse-index", "a")
    same(made, "--sparse")
    assert b"b/" in (tracked(made.root) or ())


def test_an_index_without_a_checksum_is_read(repository: Repository) -> None:
    add(repository, some_paths(10))
    index = repository.root / ".git/index"
    width = gitindex.HASH_BYTES[repository.line("rev-parse", "--show-object-format")]
    index.write_bytes(index.read_bytes()[:-width] + bytes(width))
    assert len(tracked(repository.root) or ()) == 10


def test_extensions_are_passed_over_unless_they_must_be_known() -> None:
    assert parsed(index_of(b"TREE", b"x" * 9)) == [b"name"]
    assert parsed(index_of(b"sdir", b"")) == [b"name"]
    with pytest.raises(BadIndex, match="not known"):
        parsed(index_of(b"lazy", b""))


def index_of(signature: bytes, extension: bytes) -> bytes:
    entry = bytes(60) + struct.pack(">H", 4) + b"name" + bytes(6)
    body = b"DIRC" + struct.pack(">II", 2, 1) + entry
    body += signature + struct.pack(">I", len(extension)) + extension
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def parsed(data: bytes) -> list[bytes]:
    return gitindex.parse(data, hash_name="sha1").names


# Damage


def test_every_flipped_byte_is_noticed() -> None:
    whole = index_of(b"TREE", b"x")
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        with pytest.raises(BadIndex):
            parsed(bytes(damaged))


def test_an_index_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    made = Repository(tmp_path / "work").init()
    add(made, some_paths(20))
    for version in ("2", "4"):
        made.git("update-index", "--index-version", version)
        whole = (made.root / ".git/index").read_bytes()
        for length in range(0, len(whole) - 21, 7):
            with pytest.raises(BadIndex):
                parsed(whole[:length] + bytes(20))


@examples(200)
@given(st.binary(max_size=300), st.sampled_from([2, 3, 4]), st.integers(0, 2**32 - 1) | st.just(1))
def test_garbage_is_refused_or_read_and_never_worse(body: bytes, version: int, count: int) -> None:
    data = b"DIRC" + struct.pack(">II", version, count) + body + bytes(20)
    with suppress(BadIndex):
        gitindex.paths(data, hash_name="sha1", base=lambda _: data)


def test_names_that_would_unpack_to_more_than_memory_holds_are_refused() -> None:
    entries = b"".join(bytes(62) + b"\0" + b"x\0" for _ in range(5000))
    data = b"DIRC" + struct.pack(">II", 4, 5000) + entries + bytes(20)
    with pytest.raises(BadIndex, match="too long"):
        parsed(data)


def test_a_bitmap_with_an_endless_run_stays_within_its_size() -> None:
    word = (0xFFFFFFFF << 1) | 1
    bitmap = struct.pack(">IIQI", 3, 1, word, 0)
    link = b"\1" * 20 + bitmap
    removed = gitindex.parse(index_of(b"link", link), hash_name="sha1").removed
    assert gitindex.bits(removed, 100) == {0, 1, 2}


def test_a_bitmap_that_means_billions_stays_within_the_entries_that_there_are() -> None:
    bitmap = struct.pack(">IIQI", 0xFFFFFFFF, 1, (0xFFFFFFFF << 1) | 1, 0)
    data = index_of(b"link", b"\1" * 20 + bitmap)
    assert gitindex.bits(gitindex.parse(data, hash_name="sha1").removed, 5) == {*range(5)}
    shared = index_of(b"TREE", b"")[:-20] + bytes(20)
    tracemalloc.start()
    assert gitindex.paths(data, hash_name="sha1", base=lambda _: shared) == {b"name"}
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.torture
def test_an_index_of_git_s_own_source_tree_size_in_every_form(repository: Repository) -> None:
    add(repository, some_paths(100_000))
    for version in ("2", "4"):
        repository.git("update-index", "--index-version", version)
        same(repository)
    repository.git("update-index", "--split-index")
    same(repository)
    assert os.path.getsize(repository.root / ".git/index") > 0
