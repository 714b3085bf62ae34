"""One graph, a conversation of messages as objects, under each saver of LangGraph's and ours."""

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
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
FRESH = 3  # processes
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

    disk: int = 0  # closed, without the backup that ours makes beside its store
    backup: int = 0
    invoke: float = 0.0
    put: float = 0.0
    history: float = 0.0
    get: float = 0.0
    fresh: float = 0.0  # a new process that reads the newest state: imports, too


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


def play(opening: Opening, schema: type, folder: Path, turns: int) -> Iterator[Played | None]:
    """So many turns under a saver, and what is asked of it then, step by step; in the end what that
    took. Savers take turns, so what else is at work on the machine slows all of them."""
    played = Played()
    folder.mkdir(parents=True)
    with opening(folder) as saver:
        app = graph(saver, schema)
        taken = []
        for turn in range(turns):
            asked = HumanMessage(f"question {turn}: " + "what about it? " * 8, id=f"q{turn}")
            taken.append(_cpu(partial(app.invoke, {"messages": [asked]}, THREAD)))
            yield None
        played.invoke = median(taken[-EDGE:])
        check(len(_history(app)[0].values["messages"]) == 2 * turns, "a turn is missing")
        measures = {"history": partial(_history, app), "get": partial(saver.get_tuple, THREAD)}
        for name, call in measures.items():
            taken = []
            for _ in range(TRIES):
                taken.append(_cpu(call))
                yield None
            setattr(played, name, median(taken))
        if schema is Plain:
            taken = []
            for seconds in _puts(saver):
                taken.append(seconds)
                yield None
            played.put = median(taken[1:])
    sizes = {each.name: each.stat().st_size for each in folder.iterdir()}
    played.backup = sum(size for name, size in sizes.items() if name.endswith("-backup"))
    played.disk = sum(sizes.values()) - played.backup
    taken = []
    for _ in range(FRESH):
        taken.append(_in_a_process(opening.__name__, folder))
        yield None
    played.fresh = median(taken)
    yield played


def _in_a_process(opening: str, folder: Path) -> float:
    program = f"from bench.graphs import *\nwith {opening}(Path({str(folder)!r})) as saver:\n"
    command = [sys.executable, "-c", program + "    assert saver.get_tuple(THREAD)"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _history(app: Any) -> list[Any]:
    return list(app.get_state_history(THREAD, limit=HISTORY))


def _puts(saver: Saver) -> Iterator[float]:
    """Puts of a state with so many turns, of which two messages are new."""
    config = saver.get_tuple(THREAD).config
    messages = saver.get_tuple(THREAD).checkpoint["channel_values"]["messages"]
    version = None
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
        yield thread_time() - begin


def _cpu(call: Callable[[], object]) -> float:
    begin = process_time()
    call()
    return process_time() - begin
