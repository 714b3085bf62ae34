"""Transcripts of Codex, with lines that version 0.166.0 wrote; long texts in them are cut short."""

import json
from pathlib import Path
from typing import Any

import pytest

from hardsave.agents.codex import lines as codex_lines
from hardsave.agents.codex.lines import closing, copied, messages, parsed
from hardsave.agents.cut import Cut, Moment, cut
from hardsave.agents.spec import Ending, Open, Unknown

PLAIN = Path(__file__).with_name("codex_plain.jsonl").read_text().splitlines()
CODED = Path(__file__).with_name("codex_coded.jsonl").read_text().splitlines()
ENDING = Ending("new", "Do it", "rewound to :3", "2026-01-01T00:00:00.000Z", lambda: "u")


def session(lines: list[str]) -> str:
    return str(json.loads(lines[0])["payload"]["id"])


def cut_at(lines: list[str], length: int, moment: Moment) -> Cut:
    return cut(codex_lines, lines[:length], lines[length:], session(lines), moment)


def changed(text: str, **payload: Any) -> str:
    line = json.loads(text)
    return json.dumps({**line, "payload": {**line["payload"], **payload}})


# The moments of hooks, each as many lines as the transcript had when the hook was called.


@pytest.mark.parametrize(
    ("length", "pending", "end"),
    [(14, "call_0_0", 15), (19, "call_1_0", 20), (26, "call_2_0", 28)],
)
def test_after_a_tool_the_result_is_taken_along(length: int, pending: str, end: int) -> None:
    assert cut_at(PLAIN, length, Moment(pending=pending)) == Cut(PLAIN[:end], [])


def test_after_one_of_two_tools_the_other_is_told_of() -> None:
    assert cut_at(PLAIN, 25, Moment(pending="call_2_1")) == Cut(PLAIN[:28], [], later=1)


@pytest.mark.parametrize(
    ("length", "upcoming", "end"),
    [(13, "call_0_0", 9), (18, "call_1_0", 16), (24, "call_2_0", 21), (24, "call_2_1", 21)],
)
def test_before_a_tool_the_answer_is_not_given_yet(length: int, upcoming: str, end: int) -> None:
    assert cut_at(PLAIN, length, Moment(upcoming=upcoming)) == Cut(PLAIN[:end], [])


def test_before_a_tool_while_another_has_ended_already_all_of_them_are_told_of() -> None:
    assert cut_at(PLAIN, 25, Moment(upcoming="call_2_0")) == Cut(PLAIN[:28], [], later=1)


def test_before_a_tool_a_summary_of_all_before_is_no_part_of_the_answer() -> None:
    """Codex asks the model for it in the middle of a turn, before the answer."""
    said = {"type": "message", "role": "assistant", "content": []}
    summary = {"timestamp": "t", "ordinal": 16, "type": "response_item", "payload": said}
    compacted = {"timestamp": "t", "ordinal": 17, "type": "compacted", "payload": {}}
    lines = [*PLAIN[:16], json.dumps(summary), json.dumps(compacted), *PLAIN[16:18]]
    found = cut(codex_lines, lines, PLAIN[18:], session(PLAIN), Moment(upcoming="call_1_0"))
    assert found == Cut(lines[:18], [])


# A command that was left running has its result, 14, before the line that it has ended, 13.
RUNNING = [*PLAIN[:13], *PLAIN[14:16]]


@pytest.mark.parametrize(
    ("answer", "start"),
    [([PLAIN[13], *PLAIN[16:18]], 16), ([PLAIN[16], PLAIN[13], PLAIN[17]], 15)],
)
def test_before_a_tool_it_counts_for_nothing_that_another_which_was_left_running_has_ended(
    answer: list[str], start: int
) -> None:
    lines, moment = [*RUNNING, *answer], Moment(upcoming="call_1_0")
    found = cut(codex_lines, lines, PLAIN[18:], session(PLAIN), moment)
    assert found == Cut(lines[:start], [])


def test_after_a_tool_one_that_was_left_running_is_no_more_than_the_files_know() -> None:
    lines, later = [*RUNNING, *PLAIN[16:19]], [PLAIN[13], *PLAIN[19:]]
    found = cut(codex_lines, lines, later, session(PLAIN), Moment(pending="call_1_0"))
    assert found == Cut([*lines, *later[:2]], [])


