"""A server of nothing but a live hub, in a thread of the test, around an app of a few lines."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import uvicorn

from hardsave.defaults import STOP_SECONDS
from hardsave.server.connection import Connection
from hardsave.server.errors import refusal
from hardsave.server.live.asked import Asked
from hardsave.server.live.backlog import Wanted
from hardsave.server.live.events import OpenVault
from hardsave.server.live.hub import Hub
from hardsave.server.live.response import send_body
from hardsave.server.live.sse import HEADERS, MEDIA_TYPE
from hardsave.vault.history.follow import Event
from tests.unit.server.live.sse_client import LIMIT, Listener

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


def encode(event: Event[Any]) -> dict[str, Any]:
    label = event.kind if event.checkpoint is None else event.checkpoint.name
    return {"kind": event.kind, "label": label}


class App:
    """Answers every request with a stream: `project`, `user`, `token`, `timeline`, `kinds` in the
    query."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        assert scope["type"] == "http"
        try:
            async with self._hub.stream(_asked(scope)) as stream:
                await send(_head(200, ("Content-Type", MEDIA_TYPE), *HEADERS))
                await send_body(stream, receive, send)
        except Exception as error:  # noqa: BLE001 # as the real one does
            refused = refusal(error)
            await send(_head(refused.status, *refused.headers))
            await send({"type": "http.response.body", "body": refused.code.encode()})


def _asked(scope: "Scope") -> Asked:
    query = dict(parse_qsl(scope["query_string"].decode()))
    headers = dict(scope["headers"])
    return Asked(
        query.get("project"),
        query.get("user"),
        query.get("token", "t"),
        headers.get(b"last-event-id", b"").decode("latin-1"),
        Wanted(query.get("timeline"), frozenset(filter(None, query.get("kinds", "").split(",")))),
    )


def _head(status: int, *headers: tuple[str, str]) -> dict[str, Any]:
    spelt = [(name.encode(), value.encode()) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": spelt}


class Server(uvicorn.Server):
    """Says goodbye to the clients of the hub before it waits for them."""

    def __init__(self, hub: Hub) -> None:
        config = uvicorn.Config(
            App(hub),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._hub.close()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # its client does not read
        await asyncio.sleep(0)


class Live:
    """A server that runs."""

    def __init__(self, port: int, stop: Callable[[], None], hub: Hub) -> None:
        self.port = port
        self.stop = stop
        self.hub = hub

    def listen(self, *, project: str | None = "p", **options: Any) -> Listener:
        return Listener(self.port, project=project, **options)

    def resumed(self, listener: Listener, **options: Any) -> Listener:
        """The client comes again, with the id that it has seen last."""
        listener.__exit__()
        return self.listen(last=listener.last, **options)


@contextlib.contextmanager
def live(
    open_vault: OpenVault,
    encoding: Callable[[Event[Any]], dict[str, Any]] = encode,
    **options: Any,
) -> Iterator[Live]:
    hub = Hub(open_vault, encoding, **options)
    server = Server(hub)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()

        def stop() -> None:
            server.should_exit = True
            thread.join(LIMIT)
            assert not thread.is_alive()

        try:
            yield Live(listening.getsockname()[1], stop, hub)
        finally:
            stop()
