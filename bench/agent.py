"""What saving costs an agent, early and late in a long conversation on a workspace of many files.

The loop runs a real agent whose model is a function: each turn it answers, a tool changes one
file, and three saves are made: of the response, of the tool's start, of its end with the files.
Only those are timed, all that the loop does for them included.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

import hardsave
from bench import report
from bench.machine import check
from bench.report import Row, at_most
from bench.setting import Setting
from bench.stopwatch import median
from hardsave.runtime import loop
from hardsave.runtime.loop.record import Record

FILES = 1_000
EARLY = 20
SPAN = 40  # turns that are compared, around each of the two
SAVES = ("responded", "began", "ended")
USAGE = RequestUsage(input_tokens=100, output_tokens=100)  # else all words are counted each turn
WORDS = "It was the best of times, it was the worst of times. " * 10


def turns(setting: Setting) -> list[Row]:
    count = setting.choose(2_000, 200)
    folder = setting.place / "agent"
    costs = _costs(folder, count)
    early = costs[EARLY - SPAN // 2 : EARLY + SPAN // 2]
    late = costs[-SPAN:]
    check(len(costs) == count, f"{len(costs)} turns of {count} were timed")
    first, last = (median([cost / len(SAVES) for cost in some]) for some in (early, late))
    return [
        report.growth(
            f"a save of an agent, turn {count:,} / turn {EARLY}, {FILES:,} files",
            last,
            first,
            at_most(1.3),
            names=(f"turn {count:,}", f"turn {EARLY}"),
            note=f"medians of {SPAN} turns, three saves each: a response of 500 characters, the "
            "start of a tool, its end with one file changed; watched, synced",
        ),
        Row(
            f"a save of an agent at turn {count:,}",
            ours=report.duration(last),
            value=last * 1_000,
            unit="ms",
            target=at_most(10),
        ),
    ]


def _costs(folder: Path, count: int) -> list[float]:
    """Seconds of saving, by turn."""
    files = folder / "files"
    for number in range(FILES):
        path = files / f"d{number // 50}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    spent = [0.0] * (count + 1)
    with _timed(spent), hardsave.open(f"sqlite:///{folder}/store.db") as vault:
        asyncio.run(
            loop.run(
                _agent(files, count),
                "Go",
                line=vault.timeline("job"),
                workspace=vault.workspace(files),
                usage_limits=UsageLimits(request_limit=None),
            )
        )
    return spent[1:]


def _agent(files: Path, count: int) -> Agent[None, str]:
    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = len(messages) // 2 + 1
        if turn > count:
            return ModelResponse(parts=[TextPart("done")], usage=USAGE)
        call = ToolCallPart("change", {"turn": turn}, tool_call_id=f"call-{turn}")
        return ModelResponse(parts=[TextPart(WORDS), call], usage=USAGE)

    agent: Agent[None, str] = Agent(FunctionModel(say))

    @agent.tool_plain
    def change(turn: int) -> str:
        """Change a file."""
        at = turn * 7 % FILES
        (files / f"d{at // 50}" / f"f{at}.txt").write_text(f"turn {turn}\n" * 20)
        return WORDS

    return agent


class _timed:
    """While it lasts, what the loop's saves take is added up by turn."""

    def __init__(self, spent: list[float]) -> None:
        self._spent = spent
        self._plain: dict[str, Any] = {name: getattr(Record, name) for name in SAVES}

    def __enter__(self) -> None:
        for name, plain in self._plain.items():
            setattr(Record, name, self._wrapped(plain))

    def __exit__(self, *_: object) -> None:
        for name, plain in self._plain.items():
            setattr(Record, name, plain)

    def _wrapped(self, plain: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def call(record: Record, *args: Any, **kwargs: Any) -> None:
            begin = time.perf_counter()
            await plain(record, *args, **kwargs)
            turn = record.conversation.turn
            if turn < len(self._spent):
                self._spent[turn] += time.perf_counter() - begin

        return call
