"""Rows of workspaces in a file: those of earlier versions, of a backup, and of a damaged file."""

from pathlib import Path

import hardsave
from hardsave.objects.records import WorkspaceRecord
from hardsave.stores.host.identity import host_id
from hardsave.stores.sqlite import SqliteStore, schema
from hardsave.stores.sqlite.connection import connect
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.testing.batches import Line
from hardsave.testing.workspaces import FIRST, HERE, capture, note
from tests.unit.stores import ruins
from tests.unit.stores.ruins import beside


def older(path: Path) -> None:
    """A store of the version before workspaces had ids: its checkpoints name paths."""
    store = SqliteStore(path)
    for user in (None, "ada"):
        line = Line(store, user=user)
        for workspace in (b"/w", b"/w", b"/w/x"):
            line.save_files(workspace)
    store.close()
    for file, shape in ((path, 0), (beside(path, "-backup"), 1 << 16)):
        direct = connect(str(file), "power", create=False)
        ruins.age(direct, schema.VERSION - 1, shape)
        direct.close()


ADOPTED = [WorkspaceRecord(path, host_id(), path) for path in (b"/w", b"/w/x")]


def test_workspaces_of_an_earlier_file_are_those_of_the_host_that_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    older(path)
    store = SqliteStore(path)
    assert store.workspaces(None, FIRST, 9) == ADOPTED
    assert store.workspaces("ada", FIRST, 9) == ADOPTED
    assert [row.seq for row in store.captured(None, b"/w", None, 9)] == [2, 1]
    assert store.verify() == []
    store.close()


def test_workspaces_of_an_earlier_backup_are_those_of_the_host_that_opens_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    older(path)
    path.unlink()
    store = SqliteStore(path)
    assert store.workspaces(None, FIRST, 9) == ADOPTED
    store.close()


def test_a_backup_takes_over_with_workspaces_as_they_were_last(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    line = Line(store)
    line.commit(capture(line, WorkspaceMove(None, HERE)))
    taken = HERE._replace(host="host-b", epoch=1)
    note(store, "takeover", WorkspaceMove(0, taken))
    store.close()
    path.unlink()
    store = SqliteStore(path)
    assert store.workspaces(None, FIRST, 9) == [taken]
    store.close()


def test_a_repair_keeps_workspaces(tmp_path: Path) -> None:
    path = ruins.built(tmp_path / "store.db")
    store = SqliteStore(path)
    note(store, "first", WorkspaceMove(None, HERE))
    store.close()
    beside(path, "-backup").unlink()
    direct = connect(str(path), "power", create=False)
    root = direct.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'timelines'").get
    direct.close()
    data = path.read_bytes()
    path.write_bytes(data[: (root - 1) * 4096] + bytes(4096) + data[root * 4096 :])
    assert not hardsave.repair(ruins.url(path)).ok
    store = SqliteStore(path)
    assert store.workspace(None, HERE.id) == HERE
    store.close()
