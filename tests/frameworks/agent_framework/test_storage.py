"""The storage for Agent Framework: as its own in memory, and what ours has besides."""

import asyncio
import dataclasses
import enum
import logging
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutorResponse,
    AgentResponse,
    BaseChatClient,
    ChatResponse,
    CheckpointStorage,
    Content,
    Executor,
    InMemoryCheckpointStorage,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowMessage,
    WorkflowRunResult,
    handler,
    response_handler,
)
from agent_framework.exceptions import WorkflowCheckpointException
from pydantic import BaseModel

import hardsave
from hardsave.adapters.agent_framework import HardsaveCheckpointStorage
from tests.frameworks.agent_framework import survivor

NAME = survivor.NAME


class Mood(enum.Enum):
    GOOD = "good"


@dataclass
class Draft:
    """What an executor keeps."""

    text: str
    mood: Mood = Mood.GOOD
    length: int = dataclasses.field(init=False, default=0)


class Review(BaseModel):
    """What a person is asked."""

    draft: str
    marks: tuple[int, ...] = ()


TYPES = [Draft, Mood, Review, survivor.Turn]


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as vault:
        yield vault


@pytest.fixture
def storage(vault: hardsave.Vault) -> HardsaveCheckpointStorage:
    return HardsaveCheckpointStorage(vault, types=TYPES)


