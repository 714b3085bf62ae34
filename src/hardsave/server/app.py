"""The ASGI application: a request comes in, the door decides, a handler answers in its lane."""

import asyncio
import secrets
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from hardsave import Vault
from hardsave.actor import acting_as
from hardsave.defaults import LIVE_CLIENTS
from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.progress import deadline, stop_when
from hardsave.server import door, errors
from hardsave.server.access import Access
from hardsave.server.api.data import event
from hardsave.server.body import DEEPEST_VALUE, read_form, read_json, read_value
from hardsave.server.caller import Caller
from hardsave.server.door import Seen
from hardsave.server.errors import Refused
from hardsave.server.fields import read_body, read_query
from hardsave.server.lanes import Lane
from hardsave.server.live.hub import Hub, Stream
from hardsave.server.live.response import send_body
from hardsave.server.projects import PROJECT, Catalogue, Project, chosen
from hardsave.server.public import Public
from hardsave.server.route import Allowed, Answer, Call, Route, Spec
from hardsave.server.sending import in_bytes, send_answer
from hardsave.server.table import ROUTES, Found, find
from hardsave.server.vaults import Vaults
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")

_NO_PROXY = Public()
_OPEN = Caller("", None, "read")  # the caller of a route that is open
_LONGEST_LOGGED = 200  # characters of a path
_BODY_SECONDS = 20  # that a body may take to arrive
_SECONDS = {
    "loop": 5.0,
    "quick": 20.0,
    "live": 20.0,
    "write": 60.0,
    "slow": 120.0,
    "search": 120.0,
    "upkeep": 3_600.0,
}
"""That a handler may take."""
_LOOK_SECONDS = 5.0  # after which a client of a stream is looked at again: its token may be revoked
_WATCHED = ("slow", "search", "upkeep")  # lanes whose calls end when their client goes away


class _Sent(NamedTuple):
    """A request that was let in, as the thread gets it that answers it."""

    route: Route
    path: dict[str, str]
    query: dict[str, str]
    data: bytes  # its body
    caller: Caller
    id: str
    headers: dict[str, str]


