"""Requests over HTTP: connections that are kept and used again, and answers that are streams.

Threads share this: each request takes a connection that is free, or a new one. What goes wrong on
the way is `ConnectionLost`; whether it helps to send a request again is decided elsewhere.
"""

import contextlib
import http.client
import os
import socket
import ssl
import threading
import zlib
from collections.abc import Mapping

from hardsave.client.address import Address
from hardsave.tuples import NamedTuple

_GZIP = 16 + zlib.MAX_WBITS  # as zlib is told that there is a header of gzip
_PART = 1 << 16  # bytes of a stream


class Request(NamedTuple):
    """What is sent. `target` is the path with its query, as it stands in the first line."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Reply(NamedTuple):
    """A whole answer. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionLost(Exception):
    """No whole answer has come: whether the server has acted is not known."""

    def __init__(self, cause: Exception, *, was_kept: bool) -> None:
        super().__init__(_told(cause))
        self.was_kept = was_kept
        """Whether the connection had been used before: the server may have closed it since."""
        self.is_final = isinstance(cause, ssl.SSLCertVerificationError)
        """Whether another try cannot end differently."""


def _told(cause: Exception) -> str:
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    text = (isinstance(cause, OSError) and cause.strerror) or str(cause)
    return text or type(cause).__name__


class Connections:
    """Connections to one server."""

    def __init__(self, address: Address, timeout_seconds: float) -> None:
        self._address = address
        self._timeout = timeout_seconds
        self._lock = threading.Lock()
        self._free: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        self._is_closed = False

    def send(self, request: Request, seconds: float) -> Reply:
        """Send a request, and wait for the whole answer; a silence of so many seconds is none."""
        connection, was_kept = self._taken()
        connection.timeout = seconds  # of one that is to be opened
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        try:
            response = _asked(connection, request)
            reply = _whole(response)
        except (OSError, http.client.HTTPException, zlib.error) as error:
            connection.close()
            self._forget()  # the others are as old: a server that was restarted knows none of them
            raise ConnectionLost(error, was_kept=was_kept) from error
        except BaseException:  # Ctrl-C in the middle of an answer: the rest of it is no new one
            connection.close()
            raise
        self._give_back(connection, closes=response.will_close)
        return reply

    def stream(self, request: Request) -> "Stream":
        """Send a request whose answer has no end. It has a connection of its own."""
        connection = self._new()
        try:
            connection.connect()
            line = connection.sock  # the response may take it over
            return Stream(connection, line, _asked(connection, request))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ConnectionLost(error, was_kept=False) from error

    def close(self) -> None:
        self._is_closed = True
        self._forget()

    def _forget(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _taken(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._process != os.getpid():  # a fork would read the answers of its parent
                for connection in self._free:
                    connection.close()
                self._process, self._free = os.getpid(), []
            if self._free:
                return self._free.pop(), True
        return self._new(), False

    def _give_back(self, connection: http.client.HTTPConnection, *, closes: bool) -> None:
        with self._lock:
            if not closes and not self._is_closed:
                self._free.append(connection)
                return
        connection.close()

    def _new(self) -> http.client.HTTPConnection:
        where = self._address
        if where.is_encrypted:
            trusted = ssl.create_default_context()
            return http.client.HTTPSConnection(
                where.host, where.port, timeout=self._timeout, context=trusted
            )
        return http.client.HTTPConnection(where.host, where.port, timeout=self._timeout)


def _asked(connection: http.client.HTTPConnection, request: Request) -> http.client.HTTPResponse:
    connection.request(request.method, request.target, request.body, dict(request.headers))
    return connection.getresponse()


def _whole(response: http.client.HTTPResponse) -> Reply:
    body, headers = response.read(), _headers(response)
    if headers.get("content-encoding") == "gzip":
        body = zlib.decompress(body, _GZIP)
    return Reply(response.status, headers, body)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


class Stream:
    """An answer that comes in parts, for as long as both sides want. One thread reads it; any
    thread may close it, and wakes the one that reads."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        line: socket.socket,
        response: http.client.HTTPResponse,
    ) -> None:
        self._connection = connection
        self._line = line
        self._response = response
        self._reading = threading.Lock()
        self.status = response.status

    def whole(self) -> Reply:
        """All of it, if it is no stream after all, but a refusal."""
        try:
            return _whole(self._response)
        except (OSError, http.client.HTTPException, zlib.error) as error:
            raise ConnectionLost(error, was_kept=False) from error

    def read(self) -> bytes:
        """What has come; waits for something. Empty: the other side has ended it."""
        with self._reading:
            try:
                return b"" if self._response.closed else self._response.read1(_PART)
            except (OSError, http.client.HTTPException, ValueError) as error:  # it was ended
                raise ConnectionLost(error, was_kept=False) from error

    def wait_for(self, seconds: float) -> None:
        """Take a silence of so many seconds for a lost connection."""
        self._line.settimeout(seconds)

    def close(self) -> None:
        """End it. A second call does nothing."""
        with contextlib.suppress(OSError):  # the other side was quicker
            self._line.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads
        with self._reading:
            self._response.close()
            self._connection.close()
