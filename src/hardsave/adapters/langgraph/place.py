"""Where a checkpoint of a graph lies, and how it and its writes are put into a vault's. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    writes_sort_key,
)

import hardsave
from hardsave.adapters.langgraph.values import Values
from hardsave.tuples import NamedTuple

BESIDE = "__checkpoint__"  # the key of a state that holds what is not a channel's value
HELD_APART = ("channel_values", "id")  # of a checkpoint: the others are beside
NO_REWIND = "0"  # less than any id
_ESCAPE = "'"
Shared: TypeAlias = dict[bytes, Any]
"""Items of long lists as the graph had them, by the addresses of their objects."""


class Write(NamedTuple):
    """A pending write. Its note has the index and the task in its key, and the rest as its data."""

    path: str
    task: str
    place: int  # among the writes of its task
    channel: str
    value: Any  # as it is stored


class Place(NamedTuple):
    """A checkpoint of a thread; without an id the newest."""

    thread: str
    namespace: str = ""
    id: str | None = None

    @property
    def config(self) -> RunnableConfig:
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": self.id,
            }
        }


def place_of(config: RunnableConfig) -> Place:
    """Where a config points at."""
    said = config.get("configurable", {})
    if "thread_id" not in said:
        raise hardsave.Misuse('a config names its thread: {"configurable": {"thread_id": "…"}}')
    return Place(str(said["thread_id"]), said.get("checkpoint_ns") or "", said.get("checkpoint_id"))


def state_of(channels: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """The state that is saved: values of channels by their names, and the rest of the checkpoint
    beside; all plain."""
    return {**{escaped(name): value for name, value in channels.items()}, BESIDE: beside}


def checkpoint_of(
    id: str, state: Mapping[str, Any], values: Values, shared: Shared | None
) -> Checkpoint:
    made = {name: _value(state[name], values, shared) for name in state}
    beside = made.pop(BESIDE)
    channels = {_unescaped(name): value for name, value in made.items()}
    return cast(Checkpoint, {**beside, "id": id, "channel_values": channels})


def _value(stored: Any, values: Values, shared: Shared | None) -> Any:
    if isinstance(stored, hardsave.StateList) and shared is not None:
        return stored.made(values.revived, shared)
    is_view = isinstance(stored, hardsave.StateList | hardsave.StateMap)
    return values.revived(stored.load() if is_view else stored)


def tuple_of(
    found: hardsave.Checkpoint,
    thread: str,
    writes: Iterable[Write],
    values: Values,
    shared: Shared | None = None,
) -> CheckpointTuple:
    """What LangGraph gets; `writes` are those that count. Tuples with the same `shared` have
    the same items in their long lists: each is read and made once."""
    said = found.metadata
    place = Place(thread, said.get("ns", ""), said["id"])
    parent = said["parent"]
    metadata: CheckpointMetadata = values.revived(said["metadata"])
    return CheckpointTuple(
        place.config,
        checkpoint_of(said["id"], found.read() if shared is None else found.state, values, shared),
        metadata,
        None if parent is None else place._replace(id=parent).config,
        pending(writes, values),
    )


def escaped(name: str) -> str:
    """A channel that is called like our own key."""
    return name + _ESCAPE if name.startswith(BESIDE) else name


def _unescaped(name: str) -> str:
    return name[: -len(_ESCAPE)] if name.startswith(BESIDE) else name


class Notes(NamedTuple):
    """Writes of a task as notes. Those of tasks stay as they came first; special ones, such as an
    error, are replaced."""

    regular: dict[str, Any]
    special: dict[str, Any]


def notes_of(
    writes: Sequence[tuple[str, Any]], task: str, path: str, era: str, values: Values
) -> Notes:
    """`era` tells writes that came after a rewind to their checkpoint from those before: see
    `counted`."""
    notes = Notes({}, {})
    for at, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, at)
        kept = notes.regular if index >= 0 else notes.special
        kept[f"{era} {index} {task}"] = [path, channel, values.plain(value)]
    return notes


def counted(
    notes: Mapping[str, Any], era: str | None = None, *, before: str | None = None
) -> list[Write]:
    """The writes that count: those of an era, or of the last one that wrote any, which may have to
    lie before the checkpoint that they led to.

    After a rewind to a checkpoint its tasks are to run again, so what they wrote before must not
    count. An era is the id of the newest checkpoint there was by then, which is older than any that
    is put later; `NO_REWIND` without one.
    """
    found = [(key.split(" ", 2), note) for key, note in notes.items()]
    if era is None:
        eras = {key[0] for key, _ in found}
        era = max((each for each in eras if before is None or each < before), default=NO_REWIND)
    return [
        Write(path, task, int(index), channel, value)
        for (of, index, task), (path, channel, value) in found
        if of == era
    ]


def pending(writes: Iterable[Write], values: Values) -> list[PendingWrite]:
    """Writes in the order in which a step applies them."""
    ordered = sorted(writes, key=lambda write: writes_sort_key(*write[:3]))
    return [(each.task, each.channel, values.revived(each.value)) for each in ordered]
