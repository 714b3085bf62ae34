"""The server: speaks MCP over stdin and stdout, and runs each tool as a command in a child process.

So nothing is written twice, a fault of a command ends that command alone, and what a command prints
cannot get between the messages. Commands that write are run one after the other, and once begun
they end by themselves, also if a client cancels them or goes away. Needs the extra `mcp`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from hardsave.agents import interpreter
from hardsave.cli.mcp_server import answers, tools
from hardsave.cli.mcp_server.tools import Common
from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

_AT_ONCE = 4  # commands that only read
_INSTRUCTIONS = (
    "Checkpoints of this project's files. Save before a risky step, under a name. Look with log, "
    "show, diff and search. Go back with rewind: a preview first."
)


def run(common: Common) -> None:
    """Serve until stdin is closed, or a signal ends this process: at once, because a thread that
    reads stdin would wait for its client for ever. Commands that write go on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_serve(common))


async def _serve(common: Common) -> None:
    commands = Commands(common, tools.offered(common), None, None)
    server = commands.server()
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        await commands.end()


class _Ended(NamedTuple):
    """How a command has ended, and what it has printed on both streams."""

    code: int
    printed: str
    said: str


class Commands:
    """The tools of one server, and the commands that are under way."""

    def __init__(
        self,
        common: Common,
        offered: Sequence[tools.Tool],
        directory: str | None,
        environment: Mapping[str, str] | None,
    ) -> None:
        """Commands work in a directory with an environment; None: with those of this process."""
        self._common = common
        self._tools = {each.name: each for each in offered}
        self._directory, self._environment = directory, environment
        self._reading = asyncio.Semaphore(_AT_ONCE)
        self._writing = asyncio.Lock()  # else one of two at once finds that the head has moved
        self._begun: set[asyncio.Task[_Ended]] = set()
        python = [sys.executable, *interpreter.options(os.environ)]
        self._program = [*python, "-m", "hardsave"]

    def server(self) -> "Server[Any]":
        return Server(
            "hardsave",
            version=version("hardsave"),
            title="Hardsave",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(
        self, context: "ServerRequestContext[Any]", asked: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_described(each) for each in self._tools.values()])

    async def _call(
        self, context: "ServerRequestContext[Any]", asked: CallToolRequestParams
    ) -> CallToolResult:
        tool = self._tools.get(asked.name)
        if tool is None:
            # Not an answer of a tool: there is none. The specification has an error for it.
            known = ", ".join(self._tools)
            raise MCPError(INVALID_PARAMS, f"there is no such tool; there are {known}")
        try:
            words = tool.words(asked.arguments or {}, self._common)
        except Misuse as error:
            return _error(str(error))
        ended = await (self._written(words) if tool.writes else self._read(words))
        if ended.code != 0:
            said = answers.error(ended.printed, ended.said, ended.code)
            return _error(said.replace("with --timeline", self._common.how_to_tell))
        return _answer(answers.answer(ended.printed, ended.said))

    async def end(self) -> None:
        """Wait for the commands that write."""
        if self._begun:
            await asyncio.wait(self._begun)

    async def _read(self, words: Sequence[str]) -> _Ended:
        async with self._reading:
            child = await self._start(words)
            try:
                return await _end_of(child)
            except asyncio.CancelledError:
                child.kill()
                await child.wait()
                raise

    async def _written(self, words: Sequence[str]) -> _Ended:
        """In a task of its own: to cancel the call does not cancel what it has begun."""

        async def write() -> _Ended:
            async with self._writing:
                return await _end_of(await self._start(words))

        task = asyncio.create_task(write())
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return await asyncio.shield(task)

    async def _start(self, words: Sequence[str]) -> Process:
        """In a session of its own: what ends this process does not end a write in the middle."""
        return await asyncio.create_subprocess_exec(
            *self._program,
            *words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._directory,
            env=self._environment,
            start_new_session=True,
        )


async def _end_of(child: Process) -> _Ended:
    printed, said = await child.communicate()
    assert child.returncode is not None
    return _Ended(child.returncode, *(each.decode(errors="replace") for each in (printed, said)))


def _described(tool: tools.Tool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=tool.schema(),
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.is_destructive,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )


def _answer(found: dict[str, Any]) -> CallToolResult:
    """As data, and as text for clients that know of no data."""
    text = json.dumps(found, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=found)


def _error(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)
