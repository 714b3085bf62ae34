"""`HardsaveSaver`: a LangGraph checkpointer on a vault.

A thread is a timeline `langgraph/THREAD`; its namespaces are the names of its checkpoints, its
channels the keys of their states. Ids of checkpoints are made of LangGraph's own. Pending writes
are notes. What a thread deletes stays deleted: an id that comes again gets another generation.

Contract. A `put` or `put_writes` that has returned is durable. Writes that come before their
checkpoint are kept in memory until that comes: without it no graph would read them. The newest
checkpoint of a thread is the one that was put last, unless its timeline was taken back: then it is
the one that it was taken back to, and what its tasks wrote before does not count.
"""

import asyncio
import heapq
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from itertools import islice
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)

import hardsave
from hardsave.adapters.langgraph import delta, housekeeping, importing, names
from hardsave.adapters.langgraph.captures import Captures
from hardsave.adapters.langgraph.housekeeping import labels
from hardsave.adapters.langgraph.lines import Line
from hardsave.adapters.langgraph.memory import Memory
from hardsave.adapters.langgraph.place import (
    HELD_APART,
    NO_REWIND,
    Place,
    Shared,
    counted,
    notes_of,
    place_of,
    state_of,
    tuple_of,
)
from hardsave.adapters.langgraph.threads import AFTER, Threads, id_of
from hardsave.adapters.langgraph.values import Values
from hardsave.adapters.langgraph.versions import next_version

_AT_ONCE = 20  # tuples that a coroutine reads before it lets others run
_ATTEMPTS = 100  # each time, another writer has moved the timeline