def test_that_a_subagent_has_ended_is_told_with_the_result_that_it_was_told_with() -> None:
    about = {"content_item_kinds": ["multi_agent.subagent_notification"]}
    kept = "internal_chat_message_metadata_passthrough"
    ended, typed = changed(PLAIN[7], **{kept: about}), PLAIN[7]
    for said in ([PLAIN[15], ended, *PLAIN[16:]], [PLAIN[15], ended, typed]):
        later = [PLAIN[14], *said]
        found = cut(codex_lines, PLAIN[:14], later, session(PLAIN), Moment(pending="call_0_0"))
        assert found == Cut([*PLAIN[:14], *later[:3]], [])
    moment = Moment(upcoming="call_0_0", is_past=True)  # as a tool of the subagent tells it
    found = cut(codex_lines, PLAIN[:13], [*PLAIN[13:15], ended], session(PLAIN), moment)
    assert found == Cut(PLAIN[:15], [], later=1)


@pytest.mark.parametrize("kind", ["HookPrompt", "Plan", "WebSearch"])
def test_before_a_tool_it_counts_for_nothing_what_is_no_tool_here(kind: str) -> None:
    ended = changed(PLAIN[9], item={"type": kind, "id": "1"})
    lines = [*PLAIN[:17], ended, PLAIN[17]]
    found = cut(codex_lines, lines, PLAIN[18:], session(PLAIN), Moment(upcoming="call_1_0"))
    assert found == Cut(PLAIN[:16], [])


def test_some_time_after_a_tool_has_begun_it_is_under_way() -> None:
    moment = Moment(upcoming="call_0_0", is_past=True)
    assert cut_at(PLAIN, 13, moment) == Cut(PLAIN[:15], [], later=1)
    killed = cut(codex_lines, PLAIN[:13], [], session(PLAIN), moment)
    assert [call.id for call in killed.waiting] == ["call_0_0"]


@pytest.mark.parametrize("length", [7, 33, 34])
def test_where_nothing_waits_everything_is_kept(length: int) -> None:
    assert cut_at(PLAIN, length, Moment()) == Cut(PLAIN[:length], [])


def test_a_tool_inside_a_script_goes_on_behind_the_script() -> None:
    first, last = (Moment(pending=f"exec-{name}") for name in ("first", "last"))
    assert cut_at(CODED, 18, first) == Cut(CODED[:21], [], later=2)
    assert cut_at(CODED, 20, last) == Cut(CODED[:21], [])
    assert cut_at(CODED, 17, Moment(upcoming="exec-first")) == Cut(CODED[:13], [])


def test_a_call_that_was_killed_is_open_and_gets_one_truthful_result() -> None:
    found = cut(codex_lines, PLAIN[:24], [], session(PLAIN), Moment(pending="call_2_1"))
    assert [call.id for call in found.waiting] == ["call_2_0", "call_2_1"]
    added = [json.loads(text) for text in closing(found.lines, found.waiting, ENDING)]
    assert [line["ordinal"] for line in added] == [24, 25]
    assert [line["payload"]["call_id"] for line in added] == ["call_2_0", "call_2_1"]
    assert {line["payload"]["type"] for line in added} == {"function_call_output"}
    assert all("unknown" in line["payload"]["output"] for line in added)
    whole = [*found.lines, *map(json.dumps, added)]
    assert cut(codex_lines, whole, [], session(PLAIN), Moment()).waiting == []


def test_a_text_tool_gets_a_result_of_its_own_kind() -> None:
    found = cut(codex_lines, PLAIN[:18], [], session(PLAIN), Moment(pending="call_1_0"))
    (added,) = closing(found.lines, found.waiting, ENDING)
    assert json.loads(added)["payload"]["type"] == "custom_tool_call_output"


def test_a_call_behind_which_a_turn_has_ended_is_left_to_codex() -> None:
    lines = [*PLAIN[:13], PLAIN[33]]
    assert cut(codex_lines, lines, [], session(PLAIN), Moment()) == Cut(lines, [])
    killed = cut(codex_lines, PLAIN[:13], [PLAIN[1]], session(PLAIN), Moment(pending="call_0_0"))
    assert [call.id for call in killed.waiting] == ["call_0_0"]


