"""Two hosts that share a store, with the same paths and the same numbers of processes.

Each is a process 1 in namespaces of its own, with its own boot; see `hardsave.testing.hosts`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.testing.hosts import WHY_NOT, can_unshare, second_host
from tests.contract.shared_stores import SharedStore

pytestmark = pytest.mark.skipif(not can_unshare(), reason=WHY_NOT)

ROOT = Path(__file__).parents[2]
LEASE = 2.0
LONG = 600.0
PATIENCE = 60.0


class Host:
    def __init__(self, folder: Path, name: str, *about: str) -> None:
        folder.mkdir()
        worker = [sys.executable, "-m", "tests.integration.hosted", *about]
        self._process = subprocess.Popen(
            [*second_host(folder, name), *worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def tell(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self) -> Any:
        self.tell()
        return self.hear()

    def signal(self, number: int) -> None:
        """To the program, which is a child of the command that made its host."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(children[0]), number)

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


Start = Callable[..., Host]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program on a host of its own."""
    hosts: list[Host] = []

    def started(name: str, what: str, kind: str = "shared", seconds: float = LONG) -> Host:
        folder = tmp_path / f"host-{len(hosts)}"
        host = Host(folder, name, kind, str(tmp_path / "store.db"), what, str(seconds))
        hosts.append(host)
        return host

    yield started
    for host in hosts:
        host.end()


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.Vault(SharedStore(tmp_path / "store.db")) as vault:
        vault.tasks.add("t1")
        yield vault


@pytest.mark.parametrize("other", ["b", "a"], ids=["another name", "copied from one image"])
def test_the_task_of_a_living_process_on_another_host_is_not_taken(
    start: Start, vault: hardsave.Vault, other: str
) -> None:
    holder, looker = start("a", "hold"), start(other, "look")
    assert holder.hear() == "claimed"
    (owner,) = vault._context.store.owners(None)
    assert (owner.pid, owner.host) == (1, "a")
    for _ in range(2):
        assert looker.ask() == []
    assert vault.tasks.get("t1").state == "in_progress"
    assert holder.ask() == "completed"


def test_what_a_host_that_is_gone_had_is_taken_when_its_lease_has_passed_and_it_writes_no_more(
    start: Start, vault: hardsave.Vault
) -> None:
    holder, looker = start("a", "hold", seconds=LEASE), start("b", "look")
    assert holder.hear() == "claimed"
    holder.signal(signal.SIGSTOP)
    end = time.monotonic() + PATIENCE
    while not (found := looker.ask()) and time.monotonic() < end:
        time.sleep(0.2)
    assert found == ["its lease has passed"]
    assert vault.tasks.get("t1").state == "pending"
    holder.signal(signal.SIGCONT)
    assert holder.ask() == "LeaseLost"
    assert vault.tasks.get("t1").state == "pending"


def test_a_store_of_one_host_is_refused_to_another(start: Start, vault: hardsave.Vault) -> None:
    vault.close()
    holder = start("a", "hold", "local")
    assert holder.hear() == "claimed"
    assert "a local store is for one machine" in start("b", "look", "local").ask()
    assert holder.ask() == "completed"
