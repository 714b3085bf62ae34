"""One graph, a conversation of messages as objects, under each saver of LangGraph's and ours."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import process_time, thread_time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

import hardsave
from bench.machine import check
from bench.stopwatch import median
from hardsave.adapters.langgraph import HardsaveSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}
EDGE = 50  # turns at the end that are measured
TRIES = 15
HISTORY = 20
Opening = Callable[[Path], Any]
Saver = Any


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def _grown(messages: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*messages, *(each for write in writes for each in write)]


class Deltas(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_grown)]


@dataclass
class Played:
    """What a saver took, in seconds of the processor, and bytes."""

    disk: int = 0
    invoke: float = 0.0
    put: float = 0.0
    history: float = 0.0
    get: float = 0.0
    turns: list[float] = field(default_factory=list)


@contextmanager
def ours(folder: Path) -> Iterator[HardsaveSaver]:
    with hardsave.open(f"sqlite:///{folder}/ours.db") as vault:
        yield HardsaveSaver(vault)


@contextmanager
def sqlite(folder: Path) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(folder / "theirs.db", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


def graph(saver: Saver, schema: type) -> Any:
    def model(state: Any) -> dict[str, Any]:
        number = len(state["messages"])
        said = f"answer {number}: " + "what was asked is done, and this is how. " * 8
        usage: Any = {"input_tokens": number, "output_tokens": 90, "total_tokens": number + 90}
        about = {"model": "scripted", "finish_reason": "stop"}
        made = AIMessage(said, id=f"a{number}", usage_metadata=usage, response_metadata=about)
        return {"messages": [made]}

    builder = StateGraph(schema)
    builder.add_node("model", model)
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


def play(opening: Opening, schema: type, folder: Path, turns: int) -> Played:
    """So many turns under a saver, and what is asked of it then."""
    played = Played()
    folder.mkdir(parents=True)
    with opening(folder) as saver:
        app = graph(saver, schema)
        for turn in range(turns):
            asked = HumanMessage(f"question {turn}: " + "what about it? " * 8, id=f"q{turn}")
            played.turns.append(_cpu(partial(app.invoke, {"messages": [asked]}, THREAD)))
        played.invoke = median(played.turns[-EDGE:])
        found = _history(app)
        check(len(found[0].values["messages"]) == 2 * turns, "a turn is missing")
        played.history = median([_cpu(partial(_history, app)) for _ in range(3)])
        played.get = median([_cpu(partial(saver.get_tuple, THREAD)) for _ in range(TRIES)])
        if schema is Plain:
            played.put = _put(saver, turns)
    played.disk = sum(each.stat().st_size for each in folder.iterdir())
    return played


def _history(app: Any) -> list[Any]:
    return list(app.get_state_history(THREAD, limit=HISTORY))


def _put(saver: Saver, turns: int) -> float:
    """A put of a state with so many turns, of which two messages are new."""
    config = saver.get_tuple(THREAD).config
    messages = saver.get_tuple(THREAD).checkpoint["channel_values"]["messages"]
    version, taken = None, []
    for number in range(TRIES):
        messages = [*messages, HumanMessage(f"next {number}"), AIMessage(f"said {number}")]
        version = saver.get_next_version(version, None)
        made: Any = {**empty_checkpoint(), "id": str(uuid6())}
        made |= {
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": version},
        }
        begin = thread_time()
        config = saver.put(config, made, {"source": "loop", "step": number}, {"messages": version})
        taken.append(thread_time() - begin)
    return median(taken[1:])


def _cpu(call: Callable[[], object]) -> float:
    begin = process_time()
    call()
    return process_time() - begin
