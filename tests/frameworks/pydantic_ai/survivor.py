"""A run of Pydantic AI that is killed at any moment, and goes on when it is started again.

    python survivor.py STORE FOLDER

Its tool writes `N.txt` into FOLDER/work. What the store has acknowledged is logged in FOLDER/told.
"""

import asyncio
import os
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.step_persistence import StepPersistence, ToolEffectRecord

import hardsave
from hardsave.adapters.pydantic_ai import HardsaveStepStore

NUMBERS = 12
TOGETHER = 3


def noted(messages: list[ModelMessage]) -> set[int]:
    """The numbers whose notes a history has results of."""
    parts = [part for each in messages if isinstance(each, ModelRequest) for part in each.parts]
    texts = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
    return {int(text.removeprefix("noted ")) for text in texts if text.startswith("noted ")}


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    left = [n for n in range(NUMBERS) if n not in noted(messages)]
    if not left:
        return ModelResponse(parts=[TextPart("done")])
    calls = [
        ToolCallPart("note", {"number": n}, tool_call_id=f"call-{len(messages)}-{n}")
        for n in left[:TOGETHER]
    ]
    return ModelResponse(parts=calls)


class Told(HardsaveStepStore):
    """Logs what was saved before."""

    def __init__(self, vault: hardsave.Vault, folder: Path) -> None:
        super().__init__(vault, workspace=folder / "work")
        self._log = (folder / "told").open("a")

    async def record_tool_effect(self, record: ToolEffectRecord) -> None:
        await super().record_tool_effect(record)
        self._log.write(f"{record.run_id} {record.tool_call_id} {record.status}\n")
        self._log.flush()
        os.fsync(self._log.fileno())


async def main(store: str, folder: Path) -> None:
    with hardsave.open(store) as vault:
        steps = Told(vault, folder)
        agent = Agent(FunctionModel(answer), capabilities=[StepPersistence(store=steps)])

        @agent.tool_plain
        async def note(number: int) -> str:
            (folder / "work" / f"{number}.txt").write_text(str(number))
            await asyncio.sleep(0.005)
            return f"noted {number}"

        history: list[ModelMessage] = []
        for run in await steps.list_runs():
            found = await steps.latest_snapshot(run_id=run.run_id)
            history = history if found is None else found.messages
        await agent.run("go on", message_history=history)


if __name__ == "__main__":
    place = Path(sys.argv[2])
    (place / "work").mkdir(exist_ok=True)
    asyncio.run(main(sys.argv[1], place))
