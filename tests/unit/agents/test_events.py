import json
from pathlib import Path
from typing import Any

import pytest

from hardsave.agents import events
from hardsave.agents.events import Event, parse


def told(**more: Any) -> bytes:
    return json.dumps({"session_id": "s-1", "hook_event_name": "Stop", **more}).encode()


def test_what_a_hook_is_told_is_read() -> None:
    found = parse(
        told(
            hook_event_name="PostToolUse",
            transcript_path="/t.jsonl",
            cwd="/project",
            tool_name="Edit",
            tool_use_id="toolu_1",
        )
    )
    assert found == Event(
        "PostToolUse", "s-1", "/t.jsonl", "/project", tools=("Edit",), tool_use_id="toolu_1"
    )
    assert found.pending == "toolu_1"
    assert found.description == "after Edit"


def test_a_batch_names_all_its_tools_and_waits_for_nothing() -> None:
    calls = [{"tool_name": "Bash"}, {"tool_name": "Edit"}, "odd"]
    found = parse(told(hook_event_name="PostToolBatch", tool_calls=calls))
    assert found.tools == ("Bash", "Edit")
    assert found.pending is None


def test_a_call_of_a_subagent_is_not_one_of_this_conversation() -> None:
    given = told(hook_event_name="PostToolUse", tool_use_id="toolu_1", agent_id="a1")
    assert parse(given).pending is None
    assert parse(given).metadata("claude-code")["subagent"] == "a1"


def test_before_a_tool_its_call_is_upcoming() -> None:
    found = parse(told(hook_event_name="PreToolUse", tool_name="Bash", tool_use_id="c1"))
    assert (found.upcoming, found.pending, found.description) == ("c1", None, "before Bash")


def test_a_prompt_is_described_in_one_line() -> None:
    found = parse(told(hook_event_name="UserPromptSubmit", prompt="do\n  this" + "!" * 500))
    assert found.description.startswith("before: do this!")
    assert len(found.description) == 200


def test_half_an_emoji_does_not_keep_a_hook_from_saving() -> None:
    found = parse(told(hook_event_name="UserPromptSubmit", prompt="cut \ud83d"))
    assert found.description == "before: cut ?"
    found = parse(told(tool_name="t\ud83d", tool_use_id="c\ud83d", session_id="s\ud83d"))
    assert str(found).isascii()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"session_id": 1, "hook_event_name": "Stop"}',
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # of any kind: json has its own
        parse(data)


def test_a_session_may_call_itself_anything() -> None:
    assert events.timeline("claude", "a:b/../c d") == "claude-a-b-..-c-d"
    assert len(events.timeline("claude", "x" * 1000)) < 200


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command": "rm  -rf\n build", "description": "x"}, "after T: rm -rf build"),
        ({"command": ["bash", "-lc", "ls"]}, "after T: bash -lc ls"),
        ({"file_path": "/w/a.py", "old_string": "x"}, "after T: /w/a.py"),
        ({"command": "half \ud800"}, "after T: half ?"),
        ({"command": 5, "path": ["a", 1]}, "after T"),
        ({"command": " "}, "after T"),
        ("no object", "after T"),
        (None, "after T"),
    ],
)
def test_a_call_is_told_by_what_it_worked_at(given: Any, said: str) -> None:
    about = {"session_id": "s", "hook_event_name": "PostToolUse"}
    one = {"tool_name": "T", "tool_use_id": "t", "tool_input": given}
    assert parse(json.dumps({**about, **one}).encode()).description == said
    assert parse(json.dumps({**about, "tool_calls": [one]}).encode()).description == said
    both = parse(json.dumps({**about, "tool_calls": [one, one]}).encode())
    assert both.description == "after T, T"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"file_path": "/w/my app/src/a.py"}, "after T: src/a.py"),
        ({"notebook_path": "/w/my app/n.ipynb"}, "after T: n.ipynb"),
        ({"file_path": "/w/my app/" + "d/" * 150 + "a.py"}, "after T: " + ("d/" * 150)[:191]),
        ({"file_path": "/w/my apple/a.py"}, "after T: /w/my apple/a.py"),
        ({"path": "/w/my app"}, "after T: /w/my app"),
        ({"path": "/w/my app/"}, "after T: /w/my app/"),
        ({"command": "/w/my app/run --now"}, "after T: /w/my app/run --now"),
    ],
)
def test_a_file_is_called_as_its_project_calls_it(given: Any, said: str) -> None:
    about = {"hook_event_name": "PostToolUse", "tool_name": "T", "tool_input": given}
    found = parse(told(**about))
    assert found.seen_from(Path("/w/my app")).description == said
