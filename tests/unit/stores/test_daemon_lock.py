"""Who stays with a store: one for each workspace, and guests leave when they are asked to."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hardsave
from hardsave.stores.local import daemon_lock
from hardsave.stores.local.daemon_lock import DaemonLock, Holder

SITTING = """
import sys, time
from hardsave.stores.local.daemon_lock import DaemonLock
seat = DaemonLock.take(sys.argv[1], "/socket", is_evictable=sys.argv[2] == "guest")
print(seat is not None, flush=True)
time.sleep(600)
"""


@contextmanager
def sitting(path: str, how: str = "guest") -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [sys.executable, "-c", SITTING, path, how], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.db-files-0-daemon")


def test_one_of_two_gets_it_and_the_other_can_see_who(path: str) -> None:
    seat = DaemonLock.take(path, "/socket", is_evictable=True)
    assert seat is not None
    assert seat.is_in_place()
    assert DaemonLock.take(path, "/other", is_evictable=True) is None
    found = daemon_lock.holder(path)
    assert found is not None
    assert (found.pid, found.socket, found.is_evictable) == (os.getpid(), "/socket", True)
    seat.close()
    seat.close()
    assert not seat.is_in_place()
    again = DaemonLock.take(path, "/other", is_evictable=False)
    assert again is not None
    again.close()


def test_who_was_killed_sits_nowhere(path: str) -> None:
    with sitting(path) as process:
        assert daemon_lock.holder(path) is not None
        assert DaemonLock.take(path, "/socket", is_evictable=True) is None
        process.kill()
        process.wait()
        assert daemon_lock.holder(path) is None
        seat = DaemonLock.take(path, "/socket", is_evictable=True)
        assert seat is not None
        seat.close()


def test_a_lock_file_that_was_removed_is_no_lock(path: str) -> None:
    seat = DaemonLock.take(path, "/socket", is_evictable=True)
    assert seat is not None
    os.unlink(path)
    assert not seat.is_in_place()
    other = DaemonLock.take(path, "/socket", is_evictable=True)
    assert other is not None
    assert not seat.is_in_place()
    other.close()
    seat.close()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '["x", "y", "z", true]', "[1, 0, 2, true]"])
def test_a_holder_that_cannot_be_parsed_is_none(path: str, text: str) -> None:
    Path(path).write_text(text)
    assert daemon_lock.holder(path) is None
    assert daemon_lock.of_store(str(Path(path).with_name("s.db"))) == {}
    daemon_lock.evict_from(path)


def test_a_process_number_that_is_used_again_is_no_holder_and_gets_no_signal(path: str) -> None:
    import json

    with subprocess.Popen(["sleep", "600"]) as other:
        Path(path).write_text(json.dumps(Holder(other.pid, 1, "/socket", True)))
        assert daemon_lock.holder(path) is None
        daemon_lock.evict_from(path)
        assert other.poll() is None
        other.kill()


def test_guests_leave_when_they_are_asked_and_others_stay(tmp_path: Path) -> None:
    store = str(tmp_path / "s.db")
    names = ("s.db-files-0-daemon", "s.db-files-1-daemon", "t.db-files-0-daemon")
    one, two, elsewhere = (str(tmp_path / name) for name in names)
    with sitting(one) as guest, sitting(two, "host") as host, sitting(elsewhere) as other:
        assert set(daemon_lock.of_store(store)) == {one, two}
        daemon_lock.evict(store)
        assert guest.wait(timeout=60) == -signal.SIGTERM
        assert host.poll() is None
        assert other.poll() is None
        assert set(daemon_lock.of_store(store)) == {two}
    daemon_lock.evict(str(tmp_path / "never" / "s.db"))


def test_who_must_be_alone_with_a_store_sends_guests_away(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    script = f"import hardsave; vault = hardsave.open('sqlite:///{store}'); " + SITTING.replace(
        "import sys, time", "import sys, time;"
    )
    with hardsave.open(f"sqlite:///{store}") as vault:
        vault.timeline("t").save({"a": 1})
    arguments = [sys.executable, "-c", script, f"{store}-files-0-daemon", "guest"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as guest:
        assert guest.stdout is not None
        try:
            assert guest.stdout.readline() == "True\n"
            hardsave.repair(f"sqlite:///{store}")
            assert guest.wait(timeout=60) == -signal.SIGTERM
        finally:
            guest.kill()
