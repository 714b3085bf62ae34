"""A real Claude Code under its SDK, which is killed at any moment, and goes on when started again.

    python survivor.py STORE FOLDER MODEL_URL

It works in FOLDER/work. What the store has acknowledged is logged in FOLDER/told, an id a line.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SessionKey, query

import hardsave
from hardsave.adapters.claude_sdk import HardsaveSessionStore

SESSION = "7d63e7b0-f288-46b6-abcd-2f90475a4877"


def environment(folder: Path, model: str) -> dict[str, str]:
    """Of a Claude Code that knows nothing but a model on this machine."""
    return {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


class Told(HardsaveSessionStore):
    """Logs the ids of entries that were saved."""

    def __init__(self, vault: hardsave.Vault, work: Path, log: Path) -> None:
        super().__init__(vault, workspace=work)
        self._log = log.open("a")

    async def append(self, key: SessionKey, entries: list[Any]) -> None:
        await super().append(key, entries)
        self._log.writelines(f"{entry['uuid']}\n" for entry in entries if "uuid" in entry)
        self._log.flush()
        os.fsync(self._log.fileno())


async def main(store: str, folder: Path, model: str) -> None:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with hardsave.open(store) as vault:
        sessions = Told(vault, work, folder / "told")
        is_new = not vault.sessions()
        options = ClaudeAgentOptions(
            session_store=sessions,
            session_store_flush="eager",
            hooks=sessions.hooks(),
            cwd=work,
            permission_mode="bypassPermissions",
            session_id=SESSION if is_new else None,
            resume=None if is_new else SESSION,
            env=environment(folder / f"home-{os.getpid()}", model),
        )
        async for message in query(prompt="go on", options=options):
            (folder / "heard").open("a").write(f"{type(message).__name__}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
