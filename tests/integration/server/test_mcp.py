"""MCP over HTTP: the SDK's own client calls our tools, as far as its token allows."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from hardsave.server.caller import Scope
from hardsave.server.tokens import FILE, TokenFile, canonical
from tests.integration.server.conftest import Server, Start

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}
READING = {"log", "show", "diff", "search"}


@pytest.fixture
def server(start: Start) -> Server:
    return start()


def token(server: Server, scope: Scope, user: str | None = None) -> str:
    file = TokenFile(server.folder.parent / "data" / "hardsave" / FILE)
    store = canonical(server.store)
    return file.add(
        scope, store=store, user=user, scope=scope, now=datetime.now(UTC), expires_at=None
    )[1]


def with_client(
    server: Server, key: str, story: Callable[[Client], Awaitable[None]], query: str = ""
) -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{server.url}/mcp{query}", http_client=http)) as client,
        ):
            await story(client)

    asyncio.run(run())


def names(server: Server) -> set[str | None]:
    with server.vault() as vault:
        return {
            each.name
            for line in vault.timelines()
            for each in vault.timeline(line.name).checkpoints()
        }


def test_a_token_that_may_act_saves_and_goes_back(server: Server) -> None:
    file = server.folder / "a.txt"
    file.write_text("one\n")

    async def story(client: Client) -> None:
        assert {each.name for each in (await client.list_tools()).tools} == {
            *READING, "save", "rewind", "undo",
        }  # fmt: skip
        both = await asyncio.gather(*(client.call_tool("save", {"name": n}) for n in ("b", "c")))
        assert [each.is_error for each in both] == [False, False], both
        file.write_text("two\n")
        back = await client.call_tool("rewind", {"ref": "b", "apply": True})
        assert not back.is_error, back

    with_client(server, token(server, "act"), story)
    assert file.read_text() == "one\n"
    assert {"b", "c"} <= names(server)


def test_an_address_names_the_timeline_where_two_may_be_meant(server: Server) -> None:
    file, key = server.folder / "a.txt", token(server, "act")
    with server.vault() as vault:
        for name in ("one", "two", "one"):
            file.write_text(name)
            vault.timeline(name).append({"by": [name]}, workspace=server.folder)

    async def neither(client: Client) -> None:
        said = (await client.call_tool("save", {"name": "ready"})).content
        assert "say which in the address: /mcp?timeline=T" in str(said)

    async def told(client: Client) -> None:
        saved = await client.call_tool("save", {"name": "ready"})
        assert '"timeline": "one"' in str(saved.content)
        file.write_text("spoiled")
        assert not (await client.call_tool("rewind", {"ref": "ready", "apply": True})).is_error

    with_client(server, key, neither)
    with_client(server, key, told, "?timeline=one")
    assert file.read_text() == "one"  # as it was when it was saved


def test_a_token_that_may_read_sees_and_calls_reading_tools_alone(server: Server) -> None:
    async def story(client: Client) -> None:
        assert {each.name for each in (await client.list_tools()).tools} == READING
        assert not (await client.call_tool("log", {})).is_error
        with pytest.raises(MCPError, match="there is no such tool") as refused:
            await client.call_tool("save", {"name": "b"})
        assert refused.value.code == INVALID_PARAMS

    with_client(server, token(server, "read"), story)
    assert names(server) == set()


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Authorization": ""}, 401, "token"),
        ({"Authorization": "Bearer hs_wrong"}, 401, "token"),
        ({"Origin": "http://evil.example"}, 403, "origin"),
        ({"Host": "evil.example"}, 403, "host"),
    ],
)
def test_the_door_stands_before_it(
    server: Server, headers: dict[str, str], status: int, code: str
) -> None:
    sent = {key: value for key, value in {**server.bearer, **ACCEPT, **headers}.items() if value}
    got = server.call("POST", "/mcp", headers=sent, json=LIST)
    assert (got.status_code, got.json()["code"]) == (status, code)


def test_a_token_of_one_user_is_refused(server: Server) -> None:
    headers = {"Authorization": f"Bearer {token(server, 'act', 'alice')}", **ACCEPT}
    got = server.call("POST", "/mcp", headers=headers, json=LIST)
    assert (got.status_code, got.json()["code"]) == (403, "user")


def test_without_the_extra_it_says_what_to_install(start: Start, tmp_path: Any) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nold = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'mcp' else old(name, package)\n"
    )
    server = start(PYTHONPATH=str(hidden))
    got = server.call("POST", "/mcp", headers={**server.bearer, **ACCEPT}, json=LIST)
    assert got.status_code == 501
    assert "pip install 'hardsave[mcp]'" in json.dumps(got.json())
