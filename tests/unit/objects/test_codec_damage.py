"""Bytes that no codec wrote: a value or `Corrupt`, and never anything worse."""

import struct
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hardsave.errors import Corrupt, Misuse
from hardsave.objects import wire
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from tests.unit.objects import models
from tests.unit.objects.strategies import examples, storable

CODEC = Codec(models.registry())
PLAIN = Codec(Types())
VERBATIM = Codec(Types(), verbatim=True)


def read(data: bytes) -> None:
    """Read in every way. Only a registered class may find its fields wrong (`Misuse`).

    Members that are equal once they are plain data are a `Misuse` too: the cure may be to
    register their classes.
    """
    for codec in (PLAIN, VERBATIM, CODEC):
        try:
            codec.decode(data)
        except Corrupt:
            pass
        except Misuse as error:
            if codec is not CODEC and "distinct as plain data" not in str(error):
                raise


@examples(300)
@given(st.binary(max_size=60))
@example(b"")
@example(b"\xc1")
def test_random_bytes_are_a_value_or_corrupt(data: bytes) -> None:
    read(data)


MARKS = st.sampled_from(
    [bytes([first]) for first in range(0x80, 0xA4)]
    + [bytes([first]) for first in range(0xC0, 0xE0)]
    + [wire.REF_MARK, b"\xc0", b"\x01", b"\xa1a", b"\x90", b"\x80", b"\xcb\x7f\xf8" + bytes(6)]
    + [bytes([mark, code]) for mark in range(0xD4, 0xD9) for code in range(17)]
    + [bytes([0xC7, size, code]) for size in (0, 3, 9) for code in (*range(17), 0x7F, 0xFF)]
)
WORDS = st.sampled_from(
    [CODEC.encode(word) for word in ("Point", "Colour", "RED", "x", "red", 0, 1, None)]
    + [CODEC.encode(text) for text in ("2024-01-01T00:00:00", "12:00", "Europe/Berlin", "1.5")]
)
PIECES = MARKS | WORDS | st.binary(max_size=4)


@examples(300)
@given(st.lists(PIECES, max_size=14).map(b"".join))
def test_marks_in_any_order_are_a_value_or_corrupt(data: bytes) -> None:
    read(data)


@examples(120)
@given(st.integers(1, 16), storable)
def test_any_content_inside_any_extension_is_a_value_or_corrupt(code: int, value: object) -> None:
    read(wire.ext(code, CODEC.encode(value)))


@examples(150)
@given(st.integers(-128, 127), st.binary(max_size=40))
def test_any_bytes_inside_any_extension_are_a_value_or_corrupt(code: int, data: bytes) -> None:
    read(wire.ext(code & 0xFF, data))


@examples(25)
@given(storable)
def test_every_truncation_is_corrupt(value: object) -> None:
    data = CODEC.encode(value)
    for end in range(max(0, len(data) - 100), len(data)):
        for codec in (CODEC, PLAIN, VERBATIM):
            with pytest.raises(Corrupt):
                codec.decode(data[:end])


