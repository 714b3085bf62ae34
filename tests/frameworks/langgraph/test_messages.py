"""Long conversations: what is read or made once for many states is still each state's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import ConfigDict

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver

THREAD: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
LONG = "so long that it is stored by itself " * 8


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[HardsaveSaver]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        yield HardsaveSaver(vault)


def conversation(count: int) -> list[Any]:
    return [_message(number) for number in range(count)]


def _message(number: int) -> Any:
    text = f"{number}: {LONG}"
    if number % 2:
        return AIMessage(text, id=f"{number}", response_metadata={"of": {"turn": number}})
    return HumanMessage(text, id=f"{number}")


def put(saver: HardsaveSaver, above: RunnableConfig, messages: Any, **others: Any) -> Any:
    made: Any = {**empty_checkpoint(), "id": str(uuid6())}
    values = {"messages": messages, **others}
    versions = {name: saver.get_next_version(None, None) for name in values}
    made |= {"channel_values": values, "channel_versions": versions}
    return saver.put(above, made, {"source": "loop", "step": 1, "parents": {}}, {**versions})


def read(saver: HardsaveSaver, at: RunnableConfig = THREAD) -> Any:
    found = saver.get_tuple(at)
    assert found is not None
    return found.checkpoint["channel_values"]["messages"]


def test_a_history_has_each_state_as_it_is_read_by_itself(saver: HardsaveSaver) -> None:
    messages, at = conversation(100), THREAD
    for number in range(5):
        messages = [*messages[number:], _message(200 + number)]
        at = put(saver, at, messages, pair=tuple(messages), few=[1], __checkpoint__="x")
    found = list(saver.list(THREAD))
    assert len(found) == 5
    for each in found:
        assert each == saver.get_tuple(each.config)
        assert type(each.checkpoint["channel_values"]["pair"]) is tuple


def test_a_message_that_a_caller_changes_is_read_again_as_it_was_put(saver: HardsaveSaver) -> None:
    put(saver, THREAD, conversation(100))
    for _ in range(2):
        (listed,) = saver.list(THREAD)
        for found in (listed.checkpoint["channel_values"]["messages"], read(saver)):
            assert found == conversation(100)
            found[0].content = "changed"
            found[1].response_metadata["of"]["turn"] = "changed"


def test_a_message_without_an_id_gets_one_when_the_graph_goes_on(saver: HardsaveSaver) -> None:
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    builder = StateGraph(State)
    builder.add_node("answer", lambda _: {"messages": [AIMessage("yes", id="yes")]})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    put(saver, THREAD, [HumanMessage("no id")])
    graph = builder.compile(checkpointer=saver)
    found = graph.invoke({"messages": [HumanMessage("more", id="more")]}, THREAD)
    assert [each.content for each in found["messages"]] == ["no id", "more", "yes"]
    assert all(each.id for each in found["messages"])


def test_messages_that_were_changed_in_place_are_put_as_they_are_now(saver: HardsaveSaver) -> None:
    messages, at = conversation(100), put(saver, THREAD, conversation(100))
    changes: list[Any] = [
        lambda: setattr(messages[40], "content", "changed"),
        lambda: messages[41].response_metadata["of"].update(turn=True),
        lambda: messages[41].response_metadata["of"].update(turn=1),  # which is equal
        lambda: messages[41].response_metadata["of"].update(turn=[1]),
        lambda: messages[41].response_metadata["of"].update(turn=(1,)),
        lambda: messages[40].additional_kwargs.update(path=Path("/x")),
        lambda: messages[40].additional_kwargs.update(path="/x"),
        lambda: messages.__setitem__(0, AIMessage(**messages[0].model_dump(exclude={"type"}))),
        lambda: messages.insert(3, _message(300)),
        lambda: messages.__delitem__(slice(10, 20)),
        lambda: messages.append("no message"),
    ]
    for change in changes:
        change()
        at = put(saver, at, messages)
        assert list(map(_exactly, read(saver))) == list(map(_exactly, messages))


def _exactly(message: Any) -> str:
    return repr((type(message), vars(message) if isinstance(message, BaseMessage) else message))


def test_a_field_that_no_class_declares_stays_with_its_message(saver: HardsaveSaver) -> None:
    class Extra(HumanMessage):
        model_config = ConfigDict(extra="allow")

    messages = [Extra.model_validate({"content": LONG, "id": f"{n}"}) for n in range(2)]
    for first, second in (("a", None), (None, "a")):
        for message, note in zip(messages, (first, second), strict=True):
            message.__pydantic_extra__ = {} if note is None else {"note": note}
        put(saver, THREAD, messages)
        assert [each.__pydantic_extra__ for each in read(saver)] == [
            each.__pydantic_extra__ for each in messages
        ]
