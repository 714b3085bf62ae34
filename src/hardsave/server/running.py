"""Starts and stops the server: the socket, uvicorn, and the first request that it answers."""

import asyncio
import http.client
import logging
import signal
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import uvicorn

from hardsave.defaults import SERVER_CACHE_BYTES, STOP_SECONDS
from hardsave.errors import Misuse, Unavailable
from hardsave.server import running_servers
from hardsave.server.access import Access
from hardsave.server.app import App
from hardsave.server.connection import Connection
from hardsave.server.door import LOOPBACK_NAMES, is_loopback
from hardsave.server.projects import Catalogue
from hardsave.server.public import Public, check_prefix
from hardsave.server.route import Allowed, Route
from hardsave.server.table import ROUTES
from hardsave.server.tokens import LiveTokens, canonical, new_secret
from hardsave.server.vaults import Vaults
from hardsave.stores import object_cache
from hardsave.tuples import NamedTuple

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 # and one to reach it at
_FIRST_SECONDS = 10.0  # that the first request may take
_LAST_SECONDS = 0.5  # that requests have to say that the server stops


class Serving(NamedTuple):
    """What the server was told."""

    host: str
    port: int
    open_loopback: bool
    allowed: Allowed
    public: Public = Public()


class Ready(NamedTuple):
    """How the server is reached, once it has answered a request."""

    url: str  # on this machine
    token: str
    link: str
    public_url: str | None


def check(serving: Serving, tokens: LiveTokens, catalogue: Catalogue) -> None:
    """Whether the server may be started like this: past this machine only with tokens."""
    check_prefix(serving.public, (row.path for row in ROUTES))
    if serving.open_loopback and serving.public.url:
        raise Misuse(
            "--open-loopback lets callers of this machine in without a token, and behind "
            "--public-url all requests come from there; leave one of the two out"
        )
    if is_loopback(serving.host):
        return
    if serving.open_loopback:
        raise Misuse(
            f"--open-loopback lets callers in without a token, and {serving.host} can be reached "
            "from other machines; leave one of the two out"
        )
    now = datetime.now(UTC)
    counting = (each for each in tokens.now() if not each.is_expired(now))
    if all(catalogue.seen_with(each) == frozenset() for each in counting):
        more = " --all-projects" if catalogue.is_all else ""
        raise Misuse(
            f"{serving.host} can be reached from other machines, and there is no token for what "
            f"is served; make one with 'hardsave token add NAME{more}', or leave --host out"
        )


def serve(
    serving: Serving,
    tokens: LiveTokens,
    catalogue: Catalogue,
    on_ready: Callable[[Ready], None],
    routes: tuple[Route, ...] = ROUTES,
) -> None:
    """Serve until SIGINT or SIGTERM, after `check`. `on_ready` is called once a request was
    answered."""
    object_cache.keep_at_most(SERVER_CACHE_BYTES)
    own = new_secret()
    access = Access(tokens, catalogue, own=own, open_loopback=serving.open_loopback)
    vaults = Vaults()
    if not catalogue.is_all:  # before the address is taken: perhaps it cannot be opened
        with vaults.of(catalogue.default, None):
            pass
    listening = _listening(serving.host, serving.port)
    port = listening.getsockname()[1]
    access.logins.cookie = f"hardsave-{port}"  # cookies know no ports: two servers share a host
    app = App(
        vaults,
        access,
        catalogue=catalogue,
        names=_names(serving.host),
        public=serving.public,
        allowed=serving.allowed,
        routes=routes,
    )
    server = _Server(app)
    url = f"http://{_named(_EVERY_ADDRESS.get(serving.host, serving.host))}:{port}"
    outside = serving.public.url or None
    link = running_servers.link_of(outside or url, access.logins.new_key())
    ready = Ready(url, own, link, outside)
    first = threading.Thread(
        target=_announce, args=(server, listening, ready, on_ready), daemon=True
    )
    _stop_on_signals(server)
    first.start()
    only = None if catalogue.default is None else canonical(catalogue.default.store_url)
    running = running_servers.itself(url, outside, own, None if catalogue.is_all else only)
    try:
        with running_servers.server_file().told(running):
            server.run(sockets=[listening])
    finally:
        vaults.close()


class _Server(uvicorn.Server):
    """Says goodbye to the clients of streams before it waits for all others."""

    def __init__(self, app: App) -> None:
        super().__init__(_config(app))
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.close()
        await super().shutdown(sockets)
        if self.server_state.tasks:  # it has cancelled them: they answer so now
            await asyncio.wait(self.server_state.tasks, timeout=_LAST_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # its client does not read
        await asyncio.sleep(0)


def _config(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,  # one parser, also where others are installed
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # its lines have the query, and so the key of a link
        proxy_headers=False,  # any caller can write X-Forwarded-For
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM
        )[0]
        # asyncio sends an answer at once (TCP_NODELAY) only where the protocol is named. Else its
        # second part waits for the client, 40 ms on a connection that is kept.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(512)
    except OSError as error:
        raise Unavailable(
            f"{host}:{port} cannot be listened on ({error.strerror or error}); "
            "name another port with --port, 0 for any that is free"
        ) from error
    made.set_inheritable(True)
    return made


def _names(host: str) -> frozenset[str]:
    return LOOPBACK_NAMES | {_named(host).lower()}


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _stop_on_signals(server: uvicorn.Server) -> None:
    """Also a signal that comes before uvicorn listens for it stops the server. uvicorn raises the
    one that has stopped it once more, which then ends nothing: the exit code is 0."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))


def _announce(
    server: uvicorn.Server,
    listening: socket.socket,
    ready: Ready,
    on_ready: Callable[[Ready], None],
) -> None:
    address = listening.getsockname()
    host = _EVERY_ADDRESS.get(address[0], address[0])
    try:
        connection = http.client.HTTPConnection(host, address[1], timeout=_FIRST_SECONDS)
        connection.request("GET", "/healthz")
        answered = connection.getresponse().status == 200
        connection.close()
    except OSError:
        answered = False
    if answered:
        on_ready(ready)
    else:
        logging.getLogger(__name__).error("the server does not answer itself; it is stopped")
        server.should_exit = True
