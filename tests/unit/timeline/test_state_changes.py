"""Which messages of a conversation differ, in the order in which they are read."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import hardsave
from hardsave.timeline import state_changes
from hardsave.timeline.diff import Diff
from hardsave.timeline.state_changes import MessageChange
from hardsave.values.messages import Message


def found(old: Any, new: Any) -> Diff:
    with hardsave.open("memory://") as vault:
        line = vault.timeline("main")
        return vault.diff(line.save(old), line.save(new))


def changes(old: list[Any], new: list[Any]) -> list[MessageChange]:
    return [*state_changes.of(found({"messages": old}, {"messages": new})).messages]


def test_messages_are_told_apart_from_the_rest_of_a_state() -> None:
    old = {"messages": ["a"], "turn": 1, "plan": {"x": 1}, "lines": [1]}
    new = {"messages": ["a", "b"], "turn": 2, "plan": {"x": 2}, "lines": [1, 2]}
    seen = state_changes.of(found(old, new), hidden=["lines"])
    assert (seen.key, seen.counts()) == ("messages", {"+": 1, "~": 0, "-": 0})
    assert [(each.sign, str(each.path)) for each in seen.values] == [("~", "turn"), ("~", "plan.x")]


def test_a_changed_message_is_one_change_however_much_of_it_differs() -> None:
    old = [{"role": "user", "content": "a", "x": 1}, {"role": "user", "content": "b"}]
    new = [{"role": "user", "content": "A", "y": 2}, {"role": "user", "content": "b"}]
    assert changes(old, new) == [MessageChange("~", 0, 0)]


def test_a_changed_message_is_found_in_the_old_conversation_by_its_number_there() -> None:
    old = ["gone", "same", {"text": "old"}, "end"]
    new = ["same", {"text": "new"}, "end", "more"]
    assert changes(old, new) == [
        MessageChange("-", 0, None),
        MessageChange("~", 2, 1),
        MessageChange("+", None, 3),
    ]


def test_a_value_has_its_old_place_only_where_that_is_certain() -> None:
    old = {"plan": [{"x": 1}, {"x": 2}, {"x": 3}], "turn": 1, "gone": 1, "even": [{"y": 1}]}
    new = {"plan": [{"x": 2}, {"x": 4}], "turn": 2, "new": 1, "even": [{"y": 2}]}
    seen = state_changes.of(found(old, new))
    places = {str(each.path): each.old_path(seen.moved()) for each in seen.values}
    assert {path: old and str(old) for path, old in places.items()} == {
        "plan[0]": "plan[0]",  # has gone
        "plan[1].x": None,  # was plan[2].x
        "turn": "turn",
        "gone": "gone",
        "new": None,
        "even[0].y": "even[0].y",
    }


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_the_changes_lead_from_the_old_conversation_to_the_new(
    old: list[int], new: list[int]
) -> None:
    """Followed in their order, with what stays copied in between."""
    made: list[int] = []
    at = 0
    for change in changes(old, new):
        until = change.old if change.old is not None else at + (change.new or 0) - len(made)
        made += old[at:until]
        at = until
        if change.new is not None:
            assert len(made) == change.new
            made.append(new[change.new])
        at += change.old is not None
    assert made + old[at:] == new


def test_long_texts_begin_shortly_before_they_part() -> None:
    old, new = (Message("user", "the same words " * 20 + word) for word in ("before", "after"))
    was, became = state_changes.parted(old, new)
    assert was.text.startswith("…")
    assert was.text.endswith("before")
    assert len(became.text) < 40
    short = Message("user", "a"), Message("user", "b")
    assert state_changes.parted(*short) == short
