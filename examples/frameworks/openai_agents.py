"""An agent of the OpenAI Agents SDK that is killed in the middle of its tools, and goes on.

    python examples/frameworks/openai_agents.py sqlite:///notes.db notes
    python examples/frameworks/openai_agents.py sqlite:///notes.db notes

The first run dies while the third of three tools runs. The second one has the model's answer, both
results and the files: the model asks for the third note alone. No key is needed.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

import hardsave
from hardsave.adapters.openai_agents import HardsaveSession

NOTES = ("one", "two", "three")


def answer(call: Any) -> list[Any]:
    """Stands for a model: it asks for the notes that it has no result of."""
    results = {item.get("output") for item in call.input}
    left = [note for note in NOTES if f"wrote {note}" not in results]
    if not left:
        return [assistant_message("All written.")]
    return [
        function_call("write", {"note": note}, call_id=f"{note}-{len(call.input)}") for note in left
    ]


async def main(store: str, folder: Path, *, is_first: bool) -> None:
    @function_tool
    async def write(note: str) -> str:
        if is_first and note == NOTES[-1]:
            await asyncio.sleep(1)  # the two others are done by then
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / note).write_text(note)
        print(f"wrote {note}", flush=True)
        return f"wrote {note}"

    agent = Agent(
        name="notes", tools=[write], model=ScriptedModel([ModelStep.respond(answer)] * len(NOTES))
    )
    with hardsave.open(store) as vault:
        session = HardsaveSession("notes", vault, workspace=folder)
        done = await Runner.run(
            agent,
            "Write the notes.",
            session=session,
            hooks=session.hooks(),
            run_config=RunConfig(tracing_disabled=True),
        )
    print(done.final_output)


if __name__ == "__main__":
    notes = Path(sys.argv[2])
    notes.mkdir(exist_ok=True)
    asyncio.run(main(sys.argv[1], notes, is_first=not any(notes.iterdir())))
