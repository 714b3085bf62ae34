"""Hostile trees are refused: no capture could have made them."""

import pytest

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash, digest
from hardsave.workspace import file_names
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry
from hardsave.workspace.snapshot import content, directory
from hardsave.workspace.snapshot.directory import Snapshot

ZERO = bytes(20)
NAMES_OF_GIT = [
    *(b".git", b".GIT", b".Git", b".gIt"),
    *(b".git ", b".git.", b".git . .", b"git~1", b"GIT~2", b".git::$INDEX_ALLOCATION", b".git:x"),
    *(".g\u200cit".encode(), ".git\ufeff".encode(), "\u202e.GiT".encode()),
    *(".\u200dg\u200ei\u200ft\u206a".encode(), ".git\u200c ".encode()),
]
INNOCENT = [
    *(b".gitignore", b".github", b".gitattributes", b".gitmodules", b"git", b"x.git", b".git-x"),
    *(b".gi", b"digit~1", b"..git", b"\xff\xfe", b"new\nline", ".gït".encode(), b" .git"),
]


class Forge:
    def __init__(self) -> None:
        self.objects: dict[Hash, bytes] = {}

    def put(self, kind: int, refs: list[Hash], payload: bytes) -> Hash:
        data = envelope.seal(kind, refs, payload)
        self.objects[digest(data)] = data
        return digest(data)

    def directory(self, *entries: tuple[bytes, Entry]) -> Hash:
        return directory.write(entries, self.objects.__setitem__)

    def read(self, tree: Hash) -> object:
        return directory.read_apart([(None, tree)], lambda _: self.objects)


@pytest.fixture
def forge() -> Forge:
    return Forge()


@pytest.mark.parametrize("name", NAMES_OF_GIT)
def test_what_some_system_takes_for_gits_directory_is_refused(forge: Forge, name: bytes) -> None:
    assert file_names.is_gits_own(name)
    tree = forge.directory((name, Entry(DIRECTORY, 0o755, 0, ZERO)))
    with pytest.raises(Corrupt, match="git's own"):
        forge.read(tree)


@pytest.mark.parametrize("name", INNOCENT)
def test_names_that_only_look_like_it_are_fine(forge: Forge, name: bytes) -> None:
    assert forge.read(forge.directory((name, Entry(FILE, 0o644, 0, ZERO))))


@pytest.mark.parametrize("name", [b"", b".", b"..", b"/etc/passwd", b"a/b", b"../up", b"x/"])
def test_a_name_that_leads_elsewhere_is_refused(forge: Forge, name: bytes) -> None:
    with pytest.raises(Corrupt):
        forge.read(forge.directory((name, Entry(FILE, 0o644, 0, ZERO))))


@pytest.mark.parametrize("path", [b"/a", b"a/../../b", b"sub/.git/hooks/x", b"a//b"])
def test_a_group_of_links_cannot_lead_elsewhere(forge: Forge, path: bytes) -> None:
    root = directory.write_snapshot(
        Snapshot(ZERO, ((path, b"z"),)), lambda address, data: forge.objects.update({address: data})
    )
    with pytest.raises(Corrupt):
        directory.read_snapshot(root, lambda _: forge.objects)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(9, 0o644, 0, ZERO),
        Entry(FILE, 0o4755, 0, ZERO),
        Entry(FILE, 0o2755, 0, ZERO),
        Entry(DIRECTORY, 0o4755, 0, ZERO),
        Entry(SYMLINK, 0o777, 1, None, b"x"),
        Entry(SYMLINK, 0, 0, None, b""),
    ],
)
def test_an_entry_that_cannot_be_ours_is_refused(forge: Forge, entry: Entry) -> None:
    with pytest.raises(Corrupt):
        forge.read(forge.directory((b"a", entry)))


def test_names_twice_or_out_of_order_are_refused(forge: Forge) -> None:
    file = Entry(FILE, 0o644, 0, ZERO)
    for order in ((b"a", b"a"), (b"b", b"a")):
        with pytest.raises(Corrupt, match="order"):
            forge.read(forge.directory(*[(name, file) for name in order]))
    runs = [forge.directory((name, file)) for name in (b"b", b"a")]
    with pytest.raises(Corrupt, match="order"):
        forge.read(forge.put(envelope.DIRECTORY_NODE, runs, b"b\0a"))


def test_a_directory_that_is_cut_anywhere_is_refused(forge: Forge) -> None:
    tree = forge.directory(
        (b"a", Entry(FILE, 0o644, 5, ZERO)), (b"b", Entry(SYMLINK, 0, 1, None, b"t"))
    )
    _, refs, payload = envelope.unseal(forge.objects[tree])
    for at in range(len(payload) - 3):
        with pytest.raises(Corrupt):
            forge.read(forge.put(envelope.DIRECTORY, list(refs), payload[:at]))
    for wrong in ([], [ZERO, ZERO]):
        with pytest.raises(Corrupt):
            forge.read(forge.put(envelope.DIRECTORY, wrong, payload))


def test_an_object_of_another_kind_is_no_directory_no_snapshot_and_no_content(forge: Forge) -> None:
    value = forge.put(envelope.VALUE, [], b"\xc0" * 9)
    with pytest.raises(Corrupt, match="not a directory"):
        forge.read(value)
    with pytest.raises(Corrupt, match="not a snapshot"):
        directory.read_snapshot(value, lambda _: forge.objects)
    with pytest.raises(Corrupt, match="not a file's content"):
        list(content.read(value, 1, lambda _: forge.objects))


def test_content_that_is_not_as_long_as_its_entry_says_is_refused(forge: Forge) -> None:
    address, sealed = content.of_bytes(b"12345")
    forge.objects[address] = sealed
    for size in (0, 4, 6):
        with pytest.raises(Corrupt, match="not as long"):
            list(content.read(address, size, lambda _: forge.objects))


def test_lists_of_parts_that_do_not_go_down_are_refused(forge: Forge) -> None:
    part, sealed = content.of_bytes(b"x")
    forge.objects[part] = sealed
    low = forge.put(envelope.PARTS, [part], b"\0" + bytes(8))
    for level in (0, 6, 255):
        again = forge.put(envelope.PARTS, [low], bytes([level]) + bytes(8))
        with pytest.raises(Corrupt):
            list(content.read(again, 1, lambda _: forge.objects))
