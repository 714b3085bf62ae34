"""LangGraph's savers, called as LangGraph's own loop calls them.

`Saver` puts one whole checkpoint a turn. `DeltaSaver` stands for the delta channel (beta):
what a turn adds is stored with `put_writes`, then a checkpoint without the messages, or
with a snapshot of all of them every hundred updates. A real graph makes three checkpoints
a turn, so one is the kindest way to measure both.
"""

import sqlite3
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.payload import Message
from bench.stopwatch import timed

Form = Callable[[list[Message]], list[Any]]

THREAD = {"configurable": {"thread_id": "main", "checkpoint_ns": ""}}


def as_dicts(messages: list[Message]) -> list[Any]:
    """Messages as a channel with a plain reducer (`operator.add`) holds them."""
    return list(messages)


def as_objects(messages: list[Message]) -> list[Any]:
    """Messages as `add_messages`, of MessagesState and the prebuilt agents, holds them."""
    return [
        (HumanMessage if message["role"] == "user" else AIMessage)(
            message["content"], id=str(uuid.UUID(int=number))
        )
        for number, message in enumerate(messages)
    ]


def open_saver(path: Path) -> Any:
    """A SqliteSaver that syncs every commit, as our stores do."""
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    saver = SqliteSaver(connection)
    saver.setup()
    return saver


def pragmas(saver: Any) -> str:
    """The pragmas in force, read back."""
    return ", ".join(
        f"{name}={saver.conn.execute(f'PRAGMA {name}').fetchone()[0]}"
        for name in ("journal_mode", "synchronous")
    )


class Saver:
    """One direct `put` a turn, with the whole of `channel_values`."""

    def __init__(self, path: Path, messages: list[Message], form: Form) -> None:
        self.path = path
        self.messages = form(messages)
        self._saver = open_saver(path)
        self._config: Any = THREAD
        self._versions: dict[str, Any] = {}

    def write(self, turn: int) -> float:
        """Seconds to save turn number `turn`, counted from 1."""
        values = {"messages": self.messages[: 2 * turn], "turn": turn}
        checkpoint = self._checkpoint(turn, values)
        seconds, self._config = timed(
            lambda: self._saver.put(
                self._config,
                checkpoint,
                {"source": "loop", "step": turn, "parents": {}},
                dict(self._versions),
            )
        )
        return seconds

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self._saver.get_tuple(THREAD).checkpoint["channel_values"]
        return found

    @property
    def pragmas(self) -> str:
        return pragmas(self._saver)

    def close(self) -> int:
        """Write the WAL back, and close; the size of the main file."""
        self._saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._saver.conn.close()
        return self.path.stat().st_size

    def _checkpoint(self, turn: int, values: dict[str, Any]) -> dict[str, Any]:
        seen = dict(self._versions)
        for channel in ("messages", "turn"):
            self._versions[channel] = self._saver.get_next_version(
                self._versions.get(channel), None
            )
        return {
            "v": 4,
            "ts": datetime.now(UTC).isoformat(),
            "id": str(uuid6(clock_seq=turn)),
            "channel_values": values,
            "channel_versions": dict(self._versions),
            "versions_seen": {"__input__": {}, "agent": seen},
            "updated_channels": ["messages", "turn"],
        }


class DeltaSaver(Saver):
    """The delta channel: `put_writes` of what is new, then a `put` without it."""

    def __init__(self, path: Path, messages: list[Message], form: Form) -> None:
        super().__init__(path, messages, form)
        self._channel = DeltaChannel(_extended)
        self._updates = 0
        root = self._checkpoint(0, {})  # writes belong to a parent: the first turn needs one
        self._config = self._saver.put(THREAD, root, {"source": "input", "step": -1}, {})

    def write(self, turn: int) -> float:
        added = [("messages", self.messages[2 * turn - 2 : 2 * turn]), ("turn", turn)]
        values: dict[str, Any] = {"turn": turn}
        metadata: dict[str, Any] = {"source": "loop", "step": turn, "parents": {}}
        self._updates += 1
        if self._updates == self._channel.snapshot_frequency:
            values["messages"] = _DeltaSnapshot(self.messages[: 2 * turn])
            self._updates = 0
        else:
            metadata["counters_since_delta_snapshot"] = {"messages": (self._updates, self._updates)}
        checkpoint = self._checkpoint(turn, values)
        task = str(uuid.UUID(int=turn))

        def save() -> Any:
            self._saver.put_writes(self._config, added, task, "~__pregel_pull, agent")
            return self._saver.put(self._config, checkpoint, metadata, dict(self._versions))

        seconds, self._config = timed(save)
        return seconds

    def read(self) -> dict[str, Any]:
        found = self._saver.get_tuple(THREAD)
        values: dict[str, Any] = dict(found.checkpoint["channel_values"])
        stored = values.get("messages")
        if stored is None:
            history = self._saver.get_delta_channel_history(
                config=found.config, channels=["messages"]
            )["messages"]
            channel = self._channel.from_checkpoint(history.get("seed", []))
            channel.replay_writes(history["writes"])
        else:
            channel = self._channel.from_checkpoint(stored)
        values["messages"] = channel.get()
        return values


def _extended(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*state, *(message for write in writes for message in write)]
