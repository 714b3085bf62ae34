"""Connections that only wait, against a real server in a thread."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from hardsave.server import connection
from tests.unit.server.job_server import LIMIT, OWN_TOKEN, Client, serving

HEAD = f"GET /checkpoints HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OWN_TOKEN}\r\n"


def connected(client: Client) -> socket.socket:
    return socket.create_connection(("127.0.0.1", client.port), timeout=LIMIT)


def is_closed(client: socket.socket) -> bool:
    """Waits until the server closes it; what is answered before does not count."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def test_connections_that_send_nothing_lock_no_other_client_out(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 's.db'}", tmp_path) as client, ExitStack() as stack:
        idle = [stack.enter_context(connected(client)) for _ in range(300)]
        assert client("GET", "checkpoints")[0] == 200
        assert is_closed(idle[0])  # the one that has waited longest


def test_bodies_that_never_come_lock_no_other_client_out(tmp_path: Path) -> None:
    begun = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Type: "
    with serving(f"sqlite:///{tmp_path / 's.db'}", tmp_path) as client, ExitStack() as stack:
        for _ in range(300):
            slow = stack.enter_context(connected(client))
            slow.sendall(begun + b"application/x-www-form-urlencoded\r\n\r\n")
        assert client("GET", "checkpoints")[0] == 200


POST = "POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"


@pytest.mark.parametrize(
    ("answered", "left"),
    [
        ("", ""),
        ("", HEAD),
        (f"{HEAD}\r\n", HEAD),  # a connection that is kept
        (f"{POST}\r\n", "{"),  # it was refused before its body came
    ],
)
def test_a_request_that_does_not_come_to_its_end_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: str, left: str
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.5)
    with (
        serving(f"sqlite:///{tmp_path / 's.db'}", tmp_path) as client,
        connected(client) as slow,
    ):
        slow.settimeout(7)
        slow.sendall(answered.encode())
        assert not answered or slow.recv(65_536).startswith(b"HTTP/1.1 ")
        slow.sendall(left.encode())
        assert is_closed(slow)
