"""Several processes at one ledger, really killed, stopped and told to end."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from tests.crash.launcher import ROOT

PATIENCE_SECONDS = 60.0


class Crew:
    """Processes that work at one store, and what they have told."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        self.effects = folder / "effects"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, way: str, **options: Any) -> subprocess.Popen[bytes]:
        given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "tests.crash.worker", way, self.url, str(self.effects)]
        process = subprocess.Popen([*command, *given], cwd=ROOT)
        self.processes.append(process)
        return process

    def told(self) -> list[str]:
        return self.effects.read_text().splitlines() if self.effects.exists() else []

    def wait_for(self, line: str) -> None:
        until(lambda: line in self.told())

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(tmp_path)
    yield crew
    crew.end()


def add(crew: Crew, count: int) -> None:
    with hardsave.open(crew.url, durability="process") as vault:
        for number in range(count):
            vault.tasks.add(f"t{number}", max_attempts=100)


def massacre(
    crew: Crew,
    unknown: str,
    *,
    workers: int,
    every_seconds: float,
    most: int,
    effect_seconds: float = 0.004,
) -> int:
    """Kill one process after the other, and start it again, until all of them end by themselves.

    How many were killed."""
    draw = random.Random(unknown)
    options = {"unknown": unknown, "seconds": effect_seconds}
    living = [crew.start("serve", **options) for _ in range(workers)]
    killed = 0
    while living:
        time.sleep(every_seconds)
        ended = [process for process in living if process.poll() is not None]
        assert [process.returncode for process in ended] == [0] * len(ended)
        living = [process for process in living if process not in ended]
        if living and killed < most:
            victim = draw.choice(living)
            victim.kill()
            victim.wait()
            living.remove(victim)
            living.append(crew.start("serve", **options))
            killed += 1
    return killed


def account(crew: Crew, unknown: str, count: int, killed: int) -> list[str]:
    """What is not as it has to be, after everybody has ended."""
    effects = Counter(crew.told())
    faults: list[str] = []
    with hardsave.open(crew.url) as vault:
        tasks = vault.tasks.find(limit=count + 1)
        stats = vault.tasks.stats()
        if (stats.total, stats.in_progress) != (count, 0):
            faults.append(f"{stats}")
        for task in tasks:
            history = vault.tasks.history(task.id)
            was_struck = any(each.kind == "interrupted" for each in history)
            faults += [
                f"{task.id} {name} happened {effects[f'{task.id} {name}']} times: {task}"
                for name in ("first", "second")
                if not _is_right(effects[f"{task.id} {name}"], task, unknown, was_struck)
            ]
            if task.state != "completed" and not (was_struck and unknown in ("fail", "ask")):
                faults.append(f"{task}")
        faults += vault.store.verify().faults
    if sum(effects.values()) > 2 * count + 2 * killed:
        faults.append(f"{sum(effects.values())} effects of {count} tasks, {killed} killed")
    return faults


def _is_right(times: int, task: hardsave.Task, unknown: str, was_struck: bool) -> bool:
    if not was_struck:
        return times == 1
    if unknown == "retry":
        return times >= 1  # it may have been inside
    return times <= 1  # it may have been between the recorded start and the effect


@pytest.mark.parametrize("unknown", ["retry", "skip"])
def test_processes_that_are_killed_lose_no_task_and_repeat_no_recorded_step(
    crew: Crew, unknown: str
) -> None:
    add(crew, 60)
    killed = massacre(crew, unknown, workers=3, every_seconds=0.15, most=3)
    assert killed
    assert account(crew, unknown, 60, killed) == []


@pytest.mark.torture
@pytest.mark.parametrize("unknown", ["retry", "skip", "fail", "ask"])
def test_a_thousand_tasks_and_one_of_four_processes_killed_every_second(
    crew: Crew, unknown: str
) -> None:
    add(crew, 1_000)
    killed = massacre(crew, unknown, workers=4, every_seconds=1.0, most=60, effect_seconds=0.03)
    assert killed >= 3
    assert account(crew, unknown, 1_000, killed) == []


def test_a_process_that_was_stopped_past_its_lease_cannot_write_when_it_wakes(crew: Crew) -> None:
    add(crew, 1)
    old = crew.start("stop", seconds=0.6)
    crew.wait_for("ready")
    old.send_signal(signal.SIGSTOP)
    with hardsave.open(crew.url) as vault, vault.tasks.runner("new") as runner:
        until(lambda: bool(runner.report.interrupted or runner.recover()))  # as it begins, or later
        with vault.tasks.attempt("t0") as attempt:
            attempt.step("first", crew.effects.unlink)  # recorded: it is not called
            crew.effects.with_name("go").touch()
            old.send_signal(signal.SIGCONT)
            crew.wait_for("lost True")
            attempt.step("second", lambda: "new")
        until(lambda: "ended" in crew.told())
        assert old.wait(PATIENCE_SECONDS) == 0
        assert vault.tasks.get("t0").state == "completed"
        kinds = [each.kind for each in vault.tasks.history("t0")]
        assert kinds == ["added", "claimed", "interrupted", "claimed", "completed"]
        journal = vault._context.store.journal(None, "t0", 1)
        assert [entry.step for entry in journal] == ["first#1", "second#1"]
        assert journal[1].epoch > journal[0].epoch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_told_to_end_hands_back_what_hangs(
    crew: Crew, number: signal.Signals
) -> None:
    add(crew, 2)
    process = crew.start("hang", seconds=0.1)
    crew.wait_for("ready")
    process.send_signal(number)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert "stopped" in crew.told()
    with hardsave.open(crew.url) as vault:
        assert vault.tasks.stats().pending == 2
        assert vault.tasks.get("t0").attempts == 0
        with vault.tasks.runner("next") as runner:
            assert runner.report.was_clean


def test_a_killed_process_is_found_at_once_and_named(crew: Crew) -> None:
    """Its lease has half a minute left; nobody waits for that."""
    add(crew, 2)
    process = crew.start("hang", seconds=9)
    crew.wait_for("ready")
    process.kill()
    process.wait()
    with hardsave.open(crew.url) as vault, vault.tasks.runner("next") as runner:
        report = runner.report
        assert not report.was_clean
        assert [task.id for task in report.interrupted] == ["t0"]
        assert [dead.session for dead in report.dead] == ["hanging"]
        assert f"process {process.pid} is gone" in str(report)
        assert "interrupted: t0" in str(report)


def test_a_child_that_a_handler_forks_cannot_write_the_ledger(crew: Crew) -> None:
    add(crew, 1)
    assert crew.start("fork").wait(PATIENCE_SECONDS) == 0
    assert [line.partition(":")[0] for line in crew.told()] == ["child"]
    with hardsave.open(crew.url) as vault:
        assert vault.tasks.get("t0").result == "parent"
        journal = vault._context.store.journal(None, "t0", 1)
        assert [entry.step for entry in journal] == ["in the parent#1"]
