"""A process in which an agent talks for a while, then turn by turn as it is told.

The loop runs a real agent whose model is a function: each turn it answers, a tool changes one
file, and three saves are made: of the response, of the tool's start, of its end with the files.
Only those are timed, all that the loop does for them included. Having talked for as long as it
was asked to, it prints `ready`, and then, for every line that it is sent, the seconds that the
saves of one more turn took.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

import hardsave
from bench.store_file import url
from hardsave.runtime import loop
from hardsave.runtime.loop.record import Record

SAVES = ("responded", "began", "ended")
USAGE = RequestUsage(input_tokens=100, output_tokens=100)  # else all words are counted each turn
WORDS = "It was the best of times, it was the worst of times. " * 10


class Talk:
    """What the saves of one turn have taken so far, and who waits for it."""

    def __init__(self, before: int) -> None:
        self._before = before
        self._spent = 0.0

    def is_over(self, turn: int) -> bool:
        """Called when all is saved of the turn before `turn`, with nothing begun of it."""
        if turn <= self._before:
            return False
        print("ready" if turn == self._before + 1 else self._spent, flush=True)
        told = sys.stdin.readline()
        self._spent = 0.0
        return not told

    def timed(self, plain: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def call(*args: Any, **kwargs: Any) -> None:
            begin = time.perf_counter()
            await plain(*args, **kwargs)
            self._spent += time.perf_counter() - begin

        return call


def talk(folder: Path, files: int, before: int) -> None:
    work = folder / "files"
    for number in range(files):
        path = _file(work, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    course = Talk(before)
    for name in SAVES:
        setattr(Record, name, course.timed(getattr(Record, name)))
    with hardsave.open(url(folder / "store.db")) as vault:
        asyncio.run(
            loop.run(
                _agent(work, files, course),
                "Go",
                line=vault.timeline("job"),
                workspace=vault.workspace(work),
                usage_limits=UsageLimits(request_limit=None),
            )
        )


def _agent(work: Path, files: int, course: Talk) -> Agent[None, str]:
    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = len(messages) // 2 + 1
        if course.is_over(turn):
            return ModelResponse(parts=[TextPart("done")], usage=USAGE)
        call = ToolCallPart("change", {"turn": turn}, tool_call_id=f"call-{turn}")
        return ModelResponse(parts=[TextPart(WORDS), call], usage=USAGE)

    agent: Agent[None, str] = Agent(FunctionModel(say))

    @agent.tool_plain
    def change(turn: int) -> str:
        """Change a file."""
        _file(work, turn * 7 % files).write_text(f"turn {turn}\n" * 20)
        return WORDS

    return agent


def _file(work: Path, number: int) -> Path:
    return work / f"d{number // 50}" / f"f{number}.txt"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--before", type=int, required=True)
    arguments = parser.parse_args()
    talk(arguments.folder, arguments.files, arguments.before)


if __name__ == "__main__":
    main()
