"""Stands between a client and a server, and loses answers: what was asked for is done, and the
client does not learn it."""

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LIMIT = 30


class Relay:
    """Where the server is, and how many of its next answers to acts are lost."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = ""
        self.lose = 0
        self.lost: Callable[[], object] = lambda: None
        """Called when an answer is lost."""
        self.replayed: list[str | None] = []
        """Of each act: what the server says about having answered it before."""


@contextlib.contextmanager
def relaying(port: int) -> Iterator[Relay]:
    relay = Relay(port)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            server = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=LIMIT)
            with contextlib.closing(server):
                headers = {name: value for name, value in self.headers.items() if name != "Host"}
                server.request(self.command, self.path, body, headers)
                answer = server.getresponse()
                data = answer.read()
            if self.command != "GET":
                relay.replayed.append(answer.headers["Idempotent-Replayed"])
                if relay.lose:
                    relay.lose -= 1
                    relay.lost()
                    self.close_connection = True
                    return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        relay.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield relay
        finally:
            server.shutdown()
            thread.join()
