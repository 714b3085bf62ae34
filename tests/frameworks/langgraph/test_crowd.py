"""Many threads and coroutines at one saver: no write is lost, and none finds the store busy."""

import asyncio
import operator
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.strict_suite import a_config, put, writes_at


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def a_graph(saver: HardsaveSaver) -> Any:
    builder = StateGraph(State)
    builder.add_node("fan", lambda _: {"log": ["fan"]})
    builder.add_node("worker", lambda state: {"log": [f"worker {state['item']}"]})
    builder.add_edge(START, "fan")
    builder.add_conditional_edges("fan", lambda _: [Send("worker", {"item": n}) for n in range(3)])
    builder.add_edge("worker", END)
    return builder.compile(checkpointer=saver)


EXPECTED = ["in", "fan", "worker 0", "worker 1", "worker 2"]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[HardsaveSaver]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        yield HardsaveSaver(vault)


def test_thirty_two_threads_lose_nothing(saver: HardsaveSaver) -> None:
    graph = a_graph(saver)

    def run(number: int) -> Any:
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        for _ in range(2):
            graph.invoke({"log": ["in"]}, config)
        return graph.get_state(config).values["log"]

    with ThreadPoolExecutor(32) as crowd:
        assert list(crowd.map(run, range(32))) == [EXPECTED * 2] * 32
    assert len(list(saver.list(None))) == 32 * 2 * 4


@pytest.mark.asyncio
async def test_two_hundred_coroutines_lose_nothing(saver: HardsaveSaver) -> None:
    graph = a_graph(saver)

    async def run(number: int) -> Any:
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        await graph.ainvoke({"log": ["in"]}, config)
        return (await graph.aget_state(config)).values["log"]

    found = await asyncio.gather(*map(run, range(200)))
    assert found == [EXPECTED] * 200
    assert len([one async for one in saver.alist(None)]) == 200 * 4


def test_writes_of_many_threads_at_one_checkpoint_are_all_there(saver: HardsaveSaver) -> None:
    at = put(saver, a_config("t"))
    begin = threading.Barrier(32)

    def write(number: int) -> None:
        begin.wait()
        for index in range(5):
            saver.put_writes(at, [(f"c{index}", number)], f"task {number} {index}")

    with ThreadPoolExecutor(32) as crowd:
        list(crowd.map(write, range(32)))
    assert len(writes_at(saver, at)) == 32 * 5


def test_subgraphs_of_many_threads_at_one_timeline_all_put(saver: HardsaveSaver) -> None:
    builder: Any = StateGraph(State)
    for name in "abc":
        inner: Any = StateGraph(State)
        inner.add_node("work", lambda _, name=name: {"log": [name]})
        inner.add_edge(START, "work")
        builder.add_node(name, inner.compile())
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=saver)

    def run(number: int) -> Any:
        return graph.invoke({"log": [f"in {number}"]}, a_config("t"))["log"]

    with ThreadPoolExecutor(32) as crowd:
        found = list(crowd.map(run, range(32)))
    assert all({"a", "b", "c"} < set(each) for each in found)
    assert len(list(saver.list(a_config("t")))) == 32 * 3


def test_of_two_savers_at_one_thread_the_strict_one_is_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as one, hardsave.open(url) as other:
        ours, theirs = (HardsaveSaver(vault, strict=True) for vault in (one, other))
        at = put(ours, a_config("t"))
        put(theirs, at)
        with pytest.raises(hardsave.Conflict, match=r"'langgraph/t' in namespace '' is .*, not "):
            put(ours, at)
        put(ours, a_config("t", "child:1"))  # another namespace is another line
        newest = theirs.get_tuple(a_config("t"))
        assert newest is not None
        put(theirs, newest.config)
        assert len(list(ours.list(a_config("t")))) == 3
