"""Writers, while every page of their store is written anew."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

import hardsave
from hardsave.errors import Unavailable
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite import SqliteStore, connection
from hardsave.stores.sqlite.backup import copier
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.gc import rewrite_lock, vacuum
from hardsave.stores.sqlite.open import prepare
from hardsave.stores.sqlite.write import writer

SHORT = 0.05


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[hardsave.Vault]:
    for module in (connection, prepare, writer):
        monkeypatch.setattr(module, "BUSY_SECONDS", SHORT)
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as opened:
        opened.timeline("a").save({"n": 0})
        yield opened


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[hardsave.Vault]:
    """One that waits for other writers as long as ever: what feeds its backup is one of them."""
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as opened:
        opened.timeline("a").save({"n": 0})
        yield opened


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """As SQLite keeps writers out."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def rewritten(path: Path) -> Iterator[None]:
    with rewrite_lock.announced(str(path)), locked(path):
        yield


class Meanwhile(threading.Thread):
    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self._work = work
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 # of any kind: the test looks at it
            self.error = error


def test_writers_wait_for_the_end_however_long_that_takes(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    with rewritten(path):
        saves = [Meanwhile(partial(vault.timeline(name).save, {"n": 1})) for name in "bcd"]
        opens = Meanwhile(lambda: hardsave.open(f"sqlite:///{path}").close())
        for each in saves:
            each.join(10 * SHORT)
            assert each.is_alive()
    for each in (*saves, opens):
        each.join(60)
        assert not each.is_alive()
        assert each.error is None
    assert [len(vault.timeline(name)) for name in "abcd"] == [1, 1, 1, 1]


def test_who_has_waited_long_enough_is_told_for_whom(
    vault: hardsave.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite_lock, "PATIENCE_SECONDS", SHORT)
    with (
        rewritten(tmp_path / "store.db"),
        pytest.raises(Unavailable, match=r"anew .* as a purge does.* repeat this when it has"),
    ):
        vault.timeline("a").save({"n": 1})
    vault.timeline("a").save({"n": 1})


def test_another_program_that_holds_the_file_is_not_waited_for(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    with (
        locked(tmp_path / "store.db"),
        pytest.raises(Unavailable, match="is locked by another program"),
    ):
        vault.timeline("a").save({"n": 1})
    vault.timeline("a").save({"n": 1})


def test_a_writer_does_not_wait_for_a_rewrite_that_has_ended(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    assert not rewrite_lock.is_under_way(path)
    with rewrite_lock.announced(path):
        assert rewrite_lock.is_under_way(path)
    assert not rewrite_lock.waited_for(path)


def test_a_purge_says_that_it_is_at_it(
    patient: hardsave.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    rewrite = vacuum.rewrite

    def looked(used: apsw.Connection) -> None:
        seen.append(rewrite_lock.is_under_way(str(tmp_path / "store.db")))
        rewrite(used)

    monkeypatch.setattr(vacuum, "rewrite", looked)
    patient.timeline("a").save({"n": "sesame"})
    patient.store.purge(text="sesame")
    assert seen == [True]
    assert not rewrite_lock.is_under_way(str(tmp_path / "store.db"))


def test_it_is_not_over_before_the_wal_is_emptied(
    patient: hardsave.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is as long as the store then, and keeps writers out no less."""
    path = str(tmp_path / "store.db")
    truncate = vacuum.truncate_wal
    seen: list[bool] = []

    def watched(*given: Any, must: bool) -> bool:
        seen.append(rewrite_lock.is_under_way(path))
        return truncate(*given, must=must)

    monkeypatch.setattr(vacuum, "truncate_wal", watched)
    patient.store.purge(timeline="a")
    assert seen == [True]
    patient.store.gc()
    assert seen == [True, False]


@pytest.fixture
def long(vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch) -> Copier:
    """Who feeds a store whose WAL is to be moved."""
    monkeypatch.setattr(copier, "WAL_BYTES", 4096)
    store = vault._context.store
    assert isinstance(store, SqliteStore)
    ours = store._copier
    assert ours is not None
    _park_its_thread(vault, ours, monkeypatch)
    ours.turn()
    ours.turn()
    vault.timeline("a").save({"n": "long " * 2_000})
    assert ours._unmoved() > 4096
    return ours


def _park_its_thread(vault: hardsave.Vault, ours: Copier, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on each turn is one that the test takes: the thread has ended its own."""
    parked = threading.Event()

    def wait(_: float) -> bool:
        parked.set()
        return ours._stop.wait(60)

    vault.timeline("a").save({"n": 0})  # which starts it, if it does not run
    monkeypatch.setattr(ours._wake, "wait", wait)
    ours._wake.set()  # ends the wait that is under way
    assert parked.wait(30)
    ours._wake.clear()


def test_the_process_that_rewrites_a_file_moves_its_wal(long: Copier, tmp_path: Path) -> None:
    """No other process is in the way when it wants to empty the WAL."""
    before = long._unmoved()
    with rewrite_lock.announced(str(tmp_path / "store.db")):
        long.turn()
        assert long._unmoved() >= before
    long.turn()
    assert long._unmoved() == 0


def test_a_wal_that_cannot_be_moved_because_another_process_holds_the_lock_waits(
    long: Copier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The backup has everything: that is not what went wrong."""
    lock = FileLock(f"{tmp_path}/store.db-lock")
    lock.acquire(60)
    long.turn()
    lock.close()
    assert long._unmoved() > 4096
    assert not caplog.records
    long.turn()
    assert long._unmoved() == 0
