"""Programs that outlive their attempts: real ones, and a kernel that is asked."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.stores.host import processes
from hardsave.tasks import child_lock
from hardsave.tasks.recovery import RecoveryReport
from tests.unit.tasks.room import Room

SLEEP = ["sleep", "60"]

WORKER = """
import subprocess, sys, time, hardsave
vault = hardsave.open(sys.argv[1])

def tell(what):
    print(f"{what}\\n", end="", flush=True)  # at once: two threads tell something

def work(attempt):
    if attempt.id != "free":
        with attempt.child_lock() as lock:
            program = subprocess.Popen(["sleep", "60"], pass_fds=lock.descriptors)
            lock.started(program.pid)
            tell(program.pid)
            program.wait()
    tell("free")
    time.sleep(60)

with vault.tasks.runner("server") as runner:
    runner.run(work, concurrency=2)
"""


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        yield vault


def child_locks(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*child-lock*"))


def ended(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    while processes.started(pid) is not None:
        time.sleep(0.01)


def test_a_dead_worker_loses_what_nobody_works_on_and_the_rest_later(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    vault.tasks.add("held")
    vault.tasks.add("free")
    url = f"sqlite:///{tmp_path}/store.db"
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, url], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        said = {worker.stdout.readline().strip() for _ in range(2)} - {"free"}
        worker.kill()
        worker.stdout.close()
    pid = int(said.pop())
    try:
        report = vault.tasks.recover()
        assert [task.id for task in report.interrupted] == ["free"]
        assert [(each.task.id, each.survivors.pids) for each in report.outlived] == [
            ("held", (pid,))
        ]
        assert f"process {pid}" in str(report)
        assert "nothing to do by hand" not in str(report)
        with vault.tasks.runner("other") as runner:
            assert [each.task.id for each in runner.report.outlived] == ["held"]
            assert runner.recover() == []
            with pytest.raises(hardsave.Conflict, match=f"worked on by process {pid}"):
                runner.claim("held")
    finally:
        ended(pid)
    assert [task.id for task in vault.tasks.recover().interrupted] == ["held"]
    assert vault.tasks.recover().was_clean
    assert child_locks(tmp_path) == []


def test_a_program_that_has_ended_leaves_nothing(vault: hardsave.Vault, tmp_path: Path) -> None:
    vault.tasks.add("t1")
    with vault.tasks.attempt("t1") as attempt, attempt.child_lock() as held:
        program = subprocess.Popen(["true"], pass_fds=held.descriptors)
        assert len(child_locks(tmp_path)) == 1
        held.started(program.pid)
        assert held.descriptors == ()
        assert program.wait() == 0
    assert child_locks(tmp_path) == []


def test_an_attempt_has_as_many_child_locks_as_programs(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    vault.tasks.add("t1")
    with (
        vault.tasks.attempt("t1") as attempt,
        attempt.child_lock() as one,
        attempt.child_lock() as two,
        subprocess.Popen(SLEEP, pass_fds=one.descriptors) as first,
        subprocess.Popen(SLEEP, pass_fds=two.descriptors) as second,
    ):
        one.started(first.pid)
        two.started(second.pid)
        record = vault._context.store.task(None, "t1")
        assert record is not None
        for alive in ([first, second], [second], []):
            found = child_lock.ChildLocks(vault._context.store).survivors([record])
            pids = sorted(program.pid for program in alive)
            assert [list(left.pids) for left in found.values()] == ([pids] if pids else [])
            if alive:
                alive[0].kill()
                alive[0].wait()


def test_whoever_was_stopped_too_long_starts_no_program(tmp_path: Path) -> None:
    """Others have the task by then: it finds out before it starts anything."""
    room = Room()
    room.tasks.add("t1")
    attempt = room.tasks.claim("t1")
    room.tasks.cancel("t1")
    with pytest.raises(hardsave.LeaseLost), attempt.child_lock():
        raise AssertionError("it was let in")
    assert attempt.is_lost


def test_in_memory_there_is_nobody_to_ask(tmp_path: Path) -> None:
    room = Room()
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt, attempt.child_lock() as held:
        assert held.descriptors == ()
        held.started(os.getpid())


def test_a_note_that_cannot_be_written_is_no_reason_to_lose_a_program(
    vault: hardsave.Vault, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vault.tasks.add("t1")
    with vault.tasks.attempt("t1") as attempt, attempt.child_lock() as held:
        read_only = os.open(next(tmp_path.glob("*child-lock*")), os.O_RDONLY)
        os.dup2(read_only, held.descriptors[0])
        os.close(read_only)
        held.started(os.getpid())
    assert "cannot be noted" in caplog.text


def test_where_it_cannot_be_made_nothing_begins(vault: hardsave.Vault, tmp_path: Path) -> None:
    vault.tasks.add("t1")
    attempt = vault.tasks.claim("t1")
    held = child_lock.ChildLock(str(tmp_path / "nowhere" / "child-lock"), lambda: None)
    with pytest.raises(hardsave.Unavailable, match="cannot be made"), held:
        raise AssertionError("it was let in")
    attempt.hand_back()


def report_of(tmp_path: Path, note: bytes) -> RecoveryReport:
    """What is found of a dead attempt whose child lock holds `note`, and is held by `sleep`."""
    store = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(store) as vault:
        vault.tasks.add("t1")
        attempt = vault.tasks.claim("t1")
        held = attempt.child_lock().__enter__()
        program = subprocess.Popen(SLEEP, pass_fds=held.descriptors)
        try:
            os.write(held.descriptors[0], note)
            held._let_go()
            owner = vault._context.store.owners(None)[0]
            vault._context.store.let_go(None, owner.id)
            return vault.tasks.recover()
        finally:
            program.kill()
            program.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="who holds a file is told by /proc alone")
@pytest.mark.parametrize("note", [b"", b"12", b"12 3", b"1 1\n", b"\xff x\n"])
def test_a_note_that_was_never_finished_or_is_of_another_is_not_believed(
    tmp_path: Path, note: bytes
) -> None:
    report = report_of(tmp_path, note)
    assert [each.task.id for each in report.outlived] == ["t1"]
    (pid,) = report.outlived[0].survivors.pids
    assert pid not in (1, 12, os.getpid())


def test_where_the_kernel_does_not_name_them_the_note_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a system without /proc."""
    monkeypatch.setattr(child_lock, "_holders", lambda file: iter(()))
    report = report_of(tmp_path, b"%d 0\n" % os.getpid())
    assert report.outlived[0].survivors.pids == (os.getpid(),)
    assert "processes of its own" in str(child_lock.Survivors(()))
