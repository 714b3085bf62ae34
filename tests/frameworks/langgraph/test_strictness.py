"""Savers with one fault each: LangGraph's suite calls them FULL, ours names the fault."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.strict_suite import CHECKS, Saver, failures


def _where(config: RunnableConfig) -> tuple[str, str, str]:
    said = config["configurable"]
    return said["thread_id"], said.get("checkpoint_ns", ""), said["checkpoint_id"]


class Reference(InMemorySaver):
    """LangGraph's own saver in memory, with what it lacks of whole threads."""

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        for one in list(self.list(None)):
            if one.metadata.get("run_id") in run_ids:
                self._drop(one.config)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        kept = self.storage[source_thread_id]
        for namespace, checkpoints in kept.items():
            self.storage[target_thread_id][namespace].update(checkpoints)
        for written in [key for key in self.writes if key[0] == source_thread_id]:
            self.writes[target_thread_id, *written[1:]] = dict(self.writes[written])
        for blob in [key for key in self.blobs if key[0] == source_thread_id]:
            self.blobs[target_thread_id, *blob[1:]] = self.blobs[blob]

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            for kept in self.storage[thread].values():
                for id in sorted(kept)[:-1]:
                    del kept[id]

    def writes_at(self, config: RunnableConfig) -> dict[Any, Any]:
        return self.writes[_where(config)]

    def _drop(self, config: RunnableConfig) -> None:
        thread, namespace, id = where = _where(config)
        self.storage[thread][namespace].pop(id)
        self.writes.pop(where, None)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)


class ReversesWrites(Reference):
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        if found is None:
            return None
        return found._replace(pending_writes=(found.pending_writes or [])[::-1])


class CountsVersions(Reference):
    def get_next_version(self, current: Any, channel: None) -> Any:
        return 1 if current is None else int(str(current).partition(".")[0]) + 1


class OverwritesRegularWrites(Reference):
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        kept = self.writes_at(config)
        for at in range(len(writes)):
            kept.pop((task_id, at), None)
        super().put_writes(config, writes, task_id, task_path)


class KnowsNoSpecialWrites(Reference):
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        kept = self.writes_at(config)
        for at, (channel, value) in enumerate(writes):
            kept[task_id, at] = (task_id, channel, self.serde.dumps_typed(value), task_path)


class KeepsFirstSpecialWrites(Reference):
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        kept = self.writes_at(config)
        for at, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, at)
            if (task_id, index) not in kept:
                data = self.serde.dumps_typed(value)
                kept[task_id, index] = (task_id, channel, data, task_path)


class DropsMetadata(Reference):
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        said: RunnableConfig = {
            "configurable": {
                key: each
                for key, each in config["configurable"].items()
                if key in ("thread_id", "checkpoint_ns", "checkpoint_id")
            }
        }
        return super().put(said, checkpoint, metadata, new_versions)


class DropsTaskPaths(Reference):
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        super().put_writes(config, writes, task_id)


FAULTS: dict[type[Reference], str] = {
    ReversesWrites: "writes_come_in_the_order_in_which_a_step_applies_them",
    CountsVersions: "versions_are_unique_texts_that_rise",
    OverwritesRegularWrites: "regular_writes_stay_as_they_came_first",
    KnowsNoSpecialWrites: "special_writes_leave_regular_ones_alone",
    KeepsFirstSpecialWrites: "special_writes_are_replaced",
    DropsMetadata: "metadata_has_what_the_config_says",
    DropsTaskPaths: "writes_come_in_the_order_in_which_a_step_applies_them",
}


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
async def test_a_fault_that_the_public_suite_calls_full_is_named(kind: type[Reference]) -> None:
    @checkpointer_test(name=kind.__name__)
    async def faulty() -> AsyncGenerator[Reference, None]:
        yield kind()

    assert (await validate(faulty)).conformance_level() == "FULL"
    assert FAULTS[kind] in failures(kind)


def test_the_saver_in_memory_of_langgraph_has_no_fault() -> None:
    assert failures(Reference) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_ours_has_no_fault(store: str, check: Callable[[Saver, str], None], tmp_path: Path) -> None:
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as vault:
        check(HardsaveSaver(vault), "a thread/with: signs")
