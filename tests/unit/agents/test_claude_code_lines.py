import json
from typing import Any

import pytest

from hardsave.agents.claude_code import lines as claude_lines
from hardsave.agents.claude_code.lines import closing, copied, messages, parsed
from hardsave.agents.cut import Moment, cut
from hardsave.agents.spec import Ending, Open, Unknown
from tests.unit.agents.conftest import called, line, said


def test_lines_of_this_session_are_known() -> None:
    assert parsed(said("user", "hi"), "s-1")["type"] == "user"


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        '{"type":[]}',
        '{"type":"user","message":' + "[" * 100_000 + "]" * 100_000 + "}",
        line("brand-new-type"),
        said("user", "hi", version="3.0.0"),
        said("user", "hi", sessionId="another"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Unknown):
        parsed(text, "s-1")


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_a_copy_has_another_id_and_no_other_byte_changed() -> None:
    inner = {"sessionId": "s-1", "x": 1.50, "text": '"sessionId":"s-1"'}
    text = compact({"type": "user", "sessionId": "s-1", "toolUseResult": inner}).replace(
        "1.5", "1.50"
    )
    found = copied(text, "s-1", "new")
    assert found == text.replace('"sessionId":"s-1"', '"sessionId":"new"', 1)
    assert found is not None
    assert json.loads(found)["toolUseResult"] == inner


def test_a_line_without_an_id_is_copied_as_it_is() -> None:
    text = '{"type":"summary", "summary":"s-1"}'
    assert copied(text, "s-1", "new") == text


@pytest.mark.parametrize("kind", ["file-history-delta", "session-owner", "pr-link", "progress"])
def test_what_claude_code_notes_beside_the_talk_goes_along(kind: str) -> None:
    text = compact({"type": kind, "sessionId": "s-1"})
    assert copied(text, "s-1", "new") == text.replace("s-1", "new")


@pytest.mark.parametrize("kind", ["bridge-session", "continued-in"])
def test_what_binds_the_original_alone_is_left_out(kind: str) -> None:
    assert copied(compact({"type": kind, "sessionId": "s-1"}), "s-1", "new") is None


def test_an_id_that_cannot_be_replaced_is_refused() -> None:
    with pytest.raises(Unknown):
        copied('{"type": "user", "sessionId" : "s-1"}', "s-1", "new")


def linked(
    id: str, parent: str | None, content: Any = "hi", role: str = "user", **more: Any
) -> str:
    message = {"role": role, "content": content}
    return compact({"type": role, "uuid": id, "parentUuid": parent, "message": message, **more})


TALK = [
    linked("1", None),
    linked("2", "1", role="assistant"),
    linked("3", "2", "given up"),
    linked("4", "3", role="assistant"),
    compact({"type": "mode"}),
]


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        ([compact({"type": "brand-new-type"}), linked("5", "2", "another way")], 2),
        ([linked("5", "4")], 5),
        ([linked("5", None)], 0),
        ([linked("5", None, role="system"), linked("6", "5")], 5),  # it was compacted
        ([linked("5", "unheard of"), "not json"], 5),
        ([compact({"type": "mode"})], 5),
        ([compact({"uuid": "5", "parentUuid": None})], 5),
        ([], 5),
    ],
)
def test_before_a_prompt_what_its_user_had_given_up_is_left_out(
    later: list[str], kept: int
) -> None:
    moment = Moment(is_prompt=True)
    assert len(cut(claude_lines, TALK, later, "s-1", moment).lines) == kept
    assert len(cut(claude_lines, TALK, later, "s-1", Moment()).lines) == 5


def told_at(second: int, id: str, parent: str | None, role: str = "user") -> str:
    line = json.loads(linked(id, parent, role=role))
    return compact({**line, "timestamp": f"2026-01-01T00:00:{second:02}.000Z"})


@pytest.mark.parametrize(("moment", "kept"), [(0, 0), (12, 3)])
def test_a_session_that_goes_on_from_another_had_said_that_before_its_first_prompt(
    moment: int, kept: int
) -> None:
    """It is written down only with that prompt."""
    mode = compact({"type": "mode"})
    older = [mode, told_at(1, "1", None), told_at(2, "2", "1", "assistant")]
    later = [*older, told_at(11, "3", "2"), told_at(13, "4", "3", "assistant")]
    when = Moment(is_prompt=True, is_seen=True, at=f"2026-01-01T00:00:{moment:02}.000Z")
    assert cut(claude_lines, [], later, "s-1", when).lines == later[:kept]
    known = cut(claude_lines, older, later[3:], "s-1", when._replace(at=""))
    assert known.lines == older


