"""Two hosts by namespaces: the same paths, one store, and each its own files."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.stores.host import identity
from hardsave.testing.hosts import UNSHARE, WHY_NOT, can_unshare, second_host

ROOT = Path(__file__).parents[3]
_OWN_FILES = """
    set -e
    mount -t tmpfs own "$1"
    shift
    exec "$@"
"""


class Host:
    """A process on a host, that does what it is asked to."""

    def __init__(self, within: tuple[str, ...], store: Path, work: Path, name: str) -> None:
        own = (sys.executable, "-m", "tests.unit.vault.host_process", str(store), str(work), name)
        self._process = subprocess.Popen(
            [*within, "sh", "-c", _OWN_FILES, "sh", str(work), *own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, what: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    if not can_unshare():
        pytest.skip(WHY_NOT)
    work = tmp_path / "work"
    work.mkdir()
    made = []
    for name in ("a", "b"):
        folder = tmp_path / f"host-{name}"
        folder.mkdir()
        made.append(Host(second_host(folder, f"host-{name}"), tmp_path / "store.db", work, name))
    yield made[0], made[1]
    for each in made:
        each.end()


def test_captures_of_two_hosts_with_the_same_paths_do_not_mix(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    assert a.ask("who") != b.ask("who")
    of_a = a.ask("save")
    assert b.ask("moments") == []
    of_b = b.ask("save")
    for host, own in ((a, "a"), (b, "b")):
        assert host.ask("files") == [f"{own}.txt"]
        assert host.ask("status") == []
        assert host.ask("moments") == [f"on-{own}"]
        assert host.ask("sessions") == [f"on-{own}"]
    assert a.ask(of_a) == "done"
    assert "never saved there" not in b.ask(of_b)
    assert a.ask("files") == ["a.txt"]
    assert b.ask("files") == ["b.txt"]


def test_a_container_is_a_host_of_its_own_by_its_name() -> None:
    if not can_unshare():
        pytest.skip(WHY_NOT)
    code = "from hardsave.stores.host.identity import host_id; print(host_id())"
    named = 'hostname "$1"; shift; exec "$@"'
    told = {
        name: subprocess.run(
            [*UNSHARE, "sh", "-c", named, "sh", name, sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.strip()
        for name in ("one", "other")
    }
    assert len({*told.values(), identity.host_id()}) == 3


def test_a_machine_is_one_host_whatever_it_is_called() -> None:
    assert identity.of("machine", None) == identity.of("machine", None)
    assert identity.of("machine", None) != identity.of("another", None)
    assert identity.of("machine", "one") != identity.of("machine", "other")
    assert "machine" not in identity.of("machine", "one")
