"""A run of an agent that is killed at any moment, and goes on when it is started again.

    PYTHONPATH=. python survivor.py STORE FOLDER

Its tool writes `N.txt` into FOLDER/work and notes the number in the state of the user; that it has
begun is logged in FOLDER/begun. What the store has acknowledged is logged in FOLDER/told. The model
asks for the numbers that have no result yet, three at once.
"""

import asyncio
import os
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import hardsave
from hardsave.adapters.google_adk import HardsaveSessionService
from tests.frameworks.google_adk.scripted import Scripted, asked, calls, results, said

NUMBERS = 12
TOGETHER = 3
APP, USER, SESSION = "survivor", "ada", "killed"


def answer(request: LlmRequest) -> types.Content:
    there = {*results(request.contents)}
    left = [n for n in range(NUMBERS) if f"noted {n}" not in there]
    return calls("note", *({"number": n} for n in left[:TOGETHER])) if left else said("done")


class Told(HardsaveSessionService):
    """Logs what was saved before."""

    def __init__(self, vault: hardsave.Vault, folder: Path) -> None:
        super().__init__(vault, workspace=folder / "work")
        self._log = (folder / "told").open("a")

    async def append_event(self, session: Session, event: Event) -> Event:
        saved = await super().append_event(session, event)
        self._log.write(f"{event.id}\n")
        self._log.flush()
        os.fsync(self._log.fileno())
        return saved


async def main(store: str, folder: Path) -> None:
    work = folder / "work"
    work.mkdir(exist_ok=True)

    async def note(number: int, tool_context: ToolContext) -> str:
        """Note a number."""
        with (folder / "begun").open("a") as log:
            log.write(f"{number}\n")
        (work / f"{number}.txt").write_text(f"{number}\n")
        tool_context.state[f"user:{number}"] = number
        tool_context.state["last"] = number
        await asyncio.sleep(0.005)
        return f"noted {number}"

    agent = LlmAgent(name="notes", model=Scripted(answer=answer), tools=[note])
    with hardsave.open(store) as vault:
        runner = Runner(
            app_name=APP, agent=agent, session_service=Told(vault, folder), auto_create_session=True
        )
        async for _ in runner.run_async(
            user_id=USER, session_id=SESSION, new_message=asked("go on")
        ):
            pass


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
