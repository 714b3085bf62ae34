"""The loop with models in this process: what is saved when, what a resume does, what goes wrong."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry, RunContext, ToolReturn
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.errors import Conflict, Corrupt, Misuse, StepUnknown, Unavailable, Unstorable
from hardsave.runtime import loop
from hardsave.runtime.loop import messages as forms
from hardsave.runtime.loop.record import begins_with
from hardsave.runtime.loop.retrying import RETRY, pause_seconds
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.vault import Vault

Say = ModelResponse | Exception
PAPER = BinaryContent(b"%PDF\xff\x00", media_type="application/pdf", identifier="paper")


class Model:
    """Says one thing after the other, by the turn that the messages show; counts requests."""

    def __init__(self, *says: Say | Sequence[Say]) -> None:
        self.says = says
        self.requests: list[list[ModelMessage]] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(list(messages))
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        said = self.says[turn]
        if isinstance(said, Sequence):
            asked = sum(_turn(request) == turn for request in self.requests)
            said = said[min(asked, len(said)) - 1]
        if isinstance(said, Exception):
            raise said
        return said

    def agent(self, **options: Any) -> "Agent[None, Any]":
        return Agent(FunctionModel(self, model_name="scripted"), **options)


class Dated(FunctionModel):
    """As providers do, it answers with a date behind its name."""

    async def request(self, *args: Any, **more: Any) -> ModelResponse:
        response = await super().request(*args, **more)
        return replace(response, model_name=f"{self.model_name}-2026-01-01")


def _turn(messages: list[ModelMessage]) -> int:
    return sum(isinstance(message, ModelResponse) for message in messages)


def text(content: str) -> ModelResponse:
    return ModelResponse(parts=[ThinkingPart("hm", signature="sig"), TextPart(content)])


def calls(*tools: str, **args: Any) -> ModelResponse:
    parts = [ToolCallPart(tool, args, tool_call_id=f"id-{tool}") for tool in tools]
    return ModelResponse(parts=parts)


@pytest.fixture
def vault() -> Iterator[Vault]:
    with hardsave.open("memory://") as opened:
        yield opened


def line(vault: Vault) -> hardsave.Timeline:
    return vault.timeline("job")


def descriptions(vault: Vault) -> list[str]:
    return [cp.description for cp in line(vault).checkpoints()][::-1]


class Broken(Exception):
    """What a tool of these tests fails with."""


# What is saved


def test_every_checkpoint_holds_the_whole_conversation(vault: Vault) -> None:
    """Though a save is given only what has changed."""
    told: list[dict[str, Any]] = []
    vault.on("checkpoint_saved", lambda cp: told.append(cp.read()))
    model, data = Model(calls("breaks"), calls("other"), text("done")), {"seen": 0}

    def other() -> str:
        data["seen"] += 1  # in place
        return "fine"

    agent = _with_tools(model, [])
    agent.tool_plain(other)
    loop.run_sync(agent, "hi", line=line(vault), data=data)
    assert {frozenset(state) for state in told} == {frozenset(told[0])}
    assert [state["turn"] for state in told] == [0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert [state["data"]["content"]["seen"] for state in told] == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert [state["status"] for state in told] == ["running"] * 8 + ["completed"]
    assert [state["prompt"]["content"] for state in told] == ["hi", *[None] * 8]
    assert [len(state["calls"]) for state in told] == [0, 0, 1, 1, 0, 1, 1, 0, 0]
    assert [len(state["messages"]) for state in told] == [0, 2, 2, 2, 4, 4, 4, 6, 6]
    assert told[-1]["output"]["content"] == "done"


def test_an_old_message_that_was_replaced_is_saved(vault: Vault) -> None:
    async def shortened(messages: list[ModelMessage]) -> list[ModelMessage]:
        return [ModelRequest(parts=[UserPromptPart("short")]), *messages[1:]]

    model = Model(calls("breaks"), text("done"))
    agent = _with_tools(model, [], capabilities=[ProcessHistory(shortened)])
    outcome = loop.run_sync(agent, "a long story", line=line(vault))
    assert forms.live(line(vault).load()["messages"]) == outcome.messages
    assert "a long story" not in repr(model.requests[1])


def test_a_history_that_is_kept_short_is_saved_after_every_response_all_the_same(
    vault: Vault,
) -> None:
    """It is no longer after a response than it was before: only the model knows that it is new."""
    asked: list[int] = []
    effects: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        return calls("breaks" if len(asked) == 5 else "fine") if len(asked) < 6 else text("done")

    def agent(*, breaks: bool) -> "Agent[None, Any]":
        short = ProcessHistory(lambda messages: [messages[0], *messages[1:][-2:]])
        found = Agent(FunctionModel(answer), capabilities=[short])
        found.tool_plain(_tool("fine", effects, "fine"))
        error = Broken("out of order") if breaks else None
        found.tool_plain(_tool("breaks", effects, "fine", error))
        return found

    with pytest.raises(Broken):
        loop.run_sync(agent(breaks=True), "hi", line=line(vault))
    said = [cp for cp in descriptions(vault) if cp.startswith("response")]
    assert said == [f"response {turn}" for turn in range(1, 6)]
    outcome = loop.run_sync(agent(breaks=False), "hi", line=line(vault), unknown="retry")
    assert (outcome.output, outcome.turn, outcome.resumed) == ("done", 6, True)
    assert len(asked) == 6
    assert effects == ["fine"] * 4 + ["breaks"] * 2


def test_an_old_message_that_was_changed_in_place_is_saved_at_the_end(vault: Vault) -> None:
    model = Model(calls("breaks"), calls("trim"), text("done"))
    agent = _with_tools(model, [])

    @agent.tool
    def trim(ctx: RunContext[None]) -> str:
        [part] = ctx.messages[2].parts
        assert isinstance(part, ToolReturnPart)
        part.content = "trimmed"
        return "fine"

    outcome = loop.run_sync(agent, "hi", line=line(vault))
    assert "trimmed" in repr(outcome.messages)
    assert forms.live(line(vault).load()["messages"]) == outcome.messages


def test_a_model_that_gives_an_id_twice_costs_the_run_and_not_the_conversation(
    vault: Vault,
) -> None:
    twice = ModelResponse(parts=[ToolCallPart("fine", tool_call_id="id") for _ in range(3)])
    effects: list[str] = []
    model = Model(twice, text("done"))
    with pytest.raises(UnexpectedModelBehavior, match="unique"):
        loop.run_sync(_with_tools(model, effects), "hi", line=line(vault))
    assert effects == []
    assert loop.run_sync(_with_tools(model, effects), None, line=line(vault)).output == "done"
    assert effects == ["fine"] * 3
    assert len(model.requests) == 2
    told = [part for part in model.requests[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert [part.tool_call_id for part in told] == ["id", "id#2", "id#3"]


def test_a_list_begins_with_another() -> None:
    one, two, other = (ModelRequest(parts=[UserPromptPart(word)]) for word in ("a", "b", "c"))
    assert begins_with([one, two], [])
    assert begins_with([one, two], [one])
    assert begins_with([one, two], [one, two])
    assert begins_with([one, two], [replace(one)])
    assert not begins_with([one, two], [other])
    assert not begins_with([one, two], [two])
    assert not begins_with([one], [one, two])
    assert not begins_with([one, other], [one, two])


def test_every_response_and_every_tool_result_is_saved(vault: Vault) -> None:
    model = Model(calls("pay"), text("done"))
    agent = model.agent()
    agent.tool_plain(pay := _tool("pay", [], "paid"))
    outcome = loop.run_sync(agent, "hi", line=line(vault), data={"job": 7})
    assert pay.__name__ == "pay"
    assert descriptions(vault) == [
        "prompt",
        "response 1",
        "before pay",
        "pay returned",
        "response 2",
        "completed",
    ]
    state = line(vault).load()
    assert state["messages"] == forms.plain(outcome.messages)
    assert (state["turn"], state["model"], state["status"]) == (2, "scripted", "completed")
    assert state["data"] == {"content": {"job": 7}}
    assert outcome.usage.requests == 2
    assert state["usage"]["tool_calls"] == 1


def test_a_tool_that_is_safe_to_repeat_costs_one_save(vault: Vault) -> None:
    agent = Model(calls("look"), text("done")).agent()
    agent.tool_plain(metadata=loop.if_unknown("retry"))(_tool("look", [], "seen"))
    loop.run_sync(agent, "hi", line=line(vault))
    assert "before look" not in descriptions(vault)
    assert "look returned" in descriptions(vault)


def test_the_files_are_saved_with_the_conversation(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        (tmp_path / "files").mkdir()
        agent = Model(calls("write"), text("done")).agent()

        @agent.tool_plain
        def write() -> str:
            (tmp_path / "files" / "new").write_text("content")
            return "written"

        workspace = vault.workspace(tmp_path / "files")
        loop.run_sync(agent, "hi", line=line(vault), workspace=workspace)
        before, after = (_described(vault, each) for each in ("before write", "write returned"))
        assert vault.diff(before, after).files.added == ("new",)


def test_a_workspace_that_is_removed_costs_no_conversation(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        (tmp_path / "files").mkdir()
        agent = Model(calls("remove"), text("done")).agent()

        @agent.tool_plain
        def remove() -> None:
            (tmp_path / "files").rmdir()

        workspace = vault.workspace(tmp_path / "files")
        done = loop.run_sync(agent, "hi", line=line(vault), workspace=workspace)
        assert (done.output, done.save_failures) == ("done", 0)
        assert _described(vault, "before remove").files is not None
        assert _described(vault, "completed").status == "completed"


def test_what_a_tool_says_to_the_program_alone_costs_no_conversation(vault: Vault) -> None:
    agent = Model(calls("look"), text("done")).agent()

    @agent.tool_plain
    def look() -> Any:
        return ToolReturn("seen", metadata=object())

    done = loop.run_sync(agent, "hi", line=line(vault))
    assert (done.output, done.save_failures) == ("done", 0)
    assert line(vault).load()["messages"][2]["parts"][0]["content"] == "seen"


def _described(vault: Vault, description: str) -> hardsave.Checkpoint:
    return next(cp for cp in line(vault).checkpoints() if cp.description == description)


# Going on


def test_what_the_model_said_is_not_asked_for_again(vault: Vault) -> None:
    effects: list[str] = []
    model = Model(calls("fine", "breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, effects, breaks=True), "hi", line=line(vault))
    assert line(vault).load()["status"] == "failed"
    assert "Broken" in line(vault).load()["error"]
    outcome = loop.run_sync(_with_tools(model, effects), "hi", line=line(vault))
    assert outcome.output == "done"
    assert outcome.resumed
    assert len(model.requests) == 2
    assert effects.count("fine") == 1


def test_a_tool_that_broke_is_told_about_and_not_called_again(vault: Vault) -> None:
    effects: list[str] = []
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, effects, breaks=True), "hi", line=line(vault))
    loop.run_sync(_with_tools(model, effects), None, line=line(vault))
    assert effects == ["breaks"]
    [told] = _results(model.requests[-1])
    assert "Broken: out of order" in told


@pytest.mark.parametrize(
    ("policy", "count", "word"), [("retry", 2, "fine"), ("skip", 1, "is skipped")]
)
def test_the_caller_may_decide_otherwise(vault: Vault, policy: Any, count: int, word: str) -> None:
    effects: list[str] = []
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, effects, breaks=True), "hi", line=line(vault))
    again = _with_tools(model, effects)
    loop.run_sync(again, None, line=line(vault), unknown={"breaks": policy})
    assert len(effects) == count
    assert word in _results(model.requests[-1])[0]


def test_fail_refuses_to_go_on_and_says_how_to(vault: Vault) -> None:
    effects: list[str] = []
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, effects, breaks=True), "hi", line=line(vault))
    with pytest.raises(StepUnknown, match=r"'id-breaks'.*'breaks'"):
        loop.run_sync(_with_tools(model, effects), None, line=line(vault), unknown="fail")
    outcome = loop.run_sync(_with_tools(model, effects), None, line=line(vault))
    assert outcome.output == "done"


def _with_tools(
    model: Model, effects: list[str], *, breaks: bool = False, **options: Any
) -> "Agent[None, Any]":
    agent = model.agent(**options)
    agent.tool_plain(sequential=True)(_tool("fine", effects, "fine"))
    error = Broken("out of order") if breaks else None
    agent.tool_plain(sequential=True)(_tool("breaks", effects, "fine", error))
    return agent


def _tool(
    name: str, effects: list[str], result: Any, error: Exception | None = None
) -> Callable[[], Any]:
    def call() -> Any:
        effects.append(name)
        if error is not None:
            raise error
        return result

    call.__name__ = name
    return call


def _results(messages: Sequence[ModelMessage]) -> list[str]:
    parts = messages[-1].parts
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def test_a_correction_is_replayed_as_one(vault: Vault) -> None:
    effects: list[str] = []
    model = Model(calls("picky", "breaks"), text("done"))

    def agent(*, breaks: bool) -> "Agent[None, Any]":
        made = model.agent()
        made.tool_plain(sequential=True)(_tool("picky", effects, "", ModelRetry("not so")))
        error = Broken() if breaks else None
        made.tool_plain(sequential=True, metadata=loop.if_unknown("retry"))(
            _tool("breaks", effects, "fine", error)
        )
        return made

    with pytest.raises(Broken):
        loop.run_sync(agent(breaks=True), "hi", line=line(vault))
    loop.run_sync(agent(breaks=False), "hi", line=line(vault))
    assert effects == ["picky", "breaks", "breaks"]
    assert "not so" in repr(model.requests[-1][-1])


def test_a_conversation_that_is_finished_goes_on_with_a_new_prompt(vault: Vault) -> None:
    model = Model(text("one"), text("two"))
    loop.run_sync(model.agent(), "first", line=line(vault))
    outcome = loop.run_sync(model.agent(), "second", line=line(vault))
    assert outcome.output == "two"
    assert not outcome.resumed
    assert len(outcome.messages) == 4


def test_a_finished_one_gives_its_outcome_again_without_asking(vault: Vault) -> None:
    model = Model(text("one"))
    agent = model.agent(instructions="be good")
    loop.run_sync(agent, "first", line=line(vault))
    assert loop.run_sync(agent, None, line=line(vault)).output == "one"
    assert len(model.requests) == 1


def test_a_run_with_a_name_is_made_once_however_often_it_is_started(vault: Vault) -> None:
    model = Model(text("one"), text("two"))
    for _ in range(3):
        outcome = loop.run_sync(model.agent(), "hi", line=line(vault), run_id="a")
        assert outcome.output == "one"
    assert len(model.requests) == 1
    assert loop.run_sync(model.agent(), "hi", line=line(vault), run_id="b").output == "two"


def test_an_unfinished_run_is_not_gone_on_with_under_another_name(vault: Vault) -> None:
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, [], breaks=True), "hi", line=line(vault), run_id="a")
    with pytest.raises(Misuse, match="run 'a'"):
        loop.run_sync(_with_tools(model, []), "hi", line=line(vault), run_id="b")


class Answer(BaseModel):
    number: int


def test_an_output_of_a_type_comes_again_as_that_type(vault: Vault) -> None:
    effects: list[str] = []
    model = Model(calls("fine"), calls("final_result", number=7))
    agent = model.agent(output_type=Answer)
    agent.tool_plain(_tool("fine", effects, "fine"))
    for prompt in ("first", None):
        assert loop.run_sync(agent, prompt, line=line(vault)).output == Answer(number=7)
    assert len(model.requests) == 2
    assert effects == ["fine"]
    assert line(vault).load()["output"] == {"content": {"number": 7}}


def test_an_unfinished_one_refuses_another_prompt(vault: Vault) -> None:
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, [], breaks=True), "hi", line=line(vault))
    with pytest.raises(Misuse, match="prompt=None"):
        loop.run_sync(_with_tools(model, []), "something else", line=line(vault))


@pytest.mark.parametrize("is_old", [False, True])
def test_a_program_that_is_started_again_is_known_by_its_prompt(vault: Vault, is_old: bool) -> None:
    """Older versions have saved it only among the messages."""
    model = Model(calls("fine"), calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, [], breaks=True), "hi", line=line(vault))
    if is_old:
        left = line(vault).load()
        del left["begun_with"]
        line(vault).save(left)
    agent = _with_tools(model, [])
    with pytest.raises(Misuse, match="prompt=None"):
        loop.run_sync(agent, "something else", line=line(vault))
    assert loop.run_sync(agent, "hi", line=line(vault)).output == "done"
    assert len(model.requests) == 3


SECRET = "the key is sk-ant-api03-" + "a1B2" * 24


@pytest.mark.parametrize("prompt", [SECRET, [SECRET, PAPER]])
def test_a_program_is_known_by_its_prompt_also_if_that_held_a_secret(prompt: Any) -> None:
    model = Model(calls("breaks"), text("done"))
    with hardsave.open("memory://", redact=True) as vault:
        with pytest.raises(Broken):
            loop.run_sync(_with_tools(model, [], breaks=True), prompt, line=line(vault))
        with pytest.raises(Misuse, match="prompt=None"):
            loop.run_sync(_with_tools(model, []), "the key is lost", line=line(vault))
        assert loop.run_sync(_with_tools(model, []), prompt, line=line(vault)).output == "done"
        assert "sk-ant" not in repr(line(vault).load())


def test_a_prompt_that_a_tool_has_added_is_not_what_was_asked(vault: Vault) -> None:
    model = Model(calls("look"), calls("breaks"), text("done"))

    def agent(*, breaks: bool) -> "Agent[None, Any]":
        found = _with_tools(model, [], breaks=breaks)
        found.tool_plain(_tool("look", [], ToolReturn("seen", content=["a picture", PAPER])))
        return found

    with pytest.raises(Broken):
        loop.run_sync(agent(breaks=True), "hi", line=line(vault))
    assert loop.run_sync(agent(breaks=False), "hi", line=line(vault)).output == "done"
    assert len(model.requests) == 3


def test_resume_false_begins_anew_and_the_old_one_is_still_there(vault: Vault) -> None:
    model = Model(text("one"))
    loop.run_sync(model.agent(), "first", line=line(vault))
    outcome = loop.run_sync(model.agent(), "second", line=line(vault), resume=False)
    assert len(outcome.messages) == 2
    assert len(line(vault)) == 6


def test_without_anything_to_go_on_with_a_prompt_is_needed(vault: Vault) -> None:
    with pytest.raises(Misuse, match="give a prompt"):
        loop.run_sync(Model().agent(), None, line=line(vault))


def test_a_history_from_elsewhere_is_repaired_before_it_is_used(vault: Vault) -> None:
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("hi")]), calls("gone")]
    model = Model(text("never"), text("done"))
    loop.run_sync(model.agent(), "go on", line=line(vault), history=history)
    assert "was lost" in repr(model.requests[0])


def test_the_model_is_chosen_by_the_name_that_was_saved(vault: Vault) -> None:
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(model, [], breaks=True), "hi", line=line(vault))
    other = Model(text("no"), text("wrong one"))
    known = {"scripted": FunctionModel(model, model_name="scripted")}
    outcome = loop.run_sync(_with_tools(other, []), None, line=line(vault), models=known)
    assert outcome.output == "done"
    assert not other.requests


@pytest.mark.parametrize("how", ["by its key", "by its name", "as the agent's own"])
def test_a_run_goes_on_with_its_model_whatever_that_calls_itself(vault: Vault, how: str) -> None:
    large = Dated(Model(calls("breaks"), text("done")), model_name="large")
    other = Model(text("no"), text("wrong one"))
    agent = _with_tools(other, [], breaks=True)
    known = {"mine" if how == "by its key" else "large": large}
    given: dict[str, Any] = {"model": large, "models": known}
    if how == "as the agent's own":
        agent.model, given = large, {}
    with pytest.raises(Broken):
        loop.run_sync(agent, "hi", line=line(vault), **given)
    assert line(vault).load()["model"] == "large-2026-01-01"
    outcome = loop.run_sync(_with_tools(other, []), None, line=line(vault), models=known)
    assert outcome.output == "done"
    again = dict.fromkeys(known, Dated(Model(*[text("no")] * 2, text("more")), model_name="large"))
    outcome = loop.run_sync(_with_tools(other, []), "go on", line=line(vault), models=again)
    assert outcome.output == "more"
    assert not other.requests


def test_that_a_run_goes_on_with_another_model_is_told(
    vault: Vault, caplog: pytest.LogCaptureFixture
) -> None:
    model = Model(calls("breaks"), text("done"))
    with pytest.raises(Broken):
        loop.run_sync(
            _with_tools(Model(), [], breaks=True),
            "hi",
            line=line(vault),
            model=FunctionModel(model, model_name="large"),
        )
    assert not caplog.records
    loop.run_sync(_with_tools(model, []), None, line=line(vault))
    assert "held with model 'large' and goes on with 'scripted'" in caplog.text


def _left(vault: Vault, **other: Any) -> None:
    """What a run that broke has left, with something else in it than it was."""
    with pytest.raises(Broken):
        loop.run_sync(_with_tools(Model(calls("breaks")), [], breaks=True), "hi", line=line(vault))
    left = {**line(vault).load(), **other}
    line(vault).save({key: value for key, value in left.items() if value is not ...})


CALL = {"part_kind": "tool-call", "tool_name": "fine", "args": {}, "tool_call_id": "id"}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"status": ...}, "status is missing"),
        ({"turn": "x"}, "turn is 'x'"),
        ({"usage": None}, "usage is None"),
        ({"model": ["x"]}, r"model is \['x'\]"),
        ({"asked": {}}, "asked is {}"),
        ({"prompt": "hi"}, "prompt has no content"),
        ({"begun_with": "hi"}, "begun_with has no content"),
        ({"output": ...}, "output has no content"),
        ({"messages": {}}, "messages is {}"),
        ({"messages": [5]}, r"messages\[0\] is no message"),
        ({"messages": [{"kind": "response"}]}, r"messages\[0\].parts is not a list"),
        ({"messages": [{"kind": "request", "parts": []}]}, "nothing was said"),
        ({"messages": [{"kind": "response", "parts": [{**CALL, "args": 5}]}]}, "none of Pydantic"),
        ({"calls": {"id-breaks": 5}}, "the record of tool calls is not one of ours"),
        (
            {"calls": {"id-breaks": {"tool": "breaks", "state": "odd", "at": ""}}},
            "the record of tool call 'id-breaks' is not one of ours",
        ),
        (
            {"calls": {"id-breaks": {"tool": "breaks", "state": "returned", "at": ""}}},
            "the record of tool call 'id-breaks' is not one of ours",
        ),
    ],
)
def test_a_conversation_that_was_changed_into_none_is_named_and_left_alone(
    vault: Vault, other: dict[str, Any], says: str
) -> None:
    _left(vault, **other)
    head, model = line(vault).get(), Model(text("new"))
    with pytest.raises((Misuse, Corrupt), match=says):
        loop.run_sync(_with_tools(model, []), None, line=line(vault))
    assert line(vault).get().id == head.id
    assert not model.requests
    assert loop.run_sync(model.agent(), "hi", line=line(vault), resume=False).output == "new"


def test_something_else_on_the_timeline_is_left_alone(vault: Vault) -> None:
    line(vault).save({"mine": 1})
    with pytest.raises(Misuse, match="something else"):
        loop.run_sync(Model(text("x")).agent(), "hi", line=line(vault))
    assert line(vault).load() == {"mine": 1}


# What goes wrong with the store


class Flaky(MemoryStore):
    """Refuses some commits."""

    def __init__(self, refused: Sequence[int]) -> None:
        super().__init__()
        self._refused, self._count = refused, 0

    def commit(self, batch: Any) -> int:
        self._count += 1
        if self._count in self._refused:
            raise Unavailable("the disk is full")
        return super().commit(batch)


@pytest.mark.parametrize("refused", [[1], [2, 3], [4], [6], range(1, 7)])
def test_a_save_that_fails_never_stops_the_agent(
    refused: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    with Vault(Flaky(refused)) as vault:
        told: list[Any] = []
        vault.on("save_failed", told.append)
        agent = Model(calls("pay"), text("done")).agent()
        agent.tool_plain(_tool("pay", [], "paid"))
        outcome = loop.run_sync(agent, "hi", line=line(vault))
        assert outcome.output == "done"
        assert (
            outcome.save_failures == len(told) == len(refused) == vault.store.stats().save_failures
        )
        assert "the disk is full" in caplog.text
        if 6 not in refused:  # the last save makes up for those before it
            assert line(vault).load()["messages"] == forms.plain(outcome.messages)


def test_a_strict_vault_lets_an_automatic_save_that_fails_stop_the_agent() -> None:
    with Vault(Flaky([2]), is_strict=lambda: True) as vault:
        told: list[Any] = []
        vault.on("save_failed", told.append)
        with pytest.raises(Unavailable, match="the disk is full"):
            loop.run_sync(Model(text("done")).agent(), "hi", line=line(vault))
        assert len(told) == vault.store.stats().save_failures == 1


@pytest.mark.parametrize("breaks", [False, True])
def test_a_result_that_cannot_be_stored_is_told_as_such_now_and_later(
    vault: Vault, caplog: pytest.LogCaptureFixture, breaks: bool
) -> None:
    model = Model(calls("odd", "breaks"), text("done"))

    def agent(*, breaks: bool) -> "Agent[None, Any]":
        made = _with_tools(model, [], breaks=breaks)
        made.tool_plain(sequential=True)(_tool("odd", [], object()))
        return made

    if breaks:
        with pytest.raises(Broken):
            loop.run_sync(agent(breaks=True), "hi", line=line(vault))
    outcome = loop.run_sync(agent(breaks=False), None if breaks else "hi", line=line(vault))
    assert "result of odd: cannot be kept as JSON" in caplog.text
    assert "could not be stored" in repr(model.requests[-1][-1])
    assert (outcome.output, outcome.save_failures) == ("done", 0)


def test_another_writer_of_the_same_conversation_stops_it(vault: Vault) -> None:
    effects: list[str] = []
    agent = Model(calls("meddle"), calls("fine"), text("done")).agent()
    agent.tool_plain(_tool("fine", effects, "fine"))

    @agent.tool_plain
    def meddle() -> str:
        line(vault).append({"turn": 77}, expect=hardsave.ANY_HEAD)
        return "meddled"

    with pytest.raises(Conflict):
        loop.run_sync(agent, "hi", line=line(vault))
    assert effects == []
    assert line(vault).load()["turn"] == 77


def test_somebody_who_saves_only_files_does_not(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        (tmp_path / "files").mkdir()
        agent = Model(calls("help"), text("done")).agent()

        @agent.tool_plain
        def help() -> str:
            line(vault).save_files(tmp_path / "files")
            return "helped"

        assert loop.run_sync(agent, "hi", line=line(vault)).save_failures == 0


# Patience


def http_error(status: int, **headers: str) -> ModelHTTPError:
    return ModelHTTPError(status, "scripted", headers=headers or None)


def patient(vault: Vault, *says: Say) -> tuple[Any, list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    agent = Model(list(says)).agent()
    try:
        outcome = loop.run_sync(agent, "hi", line=line(vault), sleep=sleep)
    except ModelHTTPError as error:
        return error, slept
    return outcome.output, slept


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_an_error_that_may_pass_is_waited_for(vault: Vault, status: int) -> None:
    failures = [http_error(status)] * 4
    output, slept = patient(vault, *failures, text("done"))
    assert output == "done"
    assert [pytest.approx(seconds, rel=0.1) for seconds in (10, 20, 40, 80)] == slept


def test_five_times_and_no_more_and_the_conversation_is_kept(vault: Vault) -> None:
    error, slept = patient(vault, *[http_error(503)] * 6)
    assert error.status_code == 503
    assert len(slept) == 4
    assert line(vault).load()["status"] == "failed"
    assert line(vault).load()["prompt"] == {"content": "hi"}


def test_an_error_that_will_not_pass_is_not_waited_for(vault: Vault) -> None:
    error, slept = patient(vault, http_error(401), text("done"))
    assert (error.status_code, slept) == (401, [])


@pytest.mark.parametrize(
    ("named", "expected"),
    [("60", 60.0), ("1", 10.0), ("1e9", 300.0), ("nonsense", 10.0), ("-5", 10.0), ("inf", 10.0)],
)
def test_a_server_that_names_a_time_is_believed_within_reason(named: str, expected: float) -> None:
    error = ModelHTTPError(429, "m", headers={"retry-after": named})
    assert pause_seconds(error, 1, RETRY, lambda: 0.0) == expected


# Forms


def test_messages_come_back_exactly() -> None:
    given: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(["look", PAPER])], instructions="be good"),
        ModelResponse(parts=[ThinkingPart("hm", id="r", signature="sig", provider_name="p")]),
        calls("a", deep={"x": [1, 2.5, None, "é"]}),
        ModelRequest(parts=[ToolReturnPart("a", {"paper": PAPER}, tool_call_id="id-a")]),
    ]
    stored = forms.plain(given)
    assert forms.live(stored) == given
    assert forms.plain(forms.live(stored)) == stored


@pytest.mark.parametrize(
    "value",
    ["text", "", None, 7, 2.5, True, [1, "x", None], {"a": {"b": [1]}}, PAPER, [PAPER, "x"]],
)
def test_results_come_back_exactly(value: Any) -> None:
    assert forms.live_result(forms.plain_result(value)) == value


def test_a_rich_result_comes_back_as_one() -> None:
    given = ToolReturn("short", content=["long", PAPER], metadata={"n": 1})
    assert forms.live_result(forms.plain_result(given)) == given


def test_a_model_comes_back_as_the_data_that_the_model_is_told() -> None:
    assert forms.live_result(forms.plain_result(Answer(number=1))) == {"number": 1}


def test_what_cannot_be_stored_is_named() -> None:
    with pytest.raises(Unstorable, match="result of odd"):
        forms.plain_result(object(), "result of odd")


@pytest.mark.parametrize("prompt", ["hi", ["look at", PAPER]])
def test_prompts_come_back_exactly(prompt: Any) -> None:
    assert forms.live_prompt(forms.plain_prompt(prompt)) == prompt


def test_messages_that_are_none_are_misuse() -> None:
    with pytest.raises(Misuse, match="none of Pydantic AI's"):
        forms.live([{"kind": "request", "parts": [{"part_kind": "nonsense"}]}])


def test_inside_a_running_loop_run_is_awaited(vault: Vault) -> None:
    async def inside() -> str:
        with pytest.raises(Misuse, match="await run"):
            loop.run_sync(Model(text("x")).agent(), "hi", line=line(vault))
        outcome = await loop.run(Model(text("awaited")).agent(), "hi", line=line(vault))
        return str(outcome.output)

    assert asyncio.run(inside()) == "awaited"


def test_half_a_character_of_a_model_costs_no_save_and_no_run(vault: Vault) -> None:
    """Nobody can store it, and no server of models takes it back."""
    effects: list[str] = []
    said = calls("fine").parts
    broken = ModelResponse(parts=[TextPart("a \ud83d\ude00, half of one: \ud83d"), *said])
    model = Model(broken, text("done"))
    outcome = loop.run_sync(_with_tools(model, effects), "hi", line=line(vault))
    assert (outcome.output, outcome.save_failures) == ("done", 0)
    assert effects == ["fine"]
    assert outcome.messages[1].parts[0] == TextPart("a \U0001f600, half of one: \ufffd")
    assert forms.live(line(vault).load()["messages"]) == outcome.messages


def test_what_a_model_says_is_mended_wherever_it_stands() -> None:
    args = {"words": ["\ud83d", 1, None]}
    mended = forms.sayable(calls("fine", **args))
    assert mended.parts == calls("fine", words=["\ufffd", 1, None]).parts
    sound = text("\U0001f600")
    assert forms.sayable(sound) is sound
