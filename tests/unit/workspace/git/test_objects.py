"""Objects are what git says that they are, wherever they lie."""

import os
import random
import shutil
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hardsave.workspace.git.git_directory import repository as opened
from hardsave.workspace.git.objects import Objects, as_file, object_id, tree_of
from hardsave.workspace.git.packs import LARGEST, Object, Pack, Unreadable
from tests.unit.workspace.repository import Repository


@pytest.fixture(scope="module", params=["sha1", "sha256"])
def model(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A history whose contents resemble each other, so that packs describe them by differences."""
    root = tmp_path_factory.mktemp("model") / "work"
    made = Repository(root).init(f"--object-format={request.param}")
    rnd = random.Random(1)
    lines = [f"{rnd.random()}\n" for _ in range(300)]
    for number in range(8):
        lines[number * 20 : number * 20 + 2] = [f"changed {number}\n"] * (number % 4)
        made.commit("large", "".join(lines))
    made.commit("small", "x\n")
    made.git("tag", "-am", "t", "t")
    return root


@pytest.fixture
def repository(tmp_path: Path, model: Path) -> Repository:
    shutil.copytree(model, tmp_path / "work")
    return Repository(tmp_path / "work")


def same(repository: Repository, root: Path | None = None) -> None:
    truth = said(repository)
    assert len(truth) > 20
    with opened(root or repository.root) as directory, Objects(directory) as objects:
        for id, expected in truth.items():
            assert objects.read(id) == expected
        assert objects.missing(truth) == frozenset()
        unknown = "12" * (len(min(truth)) // 2)
        assert objects.missing([unknown]) == {unknown}
        with pytest.raises(Unreadable):
            objects.read(unknown)


def said(repository: Repository) -> dict[str, Object]:
    """Every object, as git reads it."""
    rest = repository.git("cat-file", "--batch-all-objects", "--batch")
    found: dict[str, Object] = {}
    while rest:
        head, _, rest = rest.partition(b"\n")
        id, kind, size = head.decode().split(" ")
        found[id] = Object(kind, rest[: int(size)])
        rest = rest[int(size) + 1 :]
    return found


def test_loose_objects(repository: Repository) -> None:
    assert not list(repository.root.glob(".git/objects/pack/*.pack"))
    same(repository)


@pytest.mark.parametrize("options", [(), ("repack.useDeltaBaseOffset=false",)])
def test_packed_objects(repository: Repository, options: tuple[str, ...]) -> None:
    given = [word for option in options for word in ("-c", option)]
    repository.git(*given, "repack", "-adfq", "--depth=50")
    repository.git("prune-packed", "-q")
    (pack,) = repository.root.glob(".git/objects/pack/*.idx")
    assert b"chain length" in repository.git("verify-pack", "-v", str(pack))
    same(repository)


@pytest.mark.parametrize("version", ["1", "2,0x40"])
def test_every_version_of_a_packs_index(repository: Repository, version: str) -> None:
    repository.git("repack", "-adq")
    (pack,) = repository.root.glob(".git/objects/pack/*.pack")
    index = pack.with_suffix(".idx")
    index.unlink()
    repository.git("index-pack", f"--index-version={version}", "-o", str(index), str(pack))
    same(repository)


def test_an_index_that_leads_out_of_every_file_is_damage(repository: Repository) -> None:
    repository.git("repack", "-adq")
    repository.git("prune-packed", "-q")
    ids = said(repository)
    (index,) = repository.root.glob(".git/objects/pack/*.idx")
    data = index.read_bytes()
    far = 8 + 1024 + len(ids) * (len(min(ids)) // 2 + 4)
    index.chmod(0o644)
    for where in (b"\xff" * 8, b"\x7f" + b"\xff" * 7):
        index.write_bytes(data[:far] + b"\x80\0\0\0" * len(ids) + where)
        with (
            opened(repository.root) as directory,
            Objects(directory) as objects,
            pytest.raises(Unreadable),
        ):
            objects.read(min(ids))


def test_borrowed_objects(repository: Repository) -> None:
    repository.git("repack", "-adq")
    for number in range(3):
        repository.git("clone", "-q", "--shared", "--bare", ".", f"../between{number}.git")
    repository.git("clone", "-q", "--shared", "../between2.git", "../borrower")
    same(repository, repository.root.parent / "borrower")


def test_repositories_that_borrow_from_each_other(repository: Repository) -> None:
    alternates = repository.root / ".git/objects/info/alternates"
    alternates.write_text(f"../objects\n# no\n/nowhere/at/all\n{repository.root}/.git/objects\n")
    same(repository)


def test_empty_objects_are_never_missing_but_perhaps_unwritten(repository: Repository) -> None:
    kinds = ("tree", "blob")
    empty = [repository.git("hash-object", "-t", kind, "--stdin").decode() for kind in kinds]
    ids = [id.strip() for id in empty]
    with opened(repository.root) as directory, Objects(directory) as objects:
        assert objects.missing(ids) == frozenset()
        assert {each.kind for each in objects.missing_empty(ids)} == {*kinds}
        repository.git("hash-object", "-w", "-t", "blob", "--stdin")
        assert [each.kind for each in objects.missing_empty(ids)] == ["tree"]


def test_a_tree_that_holds_contents_is_one_that_git_accepts(repository: Repository) -> None:
    name = repository.line("rev-parse", "--show-object-format")
    listed = repository.line("rev-parse", "HEAD:small", "HEAD~1:large", "HEAD^{tree}").splitlines()
    tree = tree_of([(id, at == 2) for at, id in enumerate(listed)])
    id = object_id(tree, name)
    path = repository.root / ".git/objects" / id[:2] / id[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(as_file(tree))
    repository.git("update-ref", "refs/hardsave/x/index", id)
    assert repository.git("fsck", "--strict", "--no-dangling") == b""
    assert len(repository.line("ls-tree", id).splitlines()) == 3


def test_damaged_objects_are_told_or_right(repository: Repository) -> None:
    repository.git("repack", "-adfq")
    rnd = random.Random(2)
    truth = said(repository)
    for suffix in ("idx", "pack"):
        (path,) = repository.root.glob(f".git/objects/pack/*.{suffix}")
        path.chmod(0o600)
        good = path.read_bytes()
        for _ in range(60):
            damaged = bytearray(good)
            for _ in range(rnd.randint(1, 30)):
                damaged[rnd.randrange(len(damaged))] = rnd.randrange(256)
            path.write_bytes(damaged[: rnd.choice([len(good), rnd.randrange(len(good))])])
            right_or_told(repository, truth, rnd)
        path.write_bytes(good)
    same(repository)


def right_or_told(repository: Repository, truth: dict[str, Object], rnd: random.Random) -> None:
    with opened(repository.root) as directory, Objects(directory) as objects:
        for id in rnd.sample(sorted(truth), 10):
            objects.missing([id])
            with suppress(Unreadable):
                assert objects.read(id) == truth[id]


def test_a_chain_of_differences_takes_no_more_memory_than_an_object(tmp_path: Path) -> None:
    """A few kilobytes of a pack can be unpacked to as many megabytes, again and again."""
    body, places = b"PACK", list[int]()
    for _ in range(6):
        back = len(body) - places[-1] if places else 1
        places.append(len(body))
        body += entry_head(6, LARGEST // 4) + distance(back) + zlib.compress(bytes(LARGEST // 4))
    (tmp_path / "p.pack").write_bytes(body)
    (tmp_path / "p.idx").write_bytes(b"")
    folder = os.open(tmp_path, os.O_RDONLY)
    refused = pytest.raises(Unreadable, match="described by more than")
    with closing(Pack(folder, "p", 20)) as pack, refused:
        pack._read(places[-1], lambda id: Object("blob", b""))
    os.close(folder)


def entry_head(kind: int, size: int) -> bytes:
    head = [kind << 4 | size & 15]
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head)


def distance(value: int) -> bytes:
    found = [value & 127]
    while value := (value >> 7):
        value -= 1
        found.insert(0, 128 | value & 127)
    return bytes(found)