def checkpoint(id: str, before: str | None = None, **more: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint("w", "hash", id, before, timestamp=f"2026-01-01T00:00:0{id}", **more)


async def _told(storage: CheckpointStorage) -> list[Any]:
    """What a storage answers to a story that uses all of its methods."""
    told: list[Any] = [await storage.get_latest(workflow_name="w")]
    told += [await storage.save(checkpoint("1"))]
    told += [await storage.save(checkpoint("2", "1", state={"n": 2}))]
    told += [await storage.save(WorkflowCheckpoint("other/é", "hash", "o", timestamp="2026-01-02"))]
    told += [await storage.load("1"), await storage.load("2")]
    told += [await storage.list_checkpoints(workflow_name="w")]
    told += [await storage.list_checkpoint_ids(workflow_name="other/é")]
    told += [await storage.list_checkpoint_ids(workflow_name="none")]
    told += [await storage.save(checkpoint("2", "1", state={"n": 3}))]
    told += [await storage.list_checkpoint_ids(workflow_name="w"), await storage.load("2")]
    told += [await storage.delete("2"), await storage.delete("2"), await storage.delete("none")]
    told += [await storage.get_latest(workflow_name="w")]
    for gone in ("2", "none"):
        with pytest.raises(WorkflowCheckpointException, match="No checkpoint found"):
            await storage.load(gone)
    return told


@pytest.mark.asyncio
async def test_it_answers_as_the_storage_in_memory(storage: HardsaveCheckpointStorage) -> None:
    assert await _told(storage) == await _told(InMemoryCheckpointStorage())


@pytest.mark.asyncio
async def test_the_latest_is_of_an_earlier_run_when_all_of_the_later_one_is_deleted(
    storage: HardsaveCheckpointStorage,
) -> None:
    for each in (checkpoint("1"), checkpoint("2", "1"), checkpoint("3")):
        await storage.save(each)
    await storage.delete("3")
    assert await storage.get_latest(workflow_name="w") == checkpoint("2", "1")


@pytest.mark.asyncio
async def test_all_that_a_checkpoint_may_hold_comes_back_as_it_was(
    storage: HardsaveCheckpointStorage,
) -> None:
    draft = Draft("a text")
    draft.length = 6
    call = Content.from_function_call(call_id="c1", name="look", arguments={"a": 1})
    said = [
        Message("user", ["hello"], additional_properties={"k": 1}),
        Message("assistant", [call, Content.from_text("I look.")], author_name="ada"),
    ]
    answer = AgentExecutorResponse("ada", AgentResponse(messages=said, response_id="r"), said)
    state = {
        "draft": draft,
        "review": Review(draft="d", marks=(1, 2)),
        "kinds": [Draft, str],
        "plain": {"maf": "of a user", "t": (1, {2}, frozenset({3}), b"4")},
        "inner": checkpoint("9"),
    }
    sent = {"ada": [WorkflowMessage(answer, "ada", "bob", trace_contexts=[{"a": "b"}])]}
    given = checkpoint("1", state=state, messages=sent)
    await storage.save(given)
    back = await storage.load("1")
    assert back.state == state
    (message,) = back.messages["ada"]
    assert dataclasses.replace(message, data=None) == dataclasses.replace(sent["ada"][0], data=None)
    assert type(message.data) is AgentExecutorResponse
    assert message.data.agent_response.to_dict() == answer.agent_response.to_dict()
    assert [each.to_dict() for each in message.data.full_conversation] == [
        each.to_dict() for each in said
    ]


@pytest.mark.asyncio
async def test_a_class_that_was_not_named_is_refused_and_nothing_is_saved(
    vault: hardsave.Vault,
) -> None:
    with pytest.raises(hardsave.Misuse, match=r"Draft.*types="):
        await HardsaveCheckpointStorage(vault).save(checkpoint("1", state={"draft": Draft("a")}))
    assert list(vault.timelines()) == []
    await HardsaveCheckpointStorage(vault, types=TYPES).save(checkpoint("1", state={"d": Draft}))
    with pytest.raises(hardsave.Misuse, match=r"Draft.*types="):
        await HardsaveCheckpointStorage(vault).load("1")
    with pytest.raises(hardsave.Misuse, match="no dataclass"):
        HardsaveCheckpointStorage(vault, types=[Path])


@pytest.mark.asyncio
async def test_a_workflow_without_its_types_says_so_and_runs_on(
    vault: hardsave.Vault, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "work").mkdir()
    with caplog.at_level(logging.WARNING):
        storage = HardsaveCheckpointStorage(vault)
        assert await ended(survivor.workflow(storage, tmp_path).run(survivor.Turn(0))) == ["done"]
    assert "types=" in caplog.text


async def ended(run: Awaitable[WorkflowRunResult]) -> list[Any]:
    return (await run).get_outputs()


class Asking(Executor):
    """Asks a person, and says what was answered."""

    def __init__(self) -> None:
        super().__init__(id="asking")

    @handler
    async def ask(self, text: str, context: WorkflowContext[str, str]) -> None:
        await context.request_info(Review(draft=text), bool)

    @response_handler
    async def answered(
        self, asked: Review, is_fine: bool, context: WorkflowContext[str, str]
    ) -> None:
        await context.yield_output(f"{asked.draft}: {is_fine}")


def asking(storage: HardsaveCheckpointStorage) -> Workflow:
    return WorkflowBuilder(
        start_executor=Asking(), checkpoint_storage=storage, name="asking"
    ).build()


def test_a_question_waits_in_the_store_until_another_process_answers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with hardsave.open(url) as vault:
        storage = HardsaveCheckpointStorage(vault, types=TYPES)
        asyncio.run(ended(asking(storage).run("a draft")))
    with hardsave.open(url) as vault:
        storage = HardsaveCheckpointStorage(vault, types=TYPES)
        latest = asyncio.run(storage.get_latest(workflow_name="asking"))
        assert latest is not None
        (id,) = latest.pending_request_info_events
        assert latest.pending_request_info_events[id].response_type is bool
        again = asking(storage).run(checkpoint_id=latest.checkpoint_id, responses={id: True})
        assert asyncio.run(ended(again)) == ["a draft: True"]


@pytest.mark.asyncio
async def test_a_rewind_takes_files_and_workflow_back_and_it_goes_on_from_there(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    storage = HardsaveCheckpointStorage(vault, workspace=work, types=TYPES)
    await survivor.workflow(storage, tmp_path).run(survivor.Turn(0))
    line = vault.timeline(f"agent-framework/{NAME}")
    (third,) = (
        each for each in line.checkpoints() if line.load(each)["state"].get("written") == [0, 1, 2]
    )
    line.rewind(third)
    assert {each.name for each in work.iterdir()} == {"0.txt", "1.txt", "2.txt"}
    latest = await storage.get_latest(workflow_name=NAME)
    assert latest is not None
    assert latest.state["written"] == [0, 1, 2]
    again = survivor.workflow(storage, tmp_path).run(checkpoint_id=latest.checkpoint_id)
    assert await ended(again) == ["done"]
    assert len(line.leaves()) == 2
    assert line.depth() == survivor.NUMBERS


@pytest.mark.asyncio
async def test_what_was_saved_is_found_and_deleted_ones_come_back(
    vault: hardsave.Vault, storage: HardsaveCheckpointStorage
) -> None:
    await storage.save(checkpoint("1", state={"said": [Message("user", ["a heron flew by"])]}))
    assert "a heron flew by" in str(vault.timeline("agent-framework/w").load())
    await storage.delete("1")
    vault.undo()
    assert (await storage.load("1")).state["said"][0].text == "a heron flew by"


class Scripted(BaseChatClient):
    """A model that says how many messages it was asked with."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [f"{len(messages)} messages"])])

        return answer()


class Both(HardsaveCheckpointStorage):
    """Keeps in memory as well what it is given."""

    def __init__(self, vault: hardsave.Vault) -> None:
        super().__init__(vault)
        self.memory = InMemoryCheckpointStorage()

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        await self.memory.save(checkpoint)
        return await super().save(checkpoint)


def talk(storage: CheckpointStorage) -> Workflow:
    """Two agents, of which one hears what the other has said."""
    ada, bob = (Agent(Scripted(), name=name) for name in ("ada", "bob"))
    builder = WorkflowBuilder(start_executor=ada, checkpoint_storage=storage, name="talk")
    return builder.add_edge(ada, bob).build()


@pytest.mark.asyncio
async def test_agents_go_on_from_each_checkpoint_as_with_the_storage_in_memory(
    vault: hardsave.Vault,
) -> None:
    both = Both(vault)
    said = await ended(talk(both).run("hello"))
    assert [each.text for each in said][-1] == "2 messages"
    ids = await both.memory.list_checkpoint_ids(workflow_name="talk")
    assert await both.list_checkpoint_ids(workflow_name="talk") == ids
    assert len(ids) > 1
    for id in ids:
        ours = await ended(talk(both).run(checkpoint_id=id))
        theirs = await ended(talk(both.memory).run(checkpoint_id=id))
        assert [each.to_dict() for each in ours] == [each.to_dict() for each in theirs]
