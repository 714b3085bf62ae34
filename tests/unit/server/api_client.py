"""Sends requests to `/api/v1` over one connection that is kept."""

import http.client
import json
import select
from typing import Any, NamedTuple, Self

from tests.unit.server.api_samples import Sample

LIMIT = 60


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]  # by their names in lower case
    content: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.content)

    @property
    def is_replayed(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"


class ApiClient:
    """A program with a token, until the end of a block. Threads have their own."""

    def __init__(self, port: int, token: str | None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        self._token = {} if token is None else {"Authorization": f"Bearer {token}"}

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Got:
        """A body of bytes goes as it is, all else as JSON."""
        sent = {**self._token, **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        data = json.dumps(body).encode() if body is not None and type(body) is not bytes else body
        self._let_go_of_a_closed_one()
        self._connection.request(method, path, data, sent)
        answer = self._connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        if told.get("content-type") != "text/event-stream" or method == "HEAD":
            return Got(answer.status, told, answer.read())
        first = b"".join(iter(answer.readline, b"\n"))  # of a stream that never ends
        self._connection.close()  # the next request opens it again
        return Got(answer.status, told, first)

    def _let_go_of_a_closed_one(self) -> None:
        """A server ends connections that were idle for some seconds: there is something to read."""
        socket = self._connection.sock
        if socket is not None and select.select([socket], [], [], 0)[0]:
            self._connection.close()  # the next request opens it again

    def get(self, path: str, **headers: str) -> Any:
        """The data of an answer that is as it should be."""
        got = self.send("GET", path, headers=headers)
        assert got.status == 200, got
        return got.data

    def try_sample(self, sample: Sample, headers: dict[str, str] | None = None) -> Got:
        sent = {**sample.headers, **(headers or {})}
        return self.send(sample.route.method, sample.path, sample.body, sent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
