"""An agent of Pydantic AI that is killed in the middle of a tool, and goes on.

    python examples/frameworks/pydantic_agent.py sqlite:///notes.db notes
    python examples/frameworks/pydantic_agent.py sqlite:///notes.db notes

The first run dies while the third of three tools runs. The second one says which call has no end,
and has both results and the files: the model asks for the third note alone. No key is needed.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.step_persistence import StepPersistence

import hardsave
from hardsave.adapters.pydantic_ai import HardsaveStepStore

NOTES = ("one", "two", "three")


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Stands for a model: it asks for the first note that it has no result of."""
    parts = [part for message in messages for part in message.parts]
    results = {part.content for part in parts if isinstance(part, ToolReturnPart)}
    left = [note for note in NOTES if f"wrote {note}" not in results]
    if not left:
        return ModelResponse(parts=[TextPart("All written.")])
    return ModelResponse(parts=[ToolCallPart("write", {"note": left[0]}, tool_call_id=left[0])])


async def said(steps: HardsaveStepStore) -> list[ModelMessage]:
    """The conversation of the newest run; empty if there is none."""
    runs = await steps.list_runs()
    if not runs:
        return []
    for call in await steps.list_unresolved_tool_effects(run_id=runs[-1].run_id):
        print(f"not known to have ended: {call.tool_name} {call.tool_call_id}")
    snapshot = await steps.latest_snapshot(run_id=runs[-1].run_id)
    return snapshot.messages if snapshot else []


async def main(store: str, folder: Path) -> None:
    with hardsave.open(store) as vault:
        steps = HardsaveStepStore(vault, workspace=folder)
        agent = Agent(FunctionModel(answer), capabilities=[StepPersistence(store=steps)])
        history = await said(steps)

        @agent.tool_plain
        async def write(note: str) -> str:
            if not history and note == NOTES[-1]:
                os.kill(os.getpid(), signal.SIGKILL)
            (folder / note).write_text(note)
            print(f"wrote {note}", flush=True)
            return f"wrote {note}"

        done = await agent.run(None if history else "Write the notes.", message_history=history)
    print(done.output)


if __name__ == "__main__":
    notes = Path(sys.argv[2])
    notes.mkdir(exist_ok=True)
    asyncio.run(main(sys.argv[1], notes))
