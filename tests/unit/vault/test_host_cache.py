"""Objects that an attempt at a job has fetched are not fetched again on the same host."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest

import hardsave
from hardsave.objects.hashing import Hash, digest
from hardsave.runtime.jobs import notices
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.base import Store
from hardsave.stores.postgres import PostgresStore
from hardsave.vault.checkpoint import record_of
from hardsave.vault.workspaces import local_data
from hardsave.vault.workspaces.attempt_workspace import attempt_workspace
from hardsave.vault.workspaces.host_cache import HostCache
from tests.contract.shared_stores import SharedStore
from tests.postgres_server import url_of

FILES = 500
SECRET = "correct-horse-battery"  # noqa: S105 # it opens nothing
MARK = b"0 a generation"


@pytest.fixture(params=["a file that hosts share", "postgres"])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], "Counted"]]:
    """Opens the store anew, as a process that has just started."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "caches").mkdir()
    made: list[Counted] = []

    def open_store() -> Counted:
        is_postgres = request.param == "postgres"
        path = tmp_path / "store.db"
        made.append(Counted(PostgresStore(url_of(tmp_path)) if is_postgres else SharedStore(path)))
        return made[-1]

    yield open_store
    for each in made:
        each.vault.close()


class Counted:
    """A vault that notes which objects it asks its store for."""

    def __init__(self, store: Store) -> None:
        self.vault = hardsave.Vault(store)
        self.asked: list[Hash] = []
        read = store.read

        def counted(user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
            self.asked += hashes
            return read(user, hashes)

        store.read = counted  # type: ignore[method-assign]

    def submit(self, root: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.vault.timeline("fix").save_files(root)
        self.asked.clear()

    def attempt(self) -> dict[str, str]:
        """The files that an attempt begins with."""
        head = self.vault.timeline("fix").get("@")
        with attempt_workspace(self.vault, "fix", head) as at:
            root = at.workspace.path
            files = [path for path in root.rglob("*") if path.is_file()]
            found = {str(path.relative_to(root)): path.read_text() for path in files}
            at.saved()
        return found

    @property
    def cache(self) -> Path:
        return Path(str(self.vault._context.store.local("contents")))


GIVEN = {f"part-{at % 10}/file-{at}": f"given: {at}\n" * (1 + at % 40) for at in range(FILES)}


def test_the_next_attempt_on_a_host_asks_the_store_for_no_object(
    opened: Callable[[], Counted], tmp_path: Path
) -> None:
    opened().submit(tmp_path / "given", GIVEN)
    first, second = opened(), opened()
    assert first.attempt() == GIVEN
    assert len(set(first.asked)) > FILES
    assert second.attempt() == GIVEN
    assert second.asked == []


def test_only_what_has_changed_since_is_asked_for(
    opened: Callable[[], Counted], tmp_path: Path
) -> None:
    opened().submit(tmp_path / "given", GIVEN)
    assert opened().attempt() == GIVEN
    opened().submit(tmp_path / "given", {"part-3/file-3": "changed"})
    later = opened()
    assert later.attempt() == {**GIVEN, "part-3/file-3": "changed"}
    assert 1 < len(later.asked) < 10  # the file, and what leads to it


def test_a_purge_on_this_host_or_another_drops_what_was_fetched(
    opened: Callable[[], Counted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = opened()
    one.submit(tmp_path / "given", {"secret": SECRET, "other": "kept"})
    opened().attempt()
    assert SECRET.encode() in contents(one.cache)
    one.vault.timeline("fix").save_files(tmp_path / "given")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_CACHE_HOME", str(tmp_path / "another-host"))
        elsewhere.setattr(type(one.vault._context.store), "local", lambda *_: None)
        one.vault.store.purge(text=SECRET)
    assert SECRET.encode() in contents(one.cache), "it is out of reach from there"
    later = opened()
    later.attempt()
    assert SECRET.encode() not in contents(one.cache)
    assert contents(one.cache)
    one.vault.store.purge(text="kept")
    assert not one.cache.exists()


def test_a_worker_with_nothing_to_do_drops_what_another_host_has_purged(
    opened: Callable[[], Counted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "DROP_SECONDS", 0.0)
    one = opened()
    one.submit(tmp_path / "given", {"secret": SECRET})
    opened().attempt()
    worker = Worker(opened().vault, {})
    running = threading.Thread(target=worker.run)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(type(one.vault._context.store), "local", lambda *_: None)
        one.vault.store.purge(text=SECRET)
    assert SECRET.encode() in contents(one.cache)
    running.start()
    try:
        while one.cache.exists():
            assert running.is_alive()
            running.join(0.01)
    finally:
        worker.stop()
        running.join()


def test_what_a_purge_takes_while_it_is_fetched_does_not_come_into_the_cache(
    opened: Callable[[], Counted], tmp_path: Path
) -> None:
    one = opened()
    one.submit(tmp_path / "given", {"secret": SECRET})
    record = record_of(one.vault.timeline("fix").get("@"))
    assert record.snapshot is not None
    other = opened().vault
    with local_data.host_fetch(one.vault._context, record) as fetch:
        assert fetch([record.snapshot])
        other.store.purge(text=SECRET)
        with pytest.raises(hardsave.errors.HardsaveError):
            fetch([b"\0" * 20])
        assert fetch([record.snapshot]), "the block has it in hand"
    assert not one.cache.exists()
    with local_data.host_fetch(one.vault._context, record) as fetch:
        assert fetch == one.vault._context.objects.fetch, "the checkpoint is gone"


def test_a_store_of_one_host_has_no_cache(tmp_path: Path) -> None:
    with hardsave.Vault(hardsave.stores.sqlite.SqliteStore(tmp_path / "store.db")) as vault:
        (tmp_path / "work").mkdir()
        saved = vault.timeline("fix").save_files(tmp_path / "work")
        with local_data.host_fetch(vault._context, record_of(saved)) as fetch:
            assert fetch == vault._context.objects.fetch


# The cache alone


class Far:
    """A store with objects that are told by their number."""

    def __init__(self) -> None:
        self.asked: list[Hash] = []

    def __call__(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        self.asked += wanted
        return {address: OBJECTS[address] for address in wanted}


OBJECTS = {digest(data): data for data in (b"%04d" % at * 250 for at in range(50))}  # 1,000 bytes


def asked(cache: HostCache, wanted: Collection[Hash], *, at_once: int = 10) -> list[Hash]:
    """What the store is asked for by one block that needs these."""
    far, every = Far(), list(wanted)
    with cache.before(far, MARK, lambda: True) as fetch:
        for start in range(0, len(every), at_once):
            some = every[start : start + at_once]
            assert fetch(some) == {address: OBJECTS[address] for address in some}
    return far.asked


def test_damaged_objects_are_fetched_again(tmp_path: Path) -> None:
    cache = HostCache(tmp_path / "cache")
    asked(cache, OBJECTS)
    (file,) = (tmp_path / "cache").iterdir()
    with apsw.Connection(str(file)) as connection:
        some = list(OBJECTS)[:3]
        for address, data in zip(some, (b"", None, "text"), strict=True):
            put = "UPDATE OR IGNORE objects SET data = ? WHERE hash = ?"
            connection.execute(put, (data or "", address))
    connection.close()
    assert asked(cache, OBJECTS) == some
    assert asked(cache, OBJECTS) == []


@pytest.mark.parametrize("damage", ["overwritten", "cut short", "another file", "a folder"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: str) -> None:
    cache = HostCache(tmp_path / "cache")
    asked(cache, OBJECTS)
    (file,) = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    if damage == "overwritten":
        file.write_bytes(whole[:100] + b"\xa5" * (len(whole) - 100))
    elif damage == "cut short":
        file.write_bytes(whole[: len(whole) // 3])
    elif damage == "another file":
        file.write_bytes(b"no database" * 500)
    else:
        file.unlink()
        file.mkdir()
    assert set(asked(cache, OBJECTS)) <= OBJECTS.keys()
    if damage == "a folder":
        cache.drop()
    asked(cache, OBJECTS)
    assert asked(cache, OBJECTS) == []


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache, every = HostCache(tmp_path / "cache", limit=30_000), list(OBJECTS)
    old, used, new = every[:10], every[10:25], every[25:40]
    asked(cache, [*old, *used])
    assert asked(cache, used) == []
    assert asked(cache, new) == new
    assert asked(cache, [*used, *new]) == []
    assert asked(cache, old) == old
    assert asked(cache, OBJECTS), "they do not fit"
    assert len(contents(tmp_path / "cache")) < 3 * 30_000  # with the parts of pages that are free


def test_of_more_than_the_bound_a_part_is_kept_and_not_fetched_again(tmp_path: Path) -> None:
    cache = HostCache(tmp_path / "cache", limit=30_000)
    assert asked(cache, OBJECTS) == list(OBJECTS)
    for _ in range(2):
        assert asked(cache, OBJECTS) == list(OBJECTS)[30:]


def test_a_cache_that_cannot_be_written_keeps_no_attempt_from_its_files(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert asked(HostCache(tmp_path / "cache"), OBJECTS) == list(OBJECTS)
    assert asked(HostCache(tmp_path / "none" / "cache"), OBJECTS) == list(OBJECTS)


def test_a_writer_that_was_killed_or_stopped_keeps_no_other_process_waiting(tmp_path: Path) -> None:
    cache = HostCache(tmp_path / "cache")
    every = list(OBJECTS)
    asked(cache, every[:20])
    (file,) = (tmp_path / "cache").iterdir()
    holds = (
        "import apsw, sys; connection = apsw.Connection(sys.argv[1]);"
        "connection.execute('BEGIN IMMEDIATE; DELETE FROM objects');"
        "print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holds, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.send_signal(signal.SIGSTOP)
        assert asked(cache, every[:20]) == []
        assert asked(cache, every) == every[20:], "read, and not written"
        writer.kill()
    assert asked(cache, every) == every[20:]
    assert asked(cache, every) == []


def test_threads_and_drops_at_once_harm_no_block(tmp_path: Path) -> None:
    cache = HostCache(tmp_path / "cache")
    far = Far()
    with (
        cache.before(far, MARK, lambda: True) as one,
        cache.before(far, MARK, lambda: True) as two,
    ):
        assert one(list(OBJECTS)) == OBJECTS
        cache.drop()
        assert two(list(OBJECTS)) == OBJECTS
        assert one(list(OBJECTS)) == OBJECTS
    assert not (tmp_path / "cache").exists()
    assert set(asked(cache, OBJECTS)) == OBJECTS.keys()


def test_objects_of_another_mark_are_not_there(tmp_path: Path) -> None:
    cache, far = HostCache(tmp_path / "cache"), Far()
    asked(cache, OBJECTS)
    with cache.before(far, b"1 a generation", lambda: True) as fetch:
        fetch(list(OBJECTS))
    assert far.asked == list(OBJECTS)


def contents(folder: Path) -> bytes:
    files: list[Any] = sorted(folder.iterdir()) if folder.exists() else []
    return b"".join(path.read_bytes() for path in files)
