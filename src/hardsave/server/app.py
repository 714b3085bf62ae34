"""The ASGI application: a request comes in, the door decides, a handler answers in its lane."""

import asyncio
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hardsave.defaults import MAX_REQUEST_BYTES
from hardsave.logs import log
from hardsave.server import door, errors
from hardsave.server.access import Access
from hardsave.server.body import read_form, read_json
from hardsave.server.caller import Caller
from hardsave.server.door import Seen
from hardsave.server.errors import Refused
from hardsave.server.lanes import Lane
from hardsave.server.projects import Catalogue, Project, chosen
from hardsave.server.public import Public
from hardsave.server.route import Allowed, Answer, Call, Route
from hardsave.server.table import ROUTES, Found, find
from hardsave.server.vaults import Vaults
from hardsave.values.text import dumps

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_NO_PROXY = Public()
_OPEN = Caller("", None, "read")  # the caller of a route that is open
_LONGEST_LOGGED = 200  # characters of a path
_BODY_SECONDS = 20  # that a body may take to arrive
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With `no-referrer` a browser sends `Origin: null` with the forms of our own pages, too.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


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
        self._lanes = {
            "quick": Lane("quick", threads=8, waiting=64),
            "write": Lane("write", threads=4, waiting=32),
        }

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            return
        began, request = time.monotonic(), Request(scope, receive)
        seen = _seen(request, self._public)
        found = find(seen.method, seen.raw_path, self._routes)
        id = secrets.token_hex(8)
        try:
            answer, caller = await self._answer(request, seen, found, id)
        except ClientDisconnect:
            return
        await _response(answer, id)(scope, receive, send)
        _log_access(seen, answer, caller, id, time.monotonic() - began)

    async def _answer(
        self, request: Request, seen: Seen, found: Found, id: str
    ) -> tuple[Answer, str]:
        caller: Caller | None = None
        try:
            caller = self._let_in(seen, found)
            if seen.method == "OPTIONS":
                return _options(found), "" if caller is None else caller.name
            door.check_body(seen, found)
            body = await self._body(request, seen, found, caller)
            answer = await self._handled(request, found, caller or _OPEN, body, id)
        except ClientDisconnect:
            raise
        except asyncio.CancelledError:  # the server stops, and has waited for long enough
            answer = self._refused(errors.stopping(), seen, found, caller, id)
        except Exception as error:  # noqa: BLE001 # each is answered, and a fault is logged
            answer = self._refused(error, seen, found, caller, id)
        return answer, "" if caller is None else caller.name

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

    async def _body(
        self, request: Request, seen: Seen, found: Found, caller: Caller | None
    ) -> dict[str, object] | None:
        data = b""
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for part in request.stream():
                    data += part
                    if len(data) > MAX_REQUEST_BYTES:
                        raise door.too_large()
        except TimeoutError as error:
            raise Refused(408, "timeout", "the body took too long to arrive; send it again") from (
                error
            )
        body: dict[str, object] | None = None
        if data:
            body = dict(read_form(data)) if found.is_page else read_json(data)
        if caller is not None and found.is_page and seen.method not in ("GET", "HEAD"):
            door.check_form(seen, caller, body)
        return body

    async def _handled(
        self,
        request: Request,
        found: Found,
        caller: Caller,
        body: dict[str, object] | None,
        id: str,
    ) -> Answer:
        assert found.route is not None  # the door has seen to it
        query = read_form(request.url.query.encode("ascii", "replace"))
        run = partial(self._run, found.route, found.path, query, body, caller, id)
        if found.route.runs_in == "loop":
            return run()
        return await self._lanes[found.route.runs_in].run(run)

    def _run(
        self,
        route: Route,
        path: dict[str, str],
        query: dict[str, str],
        body: dict[str, object] | None,
        caller: Caller,
        id: str,
    ) -> Answer:
        """In a thread: the handler, and its answer as bytes."""
        project = self._project(route, caller, query)
        with self._vaults.of(project, caller.user) as vault:
            call = Call(
                vault,
                path,
                query,
                body,
                caller,
                id,
                self._allowed,
                self._access.logins,
                project,
                self._catalogue,
                self._public,
            )
            return _in_bytes(route.handler(call))

    def _project(self, route: Route, caller: Caller, query: dict[str, str]) -> Project | None:
        """What the request is about; None: about no project, or about all of them."""
        if route.scope is None:  # a caller that is not known learns nothing of any project
            is_of_store = route.needs_project and not self._catalogue.is_all
            return self._catalogue.default if is_of_store else None
        if route.needs_project or not self._catalogue.is_all or "project" in query:
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
        return _in_bytes(errors.answer(refused, route, id, as_page=as_page, prefix=prefix))


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


def _in_bytes(answer: Answer) -> Answer:
    body = answer.body
    if isinstance(body, str):
        return answer._replace(body=body.encode("utf-8", "backslashreplace"))
    return answer if isinstance(body, bytes) else answer._replace(body=dumps(body).encode())


def _response(answer: Answer, id: str) -> Response:
    response = Response(answer.body, answer.status, media_type=answer.media_type)
    for name, value in {**_HEADERS, "X-Request-Id": id}.items():
        response.headers[name] = value
    for name, value in answer.headers:
        response.headers.append(name, value)
    return response


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
