"""What an agent is to whoever saves it."""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from hardsave.errors import Misuse, NotFound, Unstorable
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


def test_a_name_is_registered_for_one_class() -> None:
    agents = Agents(Echo)
    agents.register(Echo)  # once more is no other
    agents.register(Echo, name="parrot")
    assert agents.names() == ["Echo", "parrot"]
    with pytest.raises(Misuse, match=r"'parrot' are registered already, as .*Echo; give .*Broken"):
        agents.register(Broken, name="parrot")
    agents.add("odd", lambda state: Plain("a", "u"))
    with pytest.raises(Misuse, match="'odd' are registered already"):
        agents.register(Broken, name="odd")


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


@pytest.fixture
def notebook() -> Iterator[Callable[..., type]]:
    """A module whose cells can be run again: each gives the class that it has defined."""
    module = ModuleType("notebook")
    sys.modules["notebook"] = module
    vars(module)["Family"] = Family

    def run(cell: str, **given: Any) -> type:
        vars(module).update(given)
        exec(cell, vars(module))  # noqa: S102 # what a notebook does
        defined: type = vars(module)["Cell"]
        return defined

    yield run
    del sys.modules["notebook"]


CELL = "class Cell(Family): ..."


@pytest.mark.parametrize("used", ["no", "the old one", "both"])
def test_a_class_that_is_defined_again_is_the_one_that_comes_back(
    notebook: Callable[..., type], used: str
) -> None:
    agents = Agents(of=Family)
    old = notebook(CELL)
    old_agent = old("a", "u")
    if used != "no":
        agents.meet(old_agent)
    new = notebook(CELL)
    if used == "both":
        agents.meet(new("b", "u"))
        agents.meet(old_agent)
    assert type(agents.revived(of_type("Cell"))) is new
    assert isinstance(old_agent, old)
    assert old is not new


@pytest.mark.parametrize("decorated", [False, True])
def test_a_class_that_is_defined_again_may_be_registered_again(
    notebook: Callable[..., type], decorated: bool
) -> None:
    agents = Agents()
    for _ in range(3):
        defined = notebook(f"@register\n{CELL}" if decorated else CELL, register=agents.register)
        agents.register(defined)
        assert type(agents.revived(of_type("Cell"))) is defined


def test_two_classes_of_one_name_that_stand_nowhere_are_two(notebook: Callable[..., type]) -> None:
    notebook("one = type('Named', (Family,), {}); two = type('Named', (Family,), {}); Cell = one")
    module, agents = vars(sys.modules["notebook"]), Agents()
    agents.register(module["one"])
    with pytest.raises(Misuse, match="'Named' are registered already"):
        agents.register(module["two"])


def made(number: int) -> type:
    class Made(Family):
        size = number

    return Made


def test_two_classes_that_a_function_makes_are_told_apart() -> None:
    agents, small, large = Agents(of=Family), made(1), made(2)
    agents.meet(large("a", "u"))
    with pytest.raises(
        Misuse, match=r"'Made' may be one of 2 that are .*made.<locals>.Made; register .*agent_type"
    ):
        agents.revived(of_type("Made"))
    agents.register(small)
    assert type(agents.revived(of_type("Made"))) is small
    with pytest.raises(
        Misuse, match=r"'Made' are registered already, as .*Made; give .*agent_type"
    ):
        agents.register(large)
    large.agent_type = "large"  # type: ignore[attr-defined] # which is the remedy
    agents.register(large)
    assert type(agents.revived(of_type("large"))) is large


def test_a_class_that_a_function_has_made_and_nobody_holds_any_more_is_none() -> None:
    gc.disable()
    try:
        made(1)
        held = made(2)
        assert type(Agents(of=Family).revived(of_type("Made"))) is held
    finally:
        gc.enable()


class Role(StandardAgent):
    agent_type = "role"


class Special(Role):
    """Inherits what its agents are called."""


