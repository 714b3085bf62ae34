"""Whatever a history looks like, what comes out is one that a model accepts."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Misuse
from hardsave.runtime.loop.repair import LOST, open_calls, repaired

Message = dict[str, Any]


def asks(*texts: str) -> Message:
    parts = [{"part_kind": "user-prompt", "content": text} for text in texts]
    return {"kind": "request", "parts": parts}


def calls(*ids: str) -> Message:
    parts = [
        {"part_kind": "tool-call", "tool_name": f"tool-{id}", "tool_call_id": id} for id in ids
    ]
    return {"kind": "response", "parts": parts, "timestamp": "then"}


def says(text: str) -> Message:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def result(id: str, content: str = "fine") -> dict[str, Any]:
    return {"part_kind": "tool-return", "tool_call_id": id, "content": content}


def answers(*ids: str) -> Message:
    return {"kind": "request", "parts": [result(id) for id in ids]}


def contents(message: Message) -> dict[str, str]:
    return {part["tool_call_id"]: part["content"] for part in message["parts"]}


SOUND = [asks("hi"), calls("a", "b"), answers("a", "b"), calls("a"), answers("a"), says("done")]


def test_a_sound_history_comes_back_equal() -> None:
    assert repaired(SOUND) == SOUND


def test_nothing_is_a_sound_history() -> None:
    assert repaired([]) == []


def test_a_call_without_a_result_is_told_that_it_was_lost() -> None:
    found = repaired([asks("hi"), calls("a", "b"), answers("a"), says("done")])
    assert contents(found[2]) == {"a": "fine", "b": LOST}
    assert found[2]["parts"][1]["outcome"] == "interrupted"


def test_a_call_is_answered_with_what_is_known() -> None:
    found = repaired([asks("hi"), calls("a")], answers={"a": "it began"})
    assert contents(found[2]) == {"a": "it began"}


def test_calls_at_the_very_end_stay_open_if_they_can_still_be_made() -> None:
    history = [asks("hi"), calls("a")]
    assert repaired(history, keep_last=True) == history
    assert [part["tool_call_id"] for part in open_calls(history)] == ["a"]


def test_calls_before_the_end_are_closed_all_the_same() -> None:
    found = repaired([asks("hi"), calls("a"), calls("b")], keep_last=True)
    assert [message["kind"] for message in found] == ["request", "response", "request", "response"]
    assert contents(found[2]) == {"a": LOST}


def test_a_request_is_put_between_two_responses_only_if_something_is_open() -> None:
    history = [asks("hi"), says("one"), says("two")]
    assert repaired(history) == history


def test_a_result_of_no_call_is_left_out() -> None:
    found = repaired([asks("hi"), says("one"), answers("ghost"), says("two")])
    assert found == [asks("hi"), says("one"), says("two")]


@pytest.mark.parametrize("id", [None, 5, ["a"], {}])
def test_a_result_whose_id_is_no_text_is_one_of_no_call(id: Any) -> None:
    odd = {"kind": "request", "parts": [result(id), result("a")]}
    assert repaired([calls("a"), odd]) == [calls("a"), answers("a")]


def test_a_result_before_everything_is_left_out() -> None:
    assert repaired([answers("a"), asks("hi"), says("done")]) == [asks("hi"), says("done")]


def test_a_second_result_is_left_out() -> None:
    found = repaired([calls("a"), {"kind": "request", "parts": [result("a"), result("a", "2")]}])
    assert contents(found[1]) == {"a": "fine"}
    assert len(found[1]["parts"]) == 1


def test_results_that_are_spread_over_requests_are_brought_together() -> None:
    found = repaired([calls("a", "b"), answers("a"), answers("b"), says("done")])
    assert found == [calls("a", "b"), answers("a", "b"), says("done")]


def test_a_late_result_is_moved_to_its_call() -> None:
    found = repaired([calls("a"), asks("and?"), says("hm"), answers("a"), says("done")])
    moved = {"kind": "request", "parts": [result("a"), *asks("and?")["parts"]]}
    assert found == [calls("a"), moved, says("hm"), says("done")]


def test_a_result_is_never_moved_to_a_later_call() -> None:
    found = repaired([asks("hi"), says("one"), answers("a"), calls("a")])
    assert found[-1]["parts"][0]["content"] == LOST


def test_results_stand_before_what_the_user_says_next() -> None:
    found = repaired([calls("a"), asks("never mind")])
    assert [part["part_kind"] for part in found[1]["parts"]] == ["tool-return", "user-prompt"]


def test_ids_that_come_again_in_a_later_turn_belong_to_that_turn() -> None:
    history = [calls("a"), answers("a"), calls("a"), says("done")]
    found = repaired(history)
    assert found[1] == answers("a")
    assert contents(found[3]) == {"a": LOST}


def test_two_calls_of_one_id_need_two_results() -> None:
    found = repaired([calls("a", "a"), answers("a")])
    assert [part["content"] for part in found[1]["parts"]] == ["fine", LOST]


def test_a_correction_of_a_call_is_its_result() -> None:
    retry = {"part_kind": "retry-prompt", "tool_name": "t", "tool_call_id": "a", "content": "no"}
    history = [calls("a"), {"kind": "request", "parts": [retry]}, says("done")]
    assert repaired(history) == history


def test_a_correction_of_an_answer_is_not_a_result() -> None:
    retry = {"part_kind": "retry-prompt", "tool_name": None, "tool_call_id": "x", "content": "no"}
    history = [says("hm"), {"kind": "request", "parts": [retry]}, says("done")]
    assert repaired(history) == history


def test_what_was_handed_in_is_not_changed() -> None:
    history = [calls("a"), answers("ghost")]
    before = repr(history)
    repaired(history)
    assert repr(history) == before


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "hello",
        {},
        {"kind": "reply", "parts": []},
        {"kind": "request"},
        {"kind": "request", "parts": ["x"]},
        {"kind": "response", "parts": [{"part_kind": "tool-call"}]},
    ],
)
def test_what_is_no_message_is_refused_by_its_place(broken: Any) -> None:
    with pytest.raises(Misuse, match=r"messages\[1\]"):
        repaired([asks("hi"), broken])


PARTS = st.one_of(
    st.sampled_from("ab").map(result),
    st.sampled_from(["hi", "go on"]).map(lambda text: asks(text)["parts"][0]),
)
MESSAGES = st.one_of(
    st.lists(PARTS, max_size=4).map(lambda parts: {"kind": "request", "parts": parts}),
    st.lists(st.sampled_from("ab"), max_size=3).map(lambda ids: calls(*ids)),
    st.just(says("hm")),
)


@given(st.lists(MESSAGES, max_size=8), st.booleans())
def test_any_history_becomes_one_where_every_call_has_one_answer(
    history: list[Message], keep_last: bool
) -> None:
    found = repaired(history, keep_last=keep_last)
    for at, message in enumerate(found):
        if message["kind"] == "response":
            wanted = Counter(part.get("tool_call_id") for part in message["parts"])
            wanted.pop(None, None)
            if at + 1 < len(found):
                assert _results(found[at + 1]) == wanted
            else:
                assert keep_last or not wanted
        elif at == 0 or found[at - 1]["kind"] == "request":
            assert not _results(message)
    assert repaired(found, keep_last=keep_last) == found


def _results(message: Message) -> Counter[str]:
    kind = "tool-return"
    parts = message["parts"] if message["kind"] == "request" else ()
    return Counter(part["tool_call_id"] for part in parts if part["part_kind"] == kind)


def test_open_calls_have_ids_of_their_own() -> None:
    def call(id: str) -> dict[str, Any]:
        return {"part_kind": "tool-call", "tool_name": "t", "args": {}, "tool_call_id": id}

    def last(*ids: str) -> list[Any]:
        return [{"kind": "response", "parts": [call(id) for id in ids]}]

    assert repaired(last("a", "b"), keep_last=True) == last("a", "b")
    assert repaired(last("a", "a", "a"), keep_last=True) == last("a", "a#2", "a#3")
    assert repaired(last("a", "a#2", "a"), keep_last=True) == last("a", "a#2", "a#3")
    once = repaired(last("a", "a"), keep_last=True)
    assert repaired(once, keep_last=True) == once
