import signal

import pytest

from tests.integration.server.conftest import Server


def test_health_is_open_and_says_nothing_else(server: Server) -> None:
    for path in ("/healthz", "/readyz"):
        answer = server.call("GET", path, headers={})
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_told_to_stop_ends_with_0(server: Server, number: int) -> None:
    assert server.stop(number) == 0
