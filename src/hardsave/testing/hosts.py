"""A second host: another name, another boot, and another numbering of processes.

It is a process in namespaces of its own, where the system allows them (`unshare`, Linux): it has
its own process 1, and other files for the boot's id and the host's name. A *container* is the same
with the name and the boot of this host.
"""

import functools
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.stores.base import Store
from hardsave.stores.host import location
from hardsave.testing.batches import an_object, refs_of
from hardsave.testing.processes import ProcessPool

UNSHARE = (
    *("unshare", "--user", "--map-root-user", "--pid", "--mount", "--uts"),
    *("--fork", "--mount-proc", "--kill-child"),
)
_SETTLE = """
    set -e
    echo "$2" > "$1/name"
    echo "$3" > "$1/boot"
    mount --bind "$1/boot" /proc/sys/kernel/random/boot_id
    if [ -e /etc/machine-id ]; then mount --bind "$1/name" /etc/machine-id; fi
    hostname "$2"
    shift 3
    exec "$@"
"""
WHY_NOT = "this system allows no namespaces: a second host is not tried"


@functools.cache
def can_unshare() -> bool:
    """Whether a process may have its own numbering of processes, name and boot here."""
    if shutil.which("unshare") is None:
        return False
    tried = [*UNSHARE, "sh", "-c", "mount --bind /dev/null /proc/sys/kernel/random/boot_id"]
    return subprocess.run(tried, check=False, capture_output=True, timeout=60).returncode == 0


def second_host(folder: Path, name: str = "another") -> tuple[str, ...]:
    """A command that starts others on another host, of a boot of its own, whose files lie in a
    folder. The first of them is process 1 there."""
    return (*UNSHARE, "sh", "-c", _SETTLE, "sh", str(folder), name, str(uuid.uuid4()))


class Hosts:
    """Needs `open_store`, and a store that `persists`."""

    persists = True

    def open_store(self, folder: Path) -> Store:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def pools_of_other_hosts(
        cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[ProcessPool, ProcessPool]]:
        assert request.cls is not None
        within = second_host(tmp_path_factory.mktemp("another-host"))
        pools = ProcessPool(request.cls, within), ProcessPool(request.cls, UNSHARE)
        yield pools
        for pool in pools:
            pool.end()

    @pytest.fixture
    def host(self, pools_of_other_hosts: tuple[ProcessPool, ProcessPool]) -> Iterator[ProcessPool]:
        yield from self._used(pools_of_other_hosts[0])

    @pytest.fixture
    def container(
        self, pools_of_other_hosts: tuple[ProcessPool, ProcessPool]
    ) -> Iterator[ProcessPool]:
        yield from self._used(pools_of_other_hosts[1])

    def _used(self, pool: ProcessPool) -> Iterator[ProcessPool]:
        if not self.persists:
            pytest.skip("this store is one process's alone")
        if not can_unshare():
            pytest.skip(WHY_NOT)
        yield pool
        pool.leave()

    def test_the_clock_is_the_same_on_two_hosts_if_the_store_is_shared_and_only_then(
        self, host: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        (other,) = host.at(tmp_path, 1)
        name, boot, _ = other.ask("here")
        here = location.here().numbering
        assert name != here.host
        assert boot != here.boot.hex()
        before, (clock, at), after = store.moment(), other.ask("moment"), store.moment()
        assert before.clock == after.clock
        if store.is_shared:
            assert clock == before.clock.hex()
            assert before.at <= at <= after.at
        else:
            assert clock != before.clock.hex()
        store.close()

    def test_what_another_host_has_pinned_stays(self, host: ProcessPool, tmp_path: Path) -> None:
        self._pinned_by(self._shared(tmp_path), host, tmp_path)

    def test_what_a_container_has_pinned_stays(
        self, container: ProcessPool, tmp_path: Path
    ) -> None:
        self._pinned_by(self.open_store(tmp_path), container, tmp_path)

    def _pinned_by(self, store: Store, pool: ProcessPool, folder: Path) -> None:
        (other,) = pool.at(folder, 1)
        ahead = an_object("ahead")
        other.ask("put", label="ahead", pin="pin", seconds=600)
        assert store.collect(refs_of).left == (None,)
        assert store.missing(None, ahead) == set()
        store.close()

    def test_a_turn_that_another_host_has_is_not_to_be_had(
        self, host: ProcessPool, tmp_path: Path
    ) -> None:
        store = self._shared(tmp_path)
        (other,) = host.at(tmp_path, 1)
        assert other.ask("take", turn="clean")
        with store.once("clean") as refused:
            assert refused is None
        other.ask("leave")
        with store.once("clean") as ours:
            assert ours is not None
        store.close()

    def _shared(self, folder: Path) -> Store:
        store = self.open_store(folder)
        if not store.is_shared:
            store.close()
            pytest.skip("this store is for one host")
        return store