@pytest.mark.parametrize("at", ["2026-01-01T00:00:12.000Z", ""])
def test_before_the_first_prompt_of_a_new_session_there_is_nothing(at: str) -> None:
    later = [told_at(11, "1", None), told_at(13, "2", "1", "assistant"), told_at(20, "3", "2")]
    assert cut(claude_lines, [], later, "s-1", Moment(is_prompt=True, at=at)).lines == []


def test_results_that_came_side_by_side_are_not_taken_for_given_up() -> None:
    calls = [{"type": "tool_use", "id": id, "name": "Bash", "input": {}} for id in "ab"]
    results = [[{"type": "tool_result", "tool_use_id": id, "content": "ok"}] for id in "ab"]
    lines = [
        linked("1", None),
        linked("2", "1", calls, role="assistant"),
        *(linked(id, "2", results[at]) for at, id in enumerate(("3", "4"))),
    ]
    found = cut(claude_lines, lines, [linked("5", "3")], "s-1", Moment(is_prompt=True))
    assert found.lines == lines


def attached(id: str, parent: str, **more: Any) -> str:
    return compact({"type": "attachment", "uuid": id, "parentUuid": parent, **more})


@pytest.mark.parametrize("written", [2, 3, 4])
@pytest.mark.parametrize(
    ("next", "kept"),
    [
        (linked("7", "6", "well", "assistant"), 7),
        (compact({"type": "system", "uuid": "7", "parentUuid": None}), 7),  # it is compacted
        (compact({"type": "brand-new-type"}), 7),
        (attached("7", "6", isSidechain=True), 7),
        (attached("7", "6"), 8),
    ],
)
def test_what_the_model_was_given_with_the_last_result_comes_along(
    written: int, next: str, kept: int
) -> None:
    """Others' hooks say something there, and so does a user who types while a tool runs."""
    whole = [linked("1", None), linked("2", "1", use("a"), "assistant")]
    whole.append(linked("3", "2", [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]))
    whole += [attached("4", "3"), compact({"type": "mode"}), attached("5", "4"), attached("6", "5")]
    later = [*whole[written:], next, linked("8", "7", "well", "assistant")]
    for moment in (Moment(pending="a"), Moment(batch=("a",))):
        found = cut(claude_lines, whole[:written], later, "s-1", moment)
        assert found == ([*whole, next][:kept], [], 0)


@pytest.mark.parametrize(
    ("written", "prompt", "kept"),
    [(2, "p-1", 5), (3, "p-1", 5), (4, "p-1", 5), (2, "p-2", 3), (3, "p-2", 3)],
)
def test_what_a_tool_says_besides_its_result_comes_along(
    written: int, prompt: str, kept: int
) -> None:
    """The text of a skill, the size of an image; and not what another prompt begins with."""
    result = [{"type": "tool_result", "tool_use_id": "a", "content": "Launching skill: foo"}]
    whole = [linked("1", None), linked("2", "1", use("a"), "assistant")]
    whole.append(linked("3", "2", result, promptId="p-1"))
    whole.append(linked("4", "3", "Do the foo thing.", isMeta=True, promptId=prompt))
    whole += [attached("5", "4"), linked("6", "5", "well", "assistant")]
    for moment in (Moment(pending="a"), Moment(batch=("a",))):
        found = cut(claude_lines, whole[:written], whole[written:], "s-1", moment)
        assert found == (whole[:kept], [], 0)


def test_what_comes_after_an_answer_does_not_come_along() -> None:
    """A hook was late: the next answer had begun."""
    lines = [linked("1", None), linked("2", "1", use("b"), "assistant"), RESULT]
    lines.append(linked("8", "7", "well", "assistant"))
    found = cut(claude_lines, lines, [attached("9", "8")], "s-1", Moment(pending="b"))
    assert found.lines == lines


