"""Many workers that are killed, stopped and woken, at a server that is restarted.

HARDSAVE_FIRE_SECONDS says for how long, HARDSAVE_FIRE_SEED what happens when.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from psycopg.errors import UndefinedTable

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


def test_every_job_is_finished_once_by_workers_that_die_all_the_time(
    crew: Crew, server: OwnServer
) -> None:
    sys.stderr.write(f"HARDSAVE_FIRE_SEED={SEED}\n")
    chance = random.Random(SEED)
    fire = Fire(crew, server, chance)
    began, added = time.monotonic(), 0
    while (passed := time.monotonic() - began) < SECONDS:
        due = min(JOBS, int(JOBS * passed / (SECONDS * 0.9)) + 1)
        crew.add(*(f"t{number}" for number in range(added, due)), text="slow")
        added = due
        fire.next()
        time.sleep(2 * chance.random())
    fire.cease()
    until(lambda: crew.vault.tasks.stats().completed == JOBS, PATIENCE)
    sys.stderr.write(f"{fire.count}\n")
    check(crew)


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

    def __init__(self, crew: Crew, server: OwnServer, chance: random.Random) -> None:
        self._crew = crew
        self._server = server
        self._chance = chance
        self._stopped: dict[str, float] = {}  # and when each is woken
        self.count = dict.fromkeys(("kill", "stop", "end", "restart", "empty"), 0)
        for name in WORKERS:
            self._launch(name)

    def next(self) -> None:
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

    def cease(self) -> None:
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
        self._crew.launch(name, concurrency=2, lease=LEASE, ask=10)
