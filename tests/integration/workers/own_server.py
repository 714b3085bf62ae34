"""A PostgreSQL of a test's own, which it may stop at any moment."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from tests import postgres_server

_NOBODY = 65534


class OwnServer:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hardsave-own-"))
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.folder, _NOBODY, _NOBODY)
        _run("initdb", "-D", self._data, "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql:///postgres?host={self.folder}&user=postgres"

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def beside(self) -> psycopg.Connection[tuple[Any, ...]]:
        options = "-c search_path=hardsave"
        return psycopg.connect(
            host=str(self.folder), user="postgres", autocommit=True, options=options
        )

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c max_connections=200"
        log = str(self.folder / "log")
        _run("pg_ctl", "-D", self._data, "-w", "-t", "120", "-l", log, "-o", options, "start")

    def stop(self, mode: str) -> None:
        _run("pg_ctl", "-D", self._data, "-w", "-t", "120", "-m", mode, "stop")

    def end(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def _run(program: str, *arguments: str) -> None:
    subprocess.run(
        [postgres_server.tool(program), *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=180,
        cwd="/",
        **postgres_server.as_server(),
    )
