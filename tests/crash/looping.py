"""An agent at work in processes that are killed: what it does, and what must hold.

Each tool writes down that it was called, in a file that has nothing to do with the store, and
then changes a file of the workspace. A process kills itself at a moment that it was told.
"""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pydantic_ai.models.anthropic  # now: a fork of this process has it already
import pydantic_ai.models.openai
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models import Model

import hardsave
from hardsave.runtime import loop
from tests.crash.events import Journal
from tests.crash.injector import Strike, watch
from tests.crash.talking import PROMPT


def model(wire: str, url: str) -> Model:
    if wire == "openai":
        provider = pydantic_ai.models.openai.OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return provider("deepseek-reasoner", provider=OpenAIProvider(base_url=url, api_key="none"))
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return pydantic_ai.models.anthropic.AnthropicModel(
        "claude-sonnet-4-5", provider=AnthropicProvider(base_url=url, api_key="none")
    )


class Moment:
    """When to die: at a save or an end like that, inside a tool, in the middle of a stream."""

    def __init__(self, text: str) -> None:
        self._kind, _, self._what = text.partition(" ")
        self._pieces = 0

    def saved(self, checkpoint: hardsave.Checkpoint) -> None:
        state = checkpoint.read()
        if self._kind == "turn" and state["turn"] == int(self._what) and not state["calls"]:
            self._die()
        states = Counter(call["state"] for call in state["calls"].values())
        ended = states.total() - states["began"]
        if self._kind == "begun" and state["turn"] == 1 and states.total() >= int(self._what):
            self._die()
        if self._kind == "ended" and state["turn"] == 1 and ended >= int(self._what):
            self._die()
        if self._kind == "paid" and state["turn"] == 2 and ended:
            self._die()
        if self._kind == "prompted" and not state["turn"]:
            self._die()
        if self._kind in ("completed", "waiting") and state["status"] == self._kind:
            self._die()
        if self._kind == "approved" and states["approved"]:
            self._die()

    def over(self, *about: object) -> None:
        """The end of a task is on record."""
        if self._kind == "over":
            self._die()

    def inside(self, tool: str) -> None:
        if self._kind == "inside" and self._what == tool:
            self._die()

    def streamed(self, event: Any) -> None:
        self._pieces += 1
        if self._kind == "piece" and self._pieces == int(self._what):
            self._die()

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def agent(
    model: Model, folder: Path, moment: Moment, *, careful: bool = False
) -> "Agent[None, str]":
    """With `careful` somebody has to allow that it pays."""
    made: Agent[None, str] = Agent(model, instructions="Be quick.")
    effects = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def effect(tool: str) -> None:
        os.write(effects, f"{tool}\n".encode())
        moment.inside(tool)

    @made.tool_plain
    async def make(name: str) -> str:
        effect(f"make {name}")
        (folder / "files" / name).write_text(f"file {name}")
        await asyncio.sleep(0.002 * "abc".index(name))  # they end one after the other
        return f"made {name}"

    @made.tool_plain(metadata=loop.if_unknown("retry"))
    def look() -> dict[str, Any]:
        effect("look")
        return {"price": 7, "currency": "EUR"}

    @made.tool_plain
    def correct() -> str:
        effect("correct")
        raise ModelRetry("not like that")

    @made.tool_plain(requires_approval=careful)
    def pay(amount: int) -> str:
        effect(f"pay {amount}")
        with (folder / "files" / "paid").open("a") as paid:
            paid.write(f"{amount}\n")
        return "paid"

    return made


def run(
    folder: str,
    url: str,
    wire: str,
    stream: bool,
    moment: str = "never",
    strike: tuple[int, Any, bool] | None = None,
    journal: str | None = None,
) -> dict[str, Any]:
    """One process: begins, or goes on with what another has left.

    It may also be struck at a call by which the store writes; the journal notes all of those.
    """
    place, when = Path(folder), Moment(moment)
    if strike is not None or journal is not None:
        planned = None if strike is None else Strike(*strike)
        watch(place / "store", planned, None if journal is None else Journal(Path(journal)))
    with hardsave.open(_url(folder)) as vault:
        vault.on("checkpoint_saved", when.saved)
        outcome = loop.run_sync(
            agent(model(wire, url), place, when),
            PROMPT,
            run_id="job",
            line=vault.timeline("job"),
            workspace=vault.workspace(place / "files"),
            events=when.streamed if stream else None,
        )
        return {
            "output": outcome.output,
            "turn": outcome.turn,
            "resumed": outcome.resumed,
            "requests": outcome.usage.requests,
            "tool_calls": outcome.usage.tool_calls,
            "failures": outcome.save_failures,
        }


def _url(folder: str) -> str:
    return f"sqlite:///{folder}/store/store.db"


def left(folder: str) -> dict[str, Any]:
    """What a dead process has left in the store."""
    with hardsave.open(_url(folder)) as vault:
        head = vault.timeline("job").head
        if head is None:
            return {"turn": 0, "calls": {}, "status": None}
        state = head.read()
        return {name: state[name] for name in ("turn", "calls", "status")}
