import json
from typing import Any

import pytest

from hardsave.adapters import claude_lines
from hardsave.adapters.claude_lines import Unknown, copied, parsed, settled
from tests.unit.adapters.conftest import line, said


def called(*ids: str) -> str:
    blocks = [{"type": "tool_use", "id": id, "name": "Bash", "input": {}} for id in ids]
    return said("assistant", blocks, uuid=f"u-{ids[0]}", version="2.1.0", cwd="/p")


def answered(id: str) -> str:
    return said("user", [{"type": "tool_result", "tool_use_id": id, "content": "ok"}])


def test_lines_of_this_session_are_known() -> None:
    assert parsed(said("user", "hi"), "s-1")["type"] == "user"


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        line("brand-new-type"),
        said("user", "hi", version="3.0.0"),
        said("user", "hi", sessionId="another"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Unknown):
        parsed(text, "s-1")


def test_what_is_settled_is_kept_as_it_is() -> None:
    lines = [said("user", "hi"), called("a"), answered("a")]
    assert settled(lines, [called("b")], "s-1", None) == (lines, [])


def test_a_pending_result_is_looked_for_behind_all_calls_of_its_answer() -> None:
    lines = [said("user", "hi"), called("a")]
    later = [called("b"), line("tools-used"), answered("a"), answered("b"), said("assistant", "x")]
    assert settled(lines, later, "s-1", "a") == ([*lines, *later[:4]], [])


def test_a_pending_result_that_never_came_leaves_its_call_open() -> None:
    lines = [said("user", "hi"), called("a")]
    kept, waiting = settled(lines, [called("b"), answered("b")], "s-1", "a")
    assert kept == lines
    assert [call.id for call in waiting] == ["a"]


def test_a_call_that_nobody_waits_for_any_more_is_open_too() -> None:
    kept, waiting = settled([called("a", "b"), answered("a")], [answered("b")], "s-1", None)
    assert len(kept) == 2
    assert [call.id for call in waiting] == ["b"]


@pytest.mark.parametrize(
    "lines",
    [[answered("a")], [called("a"), answered("a"), answered("a")], [called("a"), called("a")]],
)
def test_results_and_calls_that_do_not_pair_are_refused(lines: list[str]) -> None:
    with pytest.raises(Unknown):
        settled(lines, [], "s-1", None)


def test_an_unknown_line_after_the_cut_is_of_no_concern() -> None:
    lines, later = [called("a")], [answered("a"), line("brand-new-type")]
    assert settled(lines, later, "s-1", "a") == ([*lines, later[0]], [])


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_a_copy_has_another_id_and_no_other_byte_changed() -> None:
    inner = {"sessionId": "s-1", "x": 1.50, "text": '"sessionId":"s-1"'}
    text = compact({"type": "user", "sessionId": "s-1", "toolUseResult": inner}).replace(
        "1.5", "1.50"
    )
    found = copied(text, "s-1", "new")
    assert found == text.replace('"sessionId":"s-1"', '"sessionId":"new"', 1)
    assert json.loads(found)["toolUseResult"] == inner


def test_a_line_without_an_id_is_copied_as_it_is() -> None:
    text = '{"type":"summary", "summary":"s-1"}'
    assert copied(text, "s-1", "new") == text


def test_an_id_that_cannot_be_replaced_is_refused() -> None:
    with pytest.raises(Unknown):
        copied('{"type": "user", "sessionId" : "s-1"}', "s-1", "new")


def test_an_open_call_gets_one_truthful_error() -> None:
    _, (call,) = settled([called("a")], [], "s-1", None)
    told = json.loads(claude_lines.result(call, "new", "u-9", "2026-01-01T00:00:00.000Z"))
    (block,) = told["message"]["content"]
    assert (block["tool_use_id"], block["is_error"]) == ("a", True)
    assert "unknown" in block["content"]
    assert (told["parentUuid"], told["sessionId"], told["cwd"]) == ("u-a", "new", "/p")
    assert parsed(json.dumps(told), "new")
