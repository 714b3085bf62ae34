"""The tools as Pydantic AI takes them.

    agent = Agent("anthropic:claude-…", toolsets=[coding_tools("."), …])

Each says what becomes of it when a process dies inside: what only reads, and what writes a whole
file, is simply called again; about an edit or a command the model is told.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import FunctionToolset

from hardsave.runtime.coding import shell as shells
from hardsave.runtime.coding.files import Files
from hardsave.runtime.coding.text import Refused, both_ends
from hardsave.runtime.loop import if_unknown

TIMEOUT_SECONDS = 120.0
OUTPUT_BYTES = 32 * 1024

P = ParamSpec("P")


def coding_tools(
    workspace: "str | os.PathLike[str]",
    *,
    shell: bool = True,
    timeout_seconds: float = TIMEOUT_SECONDS,
    output_bytes: int = OUTPUT_BYTES,
    env: Mapping[str, str] | None = None,
) -> FunctionToolset[Any]:
    """read, write, edit, list, search and, unless `shell` is False, shell, in one directory.

    Commands get little of this process's environment, and no keys; `env` adds to it.
    """
    files = Files(workspace)
    tools: FunctionToolset[Any] = FunctionToolset(id="coding")
    again, told = if_unknown("retry"), if_unknown("ask")
    for function, policy, changes in (
        (_read(files), again, False),
        (_write(files), again, True),
        (_edit(files), told, True),
        (_list(files), again, False),
        (_search(files), again, False),
    ):
        # What changes something happens in the order in which it was asked for.
        tools.add_function(function, metadata=dict(policy), sequential=changes)
    if shell:
        surroundings = shells.environment(os.environ, env or {})
        command = _shell(os.fspath(workspace), surroundings, timeout_seconds, output_bytes)
        tools.add_function(command, metadata=dict(told), sequential=True)
    return tools


def _told(function: Callable[P, str]) -> Callable[P, Awaitable[str]]:
    """In a thread, and with what was refused told to the model."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return await asyncio.to_thread(function, *args, **kwargs)
        except Refused as error:
            raise ToolFailed(str(error)) from error

    return call


def _read(files: Files) -> Callable[..., Awaitable[str]]:
    @_told
    def read(path: str, start: int = 1, lines: int = 2000) -> str:
        """Read a text file, or some of its lines.

        Args:
            path: Relative to the workspace.
            start: The first line, counted from 1.
            lines: How many lines.
        """
        return files.read(path, start, lines)

    return read


def _write(files: Files) -> Callable[..., Awaitable[str]]:
    @_told
    def write(path: str, content: str) -> str:
        """Write a whole file. Directories are made as needed.

        Args:
            path: Relative to the workspace.
            content: All that the file holds from now on.
        """
        return files.write(path, content)

    return write


def _edit(files: Files) -> Callable[..., Awaitable[str]]:
    @_told
    def edit(path: str, old: str, new: str) -> str:
        """Replace a text in a file.

        Args:
            path: Relative to the workspace.
            old: What to replace; it must stand in the file exactly once.
            new: What stands there afterwards.
        """
        return files.edit(path, old, new)

    return edit


def _list(files: Files) -> Callable[..., Awaitable[str]]:
    @_told
    def list(path: str = ".") -> str:
        """List a directory. Directories end in "/", links in "@".

        Args:
            path: Relative to the workspace.
        """
        return files.list(path)

    return list


def _search(files: Files) -> Callable[..., Awaitable[str]]:
    @_told
    def search(text: str, path: str = ".", files_like: str = "*") -> str:
        """Find the lines that hold a text, in all files of a directory and below.

        Args:
            text: What to look for, as it is written.
            path: The directory, relative to the workspace.
            files_like: Only in files with a name like that, for example "*.py".
        """
        return files.search(text, path, files_like)

    return search


def _shell(
    directory: str, env: Mapping[str, str], timeout_seconds: float, output_bytes: int
) -> Callable[..., Awaitable[str]]:
    async def shell(command: str) -> str:
        """Run a command of the shell in the workspace. Background jobs that it leaves are ended.

        Args:
            command: As it is typed.
        """
        stop = threading.Event()
        try:
            ended = await asyncio.to_thread(
                shells.run,
                command,
                directory=directory,
                env=env,
                timeout_seconds=timeout_seconds,
                keep=output_bytes,
                stop=stop,
            )
        except Refused as error:
            raise ToolFailed(str(error)) from error
        finally:
            stop.set()  # if the run is cancelled, so is the command
        shown = both_ends(ended.head, ended.tail, ended.left_out)
        how = f"exit code {ended.code}" if ended.code is not None else _late(timeout_seconds)
        return f"{shown}\n[{how}]" if shown else f"[{how}]"

    return shell


def _late(timeout_seconds: float) -> str:
    return f"stopped after {timeout_seconds:g} seconds"
