"""All that a capture makes is found sound; what it could not have made is not."""

import random
import struct
from contextlib import suppress

import pytest

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.envelope import CAPTURE, CONTENT, DIRECTORY_NODE, PARTS, SNAPSHOT
from hardsave.objects.hashing import digest
from hardsave.objects.sound import Standing, standing
from hardsave.workspace.entries import FILE, Entry
from hardsave.workspace.snapshot import content, directory, validation
from hardsave.workspace.snapshot.validation import Facts
from tests.unit.workspace import pieces
from tests.unit.workspace.room import Room


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    room = Room(tmp_path_factory.mktemp("sound") / "work")
    for path, data in {"a": b"a", "sub/b": b"b", "large": b"l" * 400_000}.items():
        file = room.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (room.root / "link").symlink_to("a")
    (room.root / "hard").hardlink_to(room.root / "a")
    for number in range(1_100):
        file = room.root / f"many/{number}"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    pieces.written(room.snapshot().root, (), None, room.objects.__setitem__)
    return room


def test_all_that_a_capture_makes_is_sound_and_in_order(room: Room) -> None:
    known: dict[bytes, Standing] = {}
    facts: dict[bytes, Facts] = {}
    kinds = set()
    for address, data in room.objects.items():  # in the order in which they were made
        found = validation.checked(data)
        assert found is not None
        parts = found.parts
        facts[address] = found.facts(facts)
        assert [part.address for part in parts] == list(envelope.refs(data))
        known[address] = standing(data[0], parts, len(data), known)
        kinds.add(data[0])
    assert {CONTENT, PARTS, DIRECTORY_NODE, SNAPSHOT, CAPTURE} <= kinds


def test_what_is_no_files_is_left_to_others() -> None:
    assert validation.checked(envelope.seal(envelope.VALUE, [], b"\x01")) is None


def test_damage_is_corrupt_or_another_object_never_a_crash(room: Room) -> None:
    """Bytes that changed are another object: it may be sound, but nothing breaks on it."""
    play = random.Random(5)
    objects = [data for data in room.objects.values() if len(data) < 5_000]
    for _ in range(1_500):
        data = bytearray(play.choice(objects))
        for _ in range(play.randrange(1, 4)):
            at = play.randrange(len(data))
            data[at] = play.randrange(256)
        if play.random() < 0.2:
            del data[play.randrange(len(data)) :]
        with suppress(Corrupt):
            validation.checked(bytes(data))


def test_a_capture_is_judged_before_it_is_built() -> None:
    """A few bytes may say that they are a list of a billion."""
    for payload in (
        b"\xdd\xff\xff\xff\xff",
        b"\x92\xdd\x3b\x9a\xca\x00\xc0",
        b"\xc6\xff\xff\xff\xff",
    ):
        data = envelope.seal(CAPTURE, [digest(b"x")], payload)
        with pytest.raises(Corrupt):
            validation.checked(data)


def test_a_content_may_be_as_long_as_a_part_and_no_longer() -> None:
    for size, is_sound in ((content.PART_BYTES, True), (content.PART_BYTES + 1, False)):
        data = envelope.seal(CONTENT, [], bytes(size))
        if is_sound:
            assert validation.checked(data) is not None
        else:
            with pytest.raises(Corrupt):
                validation.checked(data)


def facts_of(data: bytes, **below: Facts) -> Facts:
    """What an object tells, that refers to others, by the order of their names here."""
    found = validation.checked(data)
    assert found is not None
    addresses = dict.fromkeys(part.address for part in found.parts)
    return found.facts(dict(zip(addresses, below.values(), strict=True)))


def test_a_content_that_is_longer_or_shorter_than_its_entry_says_is_corrupt() -> None:
    objects: dict[bytes, bytes] = {}
    entry = Entry(FILE, 0o644, 3, digest(b"x"))
    made = objects[directory.write([(b"a.txt", entry)], objects.__setitem__)]
    assert facts_of(made, content=Facts(3)) == Facts(first=b"a.txt", last=b"a.txt")
    for length in (2, 4):
        with pytest.raises(Corrupt, match=r"the file b'a\.txt' is not as long as its directory"):
            facts_of(made, content=Facts(length))


def test_a_list_of_parts_that_no_file_has_is_corrupt() -> None:
    made = envelope.seal(PARTS, [digest(b"1"), digest(b"2")], struct.pack("<BQ", 1, 30))
    assert facts_of(made, one=Facts(20, 0), two=Facts(10, 0)) == Facts(30, 1)
    for wrong in (Facts(10, 1), Facts(11, 0), Facts(10, 2)):
        with pytest.raises(Corrupt, match="of another level or length"):
            facts_of(made, one=Facts(20, 0), two=wrong)


def test_runs_of_a_directory_that_overlap_or_are_misnamed_are_corrupt() -> None:
    made = envelope.seal(DIRECTORY_NODE, [digest(b"1"), digest(b"2")], b"a\0m")
    one, two = Facts(first=b"a", last=b"l"), Facts(first=b"m", last=b"z")
    assert facts_of(made, one=one, two=two) == Facts(first=b"a", last=b"z")
    for wrong in (one._replace(last=b"m"), one._replace(first=b"b")):
        with pytest.raises(Corrupt, match="a large directory's"):
            facts_of(made, one=wrong, two=two)
