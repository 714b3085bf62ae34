"""A workflow of Microsoft Agent Framework that is killed in the middle of a step, and goes on.

    python examples/frameworks/agent_workflow.py sqlite:///notes.db notes
    python examples/frameworks/agent_workflow.py sqlite:///notes.db notes

The first run dies while the third of three notes is written. The second one has the workflow and
the files of the last superstep: the third note, which was asked for, is written. No key is needed.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import hardsave
from hardsave.adapters.agent_framework import HardsaveCheckpointStorage

NAME, NOTES = "notes", ("one", "two", "three")


class Model(Executor):
    """Stands for a model: it asks for the first note that it has no result of."""

    @handler
    async def answer(self, message: str, context: WorkflowContext[str, str]) -> None:
        said = [*context.get_state("said", []), message]
        context.set_state("said", said)
        left = [note for note in NOTES if f"wrote {note}" not in said]
        if left:
            print(f"asks for {left[0]}", flush=True)
            await context.send_message(left[0])
        else:
            await context.yield_output("All written.")


class Tool(Executor):
    """Writes a note."""

    def __init__(self, id: str, folder: Path, *, is_first: bool) -> None:
        super().__init__(id=id)
        self._folder, self._is_first = folder, is_first

    @handler
    async def write(self, note: str, context: WorkflowContext[str]) -> None:
        if self._is_first and note == NOTES[-1]:
            os.kill(os.getpid(), signal.SIGKILL)
        (self._folder / note).write_text(note)
        print(f"wrote {note}", flush=True)
        await context.send_message(f"wrote {note}")


async def main(store: str, folder: Path) -> None:
    with hardsave.open(store) as vault:
        storage = HardsaveCheckpointStorage(vault, workspace=folder)
        latest = await storage.get_latest(workflow_name=NAME)
        model, tool = Model(id="model"), Tool("tool", folder, is_first=latest is None)
        builder = WorkflowBuilder(start_executor=model, checkpoint_storage=storage, name=NAME)
        workflow = builder.add_edge(model, tool).add_edge(tool, model).build()
        if latest is None:
            done = await workflow.run("Write the notes.")
        else:
            done = await workflow.run(checkpoint_id=latest.checkpoint_id)
    print(*done.get_outputs())


if __name__ == "__main__":
    notes = Path(sys.argv[2])
    notes.mkdir(exist_ok=True)
    asyncio.run(main(sys.argv[1], notes))
