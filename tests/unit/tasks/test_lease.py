"""The lease of a process, and what happens when it passes."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.defaults import LEASE_SECONDS
from hardsave.errors import LeaseLost, Misuse
from hardsave.objects.records import TaskRecord
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks.claiming import begin
from hardsave.tasks.lease import Lease, Listener
from tests.unit.stores.processes import Child
from tests.unit.tasks.room import SECOND, Room, TimedStore

ANEW = """
import os, sys, hardsave
url, *again = sys.argv[1:]

def work(attempt):
    if not again:
        os.execv(sys.executable, [sys.executable, "-c", os.environ["PROGRAM"], url, "again"])
    print("ran", attempt.number)

with hardsave.open(url) as vault, vault.tasks.runner("server") as runner:
    print("clean" if runner.report.was_clean else runner.report.dead[0].why, flush=True)
    runner.run(work, until_idle=True)
"""


@pytest.fixture
def room() -> Room:
    return Room()


def lease_of(room: Room, seconds: float = 30) -> Lease:
    return Lease(room.tasks._context, "me", seconds=seconds)


def test_one_lease_covers_all_tasks_of_a_process(room: Room) -> None:
    for name in ("a", "b"):
        room.tasks.add(name)
        room.tasks.claim(name)
    (owner,) = room.store.owners(None)
    assert owner.pid == os.getpid()
    assert owner.until == room.store.moment().at + int(LEASE_SECONDS * SECOND)
    room.vault.close()


def test_a_beat_makes_it_last_longer(room: Room) -> None:
    lease = lease_of(room)
    id = lease.take()
    assert isinstance(room.store, TimedStore)
    room.store.since_boot += 20 * SECOND
    assert lease.beat()
    (owner,) = room.store.owners(None)
    assert (owner.id, owner.until) == (id, room.store.since_boot + 30 * SECOND)
    assert lease.take() == id
    lease.close()
    assert room.store.owners(None) == []
    assert not lease.beat()


def test_it_is_overdue_until_it_was_renewed(room: Room) -> None:
    lease = lease_of(room, seconds=1000)
    lease.take()
    assert not lease.is_overdue()
    lease._passes -= 1000  # it was stopped for so long
    assert lease.is_overdue()
    assert lease.beat()
    assert not lease.is_overdue()
    lease.close()


def test_nobody_buries_himself(room: Room) -> None:
    """The machine has slept: whoever asks for the dead may be faster than the heartbeat."""
    room.tasks.add("t1")
    assert isinstance(room.store, TimedStore)
    with room.tasks.runner("me") as runner:
        attempt = runner.claim("t1")
        room.store.since_boot += 3_600 * SECOND
        assert runner.recover() == []
        assert room.tasks.recover().was_clean
        attempt.complete()
    room.tasks.add("t2")
    room.tasks.claim("t2")
    room.store.since_boot += 3_600 * SECOND
    room.tasks._own = None  # forgotten, as it is by a program that closes nothing
    gc.collect()
    assert [task.id for task in room.tasks.recover().interrupted] == ["t2"]


def test_a_process_that_begins_its_program_anew_goes_on_at_once(tmp_path: Path) -> None:
    """A server that restarts itself by `exec` keeps its number, and the time that it began."""
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as vault:
        vault.tasks.add("t1")
        said = subprocess.run(
            [sys.executable, "-c", ANEW, url],
            env={**os.environ, "PROGRAM": ANEW},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        assert vault.tasks.get("t1").state == "completed"
    assert said[0] == "clean"
    assert "has begun its program anew" in said[1]
    assert said[2:] == ["ran 2"]


def test_a_forked_child_has_a_lease_of_its_own_though_the_parent_was_just_renewing(
    tmp_path: Path,
) -> None:
    """A heartbeat waits in the store until the fork is made, with its mutex held."""
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        for name in ("one", "two"):
            vault.tasks.add(name)
        with vault.tasks.runner("s") as runner:
            vault.tasks.claim("one").complete()
            works: list[Callable[[Child], object]] = [
                lambda _: runner.claim("two").fail("no"),
                lambda _: vault.tasks.iterate(),
            ]
            for work in works:
                with runner._lease._mutex, vault.tasks._mutex:
                    child = Child(work)
                assert child.end() == 0
        assert vault.tasks.get("two").attempts == 1
        assert vault.tasks.iterations == 1


def test_whoever_was_buried_learns_it_at_the_next_beat(room: Room) -> None:
    lease = lease_of(room)
    id = lease.take()
    told = []

    class Ear:
        def lost(self) -> None:
            told.append("lost")

    ear: Any = Ear()
    lease.listen(ear, id)
    room.store.let_go(None, id)  # as whoever buries it does
    assert not lease.beat()
    assert told == ["lost"]
    assert lease.take() != id
    lease.close()


def test_an_attempt_is_told_that_it_is_lost(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.runner("s") as runner:
        seen = threading.Event()

        def handler(attempt: hardsave.Attempt) -> None:
            room.store.let_go(None, runner._lease.take())
            runner._lease.beat()
            assert attempt.is_lost
            with pytest.raises(LeaseLost):
                attempt.progress(1, 2)
            seen.set()
            runner.stop()

        runner.run(handler)
        assert seen.is_set()


def test_a_claim_after_a_burial_is_made_with_a_new_lease(room: Room) -> None:
    room.tasks.add("a")
    room.tasks.add("b")
    room.tasks.claim("a")
    (owner,) = room.store.owners(None)
    room.store.let_go(None, owner.id)
    with room.tasks.attempt("b"):
        (new,) = room.store.owners(None)
        assert new.id != owner.id
    assert room.tasks.get("b").state == "completed"


@pytest.mark.parametrize("seconds", [0, -1, 3_601])
def test_leases_that_cannot_be_are_refused(room: Room, seconds: float) -> None:
    with pytest.raises(Misuse):
        room.tasks.runner("s", lease_seconds=seconds)


def test_a_lease_that_is_forgotten_ends_its_thread() -> None:
    room = Room(MemoryStore())
    lease = lease_of(room, seconds=0.03)
    lease.take()
    thread = lease._thread
    assert thread is not None
    assert thread.daemon
    del lease
    thread.join(60)
    assert not thread.is_alive()


def test_what_a_runner_held_when_its_vault_was_closed_is_free_once_its_time_has_passed(
    tmp_path: Path,
) -> None:
    """Also in the same process, which otherwise never takes itself for dead."""
    url = f"sqlite:///{tmp_path}/store.db"
    vault = hardsave.open(url)
    vault.tasks.add("t1")
    runner = vault.tasks.runner("one", lease_seconds=0.15).__enter__()
    attempt = runner.claim("t1")
    vault.close()
    deadline = time.monotonic() + 60
    with hardsave.open(url) as again:
        while again.tasks.get("t1").state == "in_progress" and time.monotonic() < deadline:
            time.sleep(0.02)
            again.tasks.recover()
        assert again.tasks.get("t1").state == "pending"
    assert attempt.is_lost


def test_a_living_task_far_longer_than_its_lease_runs_once() -> None:
    """The heartbeat renews it; a second runner that looks all the time finds nobody dead."""
    room = Room(MemoryStore())
    room.tasks.add("t1")
    ran = []

    def handler(attempt: hardsave.Attempt) -> None:
        ran.append(attempt.number)
        time.sleep(0.5)
        attempt.step("end", lambda: 1)

    with (
        room.tasks.runner("one", lease_seconds=0.15) as one,
        room.tasks.runner("two", lease_seconds=0.15) as two,
    ):
        thread = threading.Thread(target=one.run, args=(handler,), kwargs={"until_idle": True})
        thread.start()
        while thread.is_alive():
            assert two.recover() == []
            time.sleep(0.02)
    assert ran == [1]
    assert room.tasks.get("t1").state == "completed"


def test_a_claim_with_the_next_lease_is_not_told_that_the_last_one_is_lost(room: Room) -> None:
    """Whoever is told of a burial claims something else at once, in the middle of the telling."""
    for name in ("a", "b"):
        room.tasks.add(name)
    lease, later = lease_of(room), []

    class Restless(Listener):
        def lost(self) -> None:
            thread = threading.Thread(
                target=lambda: later.append(begin(room.tasks._context, lease, of(room, "b")))
            )
            thread.start()
            thread.join(0.2)  # it has to wait until everybody was told
            threads.append(thread)

    threads: list[threading.Thread] = []
    first, restless = begin(room.tasks._context, lease, of(room, "a")), Restless()
    lease.listen(restless, lease.take())
    bury(room)
    assert not lease.beat()
    threads[0].join()
    assert [first.is_lost, later[0].is_lost] == [True, False]
    later[0].complete()
    lease.close()


def test_an_attempt_whose_lease_a_claim_found_buried_is_told_so(room: Room) -> None:
    for name in ("a", "b"):
        room.tasks.add(name)
    held = room.tasks.claim("a")
    bury(room)
    room.tasks.claim("b").complete()
    assert held.is_lost, "no heartbeat would ever tell it"


def test_a_lease_that_was_lost_before_anybody_could_listen_is_told_at_once(room: Room) -> None:
    room.tasks.add("a")
    lease = lease_of(room)
    attempt = begin(room.tasks._context, lease, of(room, "a"))
    lease.listen(attempt, b"another lease")
    assert attempt.is_lost
    lease.close()


def of(room: Room, name: str) -> TaskRecord:
    found = room.store.task(None, name)
    assert found is not None
    return found


def bury(room: Room) -> None:
    for owner in room.store.owners(None):
        room.store.let_go(None, owner.id)
