"""Kind, references, payload: what every object looks like from outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.envelope import Envelope, checked, seal, unseal
from hardsave.objects.hashing import HASH_BYTES, digest
from tests.unit.objects.strategies import examples

kinds = st.integers(0, 255)
hashes = st.binary(min_size=HASH_BYTES, max_size=HASH_BYTES)


def numbered(count: int) -> tuple[bytes, ...]:
    return tuple(n.to_bytes(HASH_BYTES) for n in range(count))


@examples(100)
@given(kinds, st.lists(hashes, max_size=5), st.binary(max_size=100))
def test_what_was_sealed_is_unsealed(kind: int, refs: list[bytes], payload: bytes) -> None:
    assert unseal(seal(kind, refs, payload)) == Envelope(kind, tuple(refs), payload)


@pytest.mark.parametrize(
    ("count", "header"),
    [
        (0, "1200"),
        (1, "1201"),
        (127, "127f"),
        (128, "128001"),
        (129, "128101"),
        (16383, "12ff7f"),
        (16384, "12808001"),
        (16385, "12818001"),
    ],
)
def test_the_count_of_references_is_as_short_as_can_be(count: int, header: str) -> None:
    refs = numbered(count)
    data = seal(envelope.SEQUENCE, refs, b"payload")
    assert data == bytes.fromhex(header) + b"".join(refs) + b"payload"
    assert unseal(data) == Envelope(envelope.SEQUENCE, refs, b"payload")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "shorter than its header"),
        (b"\x11", "shorter than its header"),
        (b"\x11\x01", "run past its end"),
        (b"\x11\x01" + bytes(19), "run past its end"),
        (b"\x11\x7f" + bytes(126 * 20), "run past its end"),
        (b"\x11\xff\xff\xff\xff\x0f", "run past its end"),
        (b"\x11\x80", "reference count is malformed"),
        (b"\x11\x80\x80\x80\x80\x80\x01", "reference count is malformed"),
        (b"\x11" + b"\xff" * 100, "reference count is malformed"),
    ],
)
def test_a_malformed_object_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(Corrupt, match=reason):
        unseal(data)


@examples(200)
@given(st.binary(max_size=80))
def test_random_bytes_are_an_object_or_corrupt(data: bytes) -> None:
    try:
        kind, refs, payload = unseal(data)
    except Corrupt:
        return
    assert bytes([kind]) == data[:1]
    assert all(len(ref) == HASH_BYTES for ref in refs)
    assert data.endswith(b"".join(refs) + payload)


@examples(50)
@given(kinds, st.lists(hashes, min_size=1, max_size=3))
def test_an_object_cut_inside_its_references_is_corrupt(kind: int, refs: list[bytes]) -> None:
    data = seal(kind, refs, b"")
    for end in range(len(data)):
        with pytest.raises(Corrupt):
            unseal(data[:end])


def test_checked_lets_through_only_what_the_hash_names() -> None:
    data = seal(envelope.VALUE, (), b"\xc0")
    assert checked(digest(data), data) is data
    for other in (data + b"\0", data[:-1], b"", seal(envelope.LEAF, (), b"\xc0")):
        with pytest.raises(Corrupt, match=digest(data).hex()):
            checked(digest(data), other)


def test_the_address_of_an_object_has_not_changed() -> None:
    address = digest(seal(envelope.VALUE, (), b"\xc0"))
    assert len(address) == HASH_BYTES
    assert address.hex() == "59ecce01535168b976bb2815aa4466636cae2f81"


def test_kinds_are_different_and_of_version_one() -> None:
    kinds = [
        envelope.VALUE,
        envelope.SEQUENCE,
        envelope.LEAF,
        envelope.NODE,
        envelope.EDGE,
    ]
    assert kinds == [0x11, 0x12, 0x13, 0x14, 0x15]
