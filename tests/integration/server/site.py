"""A server over a store with something of everything, and tokens of every kind."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
from psycopg import sql

from hardsave.server.caller import Scope
from hardsave.server.tokens import FILE, TokenFile, canonical
from tests import postgres_server
from tests.integration.server.conftest import LIMIT, Server, environment, starting
from tests.unit.server.api_client import ApiClient
from tests.unit.server.api_samples import Sample
from tests.unit.server.api_store import Things, populate

AGENT = "default"
# What changes by itself: packs, and the leases of processes that live
_BY_ITSELF = {"packs", "objects", "pins", "changes", "users", "sqlite_sequence", "owners", "turns"}
MADE = datetime(2026, 1, 1, tzinfo=UTC)


class Site(NamedTuple):
    """The server, what is in its store, and who may call."""

    server: Server
    client: httpx2.Client
    tokens: TokenFile
    things: Things

    @property
    def port(self) -> int:
        found = urlsplit(self.server.url).port
        assert found is not None
        return found

    @property
    def own(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.server.token}"}

    def token(
        self,
        name: str,
        scope: Scope = "admin",
        *,
        user: str | None = None,
        ends: datetime | None = None,
    ) -> str:
        store = canonical(self.server.store)
        return self.tokens.add(
            name, store=store, user=user, scope=scope, now=MADE, expires_at=ends
        )[1]

    def revoke(self, name: str) -> None:
        self.tokens.revoke(name, store=canonical(self.server.store))

    def api(self, token: str | None = None) -> ApiClient:
        """A program with the server's own token, or another one."""
        return ApiClient(self.port, token or self.server.token)

    def send(self, method: str, path: str, **headers: str) -> httpx2.Response:
        """A request with an empty body, where one of its method has one."""
        body: dict[str, Any] | None = {} if method in ("POST", "PUT", "PATCH") else None
        return self._sent(method, path, body, headers)

    def send_sample(self, sample: Sample, **headers: str) -> httpx2.Response:
        sent = {**sample.headers, **headers}
        return self._sent(sample.route.method, sample.path, sample.body, sent)

    def _sent(self, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx2.Response:
        """The answer; of a stream, which never ends, without its body."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client.stream(method, path, headers=given, json=body) as answer:
            is_stream = answer.headers.get("content-type") == "text/event-stream"
            if not is_stream or method == "HEAD":
                answer.read()
            return answer

    def session(self) -> dict[str, str]:
        """The cookie and the form token of a browser that has logged in by the server's token."""
        entered = self.client.post(
            "/login", data={"token": self.server.token}, headers={"origin": self.server.url}
        )
        assert entered.status_code == 303, entered
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
        self.client.cookies.clear()
        told = self.client.get("/api/v1", headers=cookie).json()
        return {**cookie, "form_token": told["form_token"]}

    def told(self) -> list[tuple[str, list[object]]]:
        """Rows of what users have. Objects are packed anew from time to time, by themselves."""
        return [(name, rows) for name, rows in self.written() if name not in _BY_ITSELF]

    def written(self) -> list[tuple[str, list[object]]]:
        """Every row of the store."""
        if self.server.store.startswith("postgresql"):
            return rows_on_server(self.server.folder.parent)
        return rows(self.server.store.removeprefix("sqlite:///"))


def rows(path: str | Path) -> list[tuple[str, list[object]]]:
    """Every row of a database."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return [
            (name, list(connection.execute(f'SELECT * FROM "{name}"')))  # noqa: S608 # its own
            for (name,) in tables.fetchall()
        ]


def rows_on_server(folder: Path) -> list[tuple[str, list[object]]]:
    """Every row of the store of a folder."""
    schema = postgres_server.schema_of(folder)
    with postgres_server.beside(folder) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
        )
        return [
            (
                name,
                list(connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))),
            )
            for (name,) in tables.fetchall()
        ]


@contextmanager
def a_site(tmp_path: Path) -> Iterator[Site]:
    """A server over a store that is filled; agents and directories of it may be named."""
    tokens = TokenFile(Path(environment(tmp_path)["XDG_DATA_HOME"], "hardsave", FILE))
    with starting(tmp_path) as start:
        (tmp_path / "work").mkdir()
        allowed = ("--allow-workspace", ".", "--allow-workspace", str(tmp_path / "work"))
        server = start("--allow-agent", AGENT, *allowed)
        logging.disable(logging.ERROR)  # some of its jobs have failed, and say so
        with server.vault() as vault:
            things = populate(vault, tmp_path / "work")
        logging.disable(logging.NOTSET)
        with httpx2.Client(base_url=server.url, timeout=LIMIT) as client:
            yield Site(server, client, tokens, things)
