"""Exports with files that nobody honest has made are refused, and the store is as it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.envelope import (
    CAPTURE,
    CONTENT,
    DIRECTORY_NODE,
    PARTS,
    SNAPSHOT,
    VALUE,
)
from hardsave.objects.hashing import Hash, digest
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.vault import Vault
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry
from hardsave.workspace.snapshot import content, directory
from hardsave.workspace.snapshot.directory import Snapshot
from tests.unit.vault.forge import ENCODE, STATE, Forgery, checkpoint
from tests.unit.vault.stage import Clock
from tests.unit.vault.test_transfer_hostile import refused
from tests.unit.workspace import pieces
from tests.unit.workspace.room import picture

CAPTURED = ENCODE([[], None])
GIT: list[Any] = [b"", None, None, "sha1", b"", b"", None, None, [], [], []]


@pytest.fixture
def vault() -> Iterator[Vault]:
    with Vault(MemoryStore(), clock=Clock()) as vault:
        vault.timeline("mine").save({"mine": 1})
        yield vault


class Forge:
    """Objects in the order in which they are made."""

    def __init__(self) -> None:
        self.objects: dict[Hash, bytes] = {digest(STATE): STATE}

    def put(self, kind: int, refs: list[Hash], payload: bytes) -> Hash:
        data = envelope.seal(kind, refs, payload)
        self.objects.setdefault(digest(data), data)
        return digest(data)

    def add(self, address: Hash, data: bytes) -> None:
        self.objects.setdefault(address, data)

    def content(self, data: bytes = b"x") -> Hash:
        address, sealed = content.of_bytes(data)
        self.add(address, sealed)
        return address

    def directory(self, *entries: tuple[bytes, Entry]) -> Hash:
        return directory.write(entries, self.add)

    def captured(self, top: Hash, links: tuple[tuple[bytes, ...], ...] = ()) -> Hash:
        return pieces.written(
            directory.write_snapshot(Snapshot(top, links), self.add), (), None, self.add
        )

    def write(self, path: Path, address: Hash, workspace: object = b"/somewhere") -> None:
        history = [checkpoint(snapshot=address, workspace=workspace)]
        Forgery(objects=self.objects.values(), history=history).write(path)


@pytest.fixture
def forge() -> Forge:
    return Forge()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "forged"


def test_an_honest_forgery_is_accepted(
    vault: Vault, forge: Forge, file: Path, tmp_path: Path
) -> None:
    """Or the refusals below would prove nothing."""
    top = forge.directory((b"a", Entry(FILE, 0o644, 1, forge.content())))
    root = forge.put(SNAPSHOT, [top], b"")
    forge.write(file, forge.put(CAPTURE, [root], ENCODE([[], GIT])))
    vault.import_file(file)
    vault.workspace(tmp_path).fork("main:1", tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"x"


NAMES = [
    *(b"", b".", b"..", b"/etc/passwd", b"a/b", b"../up", b"nul\0l"),
    *(b".git", b".GIT", b".git ", b"git~1", b".git::$INDEX_ALLOCATION", ".g\u200cit".encode()),
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere_are_refused(
    vault: Vault, forge: Forge, file: Path, name: bytes
) -> None:
    top = forge.directory((name, Entry(FILE, 0o644, 1, forge.content())))
    deeper = forge.directory((b"d", Entry(DIRECTORY, 0o755, 0, top)))
    forge.write(file, forge.captured(deeper))
    refused(vault, file)


@pytest.mark.parametrize("path", [b"/abs", b"a/../../b", b"d/.git/x", b"a//b"])
def test_links_that_lead_elsewhere_are_refused(
    vault: Vault, forge: Forge, file: Path, path: bytes
) -> None:
    forge.write(file, forge.captured(forge.directory(), ((path, b"z"),)))
    refused(vault, file)


def test_objects_of_a_wrong_kind_are_refused(vault: Vault, forge: Forge, file: Path) -> None:
    plain, empty = forge.content(), forge.directory()
    wrong = {
        "a file that is a directory": (b"f", Entry(FILE, 0o644, 1, empty)),
        "a file that is a state": (b"f", Entry(FILE, 0o644, 1, digest(STATE))),
        "a directory that is a file": (b"d", Entry(DIRECTORY, 0o755, 0, plain)),
        "a directory that is a state": (b"d", Entry(DIRECTORY, 0o755, 0, digest(STATE))),
        "a type of its own": (b"x", Entry(9, 0o644, 1, plain)),
        "a mode that gives rights away": (b"x", Entry(FILE, 0o4755, 1, plain)),
        "a symlink to nothing": (b"l", Entry(SYMLINK, 0, 0, None, b"")),
    }
    for why, entry in wrong.items():
        one = Forge()
        one.objects |= forge.objects
        one.write(file, one.captured(one.directory(entry)))
        assert refused(vault, file), why


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (SNAPSHOT, b"no end"),
        (SNAPSHOT, b"only-one\0\0"),
        (CAPTURE, b"\xc1"),
        (CAPTURE, ENCODE([])),
        (CAPTURE, ENCODE([[["text", "why"]], None])),
        (CAPTURE, ENCODE([[[b"path", b"why"]], None])),
        (CAPTURE, ENCODE([[], [b"head"]])),
        (CAPTURE, ENCODE([[], [b"", None, None, "md5", b"", b"", None, None, [], [], []]])),
        (CAPTURE, ENCODE([[], [*GIT[:6], ["index", 1], *GIT[7:]]])),
        (CAPTURE, ENCODE([[], [*GIT[:10], [["x"]]]])),
        (CAPTURE, ENCODE([[], None]) + b"\x01"),
    ],
)
def test_malformed_roots_are_refused(
    vault: Vault, forge: Forge, file: Path, kind: int, payload: bytes
) -> None:
    top = forge.directory()
    if kind == SNAPSHOT:
        address = forge.put(CAPTURE, [forge.put(SNAPSHOT, [top], payload)], CAPTURED)
    else:
        address = forge.put(CAPTURE, [forge.put(SNAPSHOT, [top], b"")], payload)
    forge.write(file, address)
    refused(vault, file)


def test_captures_of_wrong_things_are_refused(vault: Vault, forge: Forge, file: Path) -> None:
    top = forge.directory()
    root = forge.put(SNAPSHOT, [top], b"")
    wrong = [
        top,
        root,
        digest(STATE),
        forge.put(CAPTURE, [], CAPTURED),
        forge.put(CAPTURE, [top], CAPTURED),
        forge.put(CAPTURE, [root, forge.content()], CAPTURED),
        forge.put(CAPTURE, [forge.put(CAPTURE, [root], CAPTURED)], CAPTURED),
        forge.put(SNAPSHOT, [root], b""),
        bytes(20),
    ]
    for address in wrong:
        forge.write(file, address)
        refused(vault, file)


def test_parts_that_no_file_has_are_refused(vault: Vault, forge: Forge, file: Path) -> None:
    part = forge.content()
    head = content._HEAD.pack
    one = forge.put(PARTS, [part], head(0, 1))
    wrong = [
        forge.put(PARTS, [], head(0, 0)),
        forge.put(PARTS, [part] * 257, head(0, 257)),
        forge.put(PARTS, [part], head(1, 1)),  # says that lists lie below it
        forge.put(PARTS, [one], head(0, 1)),
        forge.put(PARTS, [part], head(6, 1)),
        forge.put(PARTS, [part], b"short"),
        forge.put(CONTENT, [], b"x" * (content.PART_BYTES + 1)),
        forge.put(CONTENT, [part], b"x"),
        forge.put(DIRECTORY_NODE, [forge.directory()], b"a\0b"),
        forge.put(VALUE, [], ENCODE(1)),
    ]
    for address in wrong:
        made = Forge()
        made.objects |= forge.objects
        top = made.directory((b"f", Entry(FILE, 0o644, 1, address)))
        made.write(file, made.captured(top))
        refused(vault, file)


def test_directories_that_share_each_other_into_a_bomb_are_refused(
    vault: Vault, forge: Forge, file: Path
) -> None:
    tree = forge.directory((b"f", Entry(FILE, 0o644, 100_000, forge.content(b"b" * 100_000))))
    for _ in range(40):
        both = [(b"a", Entry(DIRECTORY, 0o755, 0, tree)), (b"b", Entry(DIRECTORY, 0o755, 0, tree))]
        tree = forge.directory(*both)
    forge.write(file, forge.captured(tree))
    assert "so often" in refused(vault, file)


def test_parts_that_share_each_other_into_a_bomb_are_refused(
    vault: Vault, forge: Forge, file: Path
) -> None:
    address = forge.content(bytes(content.PART_BYTES))
    for level in range(5):
        address = forge.put(PARTS, [address] * 256, content._HEAD.pack(level, 1))
    top = forge.directory((b"f", Entry(FILE, 0o644, 1 << 40, address)))
    forge.write(file, forge.captured(top))
    refused(vault, file)


@pytest.mark.parametrize("workspace", ["text", 7, b"", b"relative", b"nul\0l", b"/a/../b", None])
def test_a_workspace_that_is_no_directorys_path_is_refused(
    vault: Vault, forge: Forge, file: Path, workspace: object
) -> None:
    forge.write(file, forge.captured(forge.directory()), workspace)
    refused(vault, file)


@pytest.mark.parametrize("size", [4, 6, 50])
def test_a_content_that_is_not_as_long_as_its_entry_says_is_refused(
    vault: Vault, forge: Forge, file: Path, size: int
) -> None:
    top = forge.directory((b"b", Entry(FILE, 0o644, size, forge.content(b"short"))))
    forge.write(file, forge.captured(top))
    assert "the file b'b' is not as long as its directory says" in refused(vault, file)


def test_runs_of_a_directory_that_are_no_runs_of_one_are_refused(
    vault: Vault, forge: Forge, file: Path
) -> None:
    one, two = (
        forge.directory((name, Entry(FILE, 0o644, 1, forge.content()))) for name in (b"a", b"b")
    )
    for firsts, runs in ((b"a\0c", [one, two]), (b"a\0b", [one, one]), (b"b\0c", [two, one])):
        top = forge.put(DIRECTORY_NODE, runs, firsts)
        forge.write(file, forge.captured(top))
        assert "a large directory's" in refused(vault, file)


def test_a_content_of_a_store_shorter_than_its_entry_says_restores_nothing(
    vault: Vault, forge: Forge, tmp_path: Path
) -> None:
    """A store may be hostile, too."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("mine")
    saved = vault.timeline("main").save({}, workspace=work)
    top = forge.directory(
        (b"a", Entry(FILE, 0o644, 1, forge.content())),
        (b"b", Entry(FILE, 0o644, 50, forge.content(b"short"))),
    )
    plant(vault, forge, saved, forge.captured(top))
    before = picture(work)
    with pytest.raises(Corrupt):
        vault.timeline("main").rewind("main:1", what="files")
    assert picture(work) == before


def plant(vault: Vault, forge: Forge, saved: Checkpoint, address: Hash) -> None:
    """Give a checkpoint other files, past all checks."""
    store = vault._context.store
    assert isinstance(store, MemoryStore)
    tenant = store._tenant(None)
    tenant.objects |= forge.objects
    tenant.put(saved._record._replace(snapshot=address))


def test_an_entry_of_a_store_that_leads_out_is_refused_at_the_restore(
    vault: Vault, forge: Forge, tmp_path: Path
) -> None:
    """A store may be hostile, too: then nothing stands between but the reader."""
    work = tmp_path / "work"
    work.mkdir()
    line = vault.timeline("main")
    saved = line.save({}, workspace=work)
    top = forge.directory((b"../escaped", Entry(FILE, 0o644, 1, forge.content())))
    address = forge.captured(top)
    plant(vault, forge, saved, address)
    with pytest.raises(Corrupt):
        line.rewind("main:1", what="files")
    assert not (tmp_path / "escaped").exists()
    with pytest.raises(Corrupt):
        vault.workspace(work).fork("main:1", tmp_path / "fork")
    assert not (tmp_path / "escaped").exists()
