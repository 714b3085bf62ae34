"""The scripted model: what it says over HTTP is what real clients understand."""

import contextlib
import http.client
import json
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest

from hardsave.runtime.scripted import (
    Call,
    Fault,
    Reply,
    Script,
    ScriptedModel,
    Silence,
    Stall,
    anthropic,
)
from hardsave.runtime.scripted.script import OVER, pieces_of, step_for

BOTH = Reply("I look", (Call("read", {"path": "a"}), Call("list", {})), reasoning="let me think")


def ask(url: str, **body: Any) -> Any:
    data = json.dumps({"model": "m", "messages": [], **body}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 # localhost
        return answer.read()


# The script


def test_the_turn_decides_so_that_asking_again_gives_the_same_answer() -> None:
    script = [Reply("one"), Reply("two")]
    assert [step_for(script, 0, asked) for asked in range(3)] == [Reply("one")] * 3
    assert step_for(script, 1, 0) == Reply("two")


def test_a_list_is_gone_through_request_by_request_and_its_last_one_stays() -> None:
    script: Script = [[Fault(429), Fault(500), Reply("at last")]]
    found = [step_for(script, 0, asked) for asked in range(4)]
    assert found == [Fault(429), Fault(500), Reply("at last"), Reply("at last")]


def test_a_turn_that_the_script_does_not_have_is_refused() -> None:
    assert step_for([Reply("one")], 1, 0) == OVER


@pytest.mark.parametrize("text", ["", "one", "one two", " one  two\n three "])
def test_the_pieces_of_a_text_make_up_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text


# OpenAI's wire


def test_openai_whole() -> None:
    with ScriptedModel([BOTH]) as model:
        found = json.loads(ask(f"{model.openai_url}/chat/completions"))
    message = found["choices"][0]["message"]
    assert message["content"] == "I look"
    assert message["reasoning_content"] == "let me think"
    assert [call["id"] for call in message["tool_calls"]] == ["call_0_0", "call_0_1"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"path": "a"}
    assert found["choices"][0]["finish_reason"] == "tool_calls"


def test_openai_streamed_says_the_same_in_pieces() -> None:
    with ScriptedModel([BOTH]) as model:
        lines = ask(f"{model.openai_url}/chat/completions", stream=True).decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "let me think"
    assert "".join(delta.get("content") or "" for delta in deltas) == "I look"
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    first = [call["function"]["arguments"] for call in calls if call["index"] == 0]
    assert json.loads("".join(first)) == {"path": "a"}


# OpenAI's responses


def test_responses_whole() -> None:
    with ScriptedModel([BOTH]) as model:
        found = json.loads(ask(f"{model.openai_url}/responses", input=[]))
    kinds = [item["type"] for item in found["output"]]
    assert kinds == ["reasoning", "message", "function_call", "function_call"]
    assert json.loads(found["output"][2]["arguments"]) == {"path": "a"}
    assert found["status"] == "completed"


def test_responses_streamed_say_the_same_in_pieces() -> None:
    with ScriptedModel([BOTH]) as model:
        sent = ask(f"{model.openai_url}/responses", input=[], stream=True).decode()
        whole = json.loads(ask(f"{model.openai_url}/responses", input=[]))
    events = [json.loads(part.partition("data: ")[2]) for part in sent.split("\n\n") if part]
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == whole["output"] == events[-1]["response"]["output"]
    pieces: dict[str, str] = {}
    for event in events:
        if "delta" in event:
            pieces[event["item_id"]] = pieces.get(event["item_id"], "") + event["delta"]
    first, second = (item["arguments"] for item in done[2:])
    assert list(pieces.values()) == ["let me think", "I look", first, second]


@pytest.mark.parametrize("place", ["tools", "namespace", "input"])
def test_a_tool_that_takes_a_text_is_called_with_one_wherever_it_is_offered(place: str) -> None:
    tools: list[Any] = [{"type": "custom", "name": "patch"}]
    if place != "tools":
        tools = [{"type": "namespace", "name": "functions", "tools": tools}]
    given: dict[str, Any] = {"input": [], "tools": tools}
    if place == "input":
        given = {"input": [{"type": "additional_tools", "tools": tools}]}
    with ScriptedModel([Reply(calls=(Call("patch", {"input": "*** Begin"}),))]) as model:
        found = json.loads(ask(f"{model.openai_url}/responses", **given))
    (call,) = found["output"]
    assert (call["type"], call["input"]) == ("custom_tool_call", "*** Begin")


def test_the_turn_of_responses_counts_answers_and_not_their_items() -> None:
    first = [{"role": "assistant"}, {"type": "function_call"}, {"type": "custom_tool_call"}]
    heard = [{"type": "function_call_output"}, {"type": "custom_tool_call_output"}]
    user = {"type": "message", "role": "user"}
    for given, expected in (
        ("hi", 0),
        ([user], 0),
        ([user, *first], 1),
        ([user, *first, *heard], 1),
        ([user, *first, *heard, {"type": "reasoning"}, {"role": "assistant"}, user], 2),
    ):
        with ScriptedModel([Reply("one")] * 3) as model:
            ask(f"{model.openai_url}/responses", input=given)
            assert model.requests[0].turn == expected


# Anthropic's wire


def test_anthropic_whole() -> None:
    with ScriptedModel([BOTH]) as model:
        found = json.loads(ask(f"{model.anthropic_url}/v1/messages"))
    kinds = [block["type"] for block in found["content"]]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert found["content"][0]["signature"]
    assert found["stop_reason"] == "tool_use"


def test_anthropic_streamed_says_the_same_in_pieces() -> None:
    with ScriptedModel([BOTH]) as model:
        sent = ask(f"{model.anthropic_url}/v1/messages", stream=True).decode()
    events = [json.loads(part.partition("data: ")[2]) for part in sent.split("\n\n") if part]
    assert [event["type"] for event in events][-2:] == ["message_delta", "message_stop"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == "let me think"
    assert "".join(delta.get("text", "") for delta in deltas) == "I look"


# What goes wrong on demand


def test_anthropic_gives_another_id_to_an_answer_to_other_words_of_the_same_turn() -> None:
    asked = [{"role": "user", "content": "one"}]
    ids = [
        anthropic.whole(Reply("hi"), {"messages": [{"role": "user", "content": words}]}, 0)["id"]
        for words in ("one", "two", "one")
    ]
    (begun, *_) = anthropic.streamed(Reply("hi"), {"messages": asked}, 0)
    assert ids[0] == ids[2] != ids[1]
    assert ids[0] in begun.decode()


def test_every_request_is_recorded_with_its_turn() -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "one"}]
    with ScriptedModel([Reply("one"), Reply("two")]) as model:
        ask(f"{model.openai_url}/chat/completions")
        ask(f"{model.openai_url}/chat/completions", messages=said)
        assert [request.turn for request in model.requests] == [0, 1]
        assert model.requests[1].body["messages"] == said


