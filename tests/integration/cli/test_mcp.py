"""`hardsave mcp` as a process, and the SDK's own client."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Tool

HARDSAVE = [sys.executable, "-P", "-m", "hardsave"]
MEGABYTE = "x" * 1_000_000


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


class Caller:
    """A client that is connected."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> dict[str, Tool]:
        return {each.name: each for each in (await self._client.list_tools()).tools}

    async def call(self, tool: str, **given: Any) -> Any:
        """The data of an answer."""
        found = await self.answer(tool, **given)
        assert not found.is_error, found
        assert isinstance(found.structured_content, dict)
        assert json.loads(_text(found)) == found.structured_content
        return found.structured_content["result"]

    async def error(self, tool: str, **given: Any) -> str:
        found = await self.answer(tool, **given)
        assert found.is_error, found
        return _text(found)

    async def answer(self, tool: str, **given: Any) -> CallToolResult:
        found = await self._client.call_tool(tool, given)
        assert isinstance(found, CallToolResult)
        return found


def _text(found: CallToolResult) -> str:
    (block,) = found.content
    assert block.type == "text"
    return block.text


Connect = Callable[..., None]


@pytest.fixture
def connect(project: Path, environment: dict[str, str]) -> Connect:
    """Runs a coroutine with a client of a server that was started in the project."""

    def connect(story: Callable[[Caller], Awaitable[None]], *options: str, **more: str) -> None:
        async def run() -> None:
            words = [*HARDSAVE[1:], "mcp", *options]
            server = StdioServerParameters(
                command=HARDSAVE[0], args=words, env={**environment, **more}, cwd=project
            )
            async with Client(stdio_client(server)) as client:
                await story(Caller(client))

        asyncio.run(asyncio.wait_for(run(), 100))

    return connect


def test_an_agent_saves_breaks_looks_and_goes_back(connect: Connect, project: Path) -> None:
    file = project / "a.txt"

    async def story(caller: Caller) -> None:
        assert [*await caller.tools()] == [
            *("save", "log", "show", "diff", "search", "rewind", "undo")
        ]
        saved = await caller.call("save", name="--help", message="tests are green")
        assert (saved["ref"], saved["name"]) == ("main:1", "--help")
        file.write_text("broken\n")
        (project / "left.txt").write_text("over\n")
        found = await caller.call("diff")
        assert found["files"] == {"added": ["left.txt"], "removed": [], "changed": ["a.txt"]}
        assert "-one\n+broken" in found["patches"]["a.txt"]
        assert (await caller.call("diff", old="main:1", new="now", paths=["a.txt"], stat=True))[
            "insertions"
        ] == 1
        assert (await caller.call("show", ref="@"))["description"] == "tests are green"
        (hit,) = (await caller.call("search", text="green"))["hits"]
        assert hit["checkpoint"]["ref"] == "main:1"
        assert (await caller.call("log", limit=5))[0]["step"] == "tests are green"

        preview = await caller.call("rewind", ref="main:1")
        assert (preview["dry_run"], preview["files"]["changed"]) == (True, ["a.txt"])
        assert file.read_text() == "broken\n"
        await caller.call("rewind", ref="main:1", paths=["a.txt"], apply=True)
        assert (file.read_text(), (project / "left.txt").exists()) == ("one\n", True)
        await caller.call("rewind", ref="main:1", apply=True)
        assert not (project / "left.txt").exists()
        await caller.call("undo")
        assert (project / "left.txt").read_text() == "over\n"

    connect(story, "--allow-rewind")


def test_without_permission_a_rewind_is_a_preview_and_nothing_changes(
    connect: Connect, project: Path
) -> None:
    async def story(caller: Caller) -> None:
        await caller.call("save", name="first")
        (project / "a.txt").write_text("two\n")
        before = await caller.call("log")
        tools = await caller.tools()
        assert "undo" not in tools
        hints = tools["rewind"].annotations
        assert hints is not None
        assert hints.read_only_hint
        assert (await caller.call("rewind", ref="first"))["files"]["changed"] == ["a.txt"]
        assert "--allow-rewind" in await caller.error("rewind", ref="first", apply=True)
        with pytest.raises(MCPError, match="no such tool"):
            await caller.answer("undo")
        assert await caller.call("log") == before
        assert (project / "a.txt").read_text() == "two\n"

    connect(story)


def test_garbage_and_a_megabyte_are_answered_with_a_sentence(
    connect: Connect, project: Path
) -> None:
    async def story(caller: Caller) -> None:
        for tool in await caller.tools():
            assert "takes no 'path'" in await caller.error(tool, path="a.txt")
            assert len(await caller.error(tool, **{MEGABYTE: MEGABYTE})) < 1_000
        assert "'name' must be" in await caller.error("save", name=MEGABYTE)
        assert "'name' must be" in await caller.error("save", name={"a": [None]})
        assert "'paths' must be" in await caller.error("diff", paths=[MEGABYTE])
        assert "'limit' must be" in await caller.error("log", limit="3")
        assert "not found" in await caller.error("show", ref="--help")
        assert "not in the workspace" in await caller.error("diff", paths=["../.."])
        assert await caller.call("log") == []

    connect(story, "--allow-rewind")


