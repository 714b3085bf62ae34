"""Which servers of this user run: a file among the user's own data, so that `hardsave ui` finds one
that is there instead of starting a second.

It has the token of each process, and is for its user alone. What a process that was killed has left
in it is passed by.
"""

import http.client
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from hardsave.config import data_directory
from hardsave.config.private_file import READABLE, WRITABLE, PrivateFile
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.stores.host.processes import started
from hardsave.tuples import NamedTuple

FILE = "servers.json"
LINK = "/link"  # makes another key, for a caller that may do everything
_SECONDS = 5.0  # that a server may take to answer


class RunningServer(NamedTuple):
    """A server that runs, or did when this was written."""

    pid: int
    began: int  # when the process did, as the kernel counts
    url: str  # on this machine
    public_url: str | None
    token: str
    store: str | None  # the canonical URL of its only one; None: it has all projects

    @property
    def port(self) -> int | None:
        return urlsplit(self.url).port

    @property
    def is_alive(self) -> bool:
        return started(self.pid) == self.began


def server_file() -> "ServerFile":
    """The file of this user."""
    return ServerFile(data_directory(os.environ, sys.platform) / FILE)


class ServerFile(PrivateFile[RunningServer]):
    """The servers of this user. Processes may use it at once."""

    ENTRIES = "servers"
    REFUSED_MODE = READABLE | WRITABLE
    IF_OPEN = "read {path}, and so call your servers; stop those"
    IF_BROKEN = "remove it; servers that run go on"

    def every(self) -> list[RunningServer]:
        """Those that run."""
        return [each for each in self._read() if each.is_alive]

    @contextmanager
    def told(self, server: RunningServer) -> Iterator[None]:
        """It is in the file for as long as the block lasts. A file that cannot be written stops no
        server: only `hardsave ui` does not find it."""
        try:
            self._add(server)
        except (OSError, Unavailable) as error:
            log(__name__).warning("'hardsave ui' does not find this server: %s", error)
        try:
            yield
        finally:
            with suppress(OSError, Unavailable):
                self._remove(server)

    def _add(self, server: RunningServer) -> None:
        with self._changing() as servers:
            servers[:] = [*(each for each in servers if each.is_alive), server]

    def _remove(self, server: RunningServer) -> None:
        with self._changing() as servers:
            servers[:] = [each for each in servers if each != server and each.is_alive]

    def _parsed(self, data: dict[str, Any]) -> RunningServer:
        if not isinstance(data["pid"], int) or not isinstance(data["url"], str):
            raise TypeError(f"pid {data['pid']!r}, url {data['url']!r}")
        return RunningServer(**data)

    def _plain(self, entry: RunningServer) -> dict[str, Any]:
        return entry._asdict()


def itself(url: str, public_url: str | None, token: str, store: str | None) -> RunningServer:
    """This process."""
    pid = os.getpid()
    return RunningServer(pid, started(pid) or 0, url, public_url, token, store)


def another_link(server: RunningServer) -> str | None:
    """A link that lets one more browser in, once; None if the server does not answer."""
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        connection.request("POST", LINK, b"{}", headers)
        answer = connection.getresponse()
        key = json.loads(answer.read())["key"] if answer.status == 200 else None
    except (OSError, ValueError, LookupError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return None if key is None else link_of(server.public_url or server.url, key)


def link_of(url: str, key: str) -> str:
    return f"{url}/login?key={key}"
