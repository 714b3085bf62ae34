"""The same conversation saved by everybody, ten turns each in turn, one save a turn."""

import gc
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import hardsave
from bench.beside_floor import WAL_TURNS
from bench.machine import check
from bench.payload import Conversation
from bench.peers import DeltaSaver, Saver, as_dicts, as_objects
from bench.stopwatch import median, timed
from bench.store_file import room, url

BLOCK = 10  # turns in a row, so that one's dirty pages do not sit under each save of another
EDGE = 50  # turns at the beginning and at the end that are compared

SAVE, APPEND = "save", "append"
OBJECTS, DICTS, DELTA = "SqliteSaver", "SqliteSaver with dicts", "delta channel"
SAVERS = {
    # What LangGraph passes in its standard graphs is what the targets speak of.
    OBJECTS: "messages as LangGraph's own message channel (add_messages) passes them: objects",
    DICTS: "messages as dicts, as ours are, which a channel with a plain reducer passes",
    DELTA: (
        "LangGraph's delta channel (beta), driven directly: one put_writes and one put a turn, as "
        "its loop calls them, with a snapshot of everything every 100 updates"
    ),
}


class Rival(Protocol):
    def write(self, turn: int) -> float:
        """Seconds to save turn number `turn`, counted from 1."""

    def close(self) -> int:
        """The bytes of the main file after a WAL checkpoint."""


@dataclass
class Session:
    """What the rivals took. `place` still holds their last files."""

    conversation: Conversation
    place: Path
    pragmas: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    rounds: dict[str, list[list[float]]] = field(default_factory=dict)

    def first(self, name: str) -> float:
        return median([seconds for times in self.rounds[name] for seconds in times[:EDGE]])

    def settled(self, name: str) -> float:
        """The earliest turns that no longer lengthen the WAL file, but write over its beginning."""
        high = WAL_TURNS + EDGE
        return median([seconds for times in self.rounds[name] for seconds in times[WAL_TURNS:high]])

    def last(self, name: str) -> float:
        return median([seconds for times in self.rounds[name] for seconds in times[-EDGE:]])

    def path(self, name: str) -> Path:
        return self.place / FILES[name]


FILES = {
    SAVE: "save.db",
    APPEND: "append.db",
    OBJECTS: "langgraph.db",
    DICTS: "langgraph-dicts.db",
    DELTA: "langgraph-delta.db",
}


def play(place: Path, turns: int, rounds: int) -> Session:
    """Let everybody save the conversation, `rounds` times over; the last files stay."""
    session = Session(Conversation(turns), place)
    for _ in range(rounds):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        _play_once(session)
    return session


def _play_once(session: Session) -> None:
    conversation, messages = session.conversation, session.conversation.messages
    saver = Saver(session.path(OBJECTS), messages, as_objects)
    rivals: dict[str, Rival] = {
        SAVE: Ours(session.path(SAVE), conversation),
        APPEND: OurAppend(session.path(APPEND), conversation),
        OBJECTS: saver,
        DICTS: Saver(session.path(DICTS), messages, as_dicts),
        DELTA: DeltaSaver(session.path(DELTA), messages, as_objects),
    }
    session.pragmas = saver.pragmas
    times: dict[str, list[float]] = {name: [] for name in rivals}
    order = list(rivals)
    gc.collect()
    gc.freeze()  # the peers load a great many modules: nobody should pay for scanning them
    for start in range(1, conversation.turns + 1, BLOCK):
        for name in order:
            for turn in range(start, min(start + BLOCK, conversation.turns + 1)):
                times[name].append(rivals[name].write(turn))
        order.append(order.pop(0))
    gc.unfreeze()
    for name, rival in rivals.items():
        _check_read(name, rival, conversation)
        session.rounds.setdefault(name, []).append(times[name])
        session.sizes[name] = rival.close()


def _check_read(name: str, rival: Rival, conversation: Conversation) -> None:
    expected = conversation.state(conversation.turns)
    if isinstance(rival, Saver):
        expected = {**expected, "messages": rival.messages}
        check(rival.read() == expected, f"{name} does not read what it stored")
    elif isinstance(rival, Ours):
        check(rival.line.load() == expected, f"{name} does not load what it saved")
        for turn in range(1, conversation.turns, 37):
            then = rival.line.load(f"{rival.line.name}:{turn}")
            check(then == conversation.state(turn), f"{name} has lost turn {turn}")


class Ours:
    """`save` of the whole state."""

    def __init__(self, path: Path, conversation: Conversation) -> None:
        self.path = path
        self.conversation = conversation
        self.vault = hardsave.open(url(path))
        self.line = self.vault.timeline("main")

    def write(self, turn: int) -> float:
        state = self.conversation.state(turn)
        return timed(lambda: self.line.save(state))[0]

    def close(self) -> int:
        whole = room(self.path).whole
        self.vault.close()
        return whole


class OurAppend(Ours):
    """`append` of what a turn adds."""

    def write(self, turn: int) -> float:
        delta = self.conversation.delta(turn)
        return timed(lambda: self.line.append(delta))[0]
