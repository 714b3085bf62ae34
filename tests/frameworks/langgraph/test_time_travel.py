"""Generated graphs: time travel, interrupts and failures as with LangGraph's own saver."""

import operator
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver

GRAPHS = 50


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    last: str


def a_graph(saver: Any, seed: int) -> Any:
    """Layers of nodes, some of which ask, fail once, fan out or are graphs of their own."""
    draw = random.Random(seed)
    failed: set[str] = set()
    builder = StateGraph(State)
    before = [START]
    for layer in range(draw.randint(2, 4)):
        names = [f"n{layer}{at}" for at in range(draw.randint(1, 3))]
        kinds = ["", "", "asks", "sub"]
        kinds += ["fails"] if len(names) == 1 else []  # else whether others end first is by chance
        for name in names:
            builder.add_node(name, _node(name, draw.choice(kinds), failed))
            for above in before:
                builder.add_edge(above, name)
        before = names
    builder.add_node("worker", lambda state: {"log": [f"worker {state['item']}"]})
    builder.add_node("fan", lambda state: {"log": ["fan"]})
    builder.add_edge(before[0], "fan")
    count = draw.randint(0, 3)
    builder.add_conditional_edges(
        "fan", lambda _: [Send("worker", {"item": n}) for n in range(count)]
    )
    builder.add_edge("worker", END)
    return builder.compile(checkpointer=saver)


def _node(name: str, kind: str, failed: set[str]) -> Any:
    def run(state: State) -> dict[str, Any]:
        answer = interrupt({"ask": name}) if kind == "asks" else ""
        if kind == "fails" and name not in failed:
            failed.add(name)
            raise RuntimeError(name)
        said = AIMessage(f"{name} {answer}", id=f"{name}-{len(state['log'])}")
        made: dict[str, Any] = {
            "log": [f"{name}{answer} of {len(state['log'])}"],
            "messages": [said],
        }
        return made

    if kind != "sub":
        return run
    inner = StateGraph(State)
    inner.add_node("a", _node(name + "a", "asks", failed))
    inner.add_node("b", _node(name + "b", "", failed))
    inner.add_edge(START, "a")
    inner.add_edge("a", "b")
    return inner.compile(checkpointer=True if name.endswith("1") else None)


def a_story(saver: Any, seed: int) -> list[Any]:
    """What a user does with a graph, and what is seen of it."""
    graph, draw = a_graph(saver, seed), random.Random(seed + 1)
    config: Any = {"configurable": {"thread_id": "t"}}
    seen: list[Any] = []
    ids: dict[str, int] = {}
    given: Any = {"log": ["input"], "messages": []}
    for _ in range(14):
        seen.append(_done(graph, given, config))
        history = list(graph.get_state_history({"configurable": {"thread_id": "t"}}))
        for one in reversed(history):
            ids.setdefault(one.config["configurable"]["checkpoint_id"], len(ids))
        seen.append([_shown(one, ids) for one in history])
        config = {"configurable": {"thread_id": "t"}}
        act = draw.choice(["resume", "resume", "replay", "update", "again"])
        given = None
        if act == "resume" and any(task.interrupts for task in history[0].tasks):
            pending = [each.id for task in history[0].tasks for each in task.interrupts]
            given = Command(resume=dict.fromkeys(pending, "yes"))
        elif act == "replay":
            config = draw.choice(history).config
        elif act == "update":
            config = graph.update_state(
                draw.choice(history).config, {"log": ["update"]}, as_node="fan"
            )
        elif act == "again":
            given = {"log": ["again"], "messages": []}
    return seen


def _done(graph: Any, given: Any, config: Any) -> Any:
    try:
        found = graph.invoke(given, config, durability="sync")
    except RuntimeError as error:
        return repr(error)
    return sorted(found["log"]) if isinstance(found, dict) else found


def _shown(one: Any, ids: dict[str, int]) -> Any:
    """A snapshot without what is random in it."""
    parent = one.parent_config and ids.get(one.parent_config["configurable"]["checkpoint_id"])
    tasks = [(t.name, t.error, [i.value for i in t.interrupts], _log(t.result)) for t in one.tasks]
    source = (one.metadata["source"], one.metadata["step"])
    return (
        ids[one.config["configurable"]["checkpoint_id"]],
        parent,
        one.next,
        one.values,
        tasks,
        source,
    )


def _log(result: Any) -> Any:
    return result.get("log") if isinstance(result, dict) else result


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db", durability="process") as made:
        yield made


@pytest.mark.parametrize("block", range(5))
def test_generated_graphs_go_the_same_way_as_in_memory(block: int, vault: hardsave.Vault) -> None:
    for seed in range(block * GRAPHS // 5, (block + 1) * GRAPHS // 5):
        ours = a_story(HardsaveSaver(vault, prefix=f"graph-{seed}/"), seed)
        theirs = a_story(InMemorySaver(), seed)
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert one == other, f"graph {seed}, after {at // 2 + 1} calls"