@examples(80)
@given(storable, st.data())
def test_flipped_bits_give_a_value_or_corrupt(value: object, data: st.DataObject) -> None:
    encoded = bytearray(CODEC.encode(value))
    for place in data.draw(st.lists(st.integers(0, len(encoded) * 8 - 1), max_size=3)):
        encoded[place // 8] ^= 1 << place % 8
    read(bytes(encoded))


def test_every_single_flipped_bit_of_a_rich_value_gives_a_value_or_corrupt() -> None:
    value = {
        "a": [1, -1, 300, 2**40, 2**70, 1.5, None, True, "é", "\ud800", b"x", (1, {2}), {3: 4}],
        "b": [models.Point(1, 2), models.Colour.RED, models.Right.READ, models.Packet(1)],
    }
    encoded = CODEC.encode(value)
    for place in range(len(encoded) * 8):
        damaged = bytearray(encoded)
        damaged[place // 8] ^= 1 << place % 8
        read(bytes(damaged))


# Size


HUGE = [
    bytes([mark]) + b"\xff" * size + tail
    for mark, size, tail in [
        (0xC4, 1, b""),
        (0xC5, 2, b""),
        (0xC6, 4, b""),
        (0xC8, 2, b"\x02"),
        (0xC9, 4, b"\x02"),
        (0xC9, 4, b"\x06"),
        (0xC9, 4, b"\x0d"),
        (0xDA, 2, b""),
        (0xDB, 4, b""),
        (0xDC, 2, b""),
        (0xDD, 4, b""),
        (0xDE, 2, b""),
        (0xDF, 4, b""),
    ]
]


@pytest.mark.parametrize("claim", HUGE, ids=bytes.hex)
def test_a_length_that_is_claimed_allocates_nothing(claim: bytes) -> None:
    tracemalloc.start()
    try:
        for data in (claim, claim * 50, wire.ext(wire.TUPLE, claim), b"\x91" * 2000 + claim):
            with pytest.raises(Corrupt):
                PLAIN.decode(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_length_that_is_claimed_allocates_nothing_outside_of_python_either() -> None:
    script = (
        "import resource, sys\n"
        "from hardsave.errors import Corrupt\n"
        "from hardsave.objects.codec import Codec\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
        "for claim in map(bytes.fromhex, sys.argv[1:]):\n"
        "    for data in (claim, claim * 50):\n"
        "        try:\n"
        "            Codec().decode(data)\n"
        "        except Corrupt:\n"
        "            continue\n"
        "        raise SystemExit(claim.hex())\n"
    )
    command = [sys.executable, "-c", script, *(claim.hex() for claim in HUGE)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\xd4\x02\x91", b"\xd4\x05\x92\x01"])
def test_an_endless_nesting_is_corrupt_and_quick(opening: bytes) -> None:
    with pytest.raises(Corrupt):
        PLAIN.decode(opening * 12_000)


def test_a_decimal_with_an_absurd_exponent_is_just_a_decimal() -> None:
    data = wire.ext(wire.DECIMAL, b"1E+999999999999")
    assert PLAIN.decode(data).adjusted() == 999_999_999_999
    read(wire.ext(wire.SET, b"\x91" + data))


# Words of the errors


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "ends too early"),
        ("c1", "byte 0xc1 begins no stored value"),
        ("a2c328", "not UTF-8"),
        ("d44000", "extension type 64 is not known"),
        ("d4ff00", "extension type -1 is not known"),
        ("d40d78", "extension type 13 is malformed"),
        ("c70309414243", "extension type 9 is malformed"),
        ("d5039190", "extension type 3 is malformed"),
        ("d5059101", "extension type 5 is malformed"),
        ("d60892a16100", "extension type 8 is malformed"),
        ("d40e90", "extension type 14 is malformed"),
        ("d40f01", "extension type 15 is malformed"),
        ("91" * 2000 + "c0c0", "left over"),
    ],
)
def test_the_error_says_what_is_wrong(data: str, reason: str) -> None:
    with pytest.raises(Corrupt, match=reason):
        PLAIN.decode(bytes.fromhex(data))


# Shapes that do not fit


@pytest.mark.parametrize("data", ["8190c0", "8180c0", "91819001"])
def test_a_map_with_a_key_that_cannot_be_hashed_is_corrupt(data: str) -> None:
    with pytest.raises(Corrupt):
        PLAIN.decode(bytes.fromhex(data))


@pytest.mark.parametrize("fields", [5, [], None, "x"])
def test_fields_that_are_not_a_dict_are_corrupt(fields: object) -> None:
    with pytest.raises(Corrupt):
        CODEC.decode(wire.ext(wire.OBJECT, CODEC.encode(["Point", fields])))


@pytest.mark.parametrize("parts", [[], ["12:00"], ""])
def test_a_time_without_its_parts_is_corrupt(parts: object) -> None:
    with pytest.raises(Corrupt):
        PLAIN.decode(wire.ext(wire.TIME, PLAIN.encode(parts)))


def test_a_set_with_a_tuple_nested_without_end_does_not_kill_the_process() -> None:
    script = (
        "import sys\n"
        "from hardsave.errors import Corrupt\n"
        "from hardsave.objects.codec import Codec\n"
        "try:\n"
        "    Codec().decode(sys.stdin.buffer.read())\n"
        "except Corrupt:\n"
        "    pass\n"
    )
    tuples = (struct.pack(">BIB", 0xC9, 5, wire.TUPLE) + b"\x91") * 150_000 + b"\xc0"
    data = wire.ext(wire.SET, b"\x91" + tuples)
    done = subprocess.run([sys.executable, "-c", script], input=data, check=False, timeout=60)
    assert done.returncode == 0


def test_an_extension_that_takes_from_what_follows_it_is_damage() -> None:
    """Both decoders must agree on where it ends, or many values read at once would mix."""
    for data in (b"\x92\xd4\x02\x91\x05", b"\x93\xd4\x02\x91\x05\x06"):
        with pytest.raises(Corrupt):
            PLAIN.decode(data)
