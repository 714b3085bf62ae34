"""Agents whose store is on a PostgreSQL server that goes away and comes back."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import hardsave
from hardsave.daemon import election
from hardsave.daemon.outbox import Outbox
from tests import postgres_server
from tests.integration.hooked import Stage

_SOCKET = ".s.PGSQL.5432"


class Line:
    """How one project reaches the server: it can be cut, and go silent."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._silent: socket.socket | None = None
        self.join()

    @property
    def _path(self) -> Path:
        return self.folder / _SOCKET

    def join(self) -> None:
        self._path.unlink(missing_ok=True)
        self._path.symlink_to(Path(postgres_server.server()) / _SOCKET)
        if self._silent is not None:
            self._silent.close()
            self._silent = None

    def cut(self) -> None:
        """Connections are refused, and those that are open end."""
        self._path.unlink(missing_ok=True)
        self._end_connections()

    def silence(self) -> None:
        """Connections are taken, and get no answer."""
        self.cut()
        self._silent = socket.socket(socket.AF_UNIX)
        self._silent.bind(str(self._path))
        self._silent.listen(64)

    def _end_connections(self) -> None:
        with postgres_server.beside(self.folder) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid != pg_backend_pid()"
            )


class ServedStage(Stage):
    """A project whose hooks save on the server."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.line = Line(base / "line")
        self.environment["HARDSAVE_STORE"] = self.url = postgres_server.url_of(
            base, host=str(self.line.folder)
        )
        self.environment["XDG_CACHE_HOME"] = str(base / "cache")

    @property
    def store(self) -> Path:
        return Path(election.host_path(self.environment, self.url))

    @property
    def outbox(self) -> Outbox:
        return Outbox(self.environment, self.work, self.url)

    @contextmanager
    def vault(self) -> Iterator[hardsave.Vault]:
        """The store, by a line that is never cut."""
        with hardsave.open(postgres_server.url_of(self.base)) as vault:
            yield vault

    def calls(self, session: str = "s") -> list[str]:
        with self.vault() as vault:
            return calls_of(vault, f"claude-{session}")

    def waiting(self) -> list[str]:
        """The calls that wait in the outbox, oldest first."""
        if self.outbox.is_empty:
            return []
        with hardsave.open(self.outbox.url, read_only=True) as vault:
            return calls_of(vault, "claude-s")

    def processes(self) -> list[int]:
        wanted = b"HARDSAVE_STORE=" + self.url.encode()
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return [pid for pid in found if pid != os.getpid()]


def calls_of(vault: hardsave.Vault, timeline: str) -> list[str]:
    found = vault.timeline(timeline).checkpoints(limit=1000)
    return [str(each.metadata.get("tool_use_id")) for each in found][::-1]