class HardsaveSaver(BaseCheckpointSaver[str]):
    """Checkpoints of graphs in a vault. Threads and coroutines may share it.

        with hardsave.open() as vault:
            graph = builder.compile(checkpointer=HardsaveSaver(vault))

    `types` are classes of yours (dataclasses, pydantic models, enums) that come back as
    themselves; others come back as plain data. `strict=True` refuses a put whose parent is not the
    newest checkpoint of its namespace with `Conflict`: of two processes at one thread one is told,
    instead of losing what the other wrote.

    `workspace` is the directory that the graph works in. Its files are captured after each step,
    and committed with the step's checkpoint.
    """

    def __init__(
        self,
        vault: hardsave.Vault,
        *,
        prefix: str = "langgraph/",
        types: Iterable[type] = (),
        strict: bool = False,
        workspace: "hardsave.Workspace | str | os.PathLike[str] | None" = None,
    ) -> None:
        super().__init__()
        self.vault = vault
        if workspace is not None and not isinstance(workspace, hardsave.Workspace):
            workspace = vault.workspace(workspace)
        self._captures = None if workspace is None else Captures(workspace)
        self._threads = Threads(vault, prefix)
        self._values = Values(types)
        self._strict = strict

    def get_next_version(self, current: str | None, channel: None) -> str:
        version = next_version(current)
        if self._captures is not None:
            self._captures.take(version)
        return version

    def with_allowlist(self, extra_allowlist: object) -> "HardsaveSaver":
        """The classes that a graph names are not for a serializer here: see `types`."""
        return self

    def timeline(self, thread_id: str) -> str:
        """The name of a thread's timeline, for `hardsave log` and the rest."""
        return self._threads.timeline(thread_id)

    @property
    def workspace(self) -> hardsave.Workspace | None:
        """The directory whose files are committed with the state."""
        return None if self._captures is None else self._captures.workspace

    def checkpoint(self, config: RunnableConfig) -> hardsave.Checkpoint | None:
        """The checkpoint of the vault behind a config, with its files."""
        place = place_of(config)
        return self._threads.latest(place)[0] if place.id is None else self._threads.find(place)

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        above = place_of(config)
        place = above._replace(id=checkpoint["id"])
        said = self._values.plain(dict(get_checkpoint_metadata(config, metadata)))
        files = None if self._captures is None else self._captures.of(new_versions.values())
        with self._threads.at(place) as line, line.lock, files or nullcontext():
            channels = self._channels(line, checkpoint)
            beside = {key: each for key, each in checkpoint.items() if key not in HELD_APART}
            state = state_of(channels, self._values.plain(beside))
            with line.turn:
                saved = self._put(line, above, place, state, said, files)
            line.last = (checkpoint["id"], saved)
            line.early.pop(checkpoint["id"], None)
        return place.config

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        place = place_of(config)
        if place.id is None:
            raise hardsave.Misuse("writes belong to a checkpoint: its config has a checkpoint_id")
        with self._threads.at(place) as line:
            era = line.eras.get(place.id, NO_REWIND)
            notes = notes_of(writes, task_id, task_path, era, self._values)
            found = self._threads.known(line, place)
            if found is None:
                with line.lock:  # no put of it comes in between
                    found = self._threads.known(line, place)
                    if found is None:
                        early = line.early.get(place.id, {})
                        line.early[place.id] = notes.regular | early | notes.special
                        return
        for kept, replace in ((notes.regular, False), (notes.special, True)):
            if kept:
                self.vault.put_notes(found, kept, replace=replace)

    def _put(
        self,
        line: Line,
        above: Place,
        place: Place,
        state: dict[str, Any],
        said: Any,
        files: hardsave.CapturedFiles | None,
    ) -> hardsave.Checkpoint:
        assert place.id is not None
        parent = self._parent(line, above, said)
        notes = line.early.get(place.id)
        for _ in range(_ATTEMPTS):
            id, standing = self._threads.id_and_found(place)
            head = line.line.head
            after = None if head is None else head.id
            after = after if standing is None else standing.metadata.get(AFTER)
            about = self._threads.about(place, above.id, said, parent, after)
            if self._strict:
                self._check_follows(line, above)
            try:
                saved = line.line.save(
                    state,
                    name=names.checkpoint(place.namespace),
                    metadata=about,
                    labels=labels(said),
                    notes=notes,
                    workspace=files,
                    parent=parent,
                    id=id,
                    expect=head,
                )
            except hardsave.Conflict:
                standing = self._threads.find(place)
                if standing is None and line.line.head == head:
                    raise
            else:
                if saved.metadata == about:
                    return saved
                standing = saved
            if standing is not None:  # put once more with other contents: these are the newer ones
                notes = {**standing.notes, **(notes or {})}
                self.vault.delete(standing)
        raise hardsave.Conflict(
            f"timeline {line.line.name!r} is written to by too many others at once; try again"
        )

    def _parent(
        self, line: Line, above: Place, said: Mapping[str, Any]
    ) -> hardsave.Checkpoint | None:
        """What it stands on: the one before it in its namespace, or that of the graph around it."""
        if above.id is not None:
            return self._threads.known(line, above)
        around = [
            (ns, id) for ns, id in (said.get("parents") or {}).items() if ns != above.namespace
        ]
        if not around:
            return None
        namespace, id = max(around, key=lambda each: len(each[0]))
        return self._threads.find(Place(above.thread, namespace, id))

    def _check_follows(self, line: Line, above: Place) -> None:
        newest, _ = self._threads.latest(above._replace(id=None))
        id = None if newest is None else newest.metadata["id"]
        if id != above.id:
            raise hardsave.Conflict(
                f"the newest checkpoint of timeline {line.line.name!r} in namespace "
                f"{above.namespace!r} is {id}, not {above.id}, on which this put stands: "
                "another process is at this thread, or the graph went on from an older checkpoint; "
                "invoke it anew without a checkpoint_id, or rewind the timeline first"
            )

    def _channels(self, line: Line, checkpoint: Checkpoint) -> dict[str, Any]:
        """Plain values of channels. A channel whose version has not changed has the same value."""
        versions, before = checkpoint["channel_versions"], line.channels
        line.channels = {}
        for name, value in checkpoint["channel_values"].items():
            version = versions.get(name)
            known = before.get(name)
            if version is None or known is None or known[0] != version:
                known = (version, self._plain(line, name, value))
            line.channels[name] = known
        return {name: plain for name, (_, plain) in line.channels.items()}

    def _plain(self, line: Line, name: str, value: Any) -> Any:
        if type(value) is not list:
            return self._values.plain(value)
        return line.memory.setdefault(name, Memory()).plain(value, self._values)

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        place = place_of(config)
        era: str | None = None
        if place.id is None:
            found, era = self._threads.latest(place)
        else:
            found = self._threads.find(place)
        if found is None:
            return None
        return tuple_of(found, place.thread, counted(found.notes, era), self._values)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        bound = None if before is None else before["configurable"].get("checkpoint_id")
        found: Iterator[hardsave.Checkpoint]
        if config is None:
            lines = self._threads.all()
            found = heapq.merge(
                *(self._threads.rows(each) for each in lines), key=id_of, reverse=True
            )
        else:
            found = self._rows_at(config)
        older = (each for each in found if bound is None or id_of(each) < bound)
        fitting = (each for each in older if _fits(each, filter or {}, self._values))
        shared: Shared = {}  # for this call: a caller who changes a message changes no later read
        for each in islice(fitting, None if limit is None else max(limit, 0)):
            thread = self._threads.thread_of(each)
            yield tuple_of(each, thread, counted(each.notes), self._values, shared)

    def _rows_at(self, config: RunnableConfig) -> Iterator[hardsave.Checkpoint]:
        """The checkpoints that a config means, newest first: without a namespace those of all."""
        place = place_of(config)
        namespace = config["configurable"].get("checkpoint_ns")
        line = self.vault.timeline(self._threads.timeline(place.thread))
        rows = self._threads.rows(line, None if namespace is None else names.checkpoint(namespace))
        return (each for each in rows if place.id is None or id_of(each) == place.id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return delta.history(self._threads, self._values, place_of(config), channels)

    # Whole threads

    def delete_thread(self, thread_id: str) -> None:
        housekeeping.delete(self._threads, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        housekeeping.delete_runs(self._threads, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        housekeeping.copy(self._threads, source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in thread_ids:
            housekeeping.prune(self._threads, thread, strategy)

    def import_from(self, source: BaseCheckpointSaver[Any]) -> int:
        """Take over all threads of another saver; how many checkpoints that were."""
        return importing.take_over(source, self)

    def expire(self, ttl: timedelta) -> int:
        """Delete the threads on which nothing was put for so long; how many that were."""
        return housekeeping.expire(self._threads, ttl)

    # Coroutines: the same, each in a thread

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while some := await asyncio.to_thread(lambda: [*islice(found, _AT_ONCE)]):
            for each in some:
                yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(
            self.get_delta_channel_history, config=config, channels=channels
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)


def _fits(found: hardsave.Checkpoint, filter: Mapping[str, Any], values: Values) -> bool:
    if not filter:
        return True
    metadata = values.revived(found.metadata["metadata"])
    return all(value == metadata.get(key) for key, value in filter.items())
