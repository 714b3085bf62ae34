"""A block with a deadline: long calls in it end, and nothing is left half done."""

import asyncio
import fcntl
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import DeadlineExceeded, aio, progress
from hardsave.errors import Stopped


class Clock:
    """Time that passes only when a test says so, or by each look at it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.each_look = 0.0

    def __call__(self) -> float:
        self.now += self.each_look
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "monotonic", found)
    return found


@pytest.fixture
def vault() -> hardsave.Vault:
    return hardsave.open("memory://")


@pytest.mark.parametrize("seconds", [0, -1, math.nan, "3", None, True, 10**400])
def test_a_deadline_of_nothing_is_refused(seconds: Any) -> None:
    with (
        pytest.raises(hardsave.Misuse, match="a deadline is a number of seconds"),
        hardsave.deadline(seconds),
    ):
        pass


def test_a_call_that_counts_what_it_does_ends_at_the_deadline(clock: Clock) -> None:
    with hardsave.deadline(2.5):
        counted = progress.meter("reading", "files")
        counted.add(1)
        clock.now += 2.5
        with pytest.raises(DeadlineExceeded, match=r"deadline of 2\.5 s; give it more time"):
            counted.add(1)
        with pytest.raises(DeadlineExceeded):
            progress.meter("writing")
    progress.meter("writing").add(1)


def test_a_caller_that_wants_to_know_how_far_it_is_has_a_deadline_too(clock: Clock) -> None:
    told: list[int] = []
    with hardsave.on_progress(lambda done: told.append(done.items)), hardsave.deadline(1):
        counted = progress.meter("reading", "files")
        clock.now += 1
        with pytest.raises(DeadlineExceeded):
            counted.add(7)
    assert told == [0, 7]


def test_of_nested_deadlines_the_earliest_holds(clock: Clock) -> None:
    with hardsave.deadline(1), hardsave.deadline(10):
        clock.now += 1
        with pytest.raises(DeadlineExceeded, match="1 s"):
            progress.check_deadline()
    with hardsave.deadline(10):
        with hardsave.deadline(1):
            clock.now += 1
            with pytest.raises(DeadlineExceeded):
                progress.check_deadline()
        progress.check_deadline()


def test_a_wait_is_as_long_as_the_deadline_leaves(clock: Clock) -> None:
    assert progress.within_deadline(30) == 30
    with hardsave.deadline(2):
        assert progress.within_deadline(30) == 2
        assert progress.within_deadline(1) == 1
        clock.now += 3
        assert progress.within_deadline(30) == 0


def test_verify_and_export_end_at_the_deadline(
    vault: hardsave.Vault, clock: Clock, tmp_path: Path
) -> None:
    with vault:
        vault.timeline("main").save({"messages": [{"content": "word " * 50}] * 50})
        clock.each_look = 1.0
        for call in (vault.store.verify, lambda: vault.export_file(tmp_path / "all.hardsave")):
            with hardsave.deadline(1.5), pytest.raises(DeadlineExceeded):
                call()
    assert not (tmp_path / "all.hardsave").exists()


def test_a_capture_that_is_late_saves_nothing(
    vault: hardsave.Vault, clock: Clock, tmp_path: Path
) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("text")
    with vault:
        line = vault.timeline("main")
        clock.each_look = 1.0
        with hardsave.deadline(3), pytest.raises(DeadlineExceeded):
            line.save({}, workspace=tmp_path)
        assert line.head is None
        assert line.save({}, workspace=tmp_path).files is not None


def test_a_restore_that_is_decided_is_carried_to_its_end(
    vault: hardsave.Vault, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.vault.restore import rewind

    with vault:
        line = vault.timeline("main")
        for number in range(3):
            (tmp_path / f"{number}.txt").write_text("then")
        line.save({}, workspace=tmp_path)
        for number in range(3):
            (tmp_path / f"{number}.txt").write_text("later")
        committed = rewind._committed

        def late(*given: Any) -> Any:
            clock.now += 60
            return committed(*given)

        monkeypatch.setattr(rewind, "_committed", late)
        with hardsave.deadline(50):
            line.rewind("@")
            with pytest.raises(DeadlineExceeded):
                progress.check_deadline()
    assert {file.read_text() for file in tmp_path.glob("*.txt")} == {"then"}


def test_a_restore_that_is_late_while_it_prepares_changes_no_file(
    vault: hardsave.Vault, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.workspace.restore.steps import Steps

    with vault:
        line = vault.timeline("main")
        (tmp_path / "a.txt").write_text("then")
        line.save({}, workspace=tmp_path)
        (tmp_path / "a.txt").write_text("later")
        prepare = Steps.prepare

        def late(steps: Steps) -> None:
            clock.now += 60
            prepare(steps)

        monkeypatch.setattr(Steps, "prepare", late)
        with (
            hardsave.deadline(50),
            pytest.raises(DeadlineExceeded, match=r"no file was changed\. What"),
        ):
            line.rewind("@~0")
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt"]
        assert (tmp_path / "a.txt").read_text() == "later"
        monkeypatch.setattr(Steps, "prepare", prepare)
        line.rewind(":1")
    assert (tmp_path / "a.txt").read_text() == "then"


def test_a_deadline_holds_for_calls_of_coroutines(clock: Clock) -> None:
    async def late() -> None:
        async with aio.open("memory://") as vault:
            await (await vault.timeline("main")).save({"messages": [{"content": "word"}] * 50})
            with hardsave.deadline(5):
                clock.now += 5
                with pytest.raises(DeadlineExceeded):
                    await vault.store.verify()
            await vault.store.verify()

    asyncio.run(late())


def test_a_save_waits_for_the_lock_no_longer_than_its_deadline(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with hardsave.open(f"sqlite:///{path}") as vault, (tmp_path / "runs.db-lock").open() as held:
        line = vault.timeline("main")
        line.save({"turn": 1})
        fcntl.flock(held, fcntl.LOCK_EX)
        with hardsave.deadline(0.05), pytest.raises(DeadlineExceeded):
            line.save({"turn": 2})
        fcntl.flock(held, fcntl.LOCK_UN)
        line.save({"turn": 3})
        assert [each.state["turn"] for each in line.checkpoints()] == [3, 1]


def test_a_save_without_a_deadline_goes_on_beside_one_that_has_passed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with hardsave.open(f"sqlite:///{path}") as vault, (tmp_path / "runs.db-lock").open() as held:
        lines = [vault.timeline(name) for name in ("patient", "hasty")]
        for line in lines:
            line.save({"turn": 1})
        fcntl.flock(held, fcntl.LOCK_EX)
        late: list[BaseException] = []

        def hasty() -> None:
            try:
                with hardsave.deadline(0.5):
                    lines[1].save({"turn": 2})
            except DeadlineExceeded as error:
                late.append(error)
                fcntl.flock(held, fcntl.LOCK_UN)

        leader = threading.Thread(target=hasty)
        leader.start()
        while not any(each.name == "hardsave-lock" for each in threading.enumerate()):
            time.sleep(0.001)  # until it leads, and waits for the lock
        lines[0].save({"turn": 2})
        leader.join()
        assert late
        assert len(lines[0]) == 2


def test_a_deadline_that_has_passed_ends_short_calls_before_they_begin(
    vault: hardsave.Vault, clock: Clock, tmp_path: Path
) -> None:
    with vault:
        line = vault.timeline("main")
        line.save({"turn": 1})
        line.save({"turn": 2})
        following = vault.follow(0)
        calls: list[Callable[[], object]] = [
            lambda: line.save({"turn": 3}),
            lambda: line.append({"turn": 3}),
            lambda: line.rewind(":1", what="state"),
            lambda: line.fork(name="other"),
            lambda: line.load(":1"),
            lambda: vault.get("main:1"),
            lambda: vault.tasks.add("t"),
            vault.sessions,
            lambda: list(vault.timelines()),
            lambda: vault.moments(tmp_path),
            lambda: vault.checkpoints(labels={"a": "b"}),
            lambda: next(following),
        ]
        for number, call in enumerate(calls):
            with hardsave.deadline(1):
                clock.now += 1
                with pytest.raises(DeadlineExceeded):
                    pytest.fail(f"call {number} went on: {call()}")
        assert (len(line), [each.name for each in vault.timelines()]) == (2, ["main"])
        assert not [*vault.tasks.find()]
        line.save({"turn": 3})
        assert next(following).kind == "checkpoint_saved"


def test_a_save_waits_for_the_lock_of_another_program_no_longer_than_its_deadline(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    with hardsave.open(f"sqlite:///{path}") as vault:
        line = vault.timeline("main")
        line.save({"turn": 1})
        hold = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        hold += "c.execute('BEGIN IMMEDIATE'); print(flush=True); input(); c.rollback()"
        command = [sys.executable, "-c", hold, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            with hardsave.deadline(0.05), pytest.raises(DeadlineExceeded):
                line.save({"turn": 2})
            released = threading.Timer(0.3, other.communicate, [b"\n"])
            released.start()
            line.save({"turn": 3})  # without a deadline it waits as before
            released.join()
        assert [each.state["turn"] for each in line.checkpoints()] == [3, 1]


# A caller that goes away


def test_a_call_whose_caller_went_away_ends_where_a_deadline_is_looked_at() -> None:
    gone = threading.Event()
    with progress.stop_when(gone.is_set):
        counted = progress.meter("reading", "files")
        counted.add(1)
        progress.check_deadline()
        assert progress.within_deadline(30) == 30
        gone.set()
        for look in (
            lambda: counted.add(1),
            lambda: progress.meter("writing"),
            progress.check_deadline,
        ):
            with pytest.raises(Stopped, match="the caller went away; nothing was written that"):
                look()
        with progress.to_the_end():
            progress.check_deadline()
            progress.meter("writing").add(1)
    progress.check_deadline()
    assert issubclass(Stopped, hardsave.Unavailable)


def test_of_nested_blocks_each_deadline_and_each_stop_holds(clock: Clock) -> None:
    outer, inner = threading.Event(), threading.Event()
    with progress.stop_when(outer.is_set), hardsave.deadline(5), progress.stop_when(inner.is_set):
        progress.check_deadline()
        outer.set()
        with pytest.raises(Stopped):
            progress.check_deadline()
        outer.clear()
        inner.set()
        with pytest.raises(Stopped):
            progress.check_deadline()
        inner.clear()
        clock.now += 5
        with pytest.raises(DeadlineExceeded, match="5 s"):
            progress.check_deadline()


def test_a_save_whose_caller_went_away_is_not_made(vault: hardsave.Vault, tmp_path: Path) -> None:
    with vault:
        line = vault.timeline("main")
        with progress.stop_when(lambda: True):
            for call in (
                lambda: line.save({}),
                lambda: line.save({}, workspace=tmp_path),
                lambda: vault.tasks.add("t"),
                vault.store.verify,
            ):
                with pytest.raises(Stopped):
                    call()
        assert line.head is None
        assert not [*vault.tasks.find()]


def test_a_restore_whose_caller_goes_away_while_it_prepares_changes_no_file(
    vault: hardsave.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.workspace.restore.steps import Steps

    gone = threading.Event()
    with vault:
        line = vault.timeline("main")
        (tmp_path / "a.txt").write_text("then")
        line.save({}, workspace=tmp_path)
        (tmp_path / "a.txt").write_text("later")
        prepare = Steps.prepare

        def leaving(steps: Steps) -> None:
            gone.set()
            prepare(steps)

        monkeypatch.setattr(Steps, "prepare", leaving)
        with (
            progress.stop_when(gone.is_set),
            pytest.raises(Stopped, match=r"committed by then; no file was changed\. What"),
        ):
            line.rewind("@~0")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["later"]


def test_a_caller_that_went_away_ends_the_calls_of_coroutines() -> None:
    async def stopped() -> None:
        async with aio.open("memory://") as vault:
            await (await vault.timeline("main")).save({"messages": [{"content": "word"}] * 50})
            with progress.stop_when(lambda: True), pytest.raises(Stopped):
                await vault.store.verify()
            await vault.store.verify()

    asyncio.run(stopped())


def test_a_group_goes_on_without_the_leader_whose_caller_went_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.stores.sqlite.write import writer

    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.3)
    path = tmp_path / "runs.db"
    gone = threading.Event()
    with hardsave.open(f"sqlite:///{path}") as vault, (tmp_path / "runs.db-lock").open() as held:
        lines = [vault.timeline(name) for name in ("patient", "leaving")]
        for line in lines:
            line.save({"turn": 1})
        fcntl.flock(held, fcntl.LOCK_EX)
        stopped: list[BaseException] = []

        def leaving() -> None:
            try:
                with progress.stop_when(gone.is_set):
                    lines[1].save({"turn": 2})
            except Stopped as error:
                stopped.append(error)
                fcntl.flock(held, fcntl.LOCK_UN)

        leader = threading.Thread(target=leaving)
        leader.start()
        while not any(each.name == "hardsave-lock" for each in threading.enumerate()):
            time.sleep(0.001)  # until it leads, and waits for the lock
        gone.set()
        lines[0].save({"turn": 2})
        leader.join()
        assert stopped
        assert len(lines[0]) == 2
