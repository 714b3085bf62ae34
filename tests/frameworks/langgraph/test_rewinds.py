"""A thread whose timeline was taken back: its subgraphs and channels of deltas go back with it."""

import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.strict_suite import a_config, id_of

THREAD: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Counting(State):
    count: Annotated[int, operator.add]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[HardsaveSaver]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db", durability="process") as vault:
        yield HardsaveSaver(vault)


def go_back(saver: HardsaveSaver, config: Any) -> None:
    found = saver.checkpoint(config)
    assert found is not None
    saver.vault.timeline(saver.timeline("t")).rewind(found, what="state")


def a_counting_graph(saver: HardsaveSaver) -> Any:
    """Its subgraph counts over all turns how often it was called."""
    inner: Any = StateGraph(Counting)
    inner.add_node("add", lambda _: {"count": 1})
    inner.add_edge(START, "add")
    counter = inner.compile(checkpointer=True)

    def call(_: State) -> dict[str, Any]:
        return {"log": [f"call {counter.invoke({'log': [], 'count': 0})['count']}"]}

    builder: Any = StateGraph(State)
    builder.add_node("call", call)
    builder.add_edge(START, "call")
    builder.add_edge("call", END)
    return builder.compile(checkpointer=saver)


def said(graph: Any, text: str, config: Any = THREAD) -> str:
    last: str = graph.invoke({"log": [text]}, config)["log"][-1]
    return last


def test_a_subgraph_goes_on_from_where_its_graph_was_taken_back_to(saver: HardsaveSaver) -> None:
    graph = a_counting_graph(saver)
    ends = []
    for number in range(1, 6):
        assert said(graph, "go") == f"call {number}"
        ends.append(graph.get_state(THREAD).config)
    go_back(saver, ends[2])
    assert said(graph, "after a rewind") == "call 4"
    go_back(saver, ends[0])
    assert said(a_counting_graph(HardsaveSaver(saver.vault)), "in a new process") == "call 2"
    assert said(graph, "and on") == "call 3"
    go_back(saver, ends[4])
    assert said(graph, "on the line that was left") == "call 6"
    saver.copy_thread("t", "copy")
    assert said(graph, "of a copy", a_config("copy")) == "call 7"
    saver.prune(["t"])
    saver.copy_thread("t", "pruned")
    for thread in ("t", "pruned"):
        assert said(graph, "pruned", a_config(thread)) == "call 7"
        assert said(graph, "pruned", a_config(thread)) == "call 8"


@pytest.mark.parametrize("checkpointer", [None, True])
def test_a_question_of_a_subgraph_is_asked_again_where_the_graph_was_taken_back_to(
    saver: HardsaveSaver, checkpointer: Any
) -> None:
    inner = StateGraph(State)
    inner.add_node("ask", lambda _: {"log": [f"said {interrupt('?')}"]})
    inner.add_edge(START, "ask")
    builder = StateGraph(State)
    builder.add_node("first", lambda _: {"log": ["first"]})
    builder.add_node("sub", inner.compile(checkpointer=checkpointer))
    builder.add_node("last", lambda _: {"log": ["last"]})
    for above, below in ((START, "first"), ("first", "sub"), ("sub", "last"), ("last", END)):
        builder.add_edge(above, below)
    graph: Any = builder.compile(checkpointer=saver)
    graph.invoke({"log": []}, THREAD)
    graph.invoke(Command(resume="one"), THREAD)
    target = next(one for one in graph.get_state_history(THREAD) if one.next == ("sub",))
    go_back(saver, target.config)
    graph.invoke(None, THREAD)
    assert graph.get_state(THREAD).next == ("sub",)
    answered = graph.invoke(Command(resume="two"), THREAD)
    assert answered["log"] == ["first", "first", "said two", "last"]


def joined(before: list[str], more: Sequence[list[str]]) -> list[str]:
    return [*before, *(each for some in more for each in some)]


class Deltas(TypedDict):
    log: Annotated[list[str], DeltaChannel(joined, list)]


def test_a_line_that_was_left_keeps_its_channels_of_deltas(saver: HardsaveSaver) -> None:
    line = ["a"]
    builder = StateGraph(Deltas)
    for name in ("one", "two"):
        builder.add_node(name, lambda _, name=name: {"log": [f"{name} {line[0]}"]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", END)
    graph: Any = builder.compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({"log": ["in"]}, THREAD)
    before = list(graph.get_state_history(THREAD))
    go_back(saver, [one for one in before if one.next == ("two",)][1].config)
    line[0] = "b"
    whole = ["in", "one a", "two a", "in", "one a", "two b"]
    assert graph.invoke(None, THREAD)["log"] == whole
    saver.copy_thread("t", "copy")
    for thread in ("t", "copy"):
        now = {id_of(one.config): one.values for one in graph.get_state_history(a_config(thread))}
        assert [now[id_of(one.config)] for one in before] == [one.values for one in before]
        assert graph.get_state(a_config(thread)).values["log"] == whole


def test_the_era_of_a_thread_outlives_many_others(saver: HardsaveSaver) -> None:
    builder = StateGraph(State)
    builder.add_node("ask", lambda _: {"log": [f"said {interrupt('?')}"]})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    graph: Any = builder.compile(checkpointer=saver)
    graph.invoke({"log": []}, THREAD)
    graph.invoke(Command(resume="one"), THREAD)
    go_back(saver, next(o for o in graph.get_state_history(THREAD) if o.next == ("ask",)).config)
    asked = graph.get_state(THREAD)
    assert asked.interrupts == ()
    for number in range(300):
        saver.get_tuple(a_config(f"other {number}"))
    saver.put_writes(asked.config, [("log", ["said two"])], asked.tasks[0].id)
    assert [each.result for each in graph.get_state(THREAD).tasks] == [{"log": ["said two"]}]