def test_a_class_that_inherits_what_it_is_called_is_told_what_it_needs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agents = Agents(of=Role)
    agents.meet(Special("a", "u"))
    agents.meet(Special("b", "u"))
    (told,) = (record.getMessage() for record in caplog.records)
    assert "may be" in told
    assert "agents.register(Special, name='role')" in told
    with pytest.raises(Misuse, match=r"'role' may be .*Role or .*Special; .*agent_type of its own"):
        agents.revived(of_type("role"))
    agents.register(Special)
    assert type(agents.revived(of_type("role"))) is Special
    with pytest.raises(Misuse, match=r"'role' are registered already, as .*Special"):
        agents.register(Role)


class Renamed(Family):
    def __init__(self, agent_id: str | None = None, user_id: str = "") -> None:
        super().__init__(agent_id, user_id)
        self.agent_type = "planner"


def test_a_name_that_only_instances_have_is_known_where_one_was_saved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, elsewhere = Agents(of=Family), Agents(of=Family)
    here.meet(Renamed("a", "u"))
    assert "'planner' was saved, which to another process is none that it could know" in caplog.text
    assert type(here.revived(of_type("planner"))) is Renamed
    assert "planner" in here.names()
    with pytest.raises(NotFound, match=r"agents.register\(TheClass, name='planner'\)"):
        elsewhere.revived(of_type("planner"))
    elsewhere.register(Renamed, name="planner")
    assert type(elsewhere.revived(of_type("planner"))) is Renamed


def test_a_class_is_registered_under_what_its_agents_are_called() -> None:
    assert type(Agents(Role).revived(captured(Role("a", "u")))) is Role


def test_an_agent_that_was_met_comes_back_whatever_it_derives_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agents, strict = Agents(of=Family), Agents()
    for registry in (agents, strict):
        registry.meet(Plain("a", "u"))
    assert "agents.register(Plain, name='Plain') tells it" in caplog.text
    assert isinstance(agents.revived(captured(Plain("a", "u"))), Plain)
    with pytest.raises(NotFound):
        strict.revived(captured(Plain("a", "u")))


def test_an_agent_that_every_process_finds_is_saved_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Agents(of=Family).meet(Family("a", "u"))
    registered = Agents(Plain, of=Family)
    registered.meet(Plain("a", "u"))
    assert caplog.records == []


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

        def get_message_history(self) -> list[Any]:
            return [*super().get_message_history()]

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


ODD = [
    ("context", {"lock": threading.Lock()}, r"context.lock: cannot be copied \(TypeError"),
    ("execution_state", {"rows": (n for n in (1,))}, "execution_state.rows: cannot be copied"),
    ("collected_fields", None, "collected_fields of an agent is a dict, not NoneType"),
    ("context", [1], "context of an agent is a dict, not list"),
    ("required_fields", None, "required_fields of an agent is a list, not NoneType"),
    ("required_fields", "name", "required_fields of an agent is a list, not str"),
    ("result", threading.Lock(), "result: cannot be copied"),
]


@pytest.mark.parametrize(("name", "value", "told"), ODD)
def test_what_cannot_be_captured_is_named(name: str, value: Any, told: str) -> None:
    agent = Echo("a")
    setattr(agent, name, value)
    with pytest.raises(Misuse, match=told):
        captured(agent)


def test_a_history_that_is_none_is_named() -> None:
    agent: Any = Plain("a", "u")
    agent.messages = None
    with pytest.raises(Misuse, match=r"get_message_history\(\) of an agent is a list"):
        captured(agent)


def test_an_answer_that_cannot_be_copied_is_an_answer() -> None:
    lock = threading.Lock()

    class Locksmith(StandardAgent):
        async def on_running(self, msg: Message) -> Any:
            return lock

    agent = Locksmith("a")
    assert asyncio.run(agent.reply("x")).content is lock
    assert (agent.status, agent.result) == (Status.COMPLETED, lock)
    with pytest.raises(Unstorable, match="result: cannot be copied"):
        captured(agent)


def test_an_agent_that_is_let_go_while_it_works_is_let_go() -> None:
    class Endless(StandardAgent):
        async def on_running(self, msg: Message) -> None:
            await asyncio.get_running_loop().create_future()

    async def noting(agent: StandardAgent) -> None:
        await asyncio.sleep(0)

    async def begun() -> Any:
        agent = Endless("a")
        agent.observe(noting)
        working = agent.reply("x")
        for _ in range(2):
            working.send(None)
        return working

    asyncio.run(begun()).close()  # whoever waits on the way out is told so by Python
