"""Requests to the routes of a server, sent again where that may help, and their answers as data.

An act has a key: the server answers a second request with the same key as it did the first, and
acts once. So an act may be sent again when its answer was lost. None is sent again without a key.
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from hardsave.client.address import Address
from hardsave.client.problems import (
    error_of,
    unreachable,
    untrusted,
    wait_after,
    wait_after_silence,
)
from hardsave.client.reading import Unreadable
from hardsave.client.transport import ConnectionLost, Connections, Reply, Request, Stream
from hardsave.defaults import CLIENT_TRIES
from hardsave.errors import HardsaveError, Misuse
from hardsave.objects import depth

_BASE = "/api/v1"
_LONGEST_KEY = 200


class _Again(Exception):
    """A try that has failed, and when to make the next; the error, if there is none."""

    def __init__(self, error: HardsaveError, wait: float) -> None:
        super().__init__()
        self.error = error
        self.wait = wait


class Calls:
    """What can be asked of one server, for one project. Threads may share it."""

    def __init__(
        self,
        address: Address,
        token: str | None,
        project: str | None,
        timeout_seconds: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = address.url
        self._prefix = address.prefix
        self._token = token
        self._project = project
        self._connections = Connections(address, timeout_seconds)
        self._timeout = timeout_seconds
        self._sleep, self._clock = sleep, clock
        self._is_closed = False

    def read(self, route: str, /, **query: Any) -> Any:
        """The data of a route. Parameters that are None are left out."""
        return self._data(self._sent("GET", route, query, {}, None))

    def read_bytes(self, route: str, /, *, part: str, **query: Any) -> bytes:
        """A part of a file, as the header `Range` names it."""
        headers = {"Range": part, "Accept": "*/*", "Accept-Encoding": "identity"}
        return self._sent("GET", route, query, headers, None).body

    def act(
        self,
        route: str,
        body: Mapping[str, Any] | None = None,
        /,
        *,
        key: str | None = None,
        match: str | None = None,
        method: str = "POST",
        **query: Any,
    ) -> Any:
        """Have something done, once, and what came of it. `key` names the request: the same key
        again is the same request. `match` is what has to be so for it to be done (If-Match)."""
        headers = {"Idempotency-Key": secrets.token_hex(16) if key is None else _checked(key)}
        if match is not None:
            headers["If-Match"] = match if match == "*" else f'"{_checked(match)}"'
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body, allow_nan=False).encode()
        return self._data(self._sent(method, route, query, headers, data))

    def stream(self, route: str, last: str | None, /, **query: Any) -> Stream:
        """The events of a route from a place on. Sent once: its reader decides what to do next."""
        self._check_open()
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if last is not None:
            headers["Last-Event-ID"] = last
        found = self._connections.stream(self._request("GET", route, query, headers, None))
        if found.status != 200:
            reply = found.whole()
            found.close()
            raise error_of(reply, self.url)
        return found

    def close(self) -> None:
        self._is_closed = True
        self._connections.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise Misuse(f"the vault at {self.url} was closed; connect again")

    def _request(
        self,
        method: str,
        route: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Request:
        own = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "hardsave.client",
        }
        if self._token is not None:
            own["Authorization"] = f"Bearer {self._token}"
        target = f"{self._prefix}{_BASE}{route}{_spelt({'project': self._project, **query})}"
        return Request(method, target, {**own, **headers}, body)

    def _sent(
        self,
        method: str,
        route: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Reply:
        """The answer, if it is a success."""
        self._check_open()
        request = self._request(method, route, query, headers, body)
        left = self._timeout
        ends = self._clock() + left
        for tried in range(1, CLIENT_TRIES):
            try:
                return self._tried(request, tried, left)
            except _Again as again:
                left = ends - self._clock() - again.wait
                if left <= 0:
                    raise again.error from again.__cause__
                self._sleep(again.wait)
        try:
            return self._tried(request, CLIENT_TRIES, left)
        except _Again as again:
            raise again.error from again.__cause__

    def _tried(self, request: Request, tried: int, seconds: float) -> Reply:
        """One try, of so many seconds. `_Again` if another one may help."""
        try:
            reply = self._connections.send(request, seconds)
        except ConnectionLost as lost:
            if lost.is_final:
                raise untrusted(self.url, str(lost)) from lost
            error: HardsaveError = unreachable(self.url, str(lost))
            raise _Again(error, 0 if lost.was_kept else wait_after_silence(tried)) from lost
        if reply.status < 300:
            return reply
        error = error_of(reply, self.url)
        wait = wait_after(reply, tried)
        raise error if wait is None else _Again(error, wait)

    def _data(self, reply: Reply) -> Any:
        try:
            return depth.loads(reply.body)
        except ValueError as error:
            raise Unreadable(f"{error}, from {self.url}") from error


def given(**fields: Any) -> dict[str, Any]:
    """The fields of a body that say something: servers take none that are empty."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value != "" and value is not False
    }


def _spelt(query: Mapping[str, Any]) -> str:
    """A query, with its question mark; nothing if it has no parameters."""
    given = {name: _word(value) for name, value in query.items() if value is not None}
    try:
        # A byte of a path that is no UTF-8 goes as that byte.
        return f"?{urlencode(given, errors='surrogateescape')}" if given else ""
    except UnicodeEncodeError as error:
        raise Misuse(f"{error.object!r} holds half of a character, which no URL can") from error


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _checked(text: Any) -> str:
    """A text that a header may hold."""
    is_one = isinstance(text, str) and 0 < len(text) <= _LONGEST_KEY
    if not is_one or not text.isascii() or not text.isprintable() or '"' in text:
        raise Misuse(f"this is a text of 1 to {_LONGEST_KEY} printable ASCII characters: {text!r}")
    return str(text)
