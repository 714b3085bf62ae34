"""An export's frames: what goes in comes out, and nothing else does."""

import struct
import sys
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt, HardsaveError, Misuse
from hardsave.objects import frames
from hardsave.objects.frames import FRAME_BYTES, Counts, FrameReader, FrameWriter, Section, Totals
from hardsave.objects.hashing import digest
from tests.unit.objects.strategies import examples

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LONGEST = dict.fromkeys(Section, 8 << 20)
COUNTS = Counts(1, 2, 3)
Records = list[tuple[Section, bytes]]


def written(records: Records, counts: Counts = COUNTS) -> bytes:
    out: list[bytes] = []
    writer = FrameWriter(out.append, counts)
    for section, record in records:
        writer.add(section, record)
    writer.finish()
    return b"".join(out)


def reader(data: bytes) -> FrameReader:
    return FrameReader(lambda size, at: data[at : at + size], "some file")


def read(data: bytes) -> Records:
    return list(reader(data).records(LONGEST))


def forged(*bodies: tuple[int, int, bytes], header: bytes | None = None) -> bytes:
    """A file whose links are right, whatever its frames say: (section, length, body)."""
    first = header or frames._HEADER.pack(frames.MAGIC, 1, 0, 0, *COUNTS)
    link = digest(first)
    out = first + link
    for section, size, body in bodies:
        head = struct.pack("<BII", section, size, len(body))
        link = digest(link + head + body)
        out += head + link + body
    return out


END = (4, 16, bytes(16))


@examples(100)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(Section)[:3]), st.binary(min_size=1, max_size=300)),
        max_size=40,
    )
)
def test_records_come_back_in_their_order(given_records: Records) -> None:
    records = sorted(given_records, key=lambda item: item[0])
    data = written(records)
    assert read(data) == records
    assert written(records) == data


def test_records_longer_than_a_frame_are_cut_and_put_together() -> None:
    records = [(Section.OBJECTS, bytes([n]) * size) for n, size in enumerate(
        [1, FRAME_BYTES - 1, FRAME_BYTES, 3 * FRAME_BYTES + 7, 5, FRAME_BYTES - 3]
    )]  # fmt: skip
    assert read(written(records)) == records


def test_the_trailer_counts_objects_and_their_bytes() -> None:
    found = reader(written([(Section.OBJECTS, b"abc"), (Section.HISTORY, b"defgh")]))
    assert found.counts == COUNTS
    assert found.totals == Totals(0, 0)
    list(found.records(LONGEST))
    assert found.totals == Totals(1, 3)


SMALL = written([(Section.OBJECTS, b"a" * 300), (Section.TIMELINES, b"b"), (Section.HISTORY, b"c")])


def test_one_flipped_bit_anywhere_is_noticed() -> None:
    for at in range(len(SMALL)):
        for bit in range(8):
            data = bytearray(SMALL)
            data[at] ^= 1 << bit
            with pytest.raises(Misuse if at < 8 else Corrupt):
                read(bytes(data))


def test_a_file_that_ends_anywhere_else_is_noticed() -> None:
    for size in range(len(SMALL)):
        with pytest.raises(Misuse if size < 8 else Corrupt):
            read(SMALL[:size])


def test_bytes_after_the_trailer_are_noticed() -> None:
    for more in (b"\x00", b"\x04", SMALL):
        with pytest.raises(Corrupt, match="follow its trailer"):
            read(SMALL + more)


def test_frames_cannot_be_swapped_repeated_or_left_out() -> None:
    body = (1, 3, b"\x02ab")
    other = (1, 3, b"\x02cd")
    whole = forged(body, other, END)
    assert len(read(whole)) == 2
    start, size = frames.HEADER_BYTES, 9 + 20 + 3
    first, second = whole[start : start + size], whole[start + size : start + 2 * size]
    rest = whole[start + 2 * size :]
    for changed in (second + first, first + first + second, first, second):
        with pytest.raises(Corrupt, match="does not match its checksum"):
            read(whole[:start] + changed + rest)


