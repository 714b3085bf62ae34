"""A deep agent (LangGraph) that is killed in the middle of its files, and goes on.

    python examples/frameworks/deep_agent.py sqlite:///notes.db notes
    python examples/frameworks/deep_agent.py sqlite:///notes.db notes

The first run dies when the model is to ask for the third of three notes. The second one has the
conversation and the files of the last step: the model asks for the third note alone. No key is
needed.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig

import hardsave
from hardsave.adapters.deepagents import HardsaveBackend
from hardsave.adapters.langgraph import HardsaveSaver

NOTES = ("one", "two", "three")
THREAD: RunnableConfig = {"configurable": {"thread_id": "notes"}}


class Model(BaseChatModel):
    """Stands for a model: it asks for the first note that it has no result of."""

    is_first: bool

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        written = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
        note = next((each for each in NOTES if each not in written), None)
        if note == NOTES[-1] and self.is_first:
            os.kill(os.getpid(), signal.SIGKILL)
        return ChatResult(generations=[ChatGeneration(message=self._answer(note))])

    def _answer(self, note: str | None) -> AIMessage:
        if note is None:
            return AIMessage("All written.")
        print(f"asks for {note}", flush=True)
        what = {"file_path": f"/{note}", "content": note}
        return AIMessage("", tool_calls=[{"name": "write_file", "args": what, "id": note}])


def main(store: str, folder: Path) -> None:
    with hardsave.open(store) as vault:
        saver = HardsaveSaver(vault, workspace=folder)
        is_first = saver.checkpoint(THREAD) is None
        agent = create_deep_agent(
            Model(is_first=is_first), backend=HardsaveBackend(saver), checkpointer=saver
        )
        begin: Any = {"messages": [("user", "Write the notes.")]} if is_first else None
        done = agent.invoke(begin, THREAD, durability="sync")
    print(done["messages"][-1].content)


if __name__ == "__main__":
    notes = Path(sys.argv[2])
    notes.mkdir(exist_ok=True)
    main(sys.argv[1], notes)
