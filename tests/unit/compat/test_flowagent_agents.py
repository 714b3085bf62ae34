"""Agents saved and restored through FlowAgent's manager."""

import asyncio
import gc
import weakref
from dataclasses import dataclass, field
from enum import Enum
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
from hardsave.errors import Misuse, NotFound


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


# Agents that have the documented attributes, and no more


class Phase(Enum):
    ASKING = "asking"
    DONE = "done"


class Plain:
    """Ten lines. It hands out its own list of messages."""

    def __init__(self, agent_id: str, user_id: str) -> None:
        self.agent_id, self.user_id = agent_id, user_id
        self.status: Any = Phase.ASKING
        self.collected_fields: dict[str, Any] = {}
        self.execution_state: dict[str, Any] = {}
        self.context: dict[str, Any] = {}
        self.said: list[Any] = []

    def get_message_history(self) -> list[Any]:
        return self.said


class WithoutArguments(Plain):
    def __init__(self) -> None:
        super().__init__("new", "new")


@dataclass(slots=True)
class AllRequired:
    agent_id: str
    user_id: str
    status: Phase
    collected_fields: dict[str, Any]
    execution_state: dict[str, Any]
    context: dict[str, Any]
    said: list[Any] = field(default_factory=list)

    def get_message_history(self) -> list[Any]:
        return self.said


class Anything(Plain):
    def __init__(self, **about: str) -> None:
        super().__init__(about["agent_id"], about["user_id"])


MADE: list[Any] = [
    Plain("a", "u"),
    WithoutArguments(),
    AllRequired("a", "u", Phase.ASKING, {}, {}, {}),
    Anything(agent_id="a", user_id="u"),
]


@pytest.mark.parametrize("agent", MADE, ids=lambda agent: type(agent).__name__)
@pytest.mark.parametrize(
    "said",
    [[], [{"role": "user", "content": "hi"}, "ok"], [Message("hi"), Message(1, "assistant")]],
)
def test_an_agent_of_the_documented_attributes_comes_back(agent: Any, said: list[Any]) -> None:
    async def session() -> None:
        agent.agent_id, agent.user_id, agent.status = "agent_1", "user_1", Phase.DONE
        agent.collected_fields, agent.execution_state = {"a": [1]}, {"step": 2}
        agent.context = {"k": "v"}
        agent.get_message_history()[:] = said
        kept = CheckpointManager()
        back = await kept.restore(await kept.save(agent))
        names = ["agent_id", "user_id", "status", "collected_fields", "execution_state", "context"]
        assert type(back) is type(agent)
        assert [getattr(back, name) for name in names] == [getattr(agent, name) for name in names]
        assert back.get_message_history() == said
        assert not hasattr(back, "context_summary")  # it had none
        back.get_message_history().append("more")
        assert agent.get_message_history() == said

    asyncio.run(session())


class GivesCopies(Plain):
    def get_message_history(self) -> list[Any]:
        return list(self.said)


class Dashed:
    def to_dict(self) -> dict[str, Any]:
        return {"text": "-"}


class WithoutWay(Plain):
    def __init__(self, agent_id: str, user_id: str, connection: Any) -> None:
        super().__init__(agent_id, user_id)


class OtherStatus(Plain):
    def __init__(self, agent_id: str, user_id: str, status: "Phase") -> None:
        super().__init__(agent_id, user_id)
        self.status = status


OtherStatus.__init__.__annotations__["status"] = "Phase"  # as of a module with future annotations


REFUSED: list[tuple[Any, list[Any], str]] = [
    (GivesCopies("a", "u"), ["hi"], "GivesCopies could not take its messages back; give it a"),
    (Plain("a", "u"), [Dashed()], "could not take its messages back"),
    (Plain("a", "u"), [Message("hi").to_dict()], "could not take its messages back"),
    (
        WithoutWay("a", "u", None),
        [],
        r"missing a required argument: 'connection'\); give it a class",
    ),
    (OtherStatus("a", "u", Phase.DONE), [], "could not be made again with its status"),
]


@pytest.mark.parametrize(("agent", "said", "why"), REFUSED)
def test_an_agent_that_could_not_come_back_is_refused_when_it_is_saved(
    agent: Any, said: list[Any], why: str
) -> None:
    async def session() -> None:
        agent.said = said
        kept = CheckpointManager()
        with pytest.raises(Misuse, match=why):
            await kept.save(agent)
        assert await kept.list_by_user("u") == []
        kept.agents.add(type(agent).__name__, lambda state: agent)  # then there is a way
        assert await kept.restore(await kept.save(agent)) is agent

    asyncio.run(session())


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotFound, match="no checkpoint 'chk_nothing'"):
        asyncio.run(manager().restore("chk_nothing"))
