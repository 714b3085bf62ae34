import random
import string
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt
from hardsave.objects.hashing import HASH_BYTES, Hash, digest
from hardsave.stores import compression, packs

objects = st.lists(st.binary(max_size=200), max_size=20).map(
    lambda some: {digest(data): data for data in some}
)


def one_pack(some: dict[Hash, bytes]) -> packs.Pack:
    (made,) = packs.pack(some.items(), target=None)
    return made


@given(objects, st.integers(1, 1_000))
def test_what_is_packed_comes_back_in_order(some: dict[Hash, bytes], target: int) -> None:
    found: dict[Hash, bytes] = {}
    for made in packs.pack(some.items(), target):
        unpacked = packs.unpack(made.directory, made.body, made.size)
        assert made.size == sum(map(len, unpacked.values()))
        assert packs.hashes(made.directory) == list(unpacked)
        found |= unpacked
    assert list(found.items()) == list(some.items())


@given(objects)
def test_what_is_packed_densely_comes_back_by_kind_and_in_order(some: dict[Hash, bytes]) -> None:
    made = packs.pack_densely(some.items())
    assert made.size == sum(map(len, some.values()))
    by_kind = sorted(some.items(), key=lambda item: item[1][:1])
    assert list(packs.unpack(made.directory, made.body, made.size).items()) == by_kind


def test_addresses_that_are_in_the_directory_take_no_space_in_a_dense_body() -> None:
    leaves = {digest(bytes([n])): bytes([n]) for n in range(200)}
    some = {**leaves, digest(b"parent"): b"".join(leaves)}
    dense, usual = packs.pack_densely(some.items()), one_pack(some)
    assert packs.is_dense(dense)
    assert not packs.is_dense(usual)
    assert len(usual.body) > 4_000
    assert len(dense.body) < 1_500


def test_a_dense_body_that_is_damaged_is_corrupt() -> None:
    some = {digest(bytes([n])): bytes([n]) * 50 for n in range(200)}
    made = packs.pack_densely(some.items())
    for body in (made.body[:-5], made.body[:1], made.body[:1] + b"nonsense"):
        with pytest.raises(Corrupt):
            packs.unpack(made.directory, body, made.size)
    for directory in (b"", made.directory[:10], made.directory[24:]):
        with pytest.raises(Corrupt):
            packs.unpack(directory, made.body, made.size)


def test_a_bulk_is_cut_into_packs_of_about_the_target() -> None:
    some = {digest(bytes([n])): bytes(100) for n in range(100)}
    sizes = [made.size for made in packs.pack(some.items(), target=1_000)]
    assert sizes == [1_000] * 10
    assert [made.size for made in packs.pack(some.items(), target=None)] == [10_000]
    assert list(packs.pack([], target=None)) == []


@given(objects)
def test_a_pack_holds_what_it_lists(some: dict[Hash, bytes]) -> None:
    for made in packs.pack(some.items()):
        for address in packs.hashes(made.directory):
            assert packs.holds(made.directory, address)
    if some:
        directory = one_pack(some).directory
        assert not packs.holds(directory, digest(b"another" * 50))


def test_a_hash_that_only_seems_to_be_listed_is_not_held() -> None:
    # Two neighbours between which the bytes of a third hash stand, not where a hash begins.
    odd = bytes(range(HASH_BYTES))
    left, right = b"L" * 7 + odd[:13], odd[13:] + b"R" * 13
    directory = one_pack({left: b"", right: b""}).directory
    assert odd in directory
    assert not packs.holds(directory, odd)
    assert packs.holds(one_pack({left: b"", right: b"", odd: b""}).directory, odd)


def test_the_bytes_of_lengths_are_not_taken_for_hashes() -> None:
    some = {digest(bytes([n])): b"x" * 7 for n in range(10)}
    directory = one_pack(some).directory
    lengths = b"\x07\0\0\0" * 5
    assert lengths in directory
    assert not packs.holds(directory, lengths)


