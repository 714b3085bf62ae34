"""A running `hardsave serve`, seen from outside: when it answers, its CPU time, its memory."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.machine import check
from bench.store_file import url

_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.002  # between two attempts to reach a server that starts
_TICK = os.sysconf("SC_CLK_TCK")


class Served:
    """One server, by its process."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self._process = process
        self.port = port
        self.start_seconds = 0.0  # from its fork to its first answer
        self.token = ""

    def cpu(self) -> float:
        """Seconds of the processor that it has used so far: all threads, user and system."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def resident(self) -> int:
        """Bytes of memory that it has now."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024

    def get(self, path: str) -> Any:
        """What it answers to one request, parsed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        check(answer.status == 200, f"{path}: {answer.status} {said[:300]!r}")
        return json.loads(said)

    def wait_until_it_answers(self, began: float) -> None:
        while not self._answers():
            check(self._process.poll() is None, "the server has ended")
            check(time.perf_counter() - began < _PATIENCE_SECONDS, "the server does not answer")
            time.sleep(_LOOK_SECONDS)
        self.start_seconds = time.perf_counter() - began
        assert self._process.stdout is not None
        self.token = json.loads(self._process.stdout.readline())["token"]

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except ConnectionError:
            return False
        finally:
            connection.close()


@contextmanager
def serving(store: Path) -> Iterator[Served]:
    """A server over a store, once it answers. Its log goes to a file."""
    port = _free_port()
    options = ["--json", "--port", str(port), "--store", url(store)]
    with open(store.with_suffix(".log"), "w") as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "hardsave", "serve", *options],
            cwd=store.parent,
            env=_environment(store),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        try:
            server = Served(process, port)
            server.wait_until_it_answers(began)
            yield server
        finally:
            process.terminate()


def _environment(store: Path) -> dict[str, str]:
    """As a user has it who has no settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HARDSAVE_")}
    own = {f"XDG_{name}_HOME": f"{store}.{name.lower()}" for name in ("DATA", "CONFIG")}
    return {**kept, **own}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
