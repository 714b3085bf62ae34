"""Rewinding a conversation: what is written, and when nothing is."""

import errno
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from hardsave.agents import conversation
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.conversation import Place, Resumption
from tests.unit.agents.conftest import answered, called, line

HELLO = '{"type":"user","message":{"role":"user","content":"hi"},"sessionId":"s-1"}'
CALL = (
    '{"type":"assistant","uuid":"u1","message":{"role":"assistant","content":'
    '[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"sessionId":"s-1"}'
)
RESULT = (
    '{"type":"user","message":{"role":"user","content":'
    '[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"sessionId":"s-1"}'
)


@pytest.fixture
def room(tmp_path: Path, project: Path) -> Path:
    folder = tmp_path / "claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    return folder


def written(room: Path, *lines: str) -> Path:
    path = room / "s-1.jsonl"
    path.write_text("".join(each + "\n" for each in lines))
    return path


def state(path: Path, *lines: str, pending: str | None = None) -> dict[str, Any]:
    data = "".join(each + "\n" for each in lines).encode()
    transcript = {
        "agent": "claude-code",
        "session": "s-1",
        "path": str(path),
        "offset": len(data),
        "sha256": sha256(data).hexdigest(),
        "pending": pending,
    }
    return {"transcript": transcript, "messages": [], "lines": [each.encode() for each in lines]}


def resumed(given: Any, hook: str = "Stop") -> Resumption:
    found = conversation.resume(given, {"hook": hook}, os.environ, Place("claude-s-1"))
    assert found is not None
    return found


def others(room: Path) -> list[Path]:
    return [path for path in room.iterdir() if path.name != "s-1.jsonl"]


def test_a_copy_ends_at_the_mark_and_the_original_is_untouched(room: Path) -> None:
    path = written(room, HELLO, CALL, RESULT)
    before = path.read_bytes()
    found = resumed(state(path, HELLO))
    (copy,) = others(room)
    assert found.command == f"claude --resume {copy.stem}"
    first, title = copy.read_text().splitlines()
    assert first == HELLO.replace("s-1", copy.stem)
    assert json.loads(title)["customTitle"] == "hi (rewound)"
    assert path.read_bytes() == before


def test_a_copy_does_not_lead_to_where_the_original_went_on(room: Path) -> None:
    moved = '{"type":"continued-in","sessionId":"s-1","continuedInSessionId":"s-2"}'
    resumed(state(written(room, HELLO, moved), HELLO, moved))
    (copy,) = others(room)
    assert [json.loads(each)["type"] for each in copy.read_text().splitlines()] == [
        "user",
        "custom-title",
    ]


def test_a_pending_result_is_taken_along(room: Path) -> None:
    path = written(room, HELLO, CALL, RESULT, HELLO)
    resumed(state(path, HELLO, CALL, pending="t1"))
    (copy,) = others(room)
    assert len(copy.read_text().splitlines()) == 4
    assert "tool_result" in copy.read_text().splitlines()[2]


@pytest.mark.parametrize(
    ("earlier", "more"),
    [
        ([], True),
        ([("PostToolUse", "b", "s-1")], False),
        ([None, ("PostToolUse", "b", "s-1"), ("PostToolBatch", None, "s-1")], False),
        ([("UserPromptSubmit", None, "s-1"), ("PostToolUse", "b", "s-1")], False),
        ([("PostToolBatch", None, "s-1"), ("PostToolUse", "b", "s-1")], True),
        ([("PostToolUse", "b", "another")], True),
    ],
)
def test_what_the_conversation_tells_beyond_the_files_is_said(
    room: Path, earlier: list[Any], more: bool
) -> None:
    lines = [
        each.replace('": "', '":"') for each in (called("a", "b"), answered("a"), answered("b"))
    ]
    path = written(room, HELLO, *lines)
    keys = ("hook", "tool_use_id", "session")
    told = [{} if each is None else dict(zip(keys, each, strict=True)) for each in earlier]
    about = dict(zip(keys, ("PostToolUse", "a", "s-1"), strict=True))
    given = state(path, HELLO, lines[0], pending="a")
    found = conversation.resume(given, about, os.environ, Place("claude-s-1"), told)
    assert found is not None
    assert ("tell of 1 more call than the files" in found.why) == more


