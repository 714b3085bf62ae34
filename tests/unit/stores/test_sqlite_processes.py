"""One file, several processes: fresh ones, and forked ones."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hardsave.errors import Conflict, Misuse, Unavailable
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite import SqliteStore, connection_gate, schema
from hardsave.stores.sqlite.open import prepare
from hardsave.stores.sqlite.write import writer
from hardsave.testing.batches import Line
from tests.unit.stores.background import PATIENCE_SECONDS, start
from tests.unit.stores.processes import Child, fresh


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def found(path: Path, name: str) -> int:
    """How many checkpoints of a timeline a store opened anew finds; everything must be sound."""
    store = SqliteStore(path)
    try:
        assert store.verify() == []
        rows = store.count(None, name)
        standing = store.timeline(None, name)
        assert rows == (0 if standing is None else standing.last_seq)
        return rows
    finally:
        store.close()


SAVE = """
import sys
from hardsave.stores.sqlite import SqliteStore
from hardsave.testing.batches import Line
store = SqliteStore(sys.argv[1])
line = Line(store, sys.argv[2], writer="another")
line.standing = store.timeline(None, sys.argv[2])
print(*[line.save().number for _ in range(int(sys.argv[3]))])
store.close()
"""


def test_a_second_process_sees_commits_and_commits_itself(store: SqliteStore, path: Path) -> None:
    line = Line(store)
    line.save()
    assert fresh(SAVE, str(path), "main", "2").split() == ["2", "3"]
    standing = store.timeline(None, "main")
    assert standing is not None
    assert standing.last_seq == 3
    with pytest.raises(Conflict):
        line.save()
    line.standing = standing
    assert line.save().number == 4


def test_what_a_killed_process_was_told_is_saved_is_saved(path: Path) -> None:
    def work(child: Child) -> None:
        line = Line(SqliteStore(path))
        for _ in range(10):
            line.save()
        os.kill(os.getpid(), signal.SIGKILL)

    assert Child(work).end() == -signal.SIGKILL
    assert found(path, "main") == 10


def test_processes_write_at_the_same_time_and_lose_nothing(path: Path) -> None:
    SqliteStore(path).close()

    def work(number: int) -> None:
        own = SqliteStore(path)
        line = Line(own, f"line {number}")
        for _ in range(25):
            line.save()
        own.close()

    children = [Child(lambda _, n=n: work(n)) for n in range(4)]  # type: ignore[misc] # bound to the loop
    assert [child.end() for child in children] == [0] * 4
    assert [found(path, f"line {number}") for number in range(4)] == [25] * 4


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process waits for long."""
    with monkeypatch.context() as patched:
        for place in (writer, connection_gate, prepare):
            patched.setattr(place, "BUSY_SECONDS", 0.2)
        yield


@pytest.fixture
def holder(path: Path) -> Iterator[Child]:
    """Another process that holds the lock of the store, and is stopped."""
    SqliteStore(path).close()

    def work(child: Child) -> None:
        own = SqliteStore(path)
        own._lock.acquire(60)
        child.tell()
        child.wait()

    child = Child(work)
    child.hear()
    os.kill(child.pid, signal.SIGSTOP)
    yield child
    os.kill(child.pid, signal.SIGCONT)
    child.go()
    assert child.end() == 0


@pytest.mark.usefixtures("impatient")
def test_a_stopped_process_makes_others_give_up_and_not_hang(path: Path, holder: Child) -> None:
    with pytest.raises(Unavailable, match="another process has held"):
        SqliteStore(path)


@pytest.mark.usefixtures("impatient")
def test_a_commit_gives_up_on_a_stopped_process_and_works_afterwards(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store)
    line.save()
    held = FileLock(str(path) + "-lock")
    held.acquire(1)
    with pytest.raises(Unavailable, match="another process has held"):
        line.save()
    assert store.count(None, "main") == 1  # reading goes on
    held.close()
    line.save()
    assert store.count(None, "main") == 2
    store.close()


INTERRUPTED = """
import signal, sys
from hardsave.errors import Misuse
from hardsave.stores.registry import open_store
from hardsave.testing.batches import Line
store = open_store(sys.argv[1])
line, other = Line(store, "main"), Line(store, "other")
saved, refused = [], []
def interrupt(*_):
    try:
        saved.append(other.save())
    except Misuse as error:
        refused.append(str(error))
    store.read(None, [b"?" * 20])
signal.signal(signal.SIGALRM, interrupt)
for turn in range(120):
    signal.setitimer(signal.ITIMER_REAL, 0.00005 + 0.00003 * (turn % 40))
    line.save()
signal.setitimer(signal.ITIMER_REAL, 0)
assert all("in the middle of a save" in each for each in refused), refused
assert store.count(None, "main") == 120
assert store.count(None, "other") == len(saved)
assert store.verify() == []
store.close()
print(len(saved) + len(refused) > 0)
"""


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_a_signal_handler_that_saves_hangs_no_thread(path: Path, kind: str) -> None:
    url = "memory://" if kind == "memory" else f"sqlite:///{path}"
    assert fresh(INTERRUPTED, url) == "True\n"


# Forked


