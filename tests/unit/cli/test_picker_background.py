"""What is read while the user looks and types."""

import queue
import threading
from collections.abc import Iterator

import pytest

from hardsave.cli.picker.background import Latest, Pages


class Damaged:
    """Cannot be read."""

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        raise RuntimeError("damaged")


SECONDS = 60  # a bound; nothing takes that long


def test_the_latest_thing_asked_for_is_computed_and_kept() -> None:
    computed: list[str] = []
    awake: queue.Queue[None] = queue.Queue()

    def compute(key: str) -> str:
        computed.append(key)
        return key.upper()

    one = Latest(compute)
    assert [one.ask(key) for key in "abc"] == [None, None, None]
    one.begin(lambda: awake.put(None))
    awake.get(timeout=SECONDS)
    assert one.ask("c") == "C"
    assert computed == ["c"]  # the cursor has passed over the others
    one.end()


def test_a_slow_computation_does_not_hold_up_those_who_ask_nor_those_who_leave() -> None:
    begun, may_end = threading.Event(), threading.Event()
    woken: list[None] = []

    def compute(key: str) -> str:
        begun.set()
        may_end.wait(SECONDS)
        return key

    one = Latest(compute, rest_seconds=0)
    one.begin(lambda: woken.append(None))
    one.ask("slow")
    assert begun.wait(SECONDS)
    assert one.ask("next") is None
    one.end()
    may_end.set()
    for thread in threading.enumerate():
        if thread.name == "hardsave-preview":
            thread.join(SECONDS)
    assert woken == []  # its screen is gone


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    awake: queue.Queue[None] = queue.Queue()

    def compute(key: str) -> str:
        raise RuntimeError(key)

    one = Latest(compute, rest_seconds=0)
    one.begin(lambda: awake.put(None))
    one.ask("a")
    awake.get(timeout=SECONDS)
    with pytest.raises(RuntimeError):
        one.ask("a")
    one.end()


def test_pages_are_read_while_more_is_wanted() -> None:
    awake: queue.Queue[None] = queue.Queue()
    read: list[int] = []

    def pages() -> Iterator[int]:
        for number in range(3):
            read.append(number)
            yield number

    one = Pages(pages())
    one.begin(lambda: awake.put(None))
    for number in range(2):
        assert one.take(more=True) is None
        awake.get(timeout=SECONDS)
        assert one.take(more=False) == number
    one.end()
    assert read == [0, 1]


def test_an_error_is_raised_where_the_page_is_taken() -> None:
    awake: queue.Queue[None] = queue.Queue()

    one = Pages(Damaged())
    one.begin(lambda: awake.put(None))
    one.take(more=True)
    awake.get(timeout=SECONDS)
    with pytest.raises(RuntimeError):
        one.take(more=True)
    one.end()
