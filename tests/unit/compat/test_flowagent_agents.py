"""Agents saved and restored through FlowAgent's manager."""

import asyncio
import gc
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hardsave.compat.flowagent import (
    CheckpointManager,
    InMemoryCheckpointStorage,
    Message,
    Orchestrator,
    SQLiteCheckpointStorage,
    StandardAgent,
    Status,
)
from hardsave.errors import NotFound


class Counter(StandardAgent):
    async def on_running(self, msg: Message) -> int:
        self.collected_fields["count"] = self.collected_fields.get("count", 0) + 1
        return int(self.collected_fields["count"])


def manager(storage: Any = None) -> CheckpointManager:
    made = CheckpointManager(storage=storage or InMemoryCheckpointStorage())
    made.agents.register(Counter)
    return made


def test_a_restored_agent_is_the_one_that_was_saved(tmp_path: Path) -> None:
    async def first(path: Path) -> str:
        storage = SQLiteCheckpointStorage(db_path=path)
        agent = Counter("agent_1", "user_123")
        await agent.reply("go")
        saved = await manager(storage).save(agent, metadata={"why": "test"})
        await storage.close()
        return saved

    async def second(path: Path, saved: str) -> None:
        storage = SQLiteCheckpointStorage(db_path=path)
        agent = await manager(storage).restore(saved)
        assert (agent.agent_id, agent.user_id, agent.status) == (
            "agent_1", "user_123", Status.COMPLETED,
        )  # fmt: skip
        assert agent.get_message_history() == [Message("go"), Message(1, "assistant")]
        assert (agent.message, agent.result) == (Message("go"), 1)
        assert (await agent.reply(Message(content="retry", role="user"))).content == 2
        await storage.close()

    saved = asyncio.run(first(tmp_path / "c.db"))
    assert saved.startswith("chk_")
    asyncio.run(second(tmp_path / "c.db", saved))


def test_saves_chain_and_go_on_from_what_was_restored() -> None:
    async def session() -> None:
        kept = manager()
        agent = Counter("a", "u")
        one = await kept.save(agent)
        two = await kept.save(agent)
        await kept.save(agent)
        back = await kept.restore(two)
        four = await kept.save(back)
        found = {cp.id: cp for cp in await kept.list_by_user("u", full=True)}
        assert found[two].parent_checkpoint_id == one
        assert found[four].parent_checkpoint_id == two

    asyncio.run(session())


@dataclass
class Noted:
    """An agent that equals others, and so cannot be hashed."""

    agent_id: str
    user_id: str
    status: str = "IDLE"
    collected_fields: dict[str, Any] = field(default_factory=dict)
    execution_state: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)

    def get_message_history(self) -> list[Any]:
        return []


@dataclass(slots=True)
class Slotted:
    """And one that nothing can refer to weakly."""

    agent_id: str
    user_id: str
    status: str = "IDLE"
    collected_fields: dict[str, Any] = field(default_factory=dict)
    execution_state: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    required_fields: list[Any] = field(default_factory=list)
    context_summary: str = ""
    message: Any = None
    result: Any = None

    def get_message_history(self) -> list[Any]:
        return []


@pytest.mark.parametrize("cls", [Noted, Slotted])
def test_agents_that_equal_each_other_have_their_own_chains(cls: Any) -> None:
    async def session() -> None:
        kept = CheckpointManager()
        one, other = cls("a", "u"), cls("a", "u")
        first = await kept.save(one)
        second = await kept.save(other)
        third = await kept.save(one)
        back = await kept.restore(second)
        fourth = await kept.save(back)
        found = {cp.id: cp.parent_checkpoint_id for cp in await kept.list_by_user("u", full=True)}
        assert found == {first: None, second: None, third: first, fourth: second}

    asyncio.run(session())


def test_a_manager_keeps_no_agent() -> None:
    async def session() -> None:
        kept = CheckpointManager()
        agents = [Noted("a", "u") for _ in range(3)]
        for agent in agents:
            await kept.save(agent)
        gone = [weakref.ref(agent) for agent in agents]
        del agent, agents
        gc.collect()
        assert [each() for each in gone] == [None] * 3

    asyncio.run(session())


def test_a_replay_is_a_branch_with_a_label_and_leaves_the_original() -> None:
    async def session() -> None:
        kept = manager()
        agent = Counter("a", "u")
        await agent.reply("one")
        base = await kept.save(agent)
        await agent.reply("two")
        original = await kept.save(agent)
        other, branch = await kept.replay_from(base, "instead", label="what-if")
        found = {cp.id: cp for cp in await kept.list_by_user("u", full=True)}
        assert found[branch].parent_checkpoint_id == base
        assert found[branch].branch_label == "what-if"
        assert [m["content"] for m in found[branch].message_history] == ["one", 1, "instead", 2]
        assert [m["content"] for m in found[original].message_history] == ["one", 1, "two", 2]
        assert other.agent_id == "a"

    asyncio.run(session())


def test_handlers_are_told_of_restores_with_the_agent() -> None:
    async def session() -> list[Any]:
        kept = manager()
        told: list[Any] = []

        @kept.on("checkpoint_saved")
        def saved(checkpoint: Any) -> None:
            told.append(("saved", checkpoint.id))

        @kept.on("checkpoint_restored")
        async def restored(checkpoint: Any, agent: Any) -> None:
            told.append(("restored", checkpoint.id, agent.agent_id))

        agent = Counter("a", "u")
        one = await kept.save(agent)
        await kept.restore(one)
        assert told == [("saved", one), ("restored", one, "a")]
        return told

    assert asyncio.run(session())


def test_the_orchestrator_of_the_page_saves_on_every_change() -> None:
    async def session() -> None:
        kept = manager()
        both = Orchestrator(
            agents=[Counter("a", "u"), Counter("b", "u")],
            checkpoint_manager=kept,
            auto_checkpoint=True,
        )
        await both.run("go")
        found = await kept.list_by_user("u", limit=50, offset=0)
        assert sorted((cp.agent_id, cp.status) for cp in found) == [
            ("a", "COMPLETED"), ("a", "RUNNING"), ("b", "COMPLETED"), ("b", "RUNNING"),
        ]  # fmt: skip
        target = next(cp for cp in found if cp.status == "RUNNING")
        agent = await kept.restore(target.id)
        assert agent.status is Status.RUNNING

    asyncio.run(session())


class Asks(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        await self.set_status(Status.WAITING)
        return "which one?"


@pytest.mark.parametrize(("cls", "answer"), [(Counter, 1), (Asks, "which one?")])
def test_what_is_saved_by_itself_last_has_the_answer(cls: Any, answer: Any) -> None:
    async def session() -> None:
        kept = CheckpointManager()
        agent = cls("a", "u")
        await Orchestrator([agent], checkpoint_manager=kept, auto_checkpoint=True).run("go")
        newest, *_ = await kept.list_by_user("u")
        back = await kept.restore(newest.id)
        assert back.status is agent.status
        assert back.get_message_history() == agent.get_message_history()
        assert back.get_message_history()[-1] == Message(answer, "assistant")

    asyncio.run(session())


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotFound, match="no checkpoint 'chk_nothing'"):
        asyncio.run(manager().restore("chk_nothing"))
