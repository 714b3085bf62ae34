"""A server over a store, in a thread of the test, and a client that speaks real HTTP to it."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn

import hardsave
from hardsave.server import running
from hardsave.server.access import Access
from hardsave.server.app import App
from hardsave.server.door import LOOPBACK_NAMES
from hardsave.server.projects import Catalogue
from hardsave.server.route import Allowed, Route
from hardsave.server.table import ROUTES
from hardsave.server.tokens import LiveTokens, TokenFile
from hardsave.server.vaults import Vaults

OWN_TOKEN = "hs_own"  # noqa: S105 # of these tests
LIMIT = 60
NONE_ALLOWED = Allowed()


class Client:
    """Sends a request, and gives the status and the JSON of its answer."""

    def __init__(self, port: int, token: str | None) -> None:
        self.port = port
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def __call__(self, method: str, *segments: str, body: Any = ...) -> tuple[int, Any]:
        path = "/" + "/".join(quote(each, safe="") for each in segments)
        headers, data = dict(self._headers), None
        if body is not ...:
            headers["Content-Type"], data = "application/json", json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            assert answer.headers["Content-Type"] == "application/json"
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


@contextlib.contextmanager
def serving(
    url: str,
    folder: Path,
    *,
    allowed: Allowed = NONE_ALLOWED,
    open_loopback: bool = False,
    token: str | None = OWN_TOKEN,
    routes: tuple[Route, ...] = ROUTES,
) -> Iterator[Client]:
    """A server that is there until the end of the block."""
    hardsave.open(url).close()  # it is there from now on
    vaults, catalogue = Vaults(), Catalogue.one(url, folder)
    tokens = LiveTokens(TokenFile(folder / "tokens.json"))
    access = Access(tokens, catalogue, own=OWN_TOKEN, open_loopback=open_loopback)
    app = App(
        vaults,
        access,
        catalogue=catalogue,
        names=LOOPBACK_NAMES,
        allowed=allowed,
        routes=routes,
    )
    server = uvicorn.Server(running._config(app))
    with running._listening("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield Client(listening.getsockname()[1], token)
        finally:
            server.should_exit = True
            thread.join(LIMIT)
            vaults.close()