def packed(data: bytes) -> bytes:
    return zstd.compress(data, 19)


def wide_window() -> bytes:
    """A frame of a few bytes that asks for 128 MiB before it begins."""
    options = {int(zstd.CompressionParameter.window_log): 27}
    compressor = zstd.ZstdCompressor(options=options)
    return compressor.compress(b"x" * 200) + compressor.flush()


BAD: dict[str, Callable[[], bytes]] = {
    "a frame that expands to more than it says": lambda: forged(
        (1, 1000, packed(bytes(FRAME_BYTES))), END
    ),
    "a frame that expands to less than it says": lambda: forged(
        (1, FRAME_BYTES, packed(bytes(1000))), END
    ),
    "a bomb": lambda: forged((1, FRAME_BYTES, packed(bytes(64 << 20))), END),
    "a frame that wants a large window": lambda: forged((1, 200, wide_window()), END),
    "a frame that says too much": lambda: forged((1, FRAME_BYTES + 1, packed(b"x" * 99)), END),
    "a frame that says four gigabytes": lambda: forged((1, 0xFFFFFFFF, b"x"), END),
    "an empty frame": lambda: forged((1, 0, b""), END),
    "a frame that is shorter than its content": lambda: forged((1, 2, b"\x02ab"), END),
    "two zstd frames in one": lambda: forged((1, 200, packed(b"a" * 100) * 2), END),
    "no zstd frame": lambda: forged((1, 200, b"\x02ab"), END),
    "half a zstd frame": lambda: forged((1, 200, packed(bytes(range(200)))[:40]), END),
    "an unknown section": lambda: forged((9, 3, b"\x02ab"), END),
    "sections out of order": lambda: forged((2, 3, b"\x02ab"), (1, 3, b"\x02ab"), END),
    "a record that runs into the next section": lambda: forged((1, 2, b"\x02a"), (2, 2, b"b\x01")),
    "a record that runs into the trailer": lambda: forged((1, 2, b"\x02a"), END),
    "an empty record": lambda: forged((1, 2, b"\x00a"), END),
    "a record that is too long": lambda: forged((1, 6, b"\xff\xff\xff\xff\x0fa"), END),
    "a length without end": lambda: forged((1, 6, b"\xff\xff\xff\xff\xff\xff"), END),
    "a length in a longer form": lambda: forged((1, 4, b"\x82\x00ab"), END),
    "a trailer of another length": lambda: forged((4, 15, bytes(15))),
    "no trailer": lambda: forged((1, 3, b"\x02ab")),
    "nothing but a header": forged,
    "a link that is wrong": lambda: forged((1, 3, b"\x02ab"), END)[:-1] + b"\xff",
    "a stored length beyond the end": lambda: forged() + struct.pack("<BII", 1, 99, 99) + bytes(20),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
def test_what_no_writer_makes_is_corrupt_and_costs_no_memory(make: Callable[[], bytes]) -> None:
    data = make()
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 6 * FRAME_BYTES
    finally:
        tracemalloc.stop()


def test_another_file_is_not_an_export() -> None:
    for data in (b"", b"\x89HSX", b"SQLite format 3\x00" + bytes(100), b"{}"):
        with pytest.raises(Misuse, match="no export"):
            read(data)


def test_a_newer_version_asks_for_an_upgrade() -> None:
    for version, flags, zero in ((3, 0, 0), (0, 0, 0), (2, 1, 0), (2, 0, 1)):
        header = frames._HEADER.pack(frames.MAGIC, version, flags, zero, *COUNTS)
        with pytest.raises(Misuse, match="newer Hardsave"):
            read(forged(END, header=header))


@examples(300)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    for beginning in (b"", SMALL[: frames.HEADER_BYTES]):
        with pytest.raises(HardsaveError):
            read(beginning + data)
