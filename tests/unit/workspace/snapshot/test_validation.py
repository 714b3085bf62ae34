"""All that a capture makes is found sound; what it could not have made is not."""

import random
from contextlib import suppress

import pytest

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.envelope import CAPTURE, CONTENT, DIRECTORY_NODE, PARTS, SNAPSHOT
from hardsave.objects.hashing import digest
from hardsave.objects.sound import Standing, standing
from hardsave.workspace.snapshot import content, validation
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
    kinds = set()
    for address, data in room.objects.items():  # in the order in which they were made
        parts = validation.parts(data)
        assert parts is not None
        assert [part.address for part in parts] == list(envelope.refs(data))
        known[address] = standing(data[0], parts, len(data), known)
        kinds.add(data[0])
    assert {CONTENT, PARTS, DIRECTORY_NODE, SNAPSHOT, CAPTURE} <= kinds


def test_what_is_no_files_is_left_to_others() -> None:
    assert validation.parts(envelope.seal(envelope.VALUE, [], b"\x01")) is None


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
            validation.parts(bytes(data))


def test_a_capture_is_judged_before_it_is_built() -> None:
    """A few bytes may say that they are a list of a billion."""
    for payload in (
        b"\xdd\xff\xff\xff\xff",
        b"\x92\xdd\x3b\x9a\xca\x00\xc0",
        b"\xc6\xff\xff\xff\xff",
    ):
        data = envelope.seal(CAPTURE, [digest(b"x")], payload)
        with pytest.raises(Corrupt):
            validation.parts(data)


def test_a_content_may_be_as_long_as_a_part_and_no_longer() -> None:
    for size, is_sound in ((content.PART_BYTES, True), (content.PART_BYTES + 1, False)):
        data = envelope.seal(CONTENT, [], bytes(size))
        if is_sound:
            assert validation.parts(data) == []
        else:
            with pytest.raises(Corrupt):
                validation.parts(data)