def test_what_a_client_had_sent_when_it_was_gone_is_told_once_it_was_read() -> None:
    body = json.dumps({"model": "m", "messages": []})
    sent = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with ScriptedModel([[Reply("hi")] * 40 + [Silence()]]) as model:
        port = urllib.parse.urlsplit(model.anthropic_url).port
        for _ in range(41):
            with socket.create_connection(("127.0.0.1", port or 0)) as gone:
                gone.sendall(sent.encode())
        assert len(model.settled()) == 41


def test_an_error_comes_with_its_status_and_its_retry_after() -> None:
    with (
        ScriptedModel([Fault(429, retry_after="7")]) as model,
        pytest.raises(urllib.error.HTTPError) as caught,
    ):
        ask(f"{model.openai_url}/chat/completions")
    with caught.value as error:
        assert error.code == 429
        assert error.headers["Retry-After"] == "7"


def test_garbage_is_sent_as_it_is() -> None:
    with ScriptedModel([Fault(200, "<html>")]) as model:
        assert ask(f"{model.openai_url}/chat/completions") == b"<html>"


@pytest.mark.parametrize("step", [Silence(), Stall(BOTH, 2)])
def test_a_model_that_never_ends_its_answer_is_noticed_and_can_be_closed(step: Any) -> None:
    with ScriptedModel([step]) as model:
        url = f"{model.openai_url}/chat/completions"
        asking = threading.Thread(target=_ignored, args=(url,), daemon=True)
        asking.start()
        assert model.wait_for_stalls(1)
    asking.join(60)
    assert not asking.is_alive()


def _ignored(url: str) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):  # it never gets a whole answer
        ask(url, stream=True)
