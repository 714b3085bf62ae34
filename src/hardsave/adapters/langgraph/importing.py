"""Threads of another saver, taken over: of LangGraph's for SQLite and PostgreSQL, or any other."""

from itertools import groupby
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple


def take_over(source: BaseCheckpointSaver[Any], target: BaseCheckpointSaver[Any]) -> int:
    """Put all that one saver has into another, the oldest first; how many checkpoints that were.
    What is there already is recognised by its id, so a second time goes on from the first."""
    configs = [each.config for each in source.list(None)]  # one tuple at a time is held
    for config in sorted(configs, key=_id):
        found = source.get_tuple(config)
        if found is not None:
            _put(target, found)
    return len(configs)


def _id(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


def _put(target: BaseCheckpointSaver[Any], found: CheckpointTuple) -> None:
    said = dict(found.config["configurable"])
    said.pop("checkpoint_id")
    above: RunnableConfig = found.parent_config or {"configurable": said}
    at = target.put(above, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
    # Tasks come in the order in which a step applies them: their place stands for their path.
    tasks = groupby(found.pending_writes or (), key=lambda write: write[0])
    for place, (task, writes) in enumerate(tasks):
        said_by = [(channel, value) for _, channel, value in writes]
        target.put_writes(at, said_by, task, f"{place:08}")
