"""Worker processes at a store on PostgreSQL, and what they have told."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hardsave
from tests import postgres_server
from tests.integration.workers.own_server import OwnServer

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 180.0

Process = subprocess.Popen[bytes]


class Crew:
    def __init__(self, folder: Path, server: OwnServer | None = None) -> None:
        """At the server of all tests, or at one that this test may do anything to."""
        self.effects = folder / "effects"
        self.url = postgres_server.url_of(folder) if server is None else server.url
        self.vault = hardsave.open(self.url)
        self._connect = partial(postgres_server.beside, folder) if server is None else server.beside
        self.beside = self._connect()
        self.processes: dict[str, Process] = {}

    def start(self, name: str, **options: Any) -> Process:
        """A worker, which listens when this returns."""
        listening = self.listening()
        process = self.launch(name, **options)
        until(lambda: self.listening() > listening)
        return process

    def launch(self, name: str, **options: Any) -> Process:
        given = [word for key, value in options.items() for word in _option(key, value)]
        module = "tests.integration.workers.working"
        command = [sys.executable, "-m", module, self.url, str(self.effects), name, *given]
        self.processes[name] = subprocess.Popen(command, cwd=ROOT)
        return self.processes[name]

    def reconnect(self) -> None:
        """After the server was stopped."""
        self.beside.close()
        self.beside = self._connect()

    def listening(self) -> int:
        """How many workers hear of what is added: they listen last to their last channel."""
        found = self.beside.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE 'LISTEN%'"
        ).fetchone()
        assert found is not None
        return int(found[0])

    def add(self, *names: str, text: str = "quick", **more: Any) -> None:
        for name in names:
            self.vault.tasks.add(name, text, key=name, max_attempts=100, **more)

    def go(self, *names: str) -> None:
        """Let tasks end that hold."""
        for name in names:
            self.effects.with_name(f"go-{name}").touch()

    def told(self) -> list[tuple[str, str, str]]:
        """Task, effect, worker."""
        lines = self.effects.read_text().splitlines() if self.effects.exists() else []
        return [(name, what, by) for name, what, by in (line.split(" ") for line in lines)]

    def count(self, what: str) -> Counter[str]:
        return Counter(name for name, effect, _ in self.told() if effect == what)

    def wait(self, name: str, what: str, by: str | None = None) -> None:
        until(lambda: any(n == name and w == what and by in (None, b) for n, w, b in self.told()))

    def wait_completed(self, count: int) -> None:
        until(lambda: self.vault.tasks.stats().completed == count)

    def hints(self) -> int:
        found = self.beside.execute("SELECT count(*) FROM procrastinate_jobs").fetchone()
        assert found is not None
        return int(found[0])

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        self.beside.close()
        self.vault.close()


def _option(key: str, value: Any) -> list[str]:
    return [f"--{key}", *map(str, value if isinstance(value, list) else [value])]


def until(is_so: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
