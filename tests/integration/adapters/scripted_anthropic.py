"""A model that says what a script says, as Anthropic's API does, on localhost."""

import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = Mapping[str, Any]
Script = Sequence[Sequence[Block]]
"""For each turn of the conversation, the blocks of its answer."""


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(id: str, tool: str, **given: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": tool, "input": given}


class Model:
    """What was asked up to now, and where to ask."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    def answer(self, body: dict[str, Any]) -> Sequence[Block]:
        """Requests without tools are the client's own: titles, topics. They are not kept."""
        if not body.get("tools"):
            return [text("nothing")]
        self.asked.append(body)
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        return self.script[turn] if turn < len(self.script) else [text("the script is over")]


@contextmanager
def serving(script: Script) -> Iterator[Model]:
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # as the standard library spells it
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                self._send(200, "application/json", b'{"input_tokens": 1}')
                return
            blocks = model.answer(body)
            if body.get("stream"):
                self._send(200, "text/event-stream", b"".join(_events(blocks)))
            else:
                whole = {**_head(), "content": blocks, "stop_reason": _reason(blocks)}
                self._send(200, "application/json", json.dumps(whole).encode())

        def do_GET(self) -> None:
            self._send(404, "application/json", b"{}")

        do_HEAD = do_GET  # as the standard library spells it

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: whoever wants to know looks at what was asked."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _head() -> dict[str, Any]:
    """With an id of its own: Claude Code joins answers of one id into one."""
    usage = {"input_tokens": 9, "output_tokens": 9}
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "stop_sequence": None,
        "usage": usage,
    }


def _reason(blocks: Sequence[Block]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def _events(blocks: Sequence[Block]) -> Iterator[bytes]:
    yield _event({"type": "message_start", "message": {**_head(), "content": []}})
    for index, block in enumerate(blocks):
        empty: dict[str, Any]
        delta: dict[str, Any]
        if block["type"] == "text":
            empty, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            given = json.dumps(block["input"])
            empty, delta = {"input": {}}, {"type": "input_json_delta", "partial_json": given}
        at = {"index": index}
        yield _event({"type": "content_block_start", **at, "content_block": {**block, **empty}})
        yield _event({"type": "content_block_delta", **at, "delta": delta})
        yield _event({"type": "content_block_stop", **at})
    end = {"stop_reason": _reason(blocks), "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}})
    yield _event({"type": "message_stop"})


def _event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
