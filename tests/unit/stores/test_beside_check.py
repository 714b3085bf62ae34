"""Labels, notes and workspaces that were damaged: verify names them, repair leaves none behind."""

from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.objects.records import WorkspaceRecord
from hardsave.stores.sqlite import SqliteStore, connection, schema
from hardsave.stores.sqlite.salvage import beside_check
from hardsave.stores.sqlite.salvage.beside_check import beside_faults
from tests.unit.stores.ruins import beside, url

USERS = (None, "ada")
FIRST = ("", b"", b"")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Closed, and copied in full."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a")
    path = tmp_path / "store" / "runs.db"
    with hardsave.open(url(path)) as vault:
        for user in USERS:
            line = vault.as_user(user, create=True).timeline("main")
            line.save({"n": 1}, labels={"k": "v"}, notes={"seen": [1]}, workspace=work)
            line.save({"n": 2})
    return path


def change(path: Path, statement: str, user: int) -> None:
    direct = connection.connect(str(path), "power", create=False)
    direct.execute(f"{statement} {'AND' if 'WHERE' in statement else 'WHERE'} user = {user}")
    direct.close()


def read(vault: hardsave.Vault) -> list[Any]:
    """What a caller sees of all this."""
    first = vault.get("main:1")
    assert first.files is not None
    return [first.labels, first.notes, first.files.workspace, first.files.read("a.txt")]


DAMAGE = [
    ("UPDATE notes SET data = x'c1ff'", "note 1 'seen' of checkpoint chk_"),
    ("UPDATE notes SET data = 5", "note 1 'seen' of checkpoint chk_"),
    ("UPDATE notes SET checkpoint = 99", "note 1 belongs to no checkpoint"),
    ("UPDATE labels SET id = 99999", "label 99999 belongs to no checkpoint"),
    ("UPDATE labels SET value = x'ff'", "is no text"),
    ("DELETE FROM workspaces", "is missing, and checkpoints name it"),
]


@pytest.mark.parametrize("user", [0, 1])
@pytest.mark.parametrize(("statement", "said"), DAMAGE)
def test_damage_beside_checkpoints_is_named_and_repaired(
    path: Path, statement: str, said: str, user: int
) -> None:
    with hardsave.open(url(path)) as vault:
        whole = [read(vault.as_user(each)) for each in USERS]
    beside(path, "-backup").unlink()
    change(path, statement, user)
    said = said.replace("note 1", f"note {user + 1}")
    with hardsave.open(url(path)) as vault:
        for each in USERS:
            (fault,) = vault.as_user(each).store.verify().faults
            assert said in fault
        report = vault.store.repair()
        assert report.set_aside is not None
        assert report.checkpoints == 4
        assert vault.store.verify().faults == ()
        found = [read(vault.as_user(each)) for each in USERS]
        assert found[1 - user] == whole[1 - user]
        assert found[user][3] == b"a"
        assert found[user] != whole[user]
        assert vault.store.repair().set_aside is None


def test_a_workspace_that_lost_its_row_has_a_path_that_can_be_read_and_exported(
    path: Path, tmp_path: Path
) -> None:
    beside(path, "-backup").unlink()
    change(path, "DELETE FROM workspaces", 0)
    report = hardsave.repair(url(path))
    assert any("the path of a workspace is lost" in fault for fault in report.faults)
    with hardsave.open(url(path)) as vault, hardsave.open("memory://") as other:
        shown = read(vault)[2]
        assert shown.startswith("/recovered-")
        vault.export_file(tmp_path / "out.hardsave")
        other.import_file(tmp_path / "out.hardsave")
        assert read(other) == read(vault)


@pytest.mark.parametrize("statement", ["UPDATE notes SET data = x'c1ff'", "DELETE FROM workspaces"])
def test_what_the_backup_still_has_comes_from_there(path: Path, statement: str) -> None:
    change(path, statement, 0)
    assert hardsave.repair(url(path)).ok
    with hardsave.open(url(path)) as vault:
        assert vault.store.verify().faults == ()
        labels, notes, workspace, _ = read(vault)
        assert (labels, notes) == ({"k": "v"}, {"seen": [1]})
        assert workspace == str(path.parent.parent / "work")


def test_a_workspace_whose_id_is_a_path_needs_no_row(path: Path) -> None:
    change(path, "UPDATE checkpoints SET workspace = x'2f77' WHERE workspace IS NOT NULL", 0)
    change(path, "DELETE FROM workspaces", 0)
    beside(path, "-backup").unlink()
    with hardsave.open(url(path)) as vault:
        assert vault.store.verify().faults == ()


def test_many_damaged_rows_are_told_in_a_few_lines(path: Path) -> None:
    with hardsave.open(url(path)) as vault:
        vault.put_notes("main:1", {f"note {n}": n for n in range(50)})
    beside(path, "-backup").unlink()
    change(path, "UPDATE notes SET data = x'c1'", 0)
    with hardsave.open(url(path)) as vault:
        faults = vault.store.verify().faults
    assert len(faults) == 21
    assert faults[-1] == "31 more are like this"


def test_each_table_is_read_once_and_joined_by_its_key(path: Path) -> None:
    direct = connection.connect(str(path), "power", create=False)
    assert beside_faults(direct) == []
    plans = {
        sql: [str(row[3]) for row in direct.execute(f"EXPLAIN QUERY PLAN {sql.format('main')}", v)]
        for sql, v in (
            (beside_check._LABELS, ()),
            (beside_check._NOTES, ()),
            (schema.NEXT_WORKSPACE, (0, b"")),
            (beside_check._HAS_WORKSPACE, (0, b"")),
        )
    }
    direct.close()
    scans = [line for lines in plans.values() for line in lines if line.startswith("SCAN")]
    assert scans == ["SCAN l", "SCAN n"]
    assert not any("TEMP B-TREE" in line for lines in plans.values() for line in lines)


def test_workspaces_that_are_there_are_left_as_they_are(path: Path) -> None:
    assert hardsave.repair(url(path)).set_aside is None
    store = SqliteStore(path)
    (row,) = store.workspaces(None, FIRST, 9)
    assert isinstance(row, WorkspaceRecord)
    store.close()
