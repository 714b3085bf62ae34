"""Rewinding a conversation of Codex: what is written and where, and when nothing is."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import hardsave
from hardsave.agents import conversation
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.conversation import Place, Resumption
from hardsave.daemon import save

LINES = Path(__file__).with_name("codex_plain.jsonl").read_text().splitlines()
SESSION = str(json.loads(LINES[0])["payload"]["id"])
SAID_SINCE = LINES[7]  # a prompt


@pytest.fixture
def transcript(tmp_path: Path, project: Path) -> Path:
    folder = tmp_path / "codex/sessions/2026/11/16"
    folder.mkdir(parents=True)
    return written(folder / f"rollout-2026-11-16T07-02-19-{SESSION}.jsonl", LINES)


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def state(path: Path, lines: list[str], **more: Any) -> dict[str, Any]:
    data = "".join(line + "\n" for line in lines).encode()
    about = {"agent": "codex", "session": SESSION, "path": str(path), "offset": len(data)}
    transcript = {**about, "blake3": blake3(data).hexdigest(), "pending": None, **more}
    return {"transcript": transcript, "lines": [line.encode() for line in lines]}


def resumed(given: Any, hook: str = "Stop") -> Resumption:
    found = conversation.resume(given, {"hook": hook}, os.environ, Place("codex-line"))
    assert found is not None
    return found


def others(tmp_path: Path, transcript: Path) -> list[Path]:
    found = (tmp_path / "codex").rglob("*")
    return [path for path in found if path.is_file() and path != transcript]


def test_a_copy_is_begun_today_under_an_id_of_its_own(tmp_path: Path, transcript: Path) -> None:
    before = transcript.read_bytes()
    found = resumed(state(transcript, LINES[:14], pending="call_0_0"))
    (copy,) = others(tmp_path, transcript)
    assert found.command == f"codex resume {found.session}"
    assert copy.name.endswith(f"-{found.session}.jsonl")
    year, month, day = copy.parts[-4:-1]
    assert copy.name.startswith(f"rollout-{year}-{month}-{day}T")
    lines = copy.read_text().splitlines()
    assert lines[1:] == LINES[1:15]
    assert json.loads(lines[0])["payload"]["id"] == found.session
    assert transcript.read_bytes() == before
    assert found.why == ""


def test_a_transcript_that_is_gone_comes_back_from_the_store(
    tmp_path: Path, transcript: Path
) -> None:
    transcript.unlink()
    found = resumed(state(transcript, LINES))
    (copy,) = others(tmp_path, transcript)
    assert found.session is not None
    assert len(copy.read_text().splitlines()) == len(LINES)


def test_a_transcript_that_was_archived_since_still_tells_what_came_of_a_call(
    tmp_path: Path, transcript: Path
) -> None:
    archived = tmp_path / "codex/archived_sessions" / transcript.name
    archived.parent.mkdir()
    transcript.rename(archived)
    found = resumed(state(transcript, LINES[:14], pending="call_0_0"))
    (copy,) = others(tmp_path, archived)
    assert copy.read_text().splitlines()[1:] == LINES[1:15]
    assert found.why == ""


def test_a_transcript_that_was_read_in_the_archive_is_found_when_it_is_out_of_it(
    tmp_path: Path, transcript: Path
) -> None:
    before = tmp_path / "codex/archived_sessions" / transcript.name
    found = resumed(state(before, LINES[:14], pending="call_0_0"))
    (copy,) = others(tmp_path, transcript)
    assert copy.read_text().splitlines()[1:] == LINES[1:15]
    assert found.why == ""


def test_half_a_character_in_a_line_that_is_written_anew_stays_what_it_is(
    tmp_path: Path, transcript: Path
) -> None:
    """Programs that count in halves cut texts in the middle of an emoji."""
    first = json.loads(LINES[0])
    first["payload"]["originator"] = "\ud83d"
    lines = [json.dumps(first), *LINES[1:]]
    found = resumed(state(written(transcript, [*lines, SAID_SINCE]), lines))
    assert found.session is not None
    (copy,) = others(tmp_path, transcript)
    assert json.loads(copy.read_text().splitlines()[0])["payload"]["originator"] == "\ud83d"


def test_a_session_goes_back_that_goes_on_in_another_file(tmp_path: Path, transcript: Path) -> None:
    other = "01a1e95f-c24d-7a62-8713-6d1206791c52"
    path = written(transcript.with_name(f"{transcript.stem}_{other}.jsonl"), LINES)
    found = resumed(state(path, LINES))
    assert found.session is not None
    (copy,) = (each for each in others(tmp_path, transcript) if each != path)
    assert copy.name.endswith(f"-{found.session}.jsonl")
    listed = dict(CODEX.transcripts(tmp_path / "codex", "anywhere"))
    assert listed[f"{SESSION}_{other}"] == path
    assert listed[SESSION] == transcript
    assert CODEX.resume_command(f"{SESSION}_{other}") == f"codex resume {SESSION}"


def based(on: str) -> str:
    line = json.loads(LINES[0])
    line["payload"]["history_base"] = {"thread_id": on, "end_ordinal_exclusive": 0}
    return json.dumps(line)


def test_a_session_that_goes_on_from_another_needs_that_and_those_before_it(
    tmp_path: Path, transcript: Path
) -> None:
    one, two = "01a1e95f-c24d-7a62-8713-6d1206791c51", "01a1e95f-c24d-7a62-8713-6d1206791c52"
    lines = [based(two), *LINES[1:]]
    written(transcript, [*lines, SAID_SINCE])

    def found() -> Resumption:
        return resumed(state(transcript, lines))

    assert (found().session, two in found().why) == (None, True)
    second = transcript.with_name(f"rollout-2026-11-15T07-02-19-{SESSION}_{two}.jsonl")
    written(second, [based(one)])
    assert (found().session, one in found().why) == (None, True)
    assert others(tmp_path, transcript) == [second]
    away = tmp_path / "codex" / "archived_sessions"
    away.mkdir()
    written(away / f"rollout-2026-11-14T07-02-19-{one}.jsonl", [based(two)])  # and round again
    assert found().session is not None


def test_what_the_conversation_tells_beyond_the_files_is_said(transcript: Path) -> None:
    found = resumed(state(transcript, LINES[:25], pending="call_2_1"))
    assert "tell of 1 more call than the files" in found.why


def test_where_nothing_was_said_there_is_nothing_to_go_on_with(
    tmp_path: Path, transcript: Path
) -> None:
    assert resumed(state(transcript, LINES[:7]), "UserPromptSubmit").command == "codex"
    assert others(tmp_path, transcript) == []


def other_version(line: str) -> str:
    return line.replace('"cli_version":"0.166.0"', '"cli_version":"2.0.0"')


@pytest.mark.parametrize(
    "fault", ["prefix", "type", "version", "pairing", "ordinals", "elsewhere", "deeper", "content"]
)
def test_what_is_not_as_known_is_refused_and_nothing_is_written(
    fault: str, tmp_path: Path, transcript: Path
) -> None:
    given = state(transcript, LINES)
    changes = {
        "type": [*LINES[:20], LINES[20].replace("event_msg", "brand_new"), *LINES[21:]],
        "version": [other_version(LINES[0]), *LINES[1:]],
        "pairing": [*LINES[:11], *LINES[12:]],
        "ordinals": [*LINES[:20], *LINES[21:]],
    }
    if fault in changes:
        given = state(written(transcript, [*changes[fault], SAID_SINCE]), changes[fault])
    elif fault == "prefix":
        written(transcript, [LINES[0], LINES[1].replace("exec", "tui"), *LINES[2:]])
    elif fault == "elsewhere":
        given["transcript"]["path"] = str(tmp_path / transcript.name)
    elif fault == "deeper":
        given["transcript"]["path"] = str(tmp_path / "codex/sessions/a" / transcript.name)
    else:
        given["lines"] = given["lines"][:2]
    found = resumed(given)
    assert found.command is None
    assert found.why
    assert others(tmp_path, transcript) == []


def test_hooks_of_codex_save_on_a_timeline_of_codex(project: Path, transcript: Path) -> None:
    about = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": str(project)}
    tool = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "call_0_0"}
    written(transcript, LINES[:13])
    save.work(json.dumps({**about, **tool}).encode(), os.environ, CODEX)
    written(transcript, LINES)
    stop = {"hook_event_name": "Stop", "turn_id": "t", "model": "gpt-5.5"}
    save.work(json.dumps({**about, **stop}).encode(), os.environ, CODEX)
    with hardsave.open() as vault:
        last, first = vault.timeline(f"codex-{SESSION}").checkpoints()
        assert first.description == "before Bash"
        assert first.read("transcript")["upcoming"] == "call_0_0"
        assert "upcoming" not in last.read("transcript")
        assert last.metadata["agent"] == "codex"
        assert len(last.read("messages")) == 11
        assert len(last.read("lines")) == len(LINES)


def test_a_subagent_saves_files_and_leaves_the_conversation_to_the_session(
    project: Path, transcript: Path
) -> None:
    about = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": str(project)}
    save.work(json.dumps({**about, "hook_event_name": "Stop"}).encode(), os.environ, CODEX)
    (project / "a.txt").write_text("by a subagent\n")
    apart = written(transcript.with_name("rollout-2026-11-16T07-02-20-sub.jsonl"), LINES[:3])
    aside = {"hook_event_name": "PostToolUse", "tool_use_id": "call_0_0", "agent_id": "sub"}
    told = {**about, **aside, "transcript_path": str(apart)}
    save.work(json.dumps(told).encode(), os.environ, CODEX)
    with hardsave.open() as vault:
        head = vault.timeline(f"codex-{SESSION}").head
        assert head is not None
        assert head.metadata["subagent"] == "sub"
        assert head.read("transcript")["path"] == str(transcript)
        assert len(head.read("lines")) == len(LINES)
        assert head.files is not None
        assert head.files.read("a.txt") == b"by a subagent\n"


@pytest.mark.parametrize(
    ("metadata", "length"),
    [({"hook": "PreToolUse"}, 9), ({}, 15), ({"hook": "PreToolUse", "subagent": "sub"}, 15)],
)
def test_files_that_others_saved_while_a_tool_ran_come_with_what_it_did(
    metadata: dict[str, str], length: int, tmp_path: Path, transcript: Path
) -> None:
    given = state(transcript, LINES[:13], upcoming="call_0_0")
    conversation.resume(given, metadata, os.environ, Place("codex-line"))
    (copy,) = others(tmp_path, transcript)
    assert len(copy.read_text().splitlines()) == length


def test_what_a_subagent_is_asked_is_no_prompt_of_the_session(
    tmp_path: Path, transcript: Path
) -> None:
    given = state(transcript, LINES[:14], pending="call_0_0")
    about = {"hook": "UserPromptSubmit", "subagent": "sub"}
    found = conversation.resume(given, about, os.environ, Place("codex-line"))
    assert found is not None
    (copy,) = others(tmp_path, transcript)
    assert copy.read_text().splitlines()[1:] == LINES[1:15]
    assert found.why == ""