def test_calls_at_once_are_all_answered(connect: Connect, project: Path) -> None:
    async def story(caller: Caller) -> None:
        saves = (caller.call("save", name=f"save-{number}") for number in range(3))
        reads = (caller.call("log") for _ in range(3))
        found = await asyncio.gather(*saves, *reads)
        assert sorted(each["ref"] for each in found[:3]) == ["main:1", "main:2", "main:3"]

    connect(story)


def test_saves_of_an_agent_go_to_the_timeline_of_its_session(
    connect: Connect, project: Path, environment: dict[str, str]
) -> None:
    """Two sessions are open here, and the other one was the last that saved."""
    session = "0b6e3c52-0000-4000-8000-000000000000"

    def save(name: str) -> None:
        command = [*HARDSAVE, "save", "--timeline", name, "--status", "running"]
        subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)

    save(f"claude-{session}")
    save("claude-other")

    async def of_session(caller: Caller) -> None:
        saved = await caller.call("save", name="mine")
        assert (saved["timeline"], saved["status"]) == (f"claude-{session}", "running")
        (project / "b.txt").write_text("the other's\n")
        save("claude-other")
        (project / "a.txt").write_text("broken\n")
        (kept, other) = (await caller.call("rewind", ref="mine"))["files"]["kept"]
        assert (kept["path"], other["path"]) == ("a.txt", "b.txt")
        assert "no timeline has saved that yet" in str(kept), "it may be of either"
        await caller.call("save")
        back = await caller.call("rewind", ref="mine", apply=True)
        assert back["timeline"] == f"claude-{session}"
        assert (project / "a.txt").read_text() == "one\n"
        assert (project / "b.txt").read_text() == "the other's\n"

    async def told(caller: Caller) -> None:
        assert (await caller.call("save"))["timeline"] == "mine"

    async def neither(caller: Caller) -> None:
        assert "say which with 'hardsave mcp --timeline T'" in await caller.error("save")

    connect(of_session, "--allow-rewind", CLAUDE_CODE_SESSION_ID=session)
    connect(neither)
    connect(told, "--timeline", "mine", CLAUDE_CODE_SESSION_ID=session)


# Its end


@contextmanager
def started(project: Path, environment: dict[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(
        [*HARDSAVE, "mcp"],
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def tell(process: "subprocess.Popen[bytes]", method: str, id: int | None = 1, **given: Any) -> None:
    assert process.stdin is not None
    message = {"jsonrpc": "2.0", "method": method, "params": given}
    numbered = message if id is None else {**message, "id": id}
    process.stdin.write(json.dumps(numbered).encode() + b"\n")
    process.stdin.flush()


def answer_to(process: "subprocess.Popen[bytes]", id: int) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = {}
    while found.get("id") != id:
        found = json.loads(process.stdout.readline())
    return found


def greet(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    about: dict[str, Any] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": client,
    }
    tell(process, "initialize", 1, **about)
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    tell(process, "notifications/initialized", None)
    return found


def test_it_ends_when_stdin_is_closed_and_a_save_under_way_is_made(
    project: Path, environment: dict[str, str]
) -> None:
    with started(project, environment) as process:
        assert greet(process)["result"]["serverInfo"]["name"] == "hardsave"
        tell(process, "tools/call", 2, name="save", arguments={"name": "last"})
        printed, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, b"")
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in printed.splitlines())
    command = [*HARDSAVE, "show", "last", "--json"]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_though_it_waits_for_its_client(
    number: int, project: Path, environment: dict[str, str]
) -> None:
    with started(project, environment) as process:
        greet(process)
        process.send_signal(number)
        end = time.monotonic() + 30
        while process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_lines_that_are_no_messages_leave_a_server_that_answers(
    project: Path, environment: dict[str, str]
) -> None:
    with started(project, environment) as process:
        greet(process)
        assert process.stdin is not None
        for line in (b"no json", b"\xff\xfe", b'{"jsonrpc": "2.0"}', b"[" * 5_000, b"1", b""):
            process.stdin.write(line + b"\n")
        tell(process, "tools/call", 4, name="save", arguments={"name": "after"})
        assert answer_to(process, 4)["result"]["structuredContent"]["result"]["name"] == "after"


def test_a_call_that_is_cancelled_leaves_a_server_that_answers(
    project: Path, environment: dict[str, str]
) -> None:
    with started(project, environment) as process:
        greet(process)
        for id in (2, 3):
            tell(process, "tools/call", id, name=("save", "log")[id - 2], arguments={})
            tell(process, "notifications/cancelled", None, requestId=id)
        tell(process, "tools/call", 4, name="save", arguments={"name": "after"})
        assert answer_to(process, 4)["result"]["structuredContent"]["result"]["name"] == "after"


def test_without_the_extra_one_sentence_names_it(
    project: Path, environment: dict[str, str]
) -> None:
    """A module that is None is one that is not installed."""
    program = "import sys; sys.modules['mcp'] = None; from hardsave.cli.main import main; "
    done = subprocess.run(
        [sys.executable, "-c", program + "sys.exit(main(['mcp']))"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'hardsave[mcp]'" in done.stderr