def test_a_call_left_open_by_a_kill_gets_exactly_one_result(room: Path) -> None:
    path = written(room, HELLO, CALL)
    found = resumed(state(path, HELLO, CALL, pending="t1"))
    (copy,) = others(room)
    assert copy.read_text().count('"tool_use_id":"t1"') == 1
    assert '"is_error":true' in copy.read_text()
    assert "1 call has no result" in found.why


def test_a_subagent_that_was_at_work_has_not_told_its_result_yet(room: Path) -> None:
    """The files are from the midst of its call, though that has ended since."""
    path = written(room, HELLO, CALL, RESULT, HELLO)
    about = {"hook": "PostToolUse", "session": "s-1", "subagent": "a1"}
    found = conversation.resume(state(path, HELLO, CALL), about, os.environ, Place("claude-s-1"))
    (copy,) = others(room)
    assert found is not None
    assert "1 call has no result" in found.why
    result, _ = copy.read_text().splitlines()[2:]
    assert "is unknown" in json.loads(result)["message"]["content"][0]["content"]


def test_a_tool_that_was_at_work_when_its_user_said_more_has_no_result_yet(room: Path) -> None:
    """Its files are from the midst of it, not from its end."""
    path = written(room, HELLO, CALL, RESULT)
    about = {"hook": "UserPromptSubmit", "session": "s-1"}
    found = conversation.resume(state(path, HELLO, CALL), about, os.environ, Place("claude-s-1"))
    assert found is not None
    assert found.why == "1 call has no result, and the agent is told so"


def test_a_transcript_that_is_gone_comes_back_from_the_store(room: Path) -> None:
    found = resumed(state(room / "s-1.jsonl", HELLO, CALL, RESULT))
    (copy,) = others(room)
    assert found.session == copy.stem
    assert len(copy.read_text().splitlines()) == 4


def test_a_transcript_that_a_worktree_took_along_is_read_there(room: Path) -> None:
    path = written(room, HELLO, CALL, RESULT)
    elsewhere = room.with_name(f"{room.name}--claude-worktrees-wt")
    elsewhere.mkdir()
    path.rename(elsewhere / path.name)
    found = resumed(state(path, HELLO, CALL, pending="t1"))
    assert found.why == ""
    (copy,) = others(room)
    assert RESULT.replace("s-1", str(found.session)) in copy.read_text().splitlines()


def test_what_claude_code_keeps_for_its_own_undo_goes_along(room: Path, tmp_path: Path) -> None:
    kept = tmp_path / "claude" / "file-history" / "s-1"
    kept.mkdir(parents=True)
    (kept / "abc@v1").write_text("old\n")
    found = resumed(state(written(room, HELLO), HELLO))
    assert (kept.with_name(found.session or "") / "abc@v1").read_text() == "old\n"


def test_where_nothing_was_said_there_is_nothing_to_go_on_with(room: Path) -> None:
    found = resumed(state(room / "s-1.jsonl"), "UserPromptSubmit")
    assert (found.command, found.why) == ("claude", "nothing had been said yet")
    assert others(room) == []


def test_what_was_said_and_not_written_down_is_not_called_nothing(room: Path) -> None:
    """Claude Code can be told to keep no transcript."""
    found = resumed(state(room / "s-1.jsonl"), "Stop")
    assert found.command is None
    assert "no transcript of it" in found.why
    assert others(room) == []


@pytest.mark.parametrize("hook", ["UserPromptSubmit", "SessionEnd"])
@pytest.mark.parametrize(("session", "is_said"), [("s-1", True), ("another", False)])
def test_what_hooks_have_told_of_before_was_said_though_nothing_is_written(
    room: Path, hook: str, session: str, is_said: bool
) -> None:
    earlier = [{}, {"hook": "UserPromptSubmit", "session": "s-1"}]
    earlier.append({"hook": "Stop", "session": session})
    about = {"hook": hook, "session": "s-1"}
    given = state(room / "s-1.jsonl")
    found = conversation.resume(given, about, os.environ, Place("claude-s-1"), iter(earlier))
    assert found is not None
    assert (found.command is None) == is_said
    assert ("nothing had been said" in found.why) != is_said


