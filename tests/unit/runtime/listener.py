"""A receiver of callbacks on this machine."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Listener(ThreadingHTTPServer):
    """Notes what it is sent, and answers as it was told."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, str, Any]] = []
        self.keys: list[str] = []
        self.requests: list[tuple[Message, bytes]] = []
        self.status = 200
        self.location: str | None = None
        self.drip_seconds = 0.0
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may leave."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/done?x=1"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers, body))
        self.server.keys.append(self.headers["Idempotency-Key"])
        self.server.got.append((self.path, self.headers["Host"], json.loads(body)))
        while self.server.drip_seconds and not self.server.closing.wait(self.server.drip_seconds):
            self.wfile.write(b"H")  # an answer that never gets anywhere
            self.wfile.flush()
        self.send_response(self.server.status)
        if self.server.location is not None:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def listening() -> Iterator[Listener]:
    """A receiver that is there until the end of the block."""
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