# What is refused


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        "[" * 100_000 + "]" * 100_000,
        '{"type":[],"ordinal":1,"payload":{}}',
        '{"type":"brand_new","ordinal":1,"payload":{}}',
        '{"type":"event_msg","ordinal":1}',
        '{"type":"event_msg","payload":{}}',
        '{"type":"session_meta","ordinal":0,"payload":{}}',
        '{"type":"response_item","ordinal":1,"payload":{"type":"brand_new_call"}}',
        changed(PLAIN[0], cli_version="0.159.3"),
        changed(PLAIN[0], cli_version="1.0.0"),
        changed(PLAIN[0], cli_version="mine"),
        changed(PLAIN[0], history_mode="legacy"),
        changed(PLAIN[0], id="another"),
        changed(PLAIN[0], session_id="another"),
    ],
)
def test_a_line_that_is_not_as_known_is_refused(text: str) -> None:
    with pytest.raises(Unknown):
        parsed(text, session(PLAIN))


def test_a_later_version_that_writes_the_same_is_known() -> None:
    assert parsed(changed(PLAIN[0], cli_version="0.170.2-alpha.1"), session(PLAIN))


def test_what_codex_keeps_of_an_answered_question_is_carried_over() -> None:
    kept = '{"type":"retained_context","ordinal":9,"payload":{"type":"verified_answer"}}'
    assert codex_lines.copied(kept, session(PLAIN), "new") == kept


def test_a_result_without_a_call_is_refused() -> None:
    with pytest.raises(Unknown):
        cut(codex_lines, [*PLAIN[:11], PLAIN[14]], [], session(PLAIN), Moment())


@pytest.mark.parametrize(
    "lines",
    [
        [PLAIN[0], PLAIN[2]],
        PLAIN[1:],
        [PLAIN[0], PLAIN[0].replace('"ordinal":0', '"ordinal":1')],
        [changed(PLAIN[0], forked_from_ordinal_exclusive=7), PLAIN[1]],
        [changed(PLAIN[0], history_base={"end_ordinal_exclusive": 7}), PLAIN[1]],
        [changed(PLAIN[0], history_base={"end_ordinal_exclusive": "0"}), PLAIN[1]],
    ],
)
def test_lines_that_are_not_numbered_one_by_one_are_refused(lines: list[str]) -> None:
    with pytest.raises(Unknown):
        closing(lines, [], ENDING)


def test_a_search_for_tools_without_a_result_is_refused() -> None:
    call = {"type": "tool_search_call", "call_id": "c"}
    with pytest.raises(Unknown):
        closing(PLAIN[:1], [Open("c", {"payload": call})], ENDING)


def numbered(text: str, ordinal: int) -> str:
    return json.dumps({**json.loads(text), "ordinal": ordinal})


def test_a_session_that_codex_itself_has_taken_back_is_numbered_on() -> None:
    base = {"thread_id": session(PLAIN), "end_ordinal_exclusive": 22, "end_byte_offset": 50004}
    first = numbered(changed(PLAIN[0], history_base=base), 22)
    assert closing([first, numbered(PLAIN[1], 23)], [], ENDING) == []
    other = f"{session(PLAIN)}_01a1e95f-c24d-7a62-8713-6d1206791c52"
    assert codex_lines.is_talk(parsed(first, other)), "what was said before counts"


# A copy


def test_only_the_first_line_of_a_copy_is_another_one() -> None:
    copy = [copied(text, session(PLAIN), "new") for text in PLAIN]
    assert copy[1:] == PLAIN[1:]
    before, after = json.loads(PLAIN[0]), json.loads(copy[0])
    assert (after["payload"].pop("id"), after["payload"].pop("session_id")) == ("new", "new")
    del before["payload"]["id"], before["payload"]["session_id"]
    assert after == before


# For people


DEEP = b"[" * 100_000 + b"]" * 100_000


def test_messages_are_what_was_said_by_user_model_and_tools() -> None:
    found = messages([text.encode() for text in PLAIN] + [b"nonsense", b"[]", b'{"type": 1}', DEEP])
    assert [each["role"] for each in found] == [
        *("user", "assistant", "assistant", "tool", "assistant", "tool"),
        *("assistant", "assistant", "tool", "tool", "assistant"),
    ]
    assert found[0]["content"] == [{"type": "input_text", "text": "do it"}]
    assert found[4]["content"][0]["name"] == "apply_patch"
    assert "Updated the following files" in found[5]["content"][0]["content"]
