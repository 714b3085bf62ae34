"""Workers on many hosts: the ledger decides, a queue tells.

Unless a test says so, the workers do what they are told alone: they do not ask the ledger once they
run.
"""

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.workers.crew import Crew, until
from tests.integration.workers.own_server import OwnServer


@pytest.fixture
def server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.end()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(tmp_path)
    yield crew
    crew.end()


def test_a_task_that_is_added_begins_at_once_in_another_process(crew: Crew) -> None:
    crew.start("worker", poll=20)  # procrastinate may miss one that comes while it looks for others
    for number in range(5):
        crew.add(f"t{number}")
        crew.wait(f"t{number}", "ended")
    crew.wait_completed(5)
    until(lambda: crew.hints() == 0)


def test_what_was_added_before_any_worker_ran_is_done_by_the_first(crew: Crew) -> None:
    crew.add(*(f"t{number}" for number in range(12)))
    crew.start("worker", concurrency=2)
    crew.wait_completed(12)
    assert set(crew.count("ended").values()) == {1}


def test_a_slot_that_is_free_takes_the_task_of_the_highest_priority(crew: Crew) -> None:
    crew.start("worker")
    crew.add("first", text="hold")
    crew.wait("first", "began")
    crew.add("low", priority=-5)
    crew.add("none")
    crew.add("high", priority=5)
    crew.go("first")
    crew.wait_completed(4)
    assert [name for name, what, _ in crew.told() if what == "began"] == [
        *("first", "high", "none", "low")
    ]


def test_a_worker_runs_as_many_tasks_at_a_time_as_it_was_told(crew: Crew) -> None:
    crew.start("worker", concurrency=2)
    crew.add("a", "b", "c", text="hold")
    until(lambda: len(crew.count("began")) == 2)
    assert crew.vault.tasks.stats().in_progress == 2
    crew.go(next(iter(crew.count("began"))))
    until(lambda: len(crew.count("began")) == 3)
    crew.go("a", "b", "c")
    crew.wait_completed(3)


def test_a_task_that_is_due_later_begins_when_its_time_has_come(crew: Crew) -> None:
    crew.start("worker")
    soon = datetime.now(UTC) + timedelta(seconds=1)
    crew.add("later", not_before=soon)
    crew.wait_completed(1)


def test_a_job_goes_to_a_worker_that_has_what_it_needs(crew: Crew) -> None:
    crew.start("a", agents=["alpha"])
    crew.start("b", agents=["beta"])
    for number in range(4):
        crew.vault.jobs.add(f"alpha{number}", f"alpha{number}", agent="alpha")
        crew.vault.jobs.add(f"beta{number}", f"beta{number}", agent="beta")
    crew.wait_completed(8)
    assert {(name[:-1], by) for name, _, by in crew.told()} == {("alpha", "a"), ("beta", "b")}


def test_a_job_waits_for_a_worker_that_has_what_it_needs(crew: Crew) -> None:
    crew.start("a", agents=["alpha"])
    crew.vault.jobs.add("job", "said", agent="gamma")
    crew.vault.jobs.add("after", "after", agent="alpha")
    crew.wait("after", "answered", "a")
    crew.start("c", agents=["gamma"])
    crew.wait("said", "answered", "c")


@pytest.mark.parametrize(
    ("fates", "retries", "state", "attempts"),
    [
        ("die", 0, "failed", 4),
        ("die,fail,say", 0, "failed", 2),
        ("fail,die,die,say", 1, "succeeded", 4),
    ],
)
def test_the_death_of_a_worker_is_no_failure_of_its_job(
    crew: Crew, fates: str, retries: int, state: str, attempts: int
) -> None:
    crew.vault.jobs.add("job", fates, agent="fated", retries=retries)
    while (job := crew.vault.jobs.get("job")).state not in ("succeeded", "failed"):
        process = crew.start("worker", agents=["fated"], lease=1.5)
        until(lambda: process.poll() is not None or crew.vault.jobs.get("job").state == state)  # noqa: B023 # it is called at once
    assert (job.state, job.attempts) == (state, attempts)


