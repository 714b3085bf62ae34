"""`copy`: all users of a store of one kind in one of another."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Vault
from hardsave.errors import Conflict, Corrupt
from hardsave.stores import registry
from hardsave.stores.base import Store
from hardsave.vault.copying.events import STEPS, Row, Side, events, read_steps
from hardsave.vault.copying.store_copy import copy, copy_store
from hardsave.vault.scratch import Scratch
from tests.postgres_server import url_of
from tests.unit.vault.test_transfer_everything import USERS, everything, live


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/source/runs.db"


@pytest.fixture
def postgres(tmp_path: Path) -> str:
    return url_of(tmp_path)


def work(vault: Vault) -> None:
    """Tasks in every state, with steps, and operations that can be taken back."""
    tasks = vault.tasks
    for name in ("first", "second", "third"):
        tasks.add(name, f"do {name}", after=["first"] if name == "third" else [])
    with tasks.attempt("first") as attempt:
        for step in range(3):
            attempt.step(f"step {step}", lambda step=step: {"step": step})
    tasks.cancel("second")
    tasks.bookmark("a reader", tasks.happened()[-1].number)
    line = vault.timeline("main")
    line.rewind("main:5")
    line.undo()
    vault.delete("main:2")
    line.undo()


def filled(url: str, tmp_path: Path) -> None:
    for user in USERS:
        with hardsave.open(url, user=user) as vault:
            live(vault, tmp_path / f"work of {user}")
            work(vault)


def told(vault: Vault) -> dict[str, Any]:
    return {
        **everything(vault),
        "tasks": [vault.tasks.get(each.id).replace(place=0) for each in vault.tasks.find(limit=99)],
        "history": [
            (event.kind, event.at)
            for each in vault.tasks.find(limit=99)
            for event in vault.tasks.history(each.id)
        ],
        "operations": [(each.id, each.kind, each.is_undone) for each in vault.operations()],
    }


def commits(store: Store, user: str | None) -> list[Row]:
    side = Side(store, user)
    with Scratch(STEPS) as steps:
        read_steps(side, steps)
        return list(events(side, steps, store.latest_number(user)))


def test_a_store_goes_to_a_server_and_back_and_is_the_same(
    sqlite: str, postgres: str, tmp_path: Path
) -> None:
    filled(sqlite, tmp_path)
    back = f"sqlite:///{tmp_path}/back/runs.db"
    done = copy_store(sqlite, postgres)
    assert done.users == len(USERS)
    assert done.tasks == 4 * len(USERS)
    assert copy_store(postgres, back) == done
    for user in USERS:
        found = []
        for url in (sqlite, postgres, back):
            with hardsave.open(url, user=user) as vault:
                assert vault.store.verify().ok
                found.append(told(vault))
        assert found[0] == found[1] == found[2]
    one, other = (registry.open_store(url) for url in (sqlite, back))
    for user in USERS:
        assert len(commits(one, user)) > 30
        assert [row.id for row in commits(one, user)] == [row.id for row in commits(other, user)]
    for store in (one, other):
        store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_was_done_before_can_be_taken_back_in_the_copy(
    kind: str, sqlite: str, postgres: str, tmp_path: Path
) -> None:
    filled(sqlite, tmp_path)
    to = postgres if kind == "postgres" else f"sqlite:///{tmp_path}/copy/runs.db"
    copy_store(sqlite, to)
    found: list[Any] = []
    for url in (sqlite, to):
        with hardsave.open(url, user="ada") as vault:
            for at in range(3):
                vault.timeline("main").redo() if at == 0 else vault.undo()
                found.append(everything(vault))
            mark = vault.tasks.bookmark("a reader")
            found.append([(each.kind, each.at) for each in vault.tasks.happened(mark)])
    assert found[:4] == found[4:]


def test_a_copy_that_is_there_is_compared_and_another_store_is_refused(
    sqlite: str, postgres: str
) -> None:
    with hardsave.open(sqlite) as vault:
        vault.timeline("main").save({"turn": 1})
    first = copy_store(sqlite, postgres)
    assert copy_store(sqlite, postgres) == first
    with hardsave.open(postgres) as vault:
        vault.timeline("main").save({"turn": 2})
    with pytest.raises(Conflict, match="something else"):
        copy_store(sqlite, postgres)


def test_a_store_that_holds_another_users_work_is_refused(sqlite: str, postgres: str) -> None:
    with hardsave.open(sqlite) as vault:
        vault.timeline("main").save({"turn": 1})
    with hardsave.open(postgres, user="ada") as vault:
        vault.timeline("hers").save({"turn": 1})
    with pytest.raises(Conflict, match="something else"):
        copy_store(sqlite, postgres)
    with hardsave.open(postgres) as vault:
        assert [each.name for each in vault.timelines()] == []


def test_a_store_with_workers_is_not_copied(sqlite: str, postgres: str) -> None:
    with hardsave.open(sqlite) as vault:
        vault.tasks.add("work", "do it")
        with vault.tasks.attempt("work"), pytest.raises(Conflict, match="leases"):
            copy_store(sqlite, postgres)
    assert copy_store(sqlite, postgres).tasks == 1


def test_an_object_that_is_damaged_is_not_copied(sqlite: str, postgres: str) -> None:
    class Damaged:
        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def scan(self, user: str | None) -> Iterator[dict[bytes, bytes]]:
            for part in self._store.scan(user):
                yield {address: data + b"x" for address, data in part.items()}

    with hardsave.open(sqlite) as vault:
        vault.timeline("main").save({"turn": 1})
    one, other = registry.open_store(sqlite), registry.open_store(postgres)
    with pytest.raises(Corrupt, match="damaged"):
        copy(Damaged(one), other)
    for store in (one, other):
        store.close()


_KILLED = """
import os, signal, sys
from hardsave.stores.postgres import PostgresStore
from hardsave.stores.sqlite import SqliteStore
from hardsave.vault.copying import store_copy
left = int(sys.argv[3])
def dies(method):
    def counted(self, *given, **named):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(self, *given, **named)
    return counted
for kind in (PostgresStore, SqliteStore):
    for name in ("commit", "put"):
        setattr(kind, name, dies(getattr(kind, name)))
store_copy.copy_store(sys.argv[1], sys.argv[2])
"""


@pytest.mark.torture
def test_a_copy_that_was_killed_shows_nothing_by_half_and_is_repeated(
    sqlite: str, postgres: str, tmp_path: Path
) -> None:
    filled(sqlite, tmp_path)
    with hardsave.open(sqlite, user="ada") as vault:
        whole = told(vault)
    kills = 0
    while True:
        command = [sys.executable, "-c", _KILLED, sqlite, postgres, "20"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 1
        with hardsave.open(postgres, user="ada") as vault:
            lines = everything(vault)["lines"]
            assert lines in ({}, whole["lines"])
    assert kills > 2
    with hardsave.open(postgres, user="ada") as vault:
        assert told(vault) == whole
        assert vault.store.verify().ok


def test_a_large_history_is_copied_in_parts(sqlite: str, postgres: str) -> None:
    with hardsave.open(sqlite) as vault:
        line = vault.timeline("main")
        for turn in range(1_200):
            line.append({"messages": [turn]})
    done = copy_store(sqlite, postgres)
    assert done.commits == 1_200
    with hardsave.open(postgres) as vault:
        assert vault.timeline("main").load() == {"messages": list(range(1_200))}
