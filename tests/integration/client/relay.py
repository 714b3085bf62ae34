"""Stands between a client and a server, and loses answers: what was asked for is done, and the
client does not learn it."""

import contextlib
import http.client
import socket
import socketserver
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


@contextlib.contextmanager
def cutting(port: int, most_bytes: Callable[[], int]) -> Iterator[str]:
    """The address of a relay that ends each connection after so many bytes of its answers."""

    def copy(source: socket.socket, sink: socket.socket, most: int | None) -> None:
        with contextlib.suppress(OSError):
            while (most is None or most > 0) and (data := source.recv(65_536)):
                sink.sendall(data[:most])
                most = None if most is None else most - len(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as server:
                asked = threading.Thread(target=copy, args=(self.request, server, None))
                asked.start()
                copy(server, self.request, most_bytes())
                asked.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as relay:
        relay.daemon_threads = True
        thread = threading.Thread(target=relay.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{relay.server_address[1]}"
        finally:
            relay.shutdown()
            thread.join()
