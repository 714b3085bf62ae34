"""One agent at work in a process that may be killed: `python -m bench.survivor WHO FOLDER URL`.

The same three tools and the same scripted model, kept by whoever is asked for, and taken up
again as its documentation says. Each tool writes down that it had its effect in a file that has
nothing to do with any store. Prints the answer.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

PROMPT = "Make the three files, then pay"
PAUSE_SECONDS = 0.5
"""Between the ends of tools that run at once: whoever records results has time to."""

Tool = Callable[..., Awaitable[str]]


def tools(folder: Path, moment: str) -> tuple[Tool, Tool]:
    """`make` may be repeated; `pay` must not be."""

    def effect(what: str) -> None:
        with (folder / "effects").open("a") as file:
            file.write(f"{what}\n")

    def perhaps_die(at: str) -> None:
        if moment == at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def make(name: str) -> str:
        """Make a file."""
        await asyncio.sleep(PAUSE_SECONDS * "abc".index(name))
        perhaps_die(f"before {name}")
        effect(f"make {name}")
        (folder / "files" / name).write_text(name)
        return f"made {name}"

    async def pay(amount: int) -> str:
        """Pay."""
        effect("pay")
        perhaps_die("after pay")
        return f"paid {amount}"

    return make, pay


async def ours(folder: Path, url: str, make: Tool, pay: Tool) -> str:
    from pydantic_ai import Agent

    import hardsave
    from hardsave.runtime import loop

    agent: Agent[None, str] = Agent(_model(url))
    agent.tool_plain(metadata=loop.if_unknown("retry"))(make)
    agent.tool_plain(pay)
    with hardsave.open(f"sqlite:///{folder}/ours.db") as vault:
        outcome = await loop.run(
            agent,
            PROMPT,
            run_id="job",
            line=vault.timeline("job"),
            workspace=vault.workspace(folder / "files"),
        )
    return outcome.output


async def harness(folder: Path, url: str, make: Tool, pay: Tool) -> str:
    """Pydantic AI's StepPersistence: goes on from the newest snapshot, interrupted ones too."""
    from pydantic_ai import Agent
    from pydantic_ai_harness import StepPersistence
    from pydantic_ai_harness.step_persistence import SqliteStepStore, continue_run

    store = SqliteStepStore(database=folder / "harness.db")
    agent: Agent[None, str] = Agent(_model(url), capabilities=[StepPersistence(store=store)])
    agent.tool_plain(make)
    agent.tool_plain(pay)
    history = None
    for run in reversed(await store.list_runs(conversation_id="job")):
        try:
            history = await continue_run(store, run_id=run.run_id, include_interrupted=True)
            break
        except LookupError:  # nothing to go on from
            continue
    prompt = PROMPT if history is None else None
    result = await agent.run(prompt, message_history=history, conversation_id="job")
    return result.output


async def agents(folder: Path, url: str, make: Tool, pay: Tool) -> str:
    """OpenAI Agents' SQLiteSession: the session holds what was said, and is run again."""
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        Runner,
        SQLiteSession,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    agent = Agent(
        name="agent",
        model=OpenAIChatCompletionsModel("scripted", openai_client=client),
        tools=[function_tool(make), function_tool(pay)],
    )
    session = SQLiteSession("job", folder / "agents.db")
    is_begun = bool(await session.get_items())
    result = await Runner.run(agent, [] if is_begun else PROMPT, session=session)
    return str(result.final_output)


def _model(url: str) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    return OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))


KEEPERS = {"ours": ours, "harness": harness, "agents": agents}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("who", choices=KEEPERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--moment", default="")
    options = parser.parse_args()
    make, pay = tools(options.folder, options.moment)
    answer = asyncio.run(KEEPERS[options.who](options.folder, options.url, make, pay))
    if options.moment == "at the end":
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
    print(answer, flush=True)


if __name__ == "__main__":
    main()
