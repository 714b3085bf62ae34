"""Sessions for the tests of the page: an agent that works on a small project, step by step."""

from pathlib import Path
from typing import Any

import hardsave
from hardsave import Checkpoint, Timeline, Vault
from hardsave.timeline.step_summary import StepSummary

NAME = "shop"
FIRST = "def total(items):\n    return sum(items)\n"
SECOND = "from decimal import Decimal\n\n\ndef total(items):\n    return sum(items, Decimal(0))\n"
PROMPTS = ("Find out why the total is wrong", "Add a discount", "Keep the notes, only the discount")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(id: str, tool: str, **given: str) -> dict[str, Any]:
    used = {"type": "tool_use", "id": id, "name": tool, "input": given}
    return {"role": "assistant", "content": [used]}


def result(id: str, text: str) -> dict[str, Any]:
    said = {"type": "tool_result", "tool_use_id": id, "content": text}
    return {"role": "user", "content": [said]}


class Story:
    """A session that is told by its steps; each saves the files beside what was said."""

    def __init__(self, vault: Vault, project: Path, name: str = NAME) -> None:
        self.vault = vault
        self.project = project
        self.line: Timeline = vault.timeline(name)

    def put(self, path: str, text: str) -> None:
        (self.project / path).parent.mkdir(parents=True, exist_ok=True)
        (self.project / path).write_text(text)

    def read(self, path: str) -> str:
        return (self.project / path).read_text()

    def step(self, *messages: dict[str, Any], **about: Any) -> Checkpoint:
        told = {key: about.pop(key) for key in ("prompt", "call", "outside") if key in about}
        step = StepSummary(**told) if told else None
        return self.line.append(
            {"messages": list(messages)}, workspace=self.project, step=step, **about
        )

    def tell(self) -> "Story":
        """Seven steps: :1 to :3 fix the total, :4 to :6 go astray, :7 goes on from :3."""
        self.put("cart.py", FIRST)
        self.put("notes.md", "# Notes\n")
        self.put("lib/deep/rates.py", "RATE = 1\n")
        (self.project / "logo.bin").write_bytes(bytes(range(256)) * 10)
        self.step(user(PROMPTS[0]), prompt=PROMPTS[0], title="Fix the total", name="start")
        self.put("cart.py", SECOND)
        self.step(call("c1", "Edit", path="cart.py"), result("c1", "edited"), call="Edit(cart.py)")
        self.step(say("The total is exact now."), status="waiting")
        self.step(user(PROMPTS[1]), prompt=PROMPTS[1])
        self.put("discount.py", "RATE = 10\n")
        (self.project / "notes.md").unlink()
        self.step(
            call("c2", "Bash", command="git push"),
            result("c2", "pushed"),
            call="Bash(git push)",
            outside=("git push to origin",),
        )
        self.step(say("Pushed, and the notes are gone."), status="waiting")
        self.line.rewind(":3")
        self.step(user(PROMPTS[2]), prompt=PROMPTS[2])
        return self


def long_talk(vault: hardsave.Vault, messages: int = 10_000) -> Timeline:
    """A conversation whose messages are of many lengths, a prompt each hundred."""
    line = vault.timeline("long")
    for part in range(messages // 100):
        said = [
            say(f"Message {part * 100 + at}. " + "Words. " * (at * 7 % 90)) for at in range(100)
        ]
        said[0] = user(f"Prompt {part}")
        line.append({"messages": said}, step=StepSummary(prompt=f"Prompt {part}"))
    return line
