"""Hooks that are quicker than the transcript: a rewind reads on, and an answer is waited for."""

import json
from pathlib import Path
from typing import Any

import pytest

from hardsave.agents import state
from hardsave.agents.claude_code import lines as claude_lines
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex import lines as codex_lines
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.cut import Moment, cut
from hardsave.agents.events import Event, parse
from hardsave.agents.transcripts import EMPTY, read
from hardsave.daemon import save

SESSION = "s"


def line(role: str, *blocks: dict[str, Any]) -> str:
    return json.dumps({"type": role, "message": {"role": role, "content": list(blocks)}})


def call(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Edit", "input": {}}


def result(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "done"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


PROMPT = line("user", text("do it"))
LOOK, CALLS = line("assistant", text("I look.")), line("assistant", call("a"), call("b"))
RESULTS = [line("user", result("a")), line("user", result("b"))]
NEXT = [line("assistant", call("c")), line("user", result("c"))]
WHOLE = [PROMPT, LOOK, CALLS, *RESULTS, *NEXT]


@pytest.mark.parametrize("moment", [Moment(pending="a"), Moment(batch=("a", "b"))])
@pytest.mark.parametrize("written", range(1, 5))
def test_the_conversation_is_the_same_however_much_of_it_was_written(
    moment: Moment, written: int
) -> None:
    found = cut(claude_lines, WHOLE[:written], WHOLE[written:], SESSION, moment)
    assert found.lines == WHOLE[:5]
    assert found.waiting == []
    assert found.later == (moment.pending is not None)  # of the other's end no hook knew


def test_a_call_that_was_never_written_is_not_looked_for() -> None:
    """Nor are later lines, which may be of an unknown kind."""
    moment = Moment(pending="nowhere")
    found = cut(claude_lines, WHOLE[:5], [*WHOLE[5:], "no line at all"], SESSION, moment)
    assert found.lines == WHOLE[:5]


def test_a_call_that_is_only_spoken_of_later_is_not_looked_for() -> None:
    """A subagent's, which the session notes as progress."""
    noted = json.dumps({"type": "progress", "data": {"message": call("inner")}})
    moment = Moment(batch=("inner",))
    found = cut(claude_lines, WHOLE[:5], [*NEXT, noted, PROMPT], SESSION, moment)
    assert found.lines == WHOLE[:5]


CODED = Path(__file__).parents[1].joinpath("agents", "codex_coded.jsonl").read_text().splitlines()
CODED_SESSION = json.loads(CODED[0])["payload"]["id"]
INNER = [json.loads(CODED[at])["payload"]["item"]["id"] for at in (17, 18, 19)]


@pytest.mark.parametrize("written", range(16, 20))
@pytest.mark.parametrize("inner", INNER)
def test_a_call_inside_a_script_leads_to_the_end_of_the_script_and_no_further(
    written: int, inner: str
) -> None:
    moment = Moment(pending=inner)
    found = cut(codex_lines, CODED[:written], CODED[written:], CODED_SESSION, moment)
    assert found.lines == CODED[:21]
    done = [each for each in INNER[max(written - 17, 0) :] if each != inner]
    assert found.later == len(done)


@pytest.mark.parametrize("written", [1, 2, 4])
@pytest.mark.parametrize("results", [[], RESULTS[:1]])
def test_a_call_whose_result_never_came_is_open(written: int, results: list[str]) -> None:
    """Another was under way when the agent was killed; the same answer has both."""
    one, other = line("assistant", call("a")), line("assistant", call("b"))
    whole = [PROMPT, LOOK, one, other]
    later = [*whole[written:], *results]
    found = cut(claude_lines, whole[:written], later, SESSION, Moment(pending="a"))
    assert found.lines == [*whole, *results]
    assert [each.id for each in found.waiting] == (["b"] if results else ["a", "b"])


def test_what_ended_together_is_kept_by_the_checkpoint() -> None:
    told = {"session_id": "s", "hook_event_name": "PostToolBatch"}
    calls = [{"tool_name": "Edit", "tool_use_id": "a"}, {"tool_name": "Bash"}, "nonsense"]
    event = parse(json.dumps({**told, "tool_calls": calls}).encode())
    assert event.batch == ("a",)
    assert event.tools == ("Edit", "Bash")


def test_what_a_subagent_has_called_is_no_call_of_the_session() -> None:
    told = {"session_id": "s", "hook_event_name": "PostToolBatch", "agent_id": "a1"}
    calls = [{"tool_name": "Edit", "tool_use_id": "a"}]
    assert parse(json.dumps({**told, "tool_calls": calls}).encode()).batch == ()


# An answer


def stopped(path: Path, answer: str = "All\n done.") -> Event:
    return Event("Stop", "s", str(path), None, answer=answer)


def test_an_answer_is_waited_for_until_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(PROMPT + "\n")
    later = [line("assistant", text("All")), line("assistant", text("done."))]

    def sleep(_: float) -> None:
        with path.open("a") as file:
            file.write(later.pop(0) + "\n")

    save._await(CLAUDE_CODE, stopped(path), EMPTY, clock=lambda: 0, sleep=sleep)
    assert later == []


def test_a_hook_does_not_wait_long_for_an_answer_that_does_not_come(tmp_path: Path) -> None:
    path, now = tmp_path / "t.jsonl", [0.0]
    path.write_text(line("user", text("All done.")) + "\n")  # said by the user

    def sleep(seconds: float) -> None:
        now[0] += seconds

    save._await(CLAUDE_CODE, stopped(path), EMPTY, clock=lambda: now[0], sleep=sleep)
    assert CLAUDE_CODE.late_seconds <= now[0] < CLAUDE_CODE.late_seconds + 0.1


@pytest.mark.parametrize(("agent", "answer"), [(CODEX, "All done."), (CLAUDE_CODE, "")])
def test_a_hook_does_not_wait_for_what_is_not_late(tmp_path: Path, agent: Any, answer: str) -> None:
    def sleep(_: float) -> None:
        raise AssertionError

    save._await(agent, stopped(tmp_path / "none", answer), EMPTY, clock=lambda: 0, sleep=sleep)


def test_an_answer_that_was_given_before_is_not_taken_for_this_one(tmp_path: Path) -> None:
    path, now = tmp_path / "t.jsonl", [0.0]
    path.write_text(line("assistant", text("All done.")) + "\n")

    def sleep(seconds: float) -> None:
        now[0] += seconds

    known = read(path).mark
    save._await(CLAUDE_CODE, stopped(path), known, clock=lambda: now[0], sleep=sleep)
    assert now[0] >= CLAUDE_CODE.late_seconds


def test_what_was_said_is_known_in_every_form() -> None:
    said: list[dict[str, Any]] = [
        {"role": "assistant", "content": None},
    ]
    said += [
        {"role": "assistant", "content": "One"},
        {"role": "assistant", "content": [text("two")]},
    ]
    assert state.has_said(said, "One  two")
    assert state.has_said(said, "two")
    assert not state.has_said(said, "two one")
    assert not state.has_said([{"role": "user", "content": "One"}], "One")