def test_a_body_is_compressed_where_that_makes_it_shorter() -> None:
    assert len(one_pack({digest(b"dull"): bytes(50_000)}).body) < 1_000
    noise = random.Random(1).randbytes(50_000)
    assert one_pack({digest(noise): noise}).body == noise


def test_hashes_after_a_text_do_not_spoil_how_it_is_compressed() -> None:
    draw = random.Random(2)
    text = "".join(draw.choices(string.ascii_letters, k=1_000)).encode()
    hashes = [draw.randbytes(20) for _ in range(100)]
    made = one_pack({digest(data): data for data in (text, *hashes)})
    assert made.size == 3_000
    assert len(made.body) < 2_850


def test_a_ctrl_c_in_the_middle_leaves_no_half_frame_behind() -> None:
    some = {digest(bytes([n])): bytes([n]) * 700 for n in range(8)}
    one_pack(some)  # from here on there is something to use again
    with pytest.raises(TypeError):  # stands for anything that cuts it off between two calls
        compression.compress([bytes(5_000), "no bytes"])  # type: ignore[list-item] # on purpose
    made = one_pack(some)
    assert packs.unpack(made.directory, made.body, made.size) == some


# Damage


RAW = one_pack({digest(bytes([n])): bytes([n]) * 5 for n in range(8)})
COMPRESSED = one_pack({digest(bytes([n])): bytes([n, n + 1]) * 1_200 for n in range(8)})
both = pytest.mark.parametrize("sound", [RAW, COMPRESSED], ids=["raw", "compressed"])


def test_one_is_raw_and_one_is_compressed() -> None:
    assert len(RAW.body) == RAW.size
    assert len(COMPRESSED.body) < COMPRESSED.size


@both
@pytest.mark.parametrize("cut", [1, 23, 24 * 7 + 1])
def test_a_cut_directory_is_corrupt(sound: packs.Pack, cut: int) -> None:
    with pytest.raises(Corrupt, match="directory"):
        packs.unpack(sound.directory[:-cut], sound.body, sound.size)


@both
def test_a_directory_with_whole_entries_missing_is_corrupt(sound: packs.Pack) -> None:
    count = 7
    shorter = sound.directory[: count * 20] + sound.directory[160 : 160 + count * 4]
    with pytest.raises(Corrupt, match="directory"):
        packs.unpack(shorter, sound.body, sound.size)


@both
def test_a_cut_body_is_corrupt(sound: packs.Pack) -> None:
    for end in range(len(sound.body)):
        with pytest.raises(Corrupt):
            packs.unpack(sound.directory, sound.body[:end], sound.size)


@given(st.sampled_from([RAW, COMPRESSED]), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_flipped_bit_is_corrupt_or_left_to_the_hashes(
    sound: packs.Pack, body_bit: int, directory_bit: int
) -> None:
    for body, directory in (
        (flipped(sound.body, body_bit), sound.directory),
        (sound.body, flipped(sound.directory, directory_bit)),
    ):
        try:
            found = packs.unpack(directory, body, sound.size)
        except Corrupt:
            continue
        assert sum(map(len, found.values())) == sound.size


def flipped(data: bytes, bit: int) -> bytes:
    bit %= len(data) * 8
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@both
@pytest.mark.parametrize("by", [-1_000_000, -1, 1, 1 << 40])
def test_a_body_of_another_size_than_it_says_is_corrupt(sound: packs.Pack, by: int) -> None:
    with pytest.raises(Corrupt):
        packs.unpack(sound.directory, sound.body, sound.size + by)


@pytest.mark.parametrize("size", [10, 0, -1, -2, -100])
def test_a_small_body_that_swells_is_refused_before_it_has(size: int) -> None:
    bomb = compression.compress([bytes(64 << 20)])
    assert len(bomb) < 10_000
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt):
            compression.decompress(bomb, size)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_rubbish_is_corrupt() -> None:
    for rubbish in (b"", b"rubbish", bytes(100), b"\x28\xb5\x2f\xfd"):
        with pytest.raises(Corrupt):
            compression.decompress(rubbish, 100)
