"""Rows come back by their own pages, even if the pages that lead to them are damaged or gone."""

import os
import random
from pathlib import Path

import pytest

import hardsave
from hardsave import Policy
from hardsave.stores.base import Report
from hardsave.stores.local import database
from hardsave.stores.sqlite import connection
from hardsave.stores.sqlite.connection import PAGE_BYTES
from hardsave.stores.sqlite.salvage.page_scan import gather
from tests.unit.stores import ruins
from tests.unit.stores.ruins import LATER, SAVES, assert_intact, beside, url


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.built(tmp_path_factory.mktemp("original") / "store.db")


@pytest.fixture
def alone(original: Path, tmp_path: Path) -> Path:
    """Without a backup."""
    path = ruins.ruined(original, tmp_path / "copy")
    beside(path, "-backup").unlink()
    return path


def spoil(path: Path, *pages: int) -> None:
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(random.Random(page).randbytes(PAGE_BYTES))


def roots(path: Path) -> list[int]:
    """Those of tables that have more than one page: they lead to others, and have no rows."""
    direct = connection.connect(str(path), "power", create=False)
    sql = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    found = [int(page) for (page,) in direct.execute(sql)]
    direct.close()
    data = path.read_bytes()
    return [page for page in found if data[(page - 1) * PAGE_BYTES] == 5]


def test_a_store_whose_first_page_is_gone_and_that_has_no_backup_is_repaired(alone: Path) -> None:
    spoil(alone, 1)
    report = hardsave.repair(url(alone))
    assert report == Report(SAVES + 1, 0, (), report.set_aside)
    assert_intact(alone)


def test_pages_that_lead_to_all_others_are_not_needed(alone: Path) -> None:
    """The header, the map of pages, and what lies above the pages with rows."""
    spoil(alone, 1, 2, *roots(alone))
    report = hardsave.repair(url(alone))
    assert report == Report(SAVES + 1, 0, (), report.set_aside)
    assert_intact(alone)


def test_a_root_alone_hides_nothing_either(alone: Path) -> None:
    pages = roots(alone)
    assert pages
    spoil(alone, *pages)
    report = hardsave.repair(url(alone))
    assert report == Report(SAVES + 1, 0, (), report.set_aside)
    assert_intact(alone)


def test_what_a_backup_has_not_seen_is_taken_over_by_its_pages(tmp_path: Path) -> None:
    path = ruins.half_copied(tmp_path / "store.db")
    direct = connection.connect(str(path), "power", create=False)
    direct.pragma("wal_checkpoint(TRUNCATE)")
    direct.close()
    spoil(path, 1, 2, *roots(path))
    assert_intact(path, SAVES + LATER)
    assert "lost" not in ruins.told(path)[0]


def test_large_values_are_put_together_from_many_pages(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    states = [{"data": random.Random(size).randbytes(size)} for size in (3_000, 4_080, 900_000)]
    with hardsave.open(url(path)) as vault:
        for state in states:
            vault.timeline("large").save(state)
    beside(path, "-backup").unlink()
    spoil(path, 1)
    assert hardsave.repair(url(path)).ok
    with hardsave.open(url(path)) as vault:
        found = vault.timeline("large").checkpoints(limit=9)
        assert [each.state.load() for each in found] == states[::-1]


def test_what_was_dropped_does_not_come_back(tmp_path: Path) -> None:
    """Its rows may still lie on pages that are free, and the map of pages is gone."""
    path = tmp_path / "store.db"
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        for number in range(200):
            line.save({"n": number, "data": os.urandom(300)})
        vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=20)))
        kept = [each.id for each in line.checkpoints(limit=999)]
        assert len(kept) < 30
    beside(path, "-backup").unlink()
    spoil(path, 1, 2)
    hardsave.repair(url(path))
    with hardsave.open(url(path)) as vault:
        assert [each.id for each in vault.timeline("main").checkpoints(limit=999)] == kept
        assert vault.store.verify().ok


def test_users_are_not_taken_for_what_looks_like_them(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for user in ("ann", "packs", "log"):
        with hardsave.open(url(path), user=user) as vault:
            vault.timeline("own").save({"user": user})
            vault.timeline("own").delete()  # which is noted for the backup
            vault.undo()
    beside(path, "-backup").unlink()
    spoil(path, 1)
    assert hardsave.repair(url(path)).ok
    for user in ("ann", "packs", "log"):
        with hardsave.open(url(path), user=user) as vault:
            assert vault.timeline("own").load() == {"user": user}


@pytest.mark.parametrize("seed", range(20))
def test_from_damaged_pages_of_any_kind_nothing_else_is_raised(
    original: Path, tmp_path: Path, seed: int
) -> None:
    """Under valid checksums, too: those of a WAL are computed by the program that wrote it."""
    dice = random.Random(seed)
    path = tmp_path / "store.db"
    data = bytearray(original.read_bytes())
    database.load_checksums()
    for _ in range(200):
        data[dice.randrange(PAGE_BYTES, len(data))] = dice.randrange(256)
    path.write_bytes(data)
    gather(str(path), str(tmp_path / "rows"))
