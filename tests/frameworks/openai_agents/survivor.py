"""A run of an agent that is killed at any moment, and goes on when it is started again.

    python survivor.py STORE FOLDER

Its tool writes `N.txt` into FOLDER/work. What its hooks were told is logged in FOLDER/told, line by
line, after it was saved. The model asks for the numbers that have no result yet, three at once.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from agents import Agent, ModelResponse, RunContextWrapper, Runner, Tool, function_tool
from agents.lifecycle import RunHooks
from agents.run_config import RunConfig
from agents.testing import ModelStep, ScriptedModel
from agents.testing.model import ModelCall, assistant_message, function_call
from agents.tool_context import ToolContext

import hardsave
from hardsave.adapters.openai_agents import HardsaveSession

NUMBERS = 12
TOGETHER = 3
SESSION = "killed"


def results(items: list[Any]) -> dict[int, str]:
    """What came out of the calls in a conversation, by number; the last one of each."""
    asked = {
        item["call_id"]: json.loads(item["arguments"])["number"]
        for item in items
        if item.get("type") == "function_call"
    }
    answered = [item for item in items if item.get("type") == "function_call_output"]
    return {asked[item["call_id"]]: item["output"] for item in answered}


def answer(call: ModelCall) -> list[Any]:
    """What the model says: it asks for what was not noted yet."""
    items = call.input if isinstance(call.input, list) else []
    there = results(items)
    left = [n for n in range(NUMBERS) if there.get(n) != f"noted {n}"]
    if not left:
        return [assistant_message("done", item_id=f"said-{len(items)}")]
    return [
        function_call("note", {"number": n}, call_id=f"call-{len(items)}-{n}")
        for n in left[:TOGETHER]
    ]


class Told(RunHooks[Any]):
    """Logs what was saved before."""

    def __init__(self, path: Path) -> None:
        self.log = path.open("a")

    def tell(self, *words: object) -> None:
        self.log.write(" ".join(map(str, words)) + "\n")
        self.log.flush()
        os.fsync(self.log.fileno())

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        for item in response.to_input_items():
            if item.get("type") == "function_call":
                self.tell("asked", item["call_id"])  # type: ignore[typeddict-item] # it is a call

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        assert isinstance(context, ToolContext)
        self.tell("ended", context.tool_call_id)


async def main(store: str, folder: Path) -> None:
    work = folder / "work"
    work.mkdir(exist_ok=True)

    @function_tool
    async def note(number: int) -> str:
        (work / f"{number}.txt").write_text(f"{number}\n")
        await asyncio.sleep(0.005)
        return f"noted {number}"

    agent = Agent(
        name="notes",
        model=ScriptedModel([ModelStep.respond(answer)] * (NUMBERS * 3)),
        tools=[note],
    )
    with hardsave.open(store) as vault:
        session = HardsaveSession(SESSION, vault, workspace=work)
        await Runner.run(
            agent,
            "go on",
            session=session,
            hooks=session.hooks(Told(folder / "told")),
            run_config=RunConfig(tracing_disabled=True),
            max_turns=NUMBERS * 3,
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