class App:
    """All that requests share. Runs in one event loop."""

    def __init__(
        self,
        vaults: Vaults,
        access: Access,
        *,
        catalogue: Catalogue,
        names: frozenset[str],
        public: Public = _NO_PROXY,
        allowed: Allowed,
        routes: tuple[Route, ...] = ROUTES,
    ) -> None:
        self._vaults = vaults
        self._access = access
        self._catalogue = catalogue
        self._names = names | {public.host} if public.host else names
        self._public = public
        self._allowed = allowed
        self._routes = routes
        stamps = catalogue.stamps if catalogue.is_all else None
        self._hub = Hub(self._open_vault, event, stamps=stamps)
        self._lanes = {
            "quick": Lane("quick", threads=8, waiting=64),
            # All clients of streams come again at once when a server is started again.
            "live": Lane("live", threads=2, waiting=LIVE_CLIENTS),
            "slow": Lane("slow", threads=2, waiting=32),
            # All searches wait for one that builds the index, and no state is to wait for them.
            "search": Lane("search", threads=2, waiting=32),
            "write": Lane("write", threads=4, waiting=32),
            "upkeep": Lane("upkeep", threads=1, waiting=8),
        }

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            return
        began, request = time.monotonic(), Request(scope, receive)
        seen = _seen(request, self._public)
        found = find(seen.method, seen.raw_path, self._routes)
        id = secrets.token_hex(8)
        try:
            async with AsyncExitStack() as streams:
                answer, caller, stream = await self._answer(request, seen, found, id, streams)
                await send_answer(answer, id, send)
                if stream is not None:
                    await self._told(stream, seen, found, request, send)
        except ClientDisconnect:
            return
        _log_access(seen, answer, caller, id, time.monotonic() - began)

    async def close(self) -> None:
        """Say goodbye to the clients of streams."""
        await self._hub.close()

    async def _answer(
        self, request: Request, seen: Seen, found: Found, id: str, streams: AsyncExitStack
    ) -> tuple[Answer, str, Stream | None]:
        caller: Caller | None = None
        stream: Stream | None = None
        try:
            caller = self._let_in(seen, found)
            if seen.method == "OPTIONS":
                return _options(found), "" if caller is None else caller.name, None
            door.check_body(seen, found)
            data = await _body(request, found)
            door.check_form(seen, found, caller, data)
            answer = await self._handled(request, seen, found, caller or _OPEN, data, id)
            if answer.live is not None and seen.method == "GET":
                stream = await streams.enter_async_context(self._hub.stream(answer.live))
            else:
                answer = answer._replace(live=None)  # HEAD is told no events
        except ClientDisconnect:
            raise
        except asyncio.CancelledError:  # the server stops, and has waited for long enough
            answer = self._refused(errors.stopping(), seen, found, caller, id)
        except Exception as error:  # noqa: BLE001 # each is answered, and a fault is logged
            answer = self._refused(error, seen, found, caller, id)
        return answer, "" if caller is None else caller.name, stream

    async def _told(
        self, stream: Stream, seen: Seen, found: Found, request: Request, send: "Send"
    ) -> None:
        """Tell a client what happens, until it goes away or is not let in any more."""
        telling = asyncio.ensure_future(send_body(stream, request.receive, send))
        try:
            while not (await asyncio.wait({telling}, timeout=_LOOK_SECONDS))[0]:
                self._let_in(seen, found)
            telling.result()
        except HardsaveError:
            # Its token was revoked, or tokens cannot be read: the stream ends here. The client is
            # told why when it asks for another.
            pass
        finally:
            telling.cancel()
            await asyncio.wait({telling})

    def _let_in(self, seen: Seen, found: Found) -> Caller | None:
        """The caller; None on a route that is open."""
        door.check_address(seen, self._names)
        door.check_site(seen, found)
        if found.route is not None and found.route.scope is None:
            return None
        caller = self._access.caller(seen, found)
        if caller is not None and seen.method == "OPTIONS" and found.methods:
            return caller
        door.check_caller(seen, found, caller)
        return caller

    async def _handled(
        self, request: Request, seen: Seen, found: Found, caller: Caller, data: bytes, id: str
    ) -> Answer:
        assert found.route is not None  # the door has seen to it
        # Names of files may be no UTF-8; the fields of a query say which are such names.
        stray = "strict" if found.route.spec is None else "surrogateescape"
        query = read_form(request.url.query.encode("ascii", "replace"), errors=stray)
        headers = {name: values[0] for name, values in seen.headers.items()}
        sent = _Sent(found.route, found.path, query, data, caller, id, headers)
        if found.route.runs_in == "loop":
            return self._run(sent, threading.Event())
        lane, gone = self._lanes[found.route.runs_in], threading.Event()
        running = lane.run(partial(self._run, sent, gone))
        if found.route.runs_in not in _WATCHED:
            return await running
        try:
            return await _while_there(request, running)
        except ClientDisconnect:
            gone.set()
            raise

    def _run(self, sent: _Sent, gone: threading.Event) -> Answer:
        """In a thread: the handler, and its answer as bytes."""
        route = sent.route
        body = _parsed(sent)
        asked = {} if route.spec is None else _asked(route.spec, sent.query, body)
        project = self._project(route, sent.caller, sent.query)
        with (
            acting_as(sent.caller.name) if sent.caller.name else nullcontext(),
            stop_when(gone.is_set),
            deadline(_SECONDS[route.runs_in]),
            self._vaults.of(project, sent.caller.user) as vault,
        ):
            call = Call(
                vault,
                sent.path,
                sent.query,
                body,
                sent.caller,
                sent.id,
                self._allowed,
                self._access.logins,
                sent.headers,
                asked,
                project,
                self._catalogue,
                self._public,
            )
            return in_bytes(route.handler(call), sent.headers.get("accept-encoding"))

    @contextmanager
    def _open_vault(self, project: str, user: str | None) -> Iterator[Vault]:
        """For the hub, which knows projects by their ids."""
        with self._vaults.of(self._catalogue.get(project), user) as vault:
            yield vault

    def _project(self, route: Route, caller: Caller, query: dict[str, str]) -> Project | None:
        """What the request is about; None: about no project, or about all of them."""
        if route.scope is None:  # a caller that is not known learns nothing of any project
            is_of_store = route.needs_project and not self._catalogue.is_all
            return self._catalogue.default if is_of_store else None
        if route.needs_project or not self._catalogue.is_all or PROJECT in query:
            return chosen(self._catalogue, caller, query)
        return None

    def _refused(
        self, error: Exception, seen: Seen, found: Found, caller: Caller | None, id: str
    ) -> Answer:
        route = found.route
        refused = errors.refusal(error, documented=route is not None and route.documented)
        if refused.code == "login":
            refused = self._access.wrong(seen.peer, refused)
        if refused.code == "fault":
            log(__name__).error("request %s: a fault", id, exc_info=error)
        if caller is None and errors.is_of_files(refused):
            log(__name__).error("request %s: %s", id, refused)
            refused = errors.without_detail(refused)
        as_page = found.is_page or (route is None and door.prefers_html(seen))
        prefix = self._public.prefix
        return in_bytes(errors.answer(refused, route, id, as_page=as_page, prefix=prefix))


