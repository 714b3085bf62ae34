"""A project with jobs in every state, and agents that need no model."""

from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime.jobs.worker import Worker

AGENTS = """
from tests.unit.cli.jobs_project import agent

def shout(inputs):
    print("noise")
    return inputs.get("text", "").upper()

def fall(inputs):
    raise OSError("it is broken")

AGENTS = {"default": agent(), "shout": shout, "fall": fall}
NOTHING = 7
"""
FLOW = """
workflow: {name: loud}
steps:
  - {name: first, agent: shout, inputs: {text: hello}}
  - {name: second, agent: shout, inputs: {text: "${first} again"}}
"""


def agent(
    *, breaks: bool = False, careful: bool = False, notes: Path | None = None
) -> Agent[None, Any]:
    """Writes a note (into a file, if one is given), and says that it is done; or breaks before."""

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            args = {"text": "hello"}
            return ModelResponse(parts=[ToolCallPart("note", args, tool_call_id="id-1")])
        if breaks:
            raise OSError("the model is gone")
        return ModelResponse(parts=[TextPart("all done")])

    made: Agent[None, Any] = Agent(FunctionModel(say, model_name="scripted"))

    @made.tool_plain(requires_approval=careful)
    def note(text: str) -> str:
        """Write down."""
        if notes is not None:
            notes.write_text(notes.read_text() + text if notes.exists() else text)
        return f"noted {text}"

    return made


def make_jobs(project: Path) -> None:
    """Files, a job that has failed, one that asks, one that is done."""
    (project / "agents.py").write_text(AGENTS)
    (project / "flow.yaml").write_text(FLOW)
    with hardsave.open() as vault:
        jobs = vault.jobs
        for name in ("fix", "asks", "done"):
            jobs.add(name, f"Do {name}", agent=name, max_turns=10)
        agents = {"fix": agent(breaks=True), "asks": agent(careful=True), "done": agent()}
        Worker(vault, agents).run(until_idle=True)
        jobs.add("new", "Do new")
