"""A PostgreSQL of a test's own: it can be stopped, killed, filled and replaced by a replica."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from tests.postgres_server import as_server, tool


class OwnServer:
    """One that listens on a Unix socket alone, in a folder below `folder`."""

    def __init__(self, folder: Path, name: str = "one", **settings: str) -> None:
        self.data = folder / name
        self.settings = settings
        self.socket = folder / f"{name}-at"

    def create(self) -> "OwnServer":
        """Make it, and start it."""
        self._run("initdb", "-D", self.data, "-U", "postgres", "-E", "UTF8", "-N", "--no-locale")
        return self.start()

    def replicate(self, name: str, **settings: str) -> "OwnServer":
        """A replica of it, that is started."""
        made = OwnServer(self.data.parent, name, **settings)
        source = f"host={self.socket} user=postgres application_name={name}"
        self._run("pg_basebackup", "-D", made.data, "-R", "-c", "fast", "-N", "-d", source)
        return made.start()

    def start(self) -> "OwnServer":
        self.socket.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(self.socket, as_server()["user"], as_server()["group"])
        said = {"listen_addresses": "", "shared_buffers": "16MB", **self.settings}
        options = " ".join(f"-c {key}='{value}'" for key, value in said.items())
        self._ctl("-w", "-o", f"-k {self.socket} {options}", "-l", f"{self.data}.log", "start")
        return self

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash: the next start recovers."""
        self._ctl("-w", "-m", mode, "stop")

    def promote(self) -> None:
        self._ctl("-w", "promote")

    def remove(self) -> None:
        if self.is_running:
            self.stop()

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host=str(self.socket), user="postgres", dbname="postgres", autocommit=True
        )

    def ask(self, sql: str, *values: object) -> Any:
        """The first column of the first row."""
        with self.connect() as connection:
            text: Any = sql
            row = connection.execute(text, values).fetchone()
        return None if row is None else row[0]

    @property
    def is_running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    def is_up(self) -> bool:
        try:
            return bool(self.ask("SELECT 1"))
        except psycopg.OperationalError:
            return False

    def terminate_backends(self) -> int:
        """End all connections of stores, idle or not; how many there were."""
        sql = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE application_name = 'hardsave'"
        )
        return int(self.ask(sql))

    def _ctl(self, *arguments: object) -> None:
        self._run("pg_ctl", "-s", "-D", self.data, *arguments)

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [tool(program), *map(str, arguments)],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            timeout=120,
            **as_server(),
        )


@contextlib.contextmanager
def pooler(server: OwnServer, mode: str) -> Iterator[Path]:
    """A PgBouncer in front of a server; the folder of its socket."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("NO PGBOUNCER: it is not installed")
    with own_folder() as folder:
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={server.socket} user=postgres\n[pgbouncer]\n"
            f"listen_addr =\nunix_socket_dir = {folder}\nlisten_port = 5432\n"
            f"auth_type = trust\nauth_file = {folder}/users\npool_mode = {mode}\n"
            f"logfile = {folder}/log\ndefault_pool_size = 20\nmax_client_conn = 100\n"
        )
        running = subprocess.Popen(
            [program, "-q", str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL, **as_server()
        )
        while not (folder / ".s.PGSQL.5432").exists():
            assert running.poll() is None, (folder / "log").read_text()
        yield folder
        running.terminate()
        running.wait()


def url_of(*servers: OwnServer) -> str:
    """A store that whichever of these servers takes writes has."""
    hosts = ",".join(str(server.socket) for server in servers)
    query = f"user=postgres&host={quote(hosts)}&target_session_attrs=read-write"
    return f"postgresql:///postgres?{query}"


def stopped(pid: int) -> Callable[[], None]:
    """Stop a process; what lets it go on."""
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """For servers: that of pytest is closed to the user that they run as."""
    folder = Path(tempfile.mkdtemp(prefix="hardsave-own-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, as_server()["user"], as_server()["group"])
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
