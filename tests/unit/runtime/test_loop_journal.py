"""What is on record about tool calls, and what follows from it."""

from typing import Any

import pytest

from hardsave.errors import Corrupt, Misuse
from hardsave.runtime.loop import conversation as conversations
from hardsave.runtime.loop import journal
from hardsave.runtime.loop.conversation import Conversation, from_state, next_of
from hardsave.runtime.loop.journal import Noted, decide, policy_for
from hardsave.tasks.steps import POLICIES

REQUEST = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}
TEXT = {"kind": "response", "parts": [{"part_kind": "text", "content": "hello"}]}
CALL = {
    "kind": "response",
    "parts": [{"part_kind": "tool-call", "tool_name": "t", "tool_call_id": "a"}],
}


def noted(state: Any, value: Any = None) -> Noted:
    return Noted("pay", state, "2026-01-01T00:00:00+00:00", value)


def saved(conversation: Conversation) -> dict[str, Any]:
    """The state that a record saves of it."""
    return {"messages": conversation.messages, **conversations.without_messages(conversation)}


@pytest.mark.parametrize("policy", POLICIES)
def test_what_never_began_is_run_whatever_the_policy(policy: Any) -> None:
    assert decide(None, policy) == "run"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("state", ["returned", "retry", "failed"])
def test_what_has_ended_is_replayed_whatever_the_policy(policy: Any, state: Any) -> None:
    assert decide(noted(state), policy) == "replay"


@pytest.mark.parametrize("state", ["began", "raised"])
def test_what_nobody_knows_the_end_of_is_up_to_the_policy(state: Any) -> None:
    decided = {policy: decide(noted(state), policy) for policy in POLICIES}
    assert decided == {"retry": "run", "ask": "tell", "skip": "skip", "fail": "refuse"}


def test_the_callers_word_comes_before_the_tools_own_and_ask_is_the_default() -> None:
    own = {journal.METADATA_KEY: "retry"}
    assert policy_for("t", None, None) == "ask"
    assert policy_for("t", own, None) == "retry"
    assert policy_for("t", own, "fail") == "fail"
    assert policy_for("t", own, {"t": "skip"}) == "skip"
    assert policy_for("t", own, {"other": "skip"}) == "retry"


def test_a_policy_that_does_not_exist_is_misuse() -> None:
    with pytest.raises(Misuse, match=r"'t'.*retry, ask, skip, fail"):
        policy_for("t", {journal.METADATA_KEY: "always"}, None)


def test_a_model_is_told_what_is_known_and_no_more() -> None:
    assert "before its result was recorded" in journal.told(noted("began"))
    assert "OSError: gone" in journal.told(noted("raised", "OSError: gone"))
    assert "unknown={'pay': 'retry'}" in journal.refused("a", noted("began"))


def test_calls_come_back_as_they_were_noted() -> None:
    calls = {"a": noted("returned", {"value": [1]}), "b": noted("began")}
    assert journal.from_plain(journal.to_plain(calls)) == calls


@pytest.mark.parametrize("stored", [None, [], {"a": 1}, {"a": {"tool": "t"}}])
def test_a_record_that_is_none_is_corrupt(stored: Any) -> None:
    if stored == []:
        stored = [1]
    with pytest.raises(Corrupt):
        journal.from_plain(stored)


# The conversation


def test_a_conversation_comes_back_as_it_was() -> None:
    full = Conversation(
        run="r",
        status="failed",
        prompt=["one", "two"],
        begun_with="one",
        messages=[REQUEST, CALL],
        calls={"a": noted("began")},
        turn=3,
        usage={"requests": 3},
        model="m",
        asked="provider:m",
        output=[1],
        error="E",
        data={"job": 1},
    )
    assert from_state(saved(full), "line") == full


def test_nothing_but_the_messages_is_a_list_that_would_grow_when_appended() -> None:
    rest = conversations.without_messages(
        Conversation(run="r", prompt=["x"], output=["y"], data=["z"])
    )
    assert [name for name, value in rest.items() if isinstance(value, list)] == []


@pytest.mark.parametrize("state", [None, {}, {"messages": []}, [1]])
def test_something_else_is_not_taken_for_a_conversation(state: Any) -> None:
    with pytest.raises(Misuse, match="something else"):
        from_state(state, "line")


def test_another_format_is_refused_and_named() -> None:
    state = {**saved(Conversation(run="r")), "format": 2}
    with pytest.raises(Misuse, match="format 2"):
        from_state(state, "line")


@pytest.mark.parametrize(
    ("conversation", "expected"),
    [
        (Conversation(run="r"), "nothing"),
        (Conversation(run="r", prompt="hi"), "ask"),
        (Conversation(run="r", prompt="more", messages=[REQUEST, TEXT]), "ask"),
        (Conversation(run="r", messages=[REQUEST, CALL]), "call tools"),
        (Conversation(run="r", messages=[REQUEST, TEXT]), "end"),
    ],
)
def test_what_is_next(conversation: Conversation, expected: str) -> None:
    assert next_of(conversation) == expected


def test_what_follows_the_last_response_is_cut_off() -> None:
    assert conversations.up_to_response([REQUEST, CALL, REQUEST]) == [REQUEST, CALL]
    assert conversations.up_to_response([REQUEST]) == []
