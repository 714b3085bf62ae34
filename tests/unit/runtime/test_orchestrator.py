"""Several agents at once."""

import asyncio
from typing import Any

import pytest

from hardsave.errors import Misuse, NotFound
from hardsave.runtime.agent import Message, StandardAgent
from hardsave.runtime.orchestrator import Orchestrator


class Keeper:
    def __init__(self, *, fails: bool = False) -> None:
        self.saved: list[tuple[str, str]] = []
        self._fails = fails

    async def save(self, agent: Any) -> str:
        if self._fails:
            raise OSError("read-only")
        self.saved.append((agent.agent_id, agent.status.value))
        return "id"


class Works(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        await asyncio.sleep(0)
        return f"{self.agent_id}: {msg.content}"


class Fails(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        raise ValueError("no")


class SavesItself(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        await self.checkpoint_manager.save(self)
        raise ValueError("after the save")


def test_every_change_of_status_is_saved() -> None:
    keeper = Keeper()
    both = Orchestrator([Works("a"), Works("b")], keeper, auto_checkpoint=True)
    outcomes = asyncio.run(both.run("go"))
    assert [outcome.answer.content for outcome in outcomes if outcome.answer] == ["a: go", "b: go"]
    assert sorted(keeper.saved) == [
        ("a", "COMPLETED"), ("a", "RUNNING"), ("b", "COMPLETED"), ("b", "RUNNING"),
    ]  # fmt: skip
    assert both.saves == 4


def test_without_auto_checkpoint_nothing_is_saved_by_itself() -> None:
    keeper = Keeper()
    asyncio.run(Orchestrator([Works("a")], keeper).run("go"))
    assert keeper.saved == []


def test_one_that_is_cancelled_inside_loses_nothing_of_the_others() -> None:
    class GivesUp(StandardAgent):
        async def on_running(self, msg: Message) -> str:
            raise asyncio.CancelledError

    outcomes = asyncio.run(Orchestrator([GivesUp("a"), Works("b")]).run("go"))
    assert [outcome.ok for outcome in outcomes] == [False, True]
    assert isinstance(outcomes[0].error, asyncio.CancelledError)


def test_whoever_is_cancelled_himself_stops() -> None:
    class Waits(StandardAgent):
        async def on_running(self, msg: Message) -> str:
            await asyncio.sleep(60)
            return "late"

    async def cancelled() -> None:
        await asyncio.wait_for(Orchestrator([Waits("a")]).run("go"), 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())


def test_one_that_fails_loses_nothing_of_the_others() -> None:
    keeper = Keeper()
    three = Orchestrator([Works("a"), Fails("b"), Works("c")], keeper, auto_checkpoint=True)
    outcomes = asyncio.run(three.run("go"))
    assert [outcome.ok for outcome in outcomes] == [True, False, True]
    assert str(outcomes[1].error) == "no"
    assert ("b", "FAILED") in keeper.saved
    assert ("c", "COMPLETED") in keeper.saved


def test_an_agent_saves_itself_in_the_middle() -> None:
    keeper = Keeper()
    one = Orchestrator([SavesItself("a")], keeper)
    (outcome,) = asyncio.run(one.run("go"))
    assert not outcome.ok
    assert keeper.saved == [("a", "RUNNING")]


def test_a_save_that_fails_never_stops_an_agent(caplog: pytest.LogCaptureFixture) -> None:
    one = Orchestrator([Works("a")], Keeper(fails=True), auto_checkpoint=True)
    (outcome,) = asyncio.run(one.run("go"))
    assert outcome.ok
    assert (one.saves, one.failed_saves) == (0, 2)
    assert "agent a could not be saved" in caplog.text


def test_each_may_be_told_its_own() -> None:
    both = Orchestrator([Works("a"), Works("b")])
    outcomes = asyncio.run(both.run({"b": "you"}))
    assert [(outcome.agent_id, outcome.ok) for outcome in outcomes] == [("b", True)]


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(Misuse, match="needs a checkpoint_manager"):
        Orchestrator([], auto_checkpoint=True)
    with pytest.raises(Misuse, match="an agent 'a' already; give this one another"):
        Orchestrator([Works("a"), Works("a")])
    with pytest.raises(NotFound, match=r"no agent 'z' \(there are: 'a'\)"):
        asyncio.run(Orchestrator([Works("a")]).run({"z": "x"}))


def test_a_strict_one_raises_what_a_save_has_raised() -> None:
    strict = Orchestrator([Works("a")], Keeper(fails=True), auto_checkpoint=True, strict=True)
    with pytest.raises(OSError, match="read-only"):
        asyncio.run(strict.send("a", "go"))
    (outcome,) = asyncio.run(strict.run("go"))
    assert isinstance(outcome.error, OSError)