async def _body(request: Request, found: Found) -> bytes:
    most, parts, length = door.most_bytes(found), [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                parts.append(part)
                length += len(part)
                if length > most:
                    raise door.too_large(most)
    except TimeoutError as error:
        raise Refused(408, "timeout", "the body took too long to arrive; send it again") from error
    return b"".join(parts)


def _parsed(sent: _Sent) -> dict[str, Any] | None:
    if not sent.data:
        return None
    if sent.route.page:
        return dict(read_form(sent.data))
    return (
        read_json(sent.data)
        if sent.route.spec is None
        else read_json(sent.data, deepest=DEEPEST_VALUE)
    )


def _asked(spec: Spec, query: dict[str, str], body: dict[str, Any] | None) -> dict[str, Any]:
    """What a request says, as its route has declared it. A project is chosen before."""
    given = {name: value for name, value in query.items() if name != PROJECT}
    found = read_query(spec.query, given, read_value)
    return found if spec.body is None else {**found, **read_body(spec.body, body or {})}


async def _while_there(request: Request, work: "Coroutine[Any, Any, T]") -> T:
    """What the work comes to; it is cancelled if its client goes away, `ClientDisconnect`."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # the body was read: only the end can come
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


def _seen(request: Request, public: Public) -> Seen:
    scope = request.scope
    raw = scope.get("raw_path") or scope["path"].encode()
    return Seen(
        method=scope["method"],
        raw_path=public.inner(raw.partition(b"?")[0].decode("latin-1")),
        headers=door.headers_of(scope["headers"]),
        peer=(scope.get("client") or ("", 0))[0],
        local=(scope.get("server") or ("", 0))[0],
        public=public,
    )


def _options(found: Found) -> Answer:
    return Answer(204, b"", headers=(("Allow", ", ".join(door.methods(found))),))


def _log_access(seen: Seen, answer: Answer, caller: str, id: str, seconds: float) -> None:
    """Neither the query nor any header: keys and tokens are there."""
    log("hardsave.access").info(
        "%s %s %s %s %.0f ms %s",
        seen.peer,
        seen.method,
        seen.raw_path[:_LONGEST_LOGGED],
        answer.status,
        seconds * 1_000,
        f"{caller or '-'} {id}",
    )