def test_a_state_without_a_transcript_is_no_agents(room: Path) -> None:
    odd: list[Any] = [None, [], {}, {"transcript": "text"}, {"transcript": {"agent": "other"}}]
    for given in odd:
        assert conversation.resume(given, {"hook": "Stop"}, os.environ, Place("main")) is None


@pytest.mark.parametrize("fault", ["prefix", "type", "pairing", "elsewhere", "content", "odd"])
def test_what_is_not_as_known_is_refused_and_nothing_is_written(
    fault: str, room: Path, tmp_path: Path
) -> None:
    path = written(room, HELLO, CALL, RESULT)
    given = state(path, HELLO, CALL, RESULT)
    if fault == "prefix":
        path.write_text(path.read_text().replace("hi", "ho"))
    elif fault == "type":
        odd = line("brand-new-type")
        given = state(written(room, HELLO, odd), HELLO, odd)
    elif fault == "pairing":
        given = state(written(room, HELLO, RESULT), HELLO, RESULT)
    elif fault == "elsewhere":
        given["transcript"]["path"] = str(tmp_path / "s-1.jsonl")
    elif fault == "content":
        given["lines"] = given["lines"][:2]
    else:
        given = {"transcript": {"agent": "claude-code"}, "lines": 3}
    found = resumed(given)
    assert found.command is None
    assert found.why
    assert others(room) == []


def test_a_session_that_is_called_like_a_directory_is_refused(room: Path, tmp_path: Path) -> None:
    """What goes along is copied by that name: it would be all that Claude Code keeps."""
    (tmp_path / "claude" / "file-history").mkdir()
    hello = HELLO.replace("s-1", "..")
    given = state(room / "...jsonl", hello)
    given["transcript"]["session"] = ".."
    found = resumed(given)
    assert (found.command, others(room)) == (None, [])
    assert list((tmp_path / "claude" / "file-history").iterdir()) == []


def test_a_transcript_that_cannot_be_read_is_not_called_one_that_cannot_be_written(
    room: Path,
) -> None:
    path = written(room, HELLO)
    given = state(path, HELLO)
    path.unlink()
    path.mkdir()
    found = resumed(given)
    assert found.command is None
    assert "cannot be read" in found.why
    assert "written" not in found.why


def test_where_nothing_can_be_written_that_is_said(room: Path) -> None:
    path = written(room, HELLO, CALL)
    with mock.patch.object(os, "link", side_effect=OSError(errno.EROFS, "read-only")):
        found = resumed(state(path, HELLO))
    assert (found.command, others(room)) == (None, [])
    assert "read-only" in found.why


# Copies: as few as will do

SAID = '{"type":"assistant","message":{"role":"assistant","content":"well"},"sessionId":"s-1"}'
COST = '{"type":"cost-state","sessionId":"s-1","totalCostUSD":1}'
PLACE = Place("claude-s-1", "chk_1", "rewound to :14")


def gone_on(given: Any, place: Place = PLACE) -> Resumption:
    found = conversation.resume(given, {"hook": "Stop"}, os.environ, place)
    assert found is not None
    return found


def title(path: Path) -> str:
    return str(json.loads(path.read_text().splitlines()[-1])["customTitle"])


def test_a_conversation_that_ends_at_the_checkpoint_by_itself_is_gone_on_with(room: Path) -> None:
    """What Claude Code notes besides is nothing that was said."""
    found = gone_on(state(written(room, HELLO, SAID, COST), HELLO, SAID))
    assert found.command == "claude --resume s-1"
    assert others(room) == []


def test_a_second_rewind_to_a_checkpoint_goes_on_with_the_copy_that_there_is(room: Path) -> None:
    given = state(written(room, HELLO, SAID, HELLO), HELLO, SAID)
    first = gone_on(given)
    (copy,) = others(room)
    assert gone_on(given) == first
    with copy.open("a") as file:
        file.write(COST.replace("s-1", copy.stem) + "\n")
    assert gone_on(given) == first, "it was looked at and left"
    assert others(room) == [copy]
    with copy.open("a") as file:
        file.write(HELLO.replace("s-1", copy.stem) + "\n")
    assert gone_on(given).session != first.session
    assert len(others(room)) == 2


