"""Bits that flip, files that are cut or gone: every read is right, or raises `Corrupt`."""

import random
from collections.abc import Callable

import pytest

from tests.crash.damage import Damage, Reading, cuts, flips
from tests.crash.rig import Rig
from tests.crash.specimen import Specimen

Get = Callable[[str], Specimen]

# (shape, file): in a live store the newest saves lie in the WAL only.
places = pytest.mark.parametrize(
    ("shape", "suffix"), [("closed", ""), ("live", ""), ("live", "-wal"), ("merged", "-wal")]
)


@pytest.fixture(scope="session")
def specimen(rig: Rig) -> Get:
    kept: dict[str, Specimen] = {}

    def get(shape: str) -> Specimen:
        if shape not in kept:
            kept[shape] = Specimen(rig, shape)
        return kept[shape]

    return get


@pytest.mark.parametrize("shape", ["closed", "live", "merged"])
def test_a_store_that_is_not_damaged_is_read_as_it_was_saved(specimen: Get, shape: str) -> None:
    store = specimen(shape)
    beyond_the_end: Damage = ("cut", "", store.file("").stat().st_size)
    assert store.damaged([beyond_the_end]) == [Reading([], 0)]


@places
def test_some_flipped_bits_are_never_read_as_data(specimen: Get, shape: str, suffix: str) -> None:
    store = specimen(shape)
    damages = flips(store.file(suffix), suffix, 10, random.Random(shape + suffix))
    readings = store.damaged(damages)
    assert [reading.wrong for reading in readings] == [[]] * len(damages)
    assert any(reading.corrupt for reading in readings)


@pytest.mark.torture
@places
def test_no_flipped_bit_is_read_as_data(
    specimen: Get, shape: str, suffix: str, ran: Callable[..., None]
) -> None:
    store = specimen(shape)
    damages = flips(store.file(suffix), suffix, 200, random.Random(shape + suffix))
    assert store.wrong(damages) == []
    ran("injector", flipped_bits=len(damages))


@pytest.mark.parametrize("shape", ["closed", "live"])
def test_a_flipped_bit_in_the_shape_of_pages_is_never_read_as_data(
    specimen: Get, shape: str
) -> None:
    """Page size, versions and reserved bytes: what else is read depends on them."""
    damages: list[Damage] = [("flip", "", bit) for bit in range(16 * 8, 21 * 8)]
    assert specimen(shape).wrong(damages) == []


@pytest.mark.torture
@places
def test_no_flipped_bit_in_a_header_is_read_as_data(
    specimen: Get, shape: str, suffix: str, ran: Callable[..., None]
) -> None:
    """The bytes that say what kind of file this is are believed first."""
    damages: list[Damage] = [("flip", suffix, bit) for bit in range(100 * 8)]
    assert specimen(shape).wrong(damages) == []
    ran("injector", flipped_bits=len(damages))


@places
def test_a_file_cut_somewhere_is_never_read_as_whole(
    specimen: Get, shape: str, suffix: str
) -> None:
    store = specimen(shape)
    damages = cuts(store.file(suffix), suffix, 5, random.Random(shape + suffix))
    assert store.wrong([("cut", suffix, 0), *damages]) == []


@pytest.mark.parametrize("shape", ["closed", "live"])
def test_a_file_cut_inside_a_page_is_never_read_as_whole(specimen: Get, shape: str) -> None:
    """SQLite takes what is missing of a page as zeros, and its checksum is not looked at."""
    store = specimen(shape)
    pages = range(0, store.file("").stat().st_size, 4096)
    assert store.wrong([("cut", "", page + 1024) for page in pages]) == []


@pytest.mark.torture
@places
def test_a_file_cut_anywhere_is_never_read_as_whole(specimen: Get, shape: str, suffix: str) -> None:
    store = specimen(shape)
    step = max(512, store.file(suffix).stat().st_size // 400 // 512 * 512)
    ends = range(0, store.file(suffix).stat().st_size, step)
    assert store.wrong([("cut", suffix, end) for end in ends]) == []


@places
def test_a_file_that_is_gone_is_missed(specimen: Get, shape: str, suffix: str) -> None:
    gone: Damage = ("delete", suffix, 0)
    assert specimen(shape).damaged([gone]) == [Reading([], 1)]


@pytest.mark.parametrize("shape", ["closed", "live"])
def test_damage_to_the_mark_does_no_harm(specimen: Get, shape: str) -> None:
    """It is a second witness: without it, the store still speaks for itself."""
    store = specimen(shape)
    damages = flips(store.file("-mark"), "-mark", 7, random.Random(shape))
    damages += [("delete", "-mark", 0), ("cut", "-mark", 0), ("cut", "-mark", 11)]
    assert store.damaged(damages) == [Reading([], 0)] * len(damages)