def test_what_a_queue_has_lost_is_still_done_and_once(crew: Crew) -> None:
    for name in ("a", "b"):
        crew.start(name, concurrency=2, ask=0.5)
    crew.add(*"1234", text="hold")
    until(lambda: len(crew.count("began")) == 4)
    crew.add(*(f"t{number}" for number in range(30)))
    crew.beside.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")
    assert crew.hints() <= 4  # a slot that is taken puts back the hint that it was just given
    crew.go(*"1234")
    crew.wait_completed(34)
    assert len(crew.count("ended")) == 34
    assert set(crew.count("ended").values()) == {1}


@pytest.mark.torture
def test_a_queue_that_was_dropped_costs_no_commit_and_no_task(crew: Crew) -> None:
    crew.start("worker", ask=0.5)
    crew.add("before")
    crew.wait_completed(1)
    crew.beside.execute("DROP TABLE procrastinate_jobs, procrastinate_workers CASCADE")
    crew.add("without")  # the commit holds
    crew.wait_completed(2)
    crew.add("after")
    crew.wait_completed(3)


def test_tasks_of_a_worker_that_was_killed_go_on_at_another(crew: Crew) -> None:
    killed = crew.start("killed", lease=1.5, concurrency=2)
    crew.add("a", "b", text="hold")
    until(lambda: len(crew.count("began")) == 2)
    crew.start("next", concurrency=2)
    killed.kill()
    crew.go("a", "b")
    crew.wait_completed(2)
    assert crew.count("began") == {"a": 1, "b": 1}  # the step was recorded
    assert crew.count("ended") == {"a": 1, "b": 1}


@pytest.mark.torture
def test_a_worker_that_was_stopped_and_woken_ends_no_task_of_another(crew: Crew) -> None:
    stopped = crew.start("stopped", lease=1.5)
    crew.add("task", text="hold")
    crew.wait("task", "began", "stopped")
    stopped.send_signal(signal.SIGSTOP)
    crew.start("next")
    until(lambda: crew.vault.tasks.get("task").attempts == 2)
    stopped.send_signal(signal.SIGCONT)
    crew.go("task")
    crew.wait_completed(1)
    assert crew.vault.tasks.get("task").attempts == 2
    crew.add("more", "tasks")
    crew.wait_completed(3)
    assert crew.count("began")["task"] == 1


def test_a_server_that_was_away_for_longer_than_a_lease_costs_no_attempt(
    server: OwnServer, tmp_path: Path
) -> None:
    """When it is back, the lease of each worker has passed, and each of them lives."""
    crew, names, lease = Crew(tmp_path, server), "abcd", 1.5
    try:
        for name in names:
            crew.start(name, lease=lease)
            crew.vault.tasks.add(name, "hold", key=name, max_attempts=1)
            until(lambda name=name: crew.count("began")[name] == 1)  # type: ignore[misc] # bound to the loop
        server.stop("fast")
        time.sleep(3 * lease)  # as leases count
        server.start()
        store = crew.vault._context.store
        until(lambda: all(each.until > store.moment().at for each in store.owners(None)))
        crew.go(*names)
        crew.wait_completed(len(names))
        for name in names:
            assert "interrupted" not in [each.kind for each in crew.vault.tasks.history(name)]
    finally:
        crew.end()


def test_a_planned_stop_hands_tasks_to_another_worker(crew: Crew) -> None:
    stopped = crew.start("stopped")
    crew.add("task", text="hold")
    crew.wait("task", "began", "stopped")
    crew.start("next")
    crew.add("other", text="hold")
    crew.wait("other", "began", "next")
    crew.go("other")
    stopped.send_signal(signal.SIGTERM)
    crew.go("task")
    crew.wait("task", "ended")
    assert stopped.wait(10) == 0
    crew.wait_completed(2)
    assert crew.vault.tasks.get("task").attempts == 1  # the first does not count
    until(lambda: crew.hints() == 0)


def test_a_periodic_job_is_added_once_each_time_by_any_number_of_workers(crew: Crew) -> None:
    for name in "abc":
        crew.launch(name, agents=["default"], cron=["* * * * * *"], grace=20)
    until(lambda: crew.count("answered")["strike"] >= 4)
    for name in "abc":
        crew.processes[name].send_signal(signal.SIGTERM)
        crew.processes[name].wait()
    done = crew.vault.tasks.stats().completed
    assert crew.count("answered")["strike"] == done
    names = [job.id for job in crew.vault.jobs.every()]
    assert len(names) == len(set(names))
    assert all(name.startswith("chime0-") for name in names)