def test_a_copy_is_titled_by_its_first_prompt_and_where_it_was_rewound_to(room: Path) -> None:
    prompt = HELLO.replace('"hi"', '"Write tests for all of the parser, please, and run them"')
    gone_on(state(written(room, prompt, SAID, HELLO), prompt, SAID))
    (copy,) = others(room)
    assert title(copy) == "Write tests for all of the parser, plea… (rewound to :14)"
    lines = copy.read_text().splitlines()
    given = state(copy, *lines)
    given["transcript"].update(session=copy.stem)
    with copy.open("a") as file:
        file.write(HELLO.replace("s-1", copy.stem) + "\n")
    gone_on(given, Place("claude-s-1", "chk_2", "rewound to :3"))
    (second,) = (path for path in others(room) if path != copy)
    assert title(second) == "Write tests for all of the parser, plea… (rewound to :3)"


def test_a_title_that_its_user_has_given_stays(room: Path) -> None:
    named = '{"type":"custom-title","customTitle":"The parser","sessionId":"s-1"}'
    gone_on(state(written(room, HELLO, named, SAID, HELLO), HELLO, named, SAID))
    (copy,) = others(room)
    assert title(copy) == "The parser (rewound to :14)"


def test_what_goes_on_in_another_directory_is_written_for_that(room: Path, tmp_path: Path) -> None:
    there = tmp_path / "a_try"
    there.mkdir()
    first = HELLO.replace('"type":"user"', '"type":"user","cwd":"/p/src"')
    path = written(room, first, SAID)
    found = gone_on(state(path, first, SAID), PLACE._replace(workspace=str(there)))
    assert found.directory == str(there)
    (copy,) = (room.parent / str(there).replace("/", "-").replace("_", "-")).iterdir()
    assert copy.stem == found.session
    assert json.loads(copy.read_text().splitlines()[0])["cwd"] == str(there)
    assert path.read_text().splitlines() == [first, SAID]
    assert others(room) == []


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_the_prompt_that_was_taken_back_is_the_first_behind_what_is_kept() -> None:
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    said = [
        message("user", "one"),
        message("assistant", "well"),
        message("user", result),
        message("user", "<bash-input>ls</bash-input>"),
        message("user", [{"type": "text", "text": "two"}]),
        message("user", "three"),
    ]
    whole, about = {"messages": said}, {"transcript": {"agent": "claude-code"}}

    def taken(count: int) -> str:
        return conversation.taken_back({**whole, **about}, {"messages": said[:count], **about})

    assert [taken(count) for count in range(7)] == ["one", *["two"] * 4, "three", ""]
    other = {"messages": [message("user", "else")], **about}
    assert conversation.taken_back({**whole, **about}, other) == ""
    assert conversation.taken_back(whole, {**other, "messages": []}) == ""


def test_an_agent_that_goes_on_has_the_program_and_the_options_that_it_had() -> None:
    typed = ["/opt/claude", "--model", "opus", "--add-dir", "../a", "../b", "-c", "do it"]
    assert CLAUDE_CODE.started_as(typed, "s-1", "-x") == [
        *("/opt/claude", "--model", "opus", "--add-dir", "../a", "../b"),
        *("--resume", "s-1", "--prefill=-x"),
    ]
    assert CLAUDE_CODE.started_as(["npx", "claude"], None) == ["claude"]
    typed = ["codex", "-m=o3", "resume", "--last", "--", "--oss"]
    assert CODEX.started_as(typed, "s-1", "-x") == ["codex", "-m=o3", "resume", "s-1", "--", "-x"]


def test_a_tool_is_known_by_the_command_that_it_was_given() -> None:
    set_up = "source /x/snapshot-bash-1.sh 2>/dev/null || true && shopt -u extglob || true"
    given = (
        f"{set_up} && eval 'sleep 60; echo '\"'\"'a  b'\"'\"'' < /dev/null && pwd -P >| /tmp/cwd"
    )
    assert CLAUDE_CODE.tool_command(["/bin/bash", "-c", given]) == "sleep 60; echo 'a  b'"
    assert CODEX.tool_command(["/bin/bash", "-lc", "sleep 60"]) == "sleep 60"
    assert CLAUDE_CODE.tool_command(["/bin/bash", "-c", "sleep 60"]) == ""
    assert CODEX.tool_command(["sleep", "60"]) == ""
