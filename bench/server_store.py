"""What a server serves that is measured: timelines as hooks of an agent save them."""

import random
from pathlib import Path

import hardsave
from bench.million_store import message
from bench.store_file import url

TALK = "talk"
"""A long conversation, two messages a checkpoint."""


def build(path: Path, timelines: int, talk: int) -> None:
    """So many timelines of five checkpoints, and one of `talk` checkpoints."""
    with hardsave.open(url(path), durability="process") as vault:
        _say(vault, TALK, talk)
        for at in range(timelines - 1):
            _say(vault, f"agent-{at:04}", 5)


def _say(vault: hardsave.Vault, name: str, checkpoints: int) -> None:
    """A tool call with its answer in each checkpoint."""
    chosen, line = random.Random(name), vault.timeline(name)  # no secret
    prompt = message(chosen, 0)["content"]
    for at in range(checkpoints):
        call = f"call-{at}"
        line.append(
            {"messages": [message(chosen, 0), message(chosen, 1)]},
            description="after Bash: make test",
            metadata={"agent": "coder", "session": name, "tool_use_id": call},
            step=hardsave.StepSummary(call="Bash(make test)", call_id=call, phase="after"),
            title=prompt,
        )
