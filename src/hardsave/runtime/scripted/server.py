"""The HTTP server of a scripted model: threads of the standard library, on localhost."""

import contextlib
import http.client
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, TracebackType
from typing import Any

from hardsave.logs import log
from hardsave.runtime.scripted import anthropic, openai, responses
from hardsave.runtime.scripted.script import Fault, Reply, Script, Silence, Stall, Step, step_for
from hardsave.tuples import NamedTuple

_WIRES: dict[str, ModuleType] = {wire.PATH: wire for wire in (openai, responses, anthropic)}
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0


class Request(NamedTuple):
    """What a client asked. Headers are not kept: they hold keys."""

    path: str
    turn: int
    body: dict[str, Any]


class ScriptedModel:
    """A model on localhost. As a context manager it is there until the end of the block.

    with ScriptedModel([Reply("hello")]) as model:
        OpenAIProvider(base_url=model.openai_url, api_key="none")
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._mutex = threading.Condition()
        self._requests: list[Request] = []
        self._stalled = 0
        self._talks = 0  # connections that are being answered
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOK_SECONDS,), daemon=True
        )

    def __enter__(self) -> "ScriptedModel":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI's API."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for clients of Anthropic's API."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def requests(self) -> list[Request]:
        """Everything that was asked up to now, in order."""
        with self._mutex:
            return list(self._requests)

    def wait_for_stalls(self, count: int, *, timeout_seconds: float = _PATIENCE_SECONDS) -> bool:
        """Wait until so many requests hang in `Stall` or `Silence`; whether they do."""
        with self._mutex:
            return self._mutex.wait_for(lambda: self._stalled >= count, timeout_seconds)

    def settled(self) -> list[Request]:
        """Everything that was asked by clients that are gone: what they had sent when they were
        killed is read first, however late that is. A client that hangs in a stall was heard."""
        last = http.client.HTTPConnection("127.0.0.1", self._server.server_port, _PATIENCE_SECONDS)
        with contextlib.closing(last):
            last.request("GET", "/")  # once it is answered, all who came before have been let in
            last.getresponse().read()
        with self._mutex:
            quiet = self._mutex.wait_for(lambda: self._talks <= self._stalled, _PATIENCE_SECONDS)
        if not quiet:
            raise TimeoutError("a request is still being answered")
        return self.requests

    # For the threads that answer

    @contextlib.contextmanager
    def talk(self) -> Iterator[None]:
        """A connection, from when it is let in until it has ended."""
        try:
            yield
        finally:
            with self._mutex:
                self._talks -= 1
                self._mutex.notify_all()

    def let_in(self) -> None:
        with self._mutex:
            self._talks += 1

    def take(self, path: str, turn: int, body: dict[str, Any]) -> Step:
        """Note a request; what it gets."""
        with self._mutex:
            asked = sum(request.turn == turn for request in self._requests)
            self._requests.append(Request(path, turn, body))
            self._mutex.notify_all()
        return step_for(self._script, turn, asked)

    def stall(self) -> None:
        """Stay silent until the end."""
        with self._mutex:
            self._stalled += 1
            self._mutex.notify_all()
        self._closing.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client may hold its connection for as long as it likes

    def __init__(self, address: tuple[str, int], model: ScriptedModel) -> None:
        super().__init__(address, _Handler)
        self.model = model

    def process_request(self, request: Any, client_address: Any) -> None:
        self.model.let_in()  # before its thread begins: no client is overlooked
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self.model.talk():
            super().process_request_thread(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is what this server is for: no report of that."""
        if not isinstance(sys.exception(), ConnectionError):
            log(__name__).exception("a scripted model could not answer %s", client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:  # as the standard library spells it
        size = int(self.headers.get("Content-Length") or 0)
        given = self.rfile.read(size)
        path = self.path.partition("?")[0]
        wire = _WIRES.get(path)
        try:
            body = json.loads(given)
        except ValueError:
            body = None
        if wire is None or not isinstance(body, dict):
            self._fault(Fault(404, '{"error": {"message": "no such thing here"}}'))
            return
        turn = wire.turn(body)
        self._answer(wire, self.server.model.take(path, turn, body), body, turn)

    def _answer(self, wire: ModuleType, step: Step, body: dict[str, Any], turn: int) -> None:
        if isinstance(step, Fault):
            self._fault(step)
        elif isinstance(step, Silence) or (isinstance(step, Stall) and not body.get("stream")):
            self.server.model.stall()
        elif isinstance(step, Reply) and not body.get("stream"):
            self._whole(200, json.dumps(wire.whole(step, body, turn)).encode(), {})
        else:
            self._stream(wire, step, body, turn)

    def _fault(self, fault: Fault) -> None:
        more = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
        self._whole(fault.status, fault.body.encode(), more)

    def _whole(self, status: int, data: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(
        self, wire: ModuleType, step: Reply | Stall, body: dict[str, Any], turn: int
    ) -> None:
        reply, limit = (step.reply, step.pieces) if isinstance(step, Stall) else (step, None)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces: Iterator[bytes] = wire.streamed(reply, body, turn)
        for number, piece in enumerate(pieces):
            if number == limit:
                self.server.model.stall()
                return
            self._chunk(piece)
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test that wants to know looks at `requests`."""
