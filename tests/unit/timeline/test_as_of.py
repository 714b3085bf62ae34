from datetime import UTC, datetime, timedelta

import pytest

from hardsave.timeline.as_of import Done, Saved, as_of

NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)


class Past:
    """What was saved and done, a minute apart."""

    def __init__(self) -> None:
        self._saved: list[Saved] = []
        self._done: list[Done] = []

    @property
    def _next(self) -> tuple[int, datetime]:
        number = len(self._saved) + len(self._done) + 1
        return number, NOON + timedelta(minutes=number)

    def save(self, id: str) -> None:
        self._saved.append(Saved(id, *self._next))

    def do(self, kind: str, to: str = "", timeline: str = "a") -> None:
        self._done.append(Done(kind, timeline, *self._next, to))

    def at(self, minutes: float) -> str | None:
        moment = NOON + timedelta(minutes=minutes)
        last = next((each for each in self._saved[::-1] if each.created_at < moment), None)
        return as_of(moment, last, self._done[::-1], self._before)

    def _before(self, number: int) -> str | None:
        return next((each.id for each in self._saved[::-1] if each.number < number), None)


def test_a_directory_is_at_the_last_thing_that_was_saved_before_a_moment() -> None:
    past = Past()
    for id in ("one", "two", "three"):
        past.save(id)
    assert [past.at(minutes) for minutes in (1, 1.5, 2, 2.001, 3, 60)] == [
        *(None, "one", "one", "two", "two", "three")
    ]


def test_after_a_rewind_it_is_where_that_went_until_something_is_saved() -> None:
    past = Past()
    past.save("one")
    past.save("two")
    past.do("rewind", "one")
    past.save("three")
    assert [past.at(minutes) for minutes in (2.5, 3, 3.5, 4.5)] == ["two", "two", "one", "three"]


def test_an_undo_leads_to_what_was_there_before_and_a_redo_back_again() -> None:
    past = Past()
    past.save("one")
    past.save("two")
    for kind, to in (("rewind", "one"), ("undo", ""), ("redo", "")):
        past.do(kind, to)
    assert [past.at(minutes) for minutes in (3.5, 4.5, 5.5)] == ["one", "two", "one"]


def test_an_undo_may_take_back_what_was_done_before_the_last_save() -> None:
    past = Past()
    past.save("one")
    past.save("two")
    past.do("rewind", "one")
    past.save("three")
    past.do("undo")
    assert [past.at(minutes) for minutes in (4.5, 5.5)] == ["three", "two"]


@pytest.mark.parametrize("kind", ["fork", "delete", "restore", "guard", "import"])
def test_other_operations_leave_a_directory_where_it_is(kind: str) -> None:
    past = Past()
    past.save("one")
    past.do(kind, "elsewhere")
    past.do("undo")
    assert past.at(60) == "one"


def test_an_undo_takes_back_what_was_done_on_its_own_timeline() -> None:
    past = Past()
    for id in ("one", "two", "three"):
        past.save(id)
    past.do("rewind", "one", "a")
    past.do("rewind", "two", "b")
    past.do("undo", "", "a")
    assert past.at(6.5) == "three"
    past.do("undo", "", "nothing was done there")
    past.do("redo", "", "nor undone")
    assert past.at(60) == "three"