def use(id: str) -> list[Any]:
    return [{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]


KILLED = [linked("1", None), linked("2", "1", "well", "assistant"), linked("3", "2")]
KILLED.append(linked("4", "3", use("a"), "assistant"))  # in the midst of which it was killed
RESULT = linked("7", "6", [{"type": "tool_result", "tool_use_id": "b", "content": "ok"}])


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_call_that_its_user_has_left_behind_gets_no_result(is_seen: bool) -> None:
    """Nor does a line say that it has none."""
    lines = [*KILLED, linked("5", "2"), linked("6", "5", "done", "assistant")]
    found = cut(claude_lines, lines, [], "s-1", Moment(is_seen=is_seen))
    assert found == (lines, [], 0)


def test_a_call_that_was_left_behind_keeps_no_other_from_its_result() -> None:
    lines = [*KILLED, linked("5", "2"), linked("6", "5", use("b"), "assistant")]
    found = cut(claude_lines, lines, [RESULT, linked("8", "7")], "s-1", Moment(pending="b"))
    assert found == ([*lines, RESULT], [], 0)


def test_a_call_that_a_prompt_goes_on_from_is_not_left_behind() -> None:
    found = cut(claude_lines, [*KILLED, linked("5", "4")], [], "s-1", Moment())
    assert [each.id for each in found.waiting] == ["a"]


def test_an_open_call_gets_one_truthful_error() -> None:
    call = Open("a", parsed(called("a"), "s-1"))
    ending = Ending("new", "Do it", "rewound to :3", "2026-01-01T00:00:00.000Z", lambda: "u-9")
    result, title = map(json.loads, closing([], [call], ending))
    (block,) = result["message"]["content"]
    assert (block["tool_use_id"], block["is_error"]) == ("a", True)
    assert "unknown" in block["content"]
    assert (result["parentUuid"], result["sessionId"], result["cwd"]) == ("u-a", "new", "/p")
    assert (title["customTitle"], title["sessionId"]) == ("Do it (rewound to :3)", "new")
    assert parsed(json.dumps(result), "new")


def note(leaf: str, **more: Any) -> str:
    return line("last-prompt", lastPrompt="hi", leafUuid=leaf, **more)


ENDING = Ending("new", "Do it", "rewound to :3", "2026-01-01T00:00:00.000Z", lambda: "u-9")


@pytest.mark.parametrize("later", [[], [linked("6", "5", "well", "assistant")]])
def test_a_copy_goes_on_from_the_prompt_that_its_user_has_gone_back_to_ask(
    later: list[str],
) -> None:
    """Claude Code notes that only at the end of a turn, and goes by what it has noted last."""
    whole = [linked("1", None), linked("2", "1", "well", "assistant"), linked("3", "2"), note("3")]
    way, _ = map(json.loads, closing([*whole, linked("5", "2"), *later], [], ENDING))
    assert way == {**json.loads(note("5")), "sessionId": "new"}


def test_where_its_user_went_back_to_is_not_where_a_copy_ends() -> None:
    """What is noted as explicit would hide the answer to that prompt."""
    whole = [linked("1", None), linked("2", "1", "well", "assistant"), linked("3", "2")]
    back = [note("3", explicit=True, rewound=True, cutUuid="4"), linked("5", "2")]
    way, _ = map(
        json.loads, closing([*whole, *back, linked("6", "5", "well", "assistant")], [], ENDING)
    )
    assert way == {**json.loads(note("5")), "sessionId": "new"}


def test_a_note_that_names_no_line_is_claude_codes_own_word_for_the_last_one() -> None:
    whole = [linked("1", None), linked("2", "1", "well", "assistant"), linked("3", "2"), note("3")]
    back = [linked("5", "2"), note("00000000-0000-0000-0000-000000000000", explicit=True)]
    (title,) = closing([*whole, *back, linked("6", "5", "well", "assistant")], [], ENDING)
    assert json.loads(title)["type"] == "custom-title"


@pytest.mark.parametrize("noted", ["2", "3", "4"])
def test_what_claude_code_has_noted_is_enough_where_its_user_has_not_gone_back(noted: str) -> None:
    whole = [linked("1", None), linked("2", "1", "well", "assistant"), linked("3", "2")]
    (title,) = closing([*whole, linked("4", "3", "well", "assistant"), note(noted)], [], ENDING)
    assert json.loads(title)["type"] == "custom-title"


def test_messages_are_what_was_said_and_all_else_stays_a_line() -> None:
    lines = [
        b'{"type": "user", "message": {"role": "user", "content": "hi"}}',
        b'{"type": "assistant", "message": {"role": "assistant", "content": []}}',
        b'{"type": "user", "isMeta": true, "message": {"role": "user", "content": "aside"}}',
        b'{"type": "summary", "summary": "..."}',
        b'{"type": "user", "message": 7}',
        b"not json",
        b"[]",
        b"\xff",
    ]
    assert messages(lines) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": []},
    ]


def test_a_line_that_is_too_deep_to_be_read_is_no_message() -> None:
    deep = b'{"type":"user","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert len(messages([deep, said("user", "hi").encode()])) == 1
