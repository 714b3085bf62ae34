"""A state that somebody changes while it is saved: nothing breaks, and no change is lost.

A time zone stands in for the other thread. It is asked for its offset in the middle of things,
and changes the state then: the same moments every time, and no waiting for chance.
"""

import datetime
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hardsave.objects.codec import Codec
from hardsave.objects.growth import Growth
from hardsave.objects.shadow import Shadow
from tests.unit.objects.shelf import Shelf


class Restless(datetime.tzinfo):
    """Calls a function whenever it is asked."""

    def __init__(self) -> None:
        self.change: Callable[[], object] = lambda: None

    def utcoffset(self, moment: datetime.datetime | None, /) -> datetime.timedelta:
        self.change()
        return datetime.timedelta(hours=1)

    def dst(self, moment: datetime.datetime | None, /) -> None: ...
    def tzname(self, moment: datetime.datetime | None, /) -> None: ...


def conversation(zone: Restless, count: int = 300) -> dict[str, Any]:
    moment = datetime.datetime(2026, 1, 2, tzinfo=zone)
    messages = [{"n": 0, "text": f"{n} " + "x" * 200, "at": moment} for n in range(count)]
    return {"messages": messages, "notes": {str(n): [moment] for n in range(count)}}


def edit(state: dict[str, Any], chance: random.Random) -> None:
    chance.choice(state["messages"])["n"] += 1


def grow(state: dict[str, Any], chance: random.Random) -> None:
    state["messages"].insert(chance.randrange(50), {"n": 1})
    state["notes"][f"{chance.random()}"] = [1]


def shrink(state: dict[str, Any], chance: random.Random) -> None:
    if len(state["messages"]) > 100:
        del state["messages"][chance.randrange(100)]
        state["notes"].popitem()


def there_and_back(state: dict[str, Any], chance: random.Random) -> None:
    message = chance.choice(state["messages"])
    message["n"] = 0 if message["n"] else 7


@pytest.mark.parametrize("change", [edit, grow, shrink, there_and_back])
def test_what_changes_during_a_save_is_found_by_the_next(
    change: Callable[[dict[str, Any], random.Random], None],
) -> None:
    zone, here, chance = Restless(), Shelf(), random.Random(1)
    state = conversation(zone)
    memory = Shadow(here.builder)
    for _ in range(3):
        zone.change = lambda: change(state, chance)
        here.put(memory.save(state)[1])
        zone.change = lambda: None
        root, out = memory.save(state)
        here.put(out)
        assert root == here.root_of(state)
        assert here.reader.load(root) == state


@pytest.mark.parametrize("odd", ["", "\ud800"], ids=["quick", "slow"])
def test_containers_may_be_emptied_while_they_are_written(odd: str) -> None:
    """ormsgpack would walk on through what is no longer there."""
    zone, codec = Restless(), Codec()
    state = conversation(zone)
    state["odd"] = odd

    def empty() -> None:
        if state:
            state["messages"].clear()
            state["notes"].clear()
            state.clear()

    zone.change = empty
    found = codec.decode(codec.encode(state))
    assert not state
    assert odd or found["messages"][0]["text"].startswith("0 ")  # the slow one comes second


def test_bytes_that_change_during_a_save_are_found_by_the_next() -> None:
    zone, here = Restless(), Shelf()
    state = conversation(zone)
    raw = bytearray(b"x" * 5_000)
    state["messages"][0]["raw"] = raw
    state["raw"] = raw
    memory = Shadow(here.builder)

    def change() -> None:
        raw[0] = (raw[0] + 1) % 256

    zone.change = change
    here.put(memory.save(state)[1])
    zone.change = lambda: None
    root, out = memory.save(state)
    here.put(out)
    assert here.reader.load(root)["raw"] == bytes(raw)
    assert root == here.root_of(state)


def test_a_list_may_be_emptied_while_it_is_appended() -> None:
    zone, here = Restless(), Shelf()
    state = conversation(zone)
    grown = Growth(here.builder, here.verbatim(), here.build(state))
    more = conversation(zone)["messages"]
    zone.change = more.clear
    root, out = grown.append({"messages": more})
    here.put(out)
    assert len(here.reader.load(root)["messages"]) >= len(state["messages"])


def test_threads_may_change_it_at_any_moment() -> None:
    here = Shelf()
    state: dict[str, Any] = {"list": [], "dict": {}, "set": set(), "odd": {}}
    stopped = threading.Event()

    def work() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            state["list"].append({"n": (number,)})
            state["dict"][str(number)] = number
            state["set"].add(number)
            state["odd"][number, "\ud800"] = number
            if number % 400 == 0:
                for each in state.values():
                    each.clear()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        memory = Shadow(here.builder)
        for _ in range(50):
            here.builder.check_sizes(state, "state")
            here.put(memory.save(state)[1])
    finally:
        stopped.set()
        thread.join()
    root, out = memory.save(state)
    here.put(out)
    assert here.reader.load(root) == state
