"""Transcripts of Qwen Code: what is known, what is refused, and what a copy ends with."""

import json
from pathlib import Path
from typing import Any

import pytest

from hardsave.agents.cut import Moment, cut
from hardsave.agents.qwen_code import lines
from hardsave.agents.qwen_code.spec import QWEN_CODE
from hardsave.agents.spec import Ending, Open, Unknown

SESSION = "c38c6ea5-704a-4085-a009-e859c6e70056"


def line(type: str, *parts: Any, **more: Any) -> str:
    head = {"uuid": f"u-{type}", "parentUuid": None, "sessionId": SESSION, "type": type}
    said = {"message": {"parts": list(parts)}} if parts else {}
    about = {"timestamp": "2026-11-18T21:46:51.378Z", "cwd": "/p", "version": "0.24.4"}
    return json.dumps({**head, **about, **said, **more})


def call(*ids: str) -> str:
    parts = [{"functionCall": {"id": id, "name": "edit", "args": {"n": 1}}} for id in ids]
    return line("assistant", {"text": "I do."}, *parts)


def result(id: str) -> str:
    response = {"id": id, "name": "edit", "response": {"output": "ok"}}
    return line("tool_result", {"functionResponse": response})


PROMPT = line("user", {"text": "do it"})
MEANWHILE = line("user", {"text": "faster"}, subtype="mid_turn_user_message")
TELEMETRY = line("system", subtype="ui_telemetry", systemPayload={"call_id": "c1"})


def test_a_call_that_had_just_ended_comes_back_with_all_results_of_its_answer() -> None:
    later = [TELEMETRY, result("c1"), result("c2"), MEANWHILE, line("assistant", {"text": "Done"})]
    found = cut(lines, [PROMPT, call("c1", "c2")], later, SESSION, Moment(pending="c1"))
    assert found.lines == [PROMPT, call("c1", "c2"), *later[:4]]
    assert (found.waiting, found.later) == ([], 1)


def test_a_prompt_ends_what_was_open_before_it() -> None:
    known = [PROMPT, call("c1"), PROMPT]
    assert cut(lines, known, [], SESSION, Moment(is_seen=True)).waiting == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        (line("tool_group"), "type 'tool_group'"),
        (line("system", subtype="shuffled"), "subtype 'shuffled'"),
        (line("system", subtype=["rewind"]), "subtype"),
        (line("user", sessionId="other"), "another session"),
        (line("user", version="0.23.9"), "version '0.23.9'"),
        (line("user", version="1.0.0"), "version '1.0.0'"),
    ],
)
def test_what_is_not_as_known_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unknown, match=why):
        lines.parsed(text, SESSION)


def test_a_copy_is_of_another_session_and_directory_and_ends_with_the_truth() -> None:
    copied = lines.copied(call("c1"), SESSION, "new")
    assert json.loads(copied) == {**json.loads(call("c1")), "sessionId": "new"}
    assert json.loads(lines.moved(copied, "/p", "/q"))["cwd"] == "/q"
    ids = iter(["i1", "i2"])
    ending = Ending("new", "do it", "rewound to :3", "2026-11-18T22:00:00.000Z", lambda: next(ids))
    told = lines.closing([copied], [Open("c1", json.loads(copied))], ending)
    answer, title = (lines.parsed(each, "new") for each in told)
    assert list(lines.results(answer)) == ["c1"]
    assert "unknown" in answer["message"]["parts"][0]["functionResponse"]["response"]["error"]
    assert [answer["parentUuid"], title["parentUuid"]] == ["u-assistant", "i1"]
    assert title["systemPayload"]["customTitle"] == "do it (rewound to :3)"


def test_messages_are_as_those_of_other_agents() -> None:
    thought = {"text": "hm", "thought": True}
    found = [PROMPT, call("c1"), result("c1"), TELEMETRY, line("assistant", thought), "[]", "{"]
    assert lines.messages([each.encode() for each in found]) == [
        {"role": "user", "content": [{"type": "text", "text": "do it"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I do."},
                {"type": "tool_use", "id": "c1", "name": "edit", "input": {"n": 1}},
            ],
        },
        {
            "role": "tool",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
        },
    ]


def test_a_hook_tells_the_call_as_the_transcript_does_and_an_empty_prompt_is_no_step() -> None:
    told = {"session_id": SESSION, "hook_event_name": "PostToolUse", "tool_name": "edit"}
    ended = QWEN_CODE.event(
        json.dumps({**told, "tool_use_id": "toolu_1", "tool_call_id": "c1"}).encode()
    )
    assert ended.tool_use_id == "c1"
    told["hook_event_name"] = "UserPromptSubmit"
    asked = [QWEN_CODE.event(json.dumps({**told, "prompt": each}).encode()) for each in ("do", "")]
    assert [QWEN_CODE.is_step(each) for each in (ended, *asked)] == [True, True, False]


def test_a_transcript_is_only_taken_from_where_qwen_code_keeps_them(tmp_path: Path) -> None:
    name = f"{SESSION}.jsonl"
    chats = tmp_path / "projects" / "-p" / "chats"
    assert QWEN_CODE.original(str(chats / name), SESSION, tmp_path) == chats / name
    for path in (chats / "other.jsonl", chats.parent / name, chats / "deeper" / name):
        with pytest.raises(Unknown, match="is not where Qwen Code"):
            QWEN_CODE.original(str(path), SESSION, tmp_path)


def test_settings_that_switch_hooks_off_are_named_the_strongest_first(tmp_path: Path) -> None:
    project, folder = tmp_path / "project", tmp_path / "home"
    own, theirs = folder / "settings.json", project / ".qwen/settings.json"
    for path in (own, theirs):
        path.parent.mkdir(parents=True)
    assert QWEN_CODE.why_hooks_off(folder, project, project) == ""
    own.write_text('{"disableAllHooks": true}')
    assert QWEN_CODE.why_hooks_off(folder, project, project) == f"{own} has disableAllHooks"
    theirs.write_text('{"disableAllHooks": false}')
    assert QWEN_CODE.why_hooks_off(folder, project, project) == ""
