"""Agents for workers that tests start: no model is asked."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from hardsave.vault.jobs.state import Job
from tests.integration import job_files

CALLS = ("id-0", "id-1", "id-2")  # of a job that changes files


def echoing(told: Callable[[str], object]) -> Agent[Any, Any]:
    """Answers with its prompt, and tells that."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for each in messages for part in each.parts]
        prompt = next(str(part.content) for part in parts if isinstance(part, UserPromptPart))
        told(prompt)
        return ModelResponse(parts=[TextPart(prompt)])

    return Agent(FunctionModel(answer))


def filing(job: Job) -> Agent[None, Any]:
    """Changes files in each of three calls, slowly. What it writes says which attempt it was."""
    root, stamp = Path(str(job.spec.workspace)), job_files.stamp(job.lineage, job.attempts)

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn < len(CALLS):
            return ModelResponse(parts=[ToolCallPart("change", {}, tool_call_id=CALLS[turn])])
        return ModelResponse(parts=[TextPart("done")])

    agent: Agent[None, Any] = Agent(FunctionModel(say))

    @agent.tool
    def change(context: RunContext[None]) -> str:
        """Change some files, and add one."""
        for path in sorted(path for path in root.iterdir() if path.is_file())[::2]:
            path.write_text(f"{stamp}{path.name} {context.tool_call_id}\n")
            time.sleep(random.random() / 4)
        (root / f"made-{context.tool_call_id}").write_text(stamp)
        return "changed"

    return agent


def fated(job: Job) -> Agent[Any, Any]:
    """Its prompt says what becomes of each attempt: `die,fail,say`. The last one is repeated."""
    fates = job.spec.prompt.split(",")
    fate = fates[min(job.attempts, len(fates)) - 1]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if fate == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fate == "fail":
            raise RuntimeError("it fails")
        return ModelResponse(parts=[TextPart("said")])

    return Agent(FunctionModel(answer))
