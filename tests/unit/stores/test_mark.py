from pathlib import Path

import pytest
from blake3 import blake3

from hardsave.stores.sqlite.open.commit_mark import CommitMark


@pytest.fixture
def mark(tmp_path: Path) -> CommitMark:
    return CommitMark(str(tmp_path / "mark"))


@pytest.mark.parametrize("number", [0, 1, 255, 1 << 40, (1 << 63) - 1])
@pytest.mark.parametrize("relaxed", [False, True])
def test_a_mark_says_what_was_written(mark: CommitMark, number: int, relaxed: bool) -> None:
    mark.write(number, relaxed=relaxed)
    found = mark.read()
    assert found is not None
    assert (found.number, found.relaxed) == (number, relaxed)
    assert mark.is_from_this_boot(found)
    mark.close()


def test_the_last_write_counts(mark: CommitMark) -> None:
    for number in (5, 1_000_000, 6):
        mark.write(number, relaxed=False)
    found = mark.read()
    assert found is not None
    assert found.number == 6
    assert Path(mark.path).stat().st_size == 30
    mark.close()


def test_no_mark_says_nothing(mark: CommitMark) -> None:
    assert mark.read() is None


def test_a_mark_can_be_written_after_closing(mark: CommitMark) -> None:
    mark.write(1, relaxed=False)
    mark.close()
    mark.close()
    mark.write(2, relaxed=False)
    found = mark.read()
    assert found is not None
    assert found.number == 2
    mark.close()


def test_every_flipped_bit_is_noticed(mark: CommitMark) -> None:
    mark.write(0x0102030405060708, relaxed=True)
    mark.close()
    file = Path(mark.path)
    sound = file.read_bytes()
    for bit in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        assert mark.read() is None, bit


def test_a_cut_or_lengthened_mark_is_noticed(mark: CommitMark) -> None:
    mark.write(7, relaxed=False)
    mark.close()
    file = Path(mark.path)
    sound = file.read_bytes()
    for damaged in (b"", *(sound[:size] for size in range(1, 30)), sound + b"\0"):
        file.write_bytes(damaged)
        assert mark.read() is None


@pytest.mark.parametrize("version", [0, 2, 255])
def test_a_mark_of_another_version_says_nothing(mark: CommitMark, version: int) -> None:
    mark.write(7, relaxed=False)
    mark.close()
    body = bytearray(Path(mark.path).read_bytes()[:22])
    body[4] = version
    Path(mark.path).write_bytes(bytes(body) + blake3(bytes(body)).digest(8))
    assert mark.read() is None


def test_a_mark_of_another_boot_is_told_apart(
    mark: CommitMark, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark.write(7, relaxed=False)
    mark.close()
    found = mark.read()
    assert found is not None
    monkeypatch.setattr(mark, "_boot", b"a reboot")
    assert not mark.is_from_this_boot(found)
