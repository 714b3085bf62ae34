"""Claude Code under its SDK that is killed in the middle of a tool, and goes on.

    python examples/frameworks/claude_sdk.py sqlite:///notes.db notes
    python examples/frameworks/claude_sdk.py sqlite:///notes.db notes

The first run dies while the third of three tools runs. The second one has what was said, both
results and the files, although its home is new: the model asks for the third note alone. Claude
Code is the real one, which comes with the SDK. The model is none, so no key is needed.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

import hardsave
from hardsave.adapters.claude_sdk import HardsaveSessionStore
from hardsave.runtime.scripted import Call, Reply, ScriptedModel

NOTES = ("one", "two", "three")
SESSION = "7d63e7b0-f288-46b6-abcd-2f90475a4877"
ASKED = [Reply(calls=(Call("mcp__notes__write", {"note": note}),)) for note in NOTES]
DONE = Reply("All written.")
# What is answered goes by how many answers the conversation has. Claude Code adds one where it was
# killed, after the call of the third note: then that note is asked for once more.
SCRIPT = [*ASKED, DONE, ASKED[-1], DONE]


async def main(store: str, folder: Path, model: str, home: str) -> None:
    with hardsave.open(store) as vault:
        is_first = not vault.sessions()
        sessions = HardsaveSessionStore(vault, workspace=folder)

        @tool("write", "Write a note.", {"note": str})
        async def write(call: dict[str, Any]) -> dict[str, Any]:
            note = call["note"]
            if is_first and note == NOTES[-1]:
                os.kill(os.getpid(), signal.SIGKILL)
            (folder / note).write_text(note)
            print(f"wrote {note}", flush=True)
            return {"content": [{"type": "text", "text": f"wrote {note}"}]}

        options = ClaudeAgentOptions(
            session_store=sessions,
            session_store_flush="eager",
            hooks=sessions.hooks(),
            session_id=SESSION if is_first else None,
            resume=None if is_first else SESSION,
            mcp_servers={"notes": create_sdk_mcp_server("notes", tools=[write])},
            allowed_tools=["mcp__notes__write"],
            setting_sources=[],
            cwd=folder,
            env={
                "ANTHROPIC_BASE_URL": model,
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CONFIG_DIR": home,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
        )
        prompt = "Write the notes." if is_first else "Go on."
        async for message in query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                print(message.result)


if __name__ == "__main__":
    notes = Path(sys.argv[2])
    notes.mkdir(exist_ok=True)
    with TemporaryDirectory() as home, ScriptedModel(SCRIPT) as model:
        asyncio.run(main(sys.argv[1], notes, model.anthropic_url, home))
