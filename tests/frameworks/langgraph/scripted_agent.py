"""A deep agent with a scripted model: each answer writes a file and looks at another, to the end.

Run as a program it goes on with its thread, and writes a line for each put that has returned.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

import hardsave
from hardsave.adapters.deepagents import HardsaveBackend
from hardsave.adapters.langgraph import HardsaveSaver

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000}


class Scripted(BaseChatModel):
    """Says what comes next from what was said: a run that goes on gets the same answers."""

    turns: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = sum(isinstance(each, AIMessage) for each in messages)
        said = AIMessage("done") if turn == self.turns else AIMessage("", tool_calls=_calls(turn))
        return ChatResult(generations=[ChatGeneration(message=said)])


def _calls(turn: int) -> list[Any]:
    write = {"file_path": f"/f{turn}.txt", "content": f"of turn {turn}\n" * 20}
    return [
        {"name": "write_file", "args": write, "id": f"write-{turn}"},
        {"name": "ls", "args": {"path": "/"}, "id": f"ls-{turn}"},
    ]


def written(messages: Sequence[BaseMessage]) -> set[str]:
    """The files that a conversation has written."""
    calls = [each.tool_call_id for each in messages if isinstance(each, ToolMessage)]
    ids = [call.removeprefix("write-") for call in calls if call.startswith("write-")]
    return {f"f{id}.txt" for id in ids}


def agent(saver: HardsaveSaver, turns: int) -> Any:
    return create_deep_agent(
        Scripted(turns=turns), backend=HardsaveBackend(saver), checkpointer=saver
    )


class Telling(HardsaveSaver):
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        done = super().put(config, checkpoint, metadata, new_versions)
        os.write(1, f"put {checkpoint['id']}\n".encode())
        return done

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        super().put_writes(config, writes, task_id, task_path)
        at = config["configurable"]["checkpoint_id"]
        os.write(1, f"writes {at} {task_id} {len(writes)}\n".encode())


def main(folder: Path, turns: int, durability: Any) -> None:
    with hardsave.open(f"sqlite:///{folder}/store.db") as vault:
        saver = Telling(vault, workspace=folder / "work")
        graph = agent(saver, turns)
        begun = graph.get_state(THREAD).created_at is not None
        begin = None if begun else {"messages": [("user", "begin")]}
        graph.invoke(begin, THREAD, durability=durability)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