def test_a_forked_child_saves_and_so_does_its_parent(store: SqliteStore, path: Path) -> None:
    line = Line(store, "parent")
    line.save()
    store.timeline(None, "parent")

    def work(child: Child) -> None:
        own = Line(store, "child")
        for _ in range(5):
            own.save()
        assert store.count(None, "parent") >= 1
        assert store.count(None, "child") == 5
        store.close()

    child = Child(work)
    for _ in range(5):
        line.save()
    assert child.end() == 0
    assert store.count(None, "child") == 5
    assert store.count(None, "parent") == 6
    assert store.verify() == []


def test_a_forked_child_that_never_uses_the_store_does_no_harm(store: SqliteStore) -> None:
    line = Line(store)
    for way_out in (lambda: None, store.close):
        line.save()
        assert Child(lambda _, way_out=way_out: way_out()).end() == 0  # type: ignore[misc] # bound to the loop
        line.save()
    assert store.count(None, "main") == 4
    assert store.verify() == []


def test_what_a_forked_child_saves_outlives_its_parents_store(path: Path) -> None:
    store = SqliteStore(path)
    Line(store, "parent").save()

    def work(child: Child) -> None:
        own = Line(store, "child")
        own.save()
        child.tell()
        child.wait()  # the parent closes its store meanwhile
        for _ in range(5):
            own.save()
        os.kill(os.getpid(), signal.SIGKILL)

    child = Child(work)
    child.hear()
    store.close()
    child.go()
    assert child.end() == -signal.SIGKILL
    assert found(path, "child") == 6


def test_what_a_parent_saves_outlives_a_forked_childs_store(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store, "parent")
    line.save()

    def work(child: Child) -> None:
        Line(store, "child").save()
        store.close()
        child.tell()

    child = Child(work)
    child.hear()
    line.save()
    assert child.end() == 0
    line.save()
    third = SqliteStore(path)
    Line(third, "third").save()
    third.close()
    line.save()
    store.close()
    assert [found(path, name) for name in ("parent", "child", "third")] == [4, 1, 1]


def test_a_child_forked_while_packs_are_merged_saves(path: Path) -> None:
    store = SqliteStore(path)
    line = Line(store, "parent")
    children = []
    for number in range(4):
        for _ in range(33):
            line.save()

        def work(child: Child, number: int = number) -> None:
            own = Line(store, f"child {number}")
            for _ in range(40):
                own.save()
            store.close()

        children.append(Child(work))
    assert [child.end() for child in children] == [0] * 4
    store.close()
    assert found(path, "parent") == 132
    assert [found(path, f"child {number}") for number in range(4)] == [40] * 4


def test_a_store_that_another_thread_is_opening_does_not_cross_a_fork(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate = schema.migrate
    begun, go = threading.Event(), threading.Event()

    def slow(connection: apsw.Connection) -> None:
        begun.set()
        assert go.wait(60)
        migrate(connection)

    monkeypatch.setattr(schema, "migrate", slow)
    begins = start(lambda: SqliteStore(path))
    assert begun.wait(60)
    threading.Timer(0.2, go.set).start()

    def work(child: Child) -> None:
        links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
        assert [x for x in links if os.path.exists(x) and str(path) in os.readlink(x)] == []
        own = SqliteStore(path)
        Line(own, "child").save()
        own.close()

    assert Child(work).end() == 0
    store = begins.result(60)
    Line(store, "parent").save()
    assert store.count(None, "child") == 1
    store.close()


def test_a_grandchild_saves(store: SqliteStore) -> None:
    Line(store, "parent").save()

    def child(_: Child) -> None:
        Line(store, "child").save()
        assert Child(lambda _: Line(store, "grandchild").save()).end() == 0

    assert Child(child).end() == 0
    names = [row.name for row in store.timelines(None, None, 9)]
    assert names == ["child", "grandchild", "parent"]


class Busy:
    """Threads that save all the time, each on a line of its own, until the store is closed."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.counts = [0] * 4
        self.errors: list[Exception] = []
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(4)]
        for thread in self.threads:
            thread.start()
        time.sleep(0.1)

    def _work(self, number: int) -> None:
        line = Line(self.store, f"line {number}")
        try:
            while True:
                line.save()
                self.counts[number] += 1
        except Exception as error:  # noqa: BLE001 # handed to the test
            self.errors.append(error)

    def close(self) -> float:
        """Close the store; how long that took."""
        before = time.monotonic()
        self.store.close()
        took = time.monotonic() - before
        for thread in self.threads:
            thread.join()
        return took


def test_closing_a_busy_store_takes_a_moment_and_loses_nothing(path: Path) -> None:
    busy = Busy(SqliteStore(path))
    assert busy.close() < PATIENCE_SECONDS
    assert [type(error) for error in busy.errors] == [Misuse] * 4
    assert [found(path, f"line {number}") for number in range(4)] == busy.counts


def test_forking_a_busy_process_takes_a_moment_and_loses_nothing(path: Path) -> None:
    """However busy its threads are: a thread that saves all the time does not hold up a fork."""
    store = SqliteStore(path)
    busy = Busy(store)
    took = []
    for number in range(3):
        before = time.monotonic()
        child = Child(lambda _, n=number: Line(store, f"child {n}").save())  # type: ignore[misc] # bound to the loop
        took.append(time.monotonic() - before)
        assert child.end() == 0
    assert busy.close() < PATIENCE_SECONDS
    assert max(took) < PATIENCE_SECONDS
    assert [type(error) for error in busy.errors] == [Misuse] * 4
    assert [found(path, f"line {number}") for number in range(4)] == busy.counts
    assert [found(path, f"child {number}") for number in range(3)] == [1] * 3
