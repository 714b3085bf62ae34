"""The step store does what the harness's own store in memory does, call for call; and more."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.step_persistence import (
    ContinuableSnapshot,
    InMemoryStepStore,
    RunRecord,
    StepEvent,
    StepPersistence,
    StepStore,
    ToolEffectRecord,
)

import hardsave
from hardsave.adapters.pydantic_ai import HardsaveStepStore

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as opened:
        yield opened


def history(count: int, tag: str = "") -> list[ModelMessage]:
    said: list[ModelMessage] = []
    for n in range(count):
        said.append(ModelRequest(parts=[UserPromptPart(f"{tag}{n}", timestamp=MOMENT)]))
        said.append(ModelResponse(parts=[TextPart(f"answer {n}")], timestamp=MOMENT))
    return said


RUNS = st.sampled_from(["a", "b", "run/3 ü"])
KEYS = st.sampled_from([None, "1:x", "1:y", "2:x", "3:x", "plain"])
CALLS = st.one_of(
    st.tuples(st.just("run"), RUNS, st.sampled_from([None, "c1"]), st.sampled_from([None, "a"])),
    st.tuples(st.just("event"), RUNS, st.integers(0, 3), KEYS),
    st.tuples(
        st.just("snapshot"),
        RUNS,
        st.tuples(st.integers(0, 4), st.sampled_from(["", "other "])),
        st.tuples(KEYS, st.sampled_from(["complete", "interrupted"])),
    ),
    st.tuples(
        st.just("effect"),
        RUNS,
        st.sampled_from(["t1", "t2"]),
        st.sampled_from(["started", "completed", "failed"]),
    ),
)


async def told(store: StepStore, call: Any) -> None:
    what, run, given_, more = call
    if what == "run":
        record = RunRecord(run_id=run, conversation_id=given_, parent_run_id=more)
        record.started_at = MOMENT + timedelta(seconds=ord(run[0]))
        await store.register_run(record)
    elif what == "event":
        event = StepEvent(run_id=run, kind="run_started", step_index=given_, idempotency_key=more)
        event.timestamp = MOMENT
        await store.append_event(event)
    elif what == "snapshot":
        (count, tag), (key, state) = given_, more
        snapshot = ContinuableSnapshot(
            run_id=run, step_index=count, messages=history(count, tag), state=state
        )
        snapshot.idempotency_key, snapshot.timestamp = key, MOMENT
        await store.save_snapshot(snapshot)
    else:
        status: Literal["started", "completed", "failed"] = more
        record_ = ToolEffectRecord(
            tool_call_id=given_, tool_name="t", run_id=run, status=status, started_at=MOMENT
        )
        await store.record_tool_effect(record_)


async def seen(store: StepStore) -> list[Any]:
    found: list[Any] = [
        await store.list_runs(),
        await store.list_runs(conversation_id="c1"),
        await store.list_runs(parent_run_id="a", conversation_id="c1"),
    ]
    for run in ("a", "b", "run/3 ü", "unknown"):
        found += [
            await store.get_run(run_id=run),
            await store.list_events(run_id=run),
            await store.latest_snapshot(run_id=run),
            await store.latest_snapshot(run_id=run, include_interrupted=True),
            await store.get_tool_effect(run_id=run, tool_call_id="t1"),
            await store.list_unresolved_tool_effects(run_id=run),
        ]
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(CALLS, max_size=12))
def test_it_answers_as_the_store_in_memory_does(calls: list[Any]) -> None:
    async def both() -> None:
        with hardsave.open("memory://") as vault:
            ours, theirs = HardsaveStepStore(vault), InMemoryStepStore()
            for call in calls:
                await told(ours, call)
                await told(theirs, call)
            assert await seen(ours) == await seen(theirs)

    asyncio.run(both())


def test_it_is_a_step_store(vault: hardsave.Vault) -> None:
    assert isinstance(HardsaveStepStore(vault), StepStore)


@pytest.mark.asyncio
async def test_an_agent_goes_on_from_a_snapshot_in_another_vault(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    agent = Agent(
        TestModel(), capabilities=[StepPersistence(store=HardsaveStepStore(vault, workspace=work))]
    )

    @agent.tool_plain
    def write(name: str) -> str:
        (work / "written").write_text(name)
        return "wrote"

    done = await agent.run("write it")
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as other:
        store = HardsaveStepStore(other)
        (run,) = await store.list_runs()
        snapshot = await store.latest_snapshot(run_id=run.run_id)
        assert snapshot is not None
        assert len(snapshot.messages) == len(done.all_messages())
        kinds = [event.kind for event in await store.list_events(run_id=run.run_id)]
        assert "tool_call_completed" in kinds
        assert await store.list_unresolved_tool_effects(run_id=run.run_id) == []
        again = await agent.run("and more", message_history=snapshot.messages)
        assert len(again.all_messages()) > len(snapshot.messages)
        (session, *_) = other.sessions()
        assert session.title == "write it"
        line = other.timeline(f"pydantic-ai/{run.run_id}")
        assert line.head is not None
        assert line.head.files is not None
        assert line.head.files.read("written") == (work / "written").read_bytes()


@pytest.mark.asyncio
async def test_a_rewind_takes_back_messages_events_and_effects(vault: hardsave.Vault) -> None:
    store = HardsaveStepStore(vault)
    await told(store, ("snapshot", "a", (1, ""), (None, "complete")))
    await told(store, ("effect", "a", "t1", "started"))
    await told(store, ("snapshot", "a", (2, ""), (None, "complete")))
    vault.timeline("pydantic-ai/a").rewind(":1")
    snapshot = await store.latest_snapshot(run_id="a")
    assert snapshot is not None
    assert snapshot.messages == history(1)
    assert await store.list_unresolved_tool_effects(run_id="a") == []


@pytest.mark.asyncio
async def test_media_come_back_as_they_were(vault: hardsave.Vault) -> None:
    image = BinaryContent(bytes(range(256)) * 500, media_type="application/zip")
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(["look", image], timestamp=MOMENT)])
    ]
    store = HardsaveStepStore(vault)
    await store.save_snapshot(ContinuableSnapshot(run_id="a", step_index=0, messages=messages))
    snapshot = await store.latest_snapshot(run_id="a")
    assert snapshot is not None
    assert snapshot.messages == messages


@pytest.mark.asyncio
async def test_many_tasks_lose_no_event(vault: hardsave.Vault) -> None:
    stores = [HardsaveStepStore(vault) for _ in range(4)]
    await asyncio.gather(*(told(stores[n % 4], ("event", "a", n, f"{n}:k")) for n in range(60)))
    found = await stores[0].list_events(run_id="a")
    assert sorted(event.step_index for event in found) == list(range(60))
