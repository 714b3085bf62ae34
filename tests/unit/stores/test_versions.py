"""Files of earlier versions, and of later ones: renewed with all they hold, or left alone."""

from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Misuse, Unavailable
from hardsave.stores.sqlite import connection, schema
from hardsave.stores.sqlite.open.presence import Presence
from tests.unit.stores import ruins
from tests.unit.stores.ruins import assert_intact, beside, set_aside, url


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruins.built(tmp_path_factory.mktemp("original") / "store.db")


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return ruins.ruined(original, tmp_path / "copy")


def age(path: Path, version: int) -> Path:
    """What an earlier version would have left, and its backup."""
    for file, shape in ((path, 0), (beside(path, "-backup"), 1 << 16)):
        direct = connection.connect(str(file), "power", create=False)
        ruins.age(direct, version, shape)
        direct.close()
    if version == 1:  # which made no backups
        beside(path, "-backup").unlink()
    return path


def version_of(path: Path) -> int:
    return connection.look(str(path))[1]


EARLIER = range(1, schema.VERSION)


@pytest.mark.parametrize("version", EARLIER)
def test_an_earlier_file_is_renewed_and_verifies_at_once(path: Path, version: int) -> None:
    age(path, version)
    with hardsave.open(url(path)) as vault:
        assert vault.store.verify().faults == ()  # its backup is still the old one
    assert_intact(path)
    assert set_aside(path) == []


@pytest.mark.parametrize("version", EARLIER[1:])
def test_an_earlier_backup_takes_over(path: Path, version: int) -> None:
    age(path, version).unlink()
    assert_intact(path)


def test_damage_that_renewing_meets_is_damage(path: Path) -> None:
    """A new index reads what is there; a page that cannot be read ends the transaction."""
    age(path, 2)
    direct = connection.connect(str(path), "power", create=False)
    sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'checkpoints'"
    page = int(direct.execute(sql).get)
    direct.close()
    ruins.flip(path, ((page - 1) * connection.PAGE_BYTES + 2_000) * 8)
    assert_intact(path)
    assert set_aside(path)


@pytest.mark.parametrize("version", EARLIER)
def test_an_earlier_file_is_repaired(path: Path, version: int) -> None:
    age(path, version)
    beside(path, "-backup").unlink(missing_ok=True)
    direct = connection.connect(str(path), "power", create=False)
    root = direct.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'checkpoints'").get
    direct.close()
    data = path.read_bytes()
    path.write_bytes(data[: (root - 1) * 4096] + bytes(4096) + data[root * 4096 :])
    report = hardsave.repair(url(path))
    assert report.checkpoints > ruins.SAVES // 3  # some may have been on that page
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        for one in line.checkpoints(limit=ruins.SAVES):
            assert line.load(one) == ruins.state(one.seq)


@pytest.mark.parametrize("version", EARLIER)
def test_what_an_earlier_version_has_open_is_not_changed_under_it(path: Path, version: int) -> None:
    """It would give numbers out twice: it knows nothing of tables that were added since."""
    age(path, version)
    theirs = Presence(str(beside(path, "-open")))
    theirs.share()
    with pytest.raises(Unavailable, match=r"renewed.*process \d+ has it open; close it there"):
        hardsave.open(url(path))
    assert version_of(path) == version
    theirs.close()
    assert_intact(path)


def test_two_of_this_version_have_it_open_together(path: Path) -> None:
    age(path, schema.VERSION - 1)
    with hardsave.open(url(path)) as one, hardsave.open(url(path)) as two:
        assert one.timeline("main").load() == two.timeline("main").load()


# Later ones


def make_later(path: Path) -> None:
    for file, shape in ((path, 0), (beside(path, "-backup"), 1 << 16)):
        direct = connection.connect(str(file), "power", create=False)
        direct.execute("CREATE TABLE unheard_of (x)")
        direct.pragma("user_version", shape + schema.VERSION + 1)
        direct.close()


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_later_file_is_not_repaired(path: Path, is_gone: bool) -> None:
    make_later(path)
    if is_gone:
        path.unlink()
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    with pytest.raises(Misuse, match="newer Hardsave"):
        hardsave.repair(url(path))
    after = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    assert {name: after[name] for name in before} == before


def test_a_later_backup_does_not_take_over(path: Path) -> None:
    make_later(path)
    path.unlink()
    with pytest.raises(Misuse, match="newer Hardsave"):
        hardsave.open(url(path))
    assert not path.exists()
    assert set_aside(path) == []
