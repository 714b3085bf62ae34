"""The ledger in a SQLite file: in the backup, after damage, in files of older versions."""

import re
import time
from pathlib import Path

import apsw
import pytest

import hardsave
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.sqlite import SqliteStore, schema
from hardsave.stores.sqlite import ledger as statements
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.salvage.rebuild import Rebuild
from hardsave.stores.sqlite.salvage.row_repair import RowRepair
from tests.unit.stores import ruins
from tests.unit.tasks.room import AT_ONCE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def work(path: Path) -> None:
    """Tasks in every state, with steps and questions."""
    with hardsave.open(f"sqlite:///{path}") as vault:
        vault.timeline("main").save({"n": 1})
        tasks = vault.tasks
        for name in ("done", "failing", "asking", "begun", "gone"):
            tasks.add(name)
        tasks.add("waiting", after=["asking"])
        with tasks.attempt("done") as attempt:
            attempt.step("one", lambda: {"result": [1, 2]})
        tasks.claim("failing", retry=AT_ONCE).fail(ValueError("no"))
        with tasks.attempt("asking") as attempt:
            attempt.ask("Sure?")
        with tasks.attempt("gone"):
            pass
        tasks.claim("begun").step("first", lambda: 1)
        tasks.cancel("failing")
        tasks.iterate()


def seen(path: Path) -> list[object]:
    """All that the ledger says, without what a session of its own would add."""
    store = SqliteStore(path)
    try:
        tasks = store.tasks(None, TaskQuery(100))
        entries = [store.entries(None, task.name) for task in tasks]
        journals = [store.journal(None, task.name, 1) for task in tasks]
        return [tasks, entries, journals, store.entries(None, None), store.verify()]
    finally:
        store.close()


def wait_for_backup(path: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        copied = backup_file.peek(str(path))
        store = SqliteStore(path, backup=False)
        last = store.entries(None, None)[-1].number
        store.close()
        if copied is not None and copied.number >= last:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_backup_has_the_ledger_as_it_is(path: Path) -> None:
    work(path)
    wait_for_backup(path)
    with hardsave.open(f"sqlite:///{path}") as vault:  # changes of what was copied before
        vault.tasks.answer("asking", "yes")
        with vault.tasks.attempt("asking"):
            pass
        vault.tasks.forget(keep_completed=1)
    wait_for_backup(path)
    connection = apsw.Connection(str(backup_file.path_of(str(path))))
    connection.execute("ATTACH ? AS store", (str(path),))
    for table in ("tasks", "ledger"):
        ours, theirs = (
            connection.execute(f"SELECT * FROM {name}.{table} ORDER BY 1").fetchall()  # noqa: S608 # ours
            for name in ("main", "store")
        )
        assert ours == theirs
        assert ours
    names = [row[0] for row in connection.execute("SELECT name FROM tasks ORDER BY id")]
    assert "gone" not in names
    connection.close()
    assert seen(path)[-1] == []


def test_the_number_of_a_task_that_was_forgotten_is_not_given_out_again(path: Path) -> None:
    """A store that ends before its backup is taken for one that has lost something."""
    with hardsave.open(f"sqlite:///{path}") as vault:
        vault.tasks.add("old")
        with vault.tasks.attempt("old"):
            pass
    copied = backup_file.peek(str(path))
    with hardsave.open(f"sqlite:///{path}") as vault:  # which knows no number yet
        assert vault.tasks.forget(keep_completed=0) == 1
        (entry,) = vault._context.store.entries(None, None)
        assert copied is not None
        assert entry.number == copied.number + 1
    wait_for_backup(path)
    Path(f"{path}-mark").unlink()  # or the machine was started anew: it is not relied on
    with hardsave.open(f"sqlite:///{path}") as vault:
        vault.timeline("main").save({"n": 1})
        assert vault.store.verify().ok


def test_a_damaged_store_takes_its_ledger_over_from_the_backup(path: Path) -> None:
    work(path)
    wait_for_backup(path)
    before = seen(path)
    ruins.overwrite(path)
    after = seen(path)
    assert after == before
    with hardsave.open(f"sqlite:///{path}") as vault:
        with vault.tasks.runner("next") as runner:
            assert [task.id for task in runner.report.interrupted] == ["begun"]
        with vault.tasks.attempt("begun") as attempt:
            attempt.step("first", lambda: pytest.fail("it was recorded"))


def test_a_repair_keeps_the_ledger(path: Path) -> None:
    work(path)
    wait_for_backup(path)
    before = seen(path)
    ruins.overwrite(path)
    assert hardsave.repair(f"sqlite:///{path}").ok
    assert seen(path)[:4] == before[:4]


def test_what_happened_to_a_task_whose_row_is_gone_goes_and_is_told(path: Path) -> None:
    work(path)
    store = SqliteStore(path, backup=False)
    sql = "DELETE FROM tasks WHERE name = 'done'"  # as if its page could not be read
    store._apply(lambda connection: (connection.execute(sql), None)[1])
    store.close()
    salvage = Rebuild(str(path) + "-takeover-new")
    try:
        assert salvage.attach("store", str(path))
        assert not any(salvage.copy_all("store", 1_000).values())
        assert RowRepair(salvage).repair(()) == ["1 tasks are gone, with all that happened to them"]
        assert RowRepair(salvage).repair(()) == []
    finally:
        salvage.abandon()


def test_a_file_of_an_older_version_gets_a_ledger(path: Path) -> None:
    ours = next(n for n, text in enumerate(schema.MIGRATIONS) if "CREATE TABLE tasks" in text)
    hardsave.open(f"sqlite:///{path}").close()
    store = SqliteStore(path, backup=False)
    store._apply(lambda connection: ruins.age(connection, ours))
    store.close()
    work(path)
    assert len(seen(path)[0]) == 6  # type: ignore[arg-type] # a list of tasks


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (statements.DUE, "tasks_due"),
        (statements.JOURNAL, "ledger_by_task"),
        (statements.ENTRIES, "ledger_by_task"),
        (statements.LATEST, "ledger_itself"),
        (statements.RETRIES, "tasks_due (user=? AND due>? AND due<?)"),
        (statements.listing(TaskQuery(9, state="pending", after=7))[0], "tasks_by_state"),
    ],
)
def test_no_question_about_tasks_reads_all_of_them(statement: str, index: str) -> None:
    connection = apsw.Connection(":memory:")
    for migration in schema.MIGRATIONS:
        connection.execute(migration)
    schema.add_indexes(connection)
    count = max(int(each) for each in re.findall(r"\?(\d)", statement))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", (0,) * count).fetchall()
    lines = [str(row[3]) for row in plan]
    assert any(index in line for line in lines)
    assert not [line for line in lines if line.startswith(("SCAN tasks", "SCAN ledger"))]
