"""A server that answers as a test says: refuses, is busy, says nothing, or ends a connection."""

import contextlib
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

TOKEN = "hs_token"  # noqa: S105 # of these tests
ABOUT = {
    "version": "0.1.0",
    "api": 1,
    "host": "here",
    "user": None,
    "caller": "tests",
    "scope": "admin",
}


class Seen(NamedTuple):
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # by their names in lower case
    body: Any  # parsed; None: there was none
    connection: int  # the port that it came from


class Answer(NamedTuple):
    """What the server says."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"


class Parts(NamedTuple):
    """A stream: what is sent, part after part; then it stays open, unless it ends."""

    parts: tuple[bytes, ...]
    ends: bool = False


LOST = "the connection is closed, and nothing is said"
Said = Answer | Parts | str | Callable[[Seen], Any]


def problem(status: int, code: str, detail: str, **headers: str) -> Answer:
    body = {"status": status, "code": code, "title": "No", "detail": detail, "request_id": "r1"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, body, named, "application/problem+json")


BUSY = problem(503, "busy", "too many requests", Retry_After="0")


class Scripted:
    """The script, and what was asked. The last answer of a path is given again and again."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: list[Seen] = []
        self.over = threading.Event()
        self._answers: dict[str, list[Said]] = {}
        self._lock = threading.Lock()
        self.says("", Answer(200, ABOUT))

    def says(self, route: str, *answers: Any) -> None:
        """What a route answers from now on; plain data is an answer of status 200."""
        known = (Answer, Parts, str)
        with self._lock:
            self._answers[f"/api/v1{route}"] = [
                each if isinstance(each, known) or callable(each) else Answer(200, each)
                for each in answers
            ]

    def next(self, seen: Seen) -> Said:
        with self._lock:
            self.seen.append(seen)
            found = self._answers.get(seen.path)
            if not found:
                return problem(404, "not_found", f"there is nothing at {seen.path}")
            return found.pop(0) if len(found) > 1 else found[0]

    def asked(self, route: str) -> list[Seen]:
        return [each for each in self.seen if each.path == f"/api/v1{route}"]


@contextlib.contextmanager
def scripted(encrypted: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """A server that is there until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle_one_request()

        def do_GET(self) -> None:
            seen = self._seen()
            said = script.next(seen)
            if callable(said):
                said = said(seen)
                said = said if isinstance(said, Answer | Parts | str) else Answer(200, said)
            if isinstance(said, Answer):
                self._answer(said)
            elif isinstance(said, Parts):
                self._stream(said)
            else:
                self.close_connection = True

        do_POST = do_DELETE = do_GET

        def _seen(self) -> Seen:
            where = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return Seen(
                self.command,
                where.path,
                dict(parse_qsl(where.query, keep_blank_values=True)),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(data) if data else None,
                self.client_address[1],
            )

        def _answer(self, said: Answer) -> None:
            body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            headers = {"Content-Type": said.media_type, **said.headers}
            if headers.get("Content-Encoding") == "gzip":
                body = zlib.compress(body, wbits=16 + zlib.MAX_WBITS)
            self.send_response(said.status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, said: Parts) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in said.parts:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.flush()
            self.close_connection = True
            if said.ends:
                self.wfile.write(b"0\r\n\r\n")
            else:
                script.over.wait()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        scheme = "http" if encrypted is None else "https"
        script = Scripted(f"{scheme}://127.0.0.1:{server.server_address[1]}")
        if encrypted is not None:
            server.socket = encrypted.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            script.over.set()
            server.shutdown()
            thread.join()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
