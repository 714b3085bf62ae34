"""An agent of Google ADK that is killed in the middle of a tool, and goes on.

    python examples/frameworks/google_adk.py sqlite:///notes.db notes
    python examples/frameworks/google_adk.py sqlite:///notes.db notes

The first run dies while the third of three tools runs. The second one has what was said, both
results and the files: the model asks for the third note alone. No key is needed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai import types

import hardsave
from hardsave.adapters.google_adk import HardsaveSessionService

NOTES = ("one", "two", "three")


class Model(BaseLlm):
    """Stands for a model: it asks for the first note that it has no result of."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        responses = [part.function_response for part in parts if part.function_response]
        results = [each.response["result"] for each in responses if each.response]
        left = [note for note in NOTES if f"wrote {note}" not in results]
        part = types.Part(text="All written.")
        if left:
            part = types.Part.from_function_call(name="write", args={"note": left[0]})
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def main(store: str, folder: Path, *, is_first: bool) -> None:
    async def write(note: str) -> str:
        """Write a note."""
        if is_first and note == NOTES[-1]:
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / note).write_text(note)
        print(f"wrote {note}", flush=True)
        return f"wrote {note}"

    agent = LlmAgent(name="notes", model=Model(), tools=[write])
    message = types.Content(role="user", parts=[types.Part(text="Write the notes.")])
    with hardsave.open(store) as vault:
        sessions = HardsaveSessionService(vault, workspace=folder)
        runner = Runner(
            app_name="notes", agent=agent, session_service=sessions, auto_create_session=True
        )
        async for event in runner.run_async(user_id="ada", session_id="1", new_message=message):
            if event.is_final_response() and event.content and event.content.parts:
                print(event.content.parts[0].text)


if __name__ == "__main__":
    notes = Path(sys.argv[2])
    notes.mkdir(exist_ok=True)
    asyncio.run(main(sys.argv[1], notes, is_first=not any(notes.iterdir())))
