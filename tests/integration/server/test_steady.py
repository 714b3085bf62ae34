"""A server that runs for long: it keeps nothing of the requests that it has answered."""

import http.client
import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.server.conftest import LIMIT, Server

WARM, MORE = 1_000, 2_000
MOST_KIB = 1_024  # half a KiB a request


def requests(server: Server) -> Iterator[tuple[str, dict[str, str], set[int]]]:
    """Right ones and wrong ones, most of which the server has never seen."""
    while True:
        yield "/checkpoints", server.bearer, {200}
        yield "/", {"Cookie": f"a={secrets.token_hex(8)}", "Accept": "text/html"}, {401}
        yield "/checkpoints", {"Authorization": f"Bearer {secrets.token_hex(8)}"}, {401, 429}
        yield f"/checkpoints?project={secrets.token_hex(8)}", server.bearer, {404}
        yield f"/{secrets.token_hex(8)}", server.bearer, {404}


def test_requests_leave_nothing_behind(server: Server) -> None:
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("there is no /proc: whether memory grows was NOT tried")

    def used_kib() -> int:
        return int(status.read_text().partition("VmRSS:")[2].split()[0])

    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=LIMIT)
    before = 0
    for number, (path, headers, wanted) in enumerate(
        itertools.islice(requests(server), WARM + MORE)
    ):
        if number == WARM:
            before = used_kib()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in wanted
        assert answer.headers["Server"] is None
    connection.close()
    assert used_kib() - before < MOST_KIB
    assert server.stop() == 0
    assert server.token not in server.log()
