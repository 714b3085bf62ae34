"""Many workers that are killed, stopped and woken, at a server that is restarted.

HARDSAVE_FIRE_SECONDS says for how long, HARDSAVE_FIRE_SEED what happens when.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from psycopg.errors import UndefinedTable

import hardsave
from hardsave.vault.jobs.state import Job
from tests.integration import job_files
from tests.integration.workers.agents import CALLS
from tests.integration.workers.crew import Crew, until
from tests.integration.workers.own_server import OwnServer

pytestmark = pytest.mark.torture

SECONDS = float(os.environ.get("HARDSAVE_FIRE_SECONDS", "600"))
SEED = int(os.environ.get("HARDSAVE_FIRE_SEED", str(int(time.time()))))
JOBS = min(1_000, round(SECONDS * 5 / 3))
WORKERS = [f"w{number}" for number in range(8)]
LEASE = 3.5
PATIENCE = 600.0
ENDS = """
    SELECT task, kind, count(*) FROM entries
    WHERE kind = 'completed' AND step IS NULL GROUP BY task, kind HAVING count(*) <> 1
"""
STEPS = """
    SELECT task, generation, step, count(*) FROM entries
    WHERE step IS NOT NULL AND kind = 'step_done' GROUP BY task, generation, step
    HAVING count(*) <> 1
"""


@pytest.fixture
def server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.end()


@pytest.fixture
def crew(tmp_path: Path, server: OwnServer) -> Iterator[Crew]:
    crew = Crew(tmp_path, server)
    yield crew
    crew.end()


def test_all_tasks_in_progress_go_on_when_all_workers_were_killed(crew: Crew) -> None:
    names = [f"t{number}" for number in range(JOBS)]
    crew.add(*names, text="hold")
    for worker in WORKERS:
        crew.launch(worker, concurrency=-(-JOBS // len(WORKERS)), lease=LEASE, ask=1, look=0.25)
    until(lambda: crew.vault.tasks.stats().in_progress == JOBS, PATIENCE)
    until(lambda: len(crew.count("began")) == JOBS, PATIENCE)
    for process in crew.processes.values():
        process.kill()
        process.wait()
    crew.go(*names)
    for worker in WORKERS:
        crew.launch(f"{worker}b", concurrency=8, lease=LEASE, ask=1)
    until(lambda: crew.vault.tasks.stats().completed == JOBS, PATIENCE)
    check(crew)
    assert len(crew.count("began")) == len(crew.count("ended")) == JOBS


def test_every_task_is_finished_once_by_workers_that_die_all_the_time(
    crew: Crew, server: OwnServer
) -> None:
    fire = Fire(crew, server)
    fire.burn(lambda *names: crew.add(*names, text="slow"))
    check(crew)


def test_every_job_is_finished_once_with_its_files_by_workers_that_die_all_the_time(
    crew: Crew, server: OwnServer, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for number in range(6):
        (given / f"file-{number}").write_text(f"given {number}\n")

    def add(*names: str) -> None:
        for name in names:
            crew.vault.jobs.add(
                name, "Change files", agent="files", workspace=given, retries=99, max_turns=9
            )

    fire = Fire(crew, server, agents=["files"])
    fire.burn(add)
    check(crew)
    for job in crew.vault.jobs.every():
        check_job(crew.vault, job)
    assert crew.vault.store.verify().ok


def check_job(vault: hardsave.Vault, job: Job) -> None:
    """Each call is on record once, and each file is of the attempt that saved it."""
    assert job.state == "succeeded", job
    line = vault.timeline(job.id)
    messages = line.load()["messages"]
    returned = [
        part["tool_call_id"]
        for message in messages
        for part in message["parts"]
        if part["part_kind"] == "tool-return"
    ]
    assert (returned, len(messages)) == ([*CALLS], 2 * (len(CALLS) + 1)), job.id
    said = Counter(each.description for each in line.checkpoints(limit=1_000))
    assert said["change returned"] == len(CALLS), (job.id, said)
    head = line.head
    assert head is not None
    assert set(job_files.saved(head)) == {
        *(f"file-{number}" for number in range(6)),
        *(f"made-{id}" for id in CALLS),
    }
    assert job_files.strangers(vault, job.id) == []


def check(crew: Crew) -> None:
    assert crew.vault.tasks.stats().completed == JOBS
    crew.reconnect()
    assert crew.beside.execute(ENDS).fetchall() == []
    assert crew.beside.execute(STEPS).fetchall() == []
    kinds = dict(crew.beside.execute("SELECT kind, count(*) FROM entries GROUP BY kind").fetchall())
    assert kinds["completed"] == JOBS
    sys.stderr.write(f"{kinds}\n")


class Fire:
    """What happens to the workers, and to the server."""

    def __init__(self, crew: Crew, server: OwnServer, **options: Any) -> None:
        sys.stderr.write(f"HARDSAVE_FIRE_SEED={SEED}\n")
        self._crew = crew
        self._server = server
        self._chance = random.Random(SEED)
        self._options = options  # of workers
        self._stopped: dict[str, float] = {}  # and when each is woken
        self.count = dict.fromkeys(("kill", "stop", "end", "restart", "empty"), 0)
        for name in WORKERS:
            self._launch(name)

    def burn(self, add: Callable[..., None]) -> None:
        """Add work bit by bit while it burns, then let it be done."""
        began, added = time.monotonic(), 0
        while (passed := time.monotonic() - began) < SECONDS:
            due = min(JOBS, int(JOBS * passed / (SECONDS * 0.9)) + 1)
            add(*(f"t{number}" for number in range(added, due)))
            added = due
            self._next()
            time.sleep(2 * self._chance.random())
        self._cease()
        until(lambda: self._crew.vault.tasks.stats().completed == JOBS, PATIENCE)
        sys.stderr.write(f"{self.count}\n")

    def _next(self) -> None:
        self._wake()
        name = self._chance.choice([name for name in WORKERS if name not in self._stopped])
        process = self._crew.processes[name]
        what = self._chance.choices(list(self.count), (8, 8, 4, 1, 1))[0]
        self.count[what] += 1
        if what == "kill":
            process.kill()
        elif what == "stop":
            process.send_signal(signal.SIGSTOP)
            self._stopped[name] = time.monotonic() + self._chance.random() * 3 * LEASE
        elif what == "end":
            process.send_signal(signal.SIGTERM)
        elif what == "restart":
            self._server.stop(self._chance.choice(("fast", "immediate")))
            self._server.start()
        else:
            with suppress(UndefinedTable), self._server.beside() as beside:
                beside.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")
        for each in WORKERS:
            if self._crew.processes[each].poll() is not None:
                self._launch(each)

    def _cease(self) -> None:
        for name in list(self._stopped):
            self._crew.processes[name].send_signal(signal.SIGCONT)
        for name in WORKERS:
            if self._crew.processes[name].poll() is not None:
                self._launch(name)

    def _wake(self) -> None:
        for name, at in list(self._stopped.items()):
            if time.monotonic() >= at or len(self._stopped) == len(WORKERS):
                self._crew.processes[name].send_signal(signal.SIGCONT)
                del self._stopped[name]

    def _launch(self, name: str) -> None:
        self._crew.launch(name, concurrency=2, lease=LEASE, ask=10, **self._options)
