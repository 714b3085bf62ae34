"""Every file of a store, damaged in every way: what the backup held comes back by itself.

Samples of this are in `tests/unit/stores/test_takeover.py`.
"""

import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Corrupt
from tests.unit.stores import ruins
from tests.unit.stores.ruins import LATER, SAVES, assert_intact, beside, cut, flip, told, url

pytestmark = pytest.mark.torture

COMMITS = SAVES + 2
FLIPS = 200
CUTS = 20


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.built(tmp_path_factory.mktemp("closed") / "store.db")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.half_copied(tmp_path_factory.mktemp("killed") / "store.db")


def each(original: Path, folder: Path, count: int, ruin: Callable[[Path, int], None]) -> list[Path]:
    copies = []
    for number in range(count):
        path = ruins.ruined(original, folder / str(number))
        ruin(path, number)
        copies.append(path)
    return copies


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_file_cut_anywhere_comes_back(closed: Path, tmp_path: Path, has_mark: bool) -> None:
    def ruin(path: Path, number: int) -> None:
        cut(path, path.stat().st_size * number // CUTS)
        if not has_mark:
            beside(path, "-mark").unlink()

    for path in each(closed, tmp_path, CUTS, ruin):
        assert_intact(path)


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_flipped_bit_anywhere_comes_back(closed: Path, tmp_path: Path, has_mark: bool) -> None:
    dice = random.Random(7)

    def ruin(path: Path, number: int) -> None:
        flip(path, dice.randrange(path.stat().st_size * 8))
        if not has_mark:
            beside(path, "-mark").unlink()

    for path in each(closed, tmp_path, FLIPS, ruin):
        _meet_the_damage(path)
        assert_intact(path)


def _meet_the_damage(path: Path) -> None:
    """Whatever is read meanwhile is right, or `Corrupt`; whoever opens the store next heals it."""
    with hardsave.open(url(path)) as vault:
        for number in range(1, SAVES + 1):
            try:
                assert vault.timeline("main").load(f"main:{number}") == ruins.state(number)
            except Corrupt:
                continue
        vault.store.verify()  # which meets what nobody else has


def test_a_flipped_bit_in_a_file_that_is_ahead_of_its_backup(killed: Path, tmp_path: Path) -> None:
    """The last saves are there, or named as lost, or it takes a repair to have them."""
    dice = random.Random(8)

    def ruin(path: Path, number: int) -> None:
        suffix = "-wal" if number % 2 else ""
        flip(beside(path, suffix), dice.randrange(beside(path, suffix).stat().st_size * 8))

    for path in each(killed, tmp_path, FLIPS, ruin):
        _assert_nothing_is_hidden(path)


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_cut_in_a_file_that_is_ahead_of_its_backup(
    killed: Path, tmp_path: Path, suffix: str
) -> None:
    def ruin(path: Path, number: int) -> None:
        cut(beside(path, suffix), beside(path, suffix).stat().st_size * number // CUTS)

    for path in each(killed, tmp_path, CUTS, ruin):
        _assert_nothing_is_hidden(path)


def _assert_nothing_is_hidden(path: Path) -> None:
    try:
        hardsave.open(url(path)).close()
        with hardsave.open(url(path)) as vault:
            vault.store.verify()
        hardsave.open(url(path)).close()
    except Corrupt:
        report = hardsave.repair(url(path))
        assert report.set_aside is not None
    lost = sum(entry.get("lost", 0) for entry in told(path) + told(path, "repair"))
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        assert len(line) + lost >= SAVES + LATER
        for checkpoint in line.checkpoints(limit=999):
            assert line.load(checkpoint.id) == ruins.state(checkpoint.seq)
        assert vault.store.verify().faults == ()
    assert_intact(path, SAVES + LATER - lost)


def test_damage_to_the_backup_costs_nothing(closed: Path, tmp_path: Path) -> None:
    dice = random.Random(9)

    def ruin(path: Path, number: int) -> None:
        second = beside(path, "-backup")
        if number % 2:
            cut(second, dice.randrange(second.stat().st_size))
        else:
            flip(second, dice.randrange(second.stat().st_size * 8))

    for path in each(closed, tmp_path, 2 * CUTS, ruin):
        with hardsave.open(url(path)) as vault:
            assert len(vault.timeline("main")) == SAVES
            assert vault.timeline("main").load() == ruins.state(SAVES)
            vault.timeline("fork").save({"other": "way"})
        with hardsave.open(url(path)) as vault:
            vault.store.verify()  # names a damaged page that the feeding did not meet


def test_both_damaged_gives_what_either_has(
    closed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(10)

    def ruin(path: Path, number: int) -> None:
        for file in (path, beside(path, "-backup")):
            data = bytearray(file.read_bytes())
            for _ in range(3):
                start = dice.randrange(4096, len(data) - 4096)
                data[start : start + 1000] = dice.randbytes(1000)
            file.write_bytes(data)
        beside(path, "-suspect").touch()

    for path in each(closed, tmp_path, 2 * CUTS, ruin):
        with caplog.at_level(logging.ERROR):
            _assert_all_is_right_or_named(path)


def _assert_all_is_right_or_named(path: Path) -> None:
    try:
        hardsave.open(url(path)).close()
    except Corrupt:
        try:
            hardsave.repair(url(path))
        except Corrupt:
            return  # nothing can be read: said, and both are where they were
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        entries = told(path) + told(path, "repair")
        said = " ".join(note for entry in entries for note in entry["notes"])
        for number in range(1, SAVES + 1):
            try:
                assert line.load(f"main:{number}") == ruins.state(number)
            except hardsave.HardsaveError:
                assert said or any("lost" in entry for entry in entries)
        line.save(ruins.state(1), expect=hardsave.ANY_HEAD)
        assert line.load() == ruins.state(1)
