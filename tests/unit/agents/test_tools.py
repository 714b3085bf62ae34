"""What the input of a call says about it, and what a transcript says of commands that go on."""

import json
from typing import Any

import pytest

from hardsave.agents import tools
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex import tools as codex_tools
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.tools import OTHER, Kind, Work


@pytest.mark.parametrize(
    "given",
    [
        {"input": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"},
        '{"input": "*** Begin Patch\\n*** Update File: a\\n*** Move to: b\\n*** End Patch"}',
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch",
        {"command": ["apply_patch", "*** Begin Patch\n*** Add File: a\n*** Delete File: b\n"]},
    ],
)
def test_a_patch_of_codex_names_the_files_that_it_changes(given: Any) -> None:
    assert CODEX.work(given) == Work("a, b", Kind.EDITS, ("a", "b"))


def test_a_command_is_known_by_its_words() -> None:
    assert CODEX.work('{"cmd": "rm  f"}') == Work("rm f", Kind.RUNS)
    assert CODEX.work({"command": ["rm", "f"]}) == Work("rm f", Kind.RUNS)
    assert CLAUDE_CODE.work({"command": "rm f"}) == Work("rm f", Kind.RUNS)


@pytest.mark.parametrize(
    ("command", "may_leave"),
    [
        ("make &", True),
        ("(sleep 1; touch f) >/dev/null 2>&1 & echo", True),
        ("nohup make", True),
        ("make 2>&1 && ls", False),
        ("make &> log; ls |& cat", False),
    ],
)
def test_a_command_may_look_as_if_it_left_a_process(command: str, may_leave: bool) -> None:
    assert CLAUDE_CODE.work({"command": command}).may_leave is may_leave


def test_a_patch_in_a_command_of_another_agent_is_a_command() -> None:
    assert CLAUDE_CODE.work({"command": "echo '*** Begin Patch'"}).kind is Kind.RUNS


@pytest.mark.parametrize("given", [None, 7, [], "no JSON", '["list"]', {"command": 7}, {}])
def test_an_input_that_is_not_understood_says_nothing(given: Any) -> None:
    assert CLAUDE_CODE.work(given) == CODEX.work(given) == OTHER


def line(**told: Any) -> bytes:
    return json.dumps(told).encode()


def test_claude_code_tells_which_command_goes_on_and_when_that_has_ended() -> None:
    block = {"type": "tool_result", "tool_use_id": "one", "content": "Command running"}
    message = {"role": "user", "content": [block]}
    left = line(type="user", message=message, toolUseResult={"backgroundTaskId": "b1"})
    assert list(CLAUDE_CODE.left_running(left)) == [("one", True)]
    over = line(type="user", message=message, toolUseResult={"stdout": ""})
    assert list(CLAUDE_CODE.left_running(over)) == []
    text = "<task-notification>\n<tool-use-id>one</tool-use-id>\n<status>completed</status>"
    ended = line(type="queue-operation", operation="enqueue", content=text)
    assert list(CLAUDE_CODE.left_running(ended)) == [("one", False)]
    assert list(CLAUDE_CODE.left_running(b'no JSON "isAsync"')) == []


def test_codex_tells_which_command_goes_on_and_when_that_has_ended() -> None:
    output = {"type": "function_call_output", "call_id": "one"}
    running = {**output, "output": "Process running with session ID 7\nOutput:\n"}
    left = line(type="response_item", ordinal=1, payload=running)
    assert list(CODEX.left_running(left)) == [("one", True)]
    over = line(type="response_item", ordinal=1, payload={**output, "output": "exited"})
    assert list(CODEX.left_running(over)) == []
    item = {"type": "CommandExecution", "id": "one"}
    ended = line(type="event_msg", ordinal=2, payload={"type": "item_completed", "item": item})
    assert list(CODEX.left_running(ended)) == [("one", False)]
    assert list(CODEX.left_running(b'no JSON "item_completed"')) == []


def test_an_edit_is_known_by_what_it_makes_of_a_file() -> None:
    edit = {"file_path": "f", "old_string": "a", "new_string": "b"}
    assert tools.makes(edit, "a a\n", "b a\n")
    assert tools.makes({**edit, "replace_all": True}, "a a\n", "b b\n")
    assert not tools.makes(edit, "a\n", "b\nmore\n")  # another has changed it, too
    assert not tools.makes(edit, "c\n", "b\n")
    assert tools.makes({"file_path": "f", "content": "new\n"}, None, "new\n")
    assert not tools.makes({"file_path": "f"}, "a", "a")


def test_a_patch_is_known_by_what_it_makes_of_a_file() -> None:
    def patch(*lines: str) -> dict[str, str]:
        return {"input": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}

    update = patch("*** Update File: f", "@@", " one", "-two", "+TWO", "@@", "-four", "+FOUR")
    before = "one\ntwo\nthree\nfour\n"
    assert codex_tools.makes(update, "f", before, "one\nTWO\nthree\nFOUR\n")
    assert not codex_tools.makes(update, "f", before, "one\nTWO\nthree\nFOUR\nfive\n")
    assert not codex_tools.makes(update, "g", before, "one\nTWO\nthree\nFOUR\n")
    assert codex_tools.makes(patch("*** Add File: f", "+new"), "f", None, "new\n")
    assert codex_tools.makes(patch("*** Delete File: f"), "f", "old\n", None)
    moved = patch("*** Update File: f", "*** Move to: g", "@@", "-two", "+TWO")
    assert not codex_tools.makes(moved, "f", before, before.replace("two", "TWO"))
