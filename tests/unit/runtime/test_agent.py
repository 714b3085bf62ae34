"""What an agent is to whoever saves it."""

import asyncio
from enum import Enum
from typing import Any

import pytest

from hardsave.errors import Misuse, NotFound
from hardsave.runtime.agent import AgentState, Message, StandardAgent, Status, captured
from hardsave.runtime.registry import Agents, put_back


class Plain:
    """Ten lines, as somebody would write them who has never heard of us."""

    def __init__(self, agent_id: str, user_id: str) -> None:
        self.agent_id, self.user_id, self.status = agent_id, user_id, "thinking"
        self.collected_fields: dict[str, Any] = {}
        self.execution_state: dict[str, Any] = {}
        self.context: dict[str, Any] = {}
        self.messages: list[Any] = []

    def get_message_history(self) -> list[Any]:
        return self.messages

    def set_message_history(self, messages: list[Any]) -> None:
        self.messages = messages


class Echo(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        self.collected_fields["heard"] = msg.content
        return f"you said {msg.content}"


class Broken(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        raise ValueError("out of luck")


class Asking(StandardAgent):
    async def on_running(self, msg: Message) -> str:
        await self.set_status(Status.WAITING)
        return "which one?"


def test_what_is_captured_is_a_deep_copy() -> None:
    agent = Plain("a", "ada")
    agent.context["list"] = [1]
    agent.messages.append({"role": "user", "content": ["x"]})
    state = captured(agent)
    agent.context["list"].append(2)
    agent.messages[0]["content"].append("y")
    assert state.context == {"list": [1]}
    assert state.message_history == [{"role": "user", "content": ["x"]}]
    assert (state.agent_type, state.status) == ("Plain", "thinking")


def test_an_agent_of_ten_lines_comes_back() -> None:
    agent = Plain("a", "ada")
    agent.status = "done"
    agent.collected_fields = {"n": 1}
    agent.messages = [{"role": "user", "content": "hi"}]
    back: Any = Agents(Plain).revived(captured(agent))
    assert isinstance(back, Plain)
    assert captured(back) == captured(agent)


def test_what_is_no_agent_is_told_what_it_lacks() -> None:
    with pytest.raises(Misuse, match="object is no agent: it has no agent_id, user_id"):
        captured(object())  # type: ignore[arg-type] # that is the point


def test_a_class_comes_back_only_if_it_was_registered() -> None:
    state = AgentState(agent_id="a", agent_type="os.system", user_id="", status="x")
    with pytest.raises(
        NotFound, match=r"no agent called 'os.system' is registered \(there are: Echo\)"
    ):
        Agents(Echo).revived(state)


def test_a_name_is_registered_once() -> None:
    agents = Agents(Echo)
    with pytest.raises(Misuse, match="registered already"):
        agents.register(Echo)
    agents.register(Echo, name="parrot")
    assert agents.names() == ["Echo", "parrot"]


def of_type(name: str) -> AgentState:
    return AgentState(agent_id="a", agent_type=name, user_id="u", status="IDLE")


class Family(StandardAgent):
    """The head of a family that no other test adds to."""


def test_subclasses_of_a_class_that_was_named_come_back_by_their_names() -> None:
    agents = Agents(of=Family)

    class Child(Family): ...

    class Grandchild(Child):
        agent_type = "grand"

    for cls, name in ((Family, "Family"), (Child, "Child"), (Grandchild, "grand")):
        assert type(agents.revived(of_type(name))) is cls
        assert captured(cls("a", "u")).agent_type == name
    with pytest.raises(NotFound, match=r"no agent called 'Echo'"):
        agents.revived(of_type("Echo"))  # no child of it
    with pytest.raises(NotFound, match=r"no agent called 'Grandchild'"):
        agents.revived(of_type("Grandchild"))
    with pytest.raises(NotFound, match=r"there are: none"):
        Agents().revived(of_type("Child"))


def test_a_name_that_two_classes_have_means_none_until_one_is_registered() -> None:
    def one() -> type:
        class Twin(Family): ...

        return Twin

    def two() -> type:
        class Twin(Family): ...

        return Twin

    first, second, agents = one(), two(), Agents(of=Family)
    with pytest.raises(
        Misuse, match=r"may be .*one.<locals>.Twin or .*two.<locals>.Twin; register"
    ):
        agents.revived(of_type("Twin"))
    agents.register(second)
    assert type(agents.revived(of_type("Twin"))) is second
    assert first is not second


def test_a_class_that_is_defined_again_is_the_one_that_comes_back() -> None:
    def define() -> type:
        class Again(Family): ...

        return Again

    old, new = define(), define()
    assert type(Agents(of=Family).revived(of_type("Again"))) is new
    assert old is not new


def test_an_agent_that_was_met_comes_back_whatever_it_derives_from() -> None:
    agents, strict = Agents(of=Family), Agents()
    for registry in (agents, strict):
        registry.meet(Plain("a", "u"))
    assert isinstance(agents.revived(captured(Plain("a", "u"))), Plain)
    with pytest.raises(NotFound):
        strict.revived(captured(Plain("a", "u")))


def test_a_class_that_is_made_otherwise_is_told_what_it_needs() -> None:
    class Special(Family):
        def __init__(self, model: str) -> None:
            super().__init__()
            self.model = model

    with pytest.raises(Misuse, match=r"Special cannot be made .*give it a class method from_state"):
        Agents(of=Family).revived(of_type("Special"))


def test_a_factory_of_its_own_makes_it() -> None:
    agents = Agents()
    agents.add("odd", lambda state: Plain(state.agent_id.upper(), state.user_id))
    state = AgentState(agent_id="a", agent_type="odd", user_id="", status="x")
    assert agents.revived(state).agent_id == "A"


def test_a_status_that_the_class_does_not_know_is_refused() -> None:
    state = AgentState(agent_id="a", agent_type="Echo", user_id="", status="DREAMING")
    with pytest.raises(Misuse, match="status 'DREAMING'; known are IDLE, RUNNING"):
        Agents(Echo).revived(state)


def test_an_agent_that_cannot_take_messages_back_says_so() -> None:
    class Mute(Plain):
        set_message_history = None  # type: ignore[assignment]

    state = AgentState(agent_id="a", agent_type="Mute", user_id="", status="x", message_history=[1])
    with pytest.raises(Misuse, match="set_message_history"):
        put_back(Mute("a", ""), state)


def test_a_status_may_be_an_enum_of_ones_own() -> None:
    class Mood(Enum):
        GOOD = "good"
        BAD = "bad"

    agent: Any = Plain("a", "")
    agent.status = Mood.BAD
    state = captured(agent)
    assert state.status == "bad"
    other: Any = Plain("a", "")
    other.status = Mood.GOOD
    put_back(other, state)
    assert other.status is Mood.BAD
    agent.status = 7
    with pytest.raises(Misuse, match="an enum or a text, not 7"):
        captured(agent)


def test_a_reply_goes_through_the_life_of_an_agent() -> None:
    agent = Echo("a", "ada")
    seen: list[str] = []

    async def watch(one: StandardAgent) -> None:
        seen.append(one.status.value)

    agent.observe(watch)
    answer = asyncio.run(agent.reply("hello"))
    assert answer == Message("you said hello", "assistant")
    assert seen == ["RUNNING", "COMPLETED"]
    assert [message.role for message in agent.get_message_history()] == ["user", "assistant"]


def test_an_error_is_noted_and_goes_on() -> None:
    agent = Broken("a")
    with pytest.raises(ValueError, match="out of luck"):
        asyncio.run(agent.reply("hello"))
    assert agent.status is Status.FAILED
    assert agent.execution_state == {"error": "ValueError: out of luck"}


def test_an_agent_may_wait_for_more() -> None:
    agent = Asking("a")
    answer = asyncio.run(agent.reply("hello"))
    assert (agent.status, answer.content) == (Status.WAITING, "which one?")


def test_an_observer_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    agent = Echo("a")

    async def bad(one: StandardAgent) -> None:
        raise OSError("disk")

    end = agent.observe(bad)
    assert asyncio.run(agent.reply("x")).content == "you said x"
    assert "an observer of a failed" in caplog.text
    end()


def test_a_wrong_status_is_refused() -> None:
    with pytest.raises(Misuse, match="a status is one of IDLE"):
        asyncio.run(Echo("a").set_status("RUNNING!"))  # type: ignore[arg-type] # that is the point
