"""The same tools over HTTP: the route `/mcp` of `hardsave serve`, behind its door.

Stateless: each request is answered as JSON by a server of its own, with the tools that its token
allows. A command works in the directory of the project, and saves in its store.
"""

import asyncio
import importlib.util
import json
import os
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from hardsave.cli.mcp_server import tools
from hardsave.cli.mcp_server.tools import Common, Tool
from hardsave.config import STORE_VARIABLE
from hardsave.server.errors import Refused
from hardsave.server.projects import Project
from hardsave.server.route import JSON, Answer, Call, Route

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import Message

_TIMELINE_VARIABLE = "HARDSAVE_TIMELINE"
_ALL = tools.offered(Common(allow_rewind=True))
_WRITING = frozenset(each.name for each in _ALL if each.writes)
_ONE_WRITES = threading.Lock()  # else one of two at once finds that the head has moved
_OF_THE_DOOR = frozenset({"authorization", "content-length", "cookie", "transfer-encoding"})


def handle(call: Call) -> Answer:
    if importlib.util.find_spec("mcp") is None:
        raise Refused(
            501, "extra", "this server has no MCP; install it with: pip install 'hardsave[mcp]'"
        )
    if call.caller.user is not None:
        raise Refused(
            403,
            "user",
            f"the token is of user {call.caller.user!r}, and MCP works with the files of the "
            "project; 'hardsave token add NAME' without --user makes one for that",
        )
    project = call.project
    if project is None or not os.path.isdir(project.directory):
        raise Refused(409, "directory", "the directory of this project is not on this machine")
    from hardsave.cli.mcp_server.server import Commands

    told = Common(
        timeline=call.query.get("timeline"),
        allow_rewind=True,
        how_to_tell="in the address: /mcp?timeline=T",
    )
    commands = Commands(told, _offered(call), project.directory, _told(project))
    with _ONE_WRITES if _is_write(call.body or {}) else nullcontext():
        return asyncio.run(_answer(call, commands.server()))


def _offered(call: Call) -> tuple[Tool, ...]:
    return _ALL if call.caller.may("act") else tuple(each for each in _ALL if not each.writes)


def _told(project: Project) -> dict[str, str]:
    """The environment of a command: no session and no timeline of this server's own."""
    kept = {name: value for name, value in os.environ.items() if name != _TIMELINE_VARIABLE}
    return {**kept, STORE_VARIABLE: project.store_url}


def _is_write(asked: Mapping[str, Any]) -> bool:
    params = asked.get("params")
    name = params.get("name") if isinstance(params, Mapping) else None
    return asked.get("method") == "tools/call" and isinstance(name, str) and name in _WRITING


async def _answer(call: Call, server: "Server[Any]") -> Answer:
    """What the SDK answers to this one request."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    parts: list[Message] = [
        {"type": "http.request", "body": json.dumps(call.body).encode(), "more_body": False}
    ]
    sent: list[Message] = []

    async def receive() -> "Message":
        if not parts:
            await asyncio.Event().wait()  # the body was read, and the client is not looked at
        return parts.pop()

    async def send(message: "Message") -> None:
        sent.append(message)

    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(_scope(call), receive, send)
    start = next(each for each in sent if each["type"] == "http.response.start")
    body = b"".join(each.get("body", b"") for each in sent if each["type"] == "http.response.body")
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], body, headers.get("content-type", JSON))


def _scope(call: Call) -> dict[str, Any]:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in call.headers.items()
        if name not in _OF_THE_DOOR
    ]
    where = {"path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "root_path": ""}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "headers": headers,
        **where,
    }


ROUTES = (Route("POST", "/mcp", handle, scope="read"),)
