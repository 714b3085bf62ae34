"""A conversation that is read in the transcript of an agent that does not call us."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.agents import events, sessions
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.conversation import Place, resume
from hardsave.agents.spec import AgentSpec
from hardsave.daemon import running_agents, transcripts
from hardsave.daemon.calls import CallLog, Look
from hardsave.daemon.recorder import NO_CONVERSATION, Conversation, NoMissedSaves, Recorder
from hardsave.daemon.running_agents import Others
from hardsave.daemon.transcripts import NOTHING_SAID, TranscriptTail
from hardsave.stores.host import processes
from hardsave.timeline.diff import FileDiff
from hardsave.vault.save.parts import Parts

ONE, TWO = (f"{n}0000000-1111-4222-8333-444444444444" for n in "12")


class Stage:
    """Claude Code's folder, a workspace, and a daemon that reads the transcript."""

    def __init__(self, project: Path, vault: hardsave.Vault) -> None:
        self.project, self.vault = project, vault
        self.folder = project.parent / "claude"
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project))
        self.place = self.folder / "projects" / slug
        self.place.mkdir(parents=True)
        self.time, self.company = 100.0, Others.NONE
        self.line = vault.timeline("t")
        self.environment = {
            "CLAUDE_CONFIG_DIR": str(self.folder),
            "XDG_DATA_HOME": str(project.parent / "data"),
        }

    def listen(
        self,
        agent: AgentSpec = CLAUDE_CODE,
        folder: Path | None = None,
        calls: CallLog | None = None,
        is_left: Callable[[str], bool] = lambda session: False,
    ) -> TranscriptTail:
        return TranscriptTail(
            agent,
            folder or self.folder,
            str(self.project),
            around=lambda: self.company,
            is_copy=lambda session: sessions.timeline(self.environment, session) is not None,
            is_left=is_left,
            calls=calls,
            clock=lambda: self.time,
        )

    def write(self, session: str, *told: str, **more: Any) -> Path:
        """A prompt for each text, as Claude Code writes them down."""
        for text in told:
            self.add(session, {"role": "user", "content": text}, **more)
        return self.place / f"{session}.jsonl"

    def call(self, session: str, id: str, *, is_result: bool = False) -> None:
        block: dict[str, Any] = {"type": "tool_use", "id": id, "name": "Bash", "input": {}}
        if is_result:
            block = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
        role = "user" if is_result else "assistant"
        self.add(session, {"role": role, "content": [block]}, uuid=id)

    def add(self, session: str, message: dict[str, Any], **more: Any) -> None:
        about = {"sessionId": session, "cwd": str(self.project), "version": "2.1.325", **more}
        line = {"type": message["role"], "message": message, **about}
        with (self.place / f"{session}.jsonl").open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def daemon(self, talk: TranscriptTail) -> Recorder:
        return Recorder(self.line, self.vault.workspace(self.project), ["x"], NoMissedSaves(), talk)

    def said(self) -> list[str]:
        """What the head has."""
        head = self.line.head
        assert head is not None
        state = head.state or {}
        return [each["content"] for each in state.get("messages", ())]


@pytest.fixture
def stage(project: Path, tmp_path: Path) -> Iterator[Stage]:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        yield Stage(project, vault)


def test_what_was_said_is_saved_with_the_files(stage: Stage) -> None:
    daemon = stage.daemon(stage.listen())
    daemon._save("running")
    assert stage.said() == []
    stage.write(ONE, "one", "two")
    daemon._save("running")
    assert stage.said() == ["one", "two"]
    head = stage.line.head
    assert head is not None
    assert head.files is not None
    assert head.metadata.items() >= {"agent": "claude-code", "session": ONE}.items()
    told = dict(head.state["transcript"])
    data = (stage.place / f"{ONE}.jsonl").read_bytes()
    assert told["offset"] == len(data)
    assert told.keys() == {"agent", "session", "path", "offset", "blake3", "pending"}
    stage.write(ONE, "three")
    daemon._save("ended")
    assert stage.said() == ["one", "two", "three"]


def test_a_session_may_have_been_given_an_id_in_capital_letters(stage: Stage) -> None:
    """As `uuidgen` makes them on macOS, for `claude --session-id`."""
    daemon = stage.daemon(stage.listen())
    stage.write("ABCDEF00-1111-4222-8333-44444444444F", "one")
    daemon._save("running")
    assert stage.said() == ["one"]


def test_a_transcript_that_a_worktree_takes_along_is_read_on(stage: Stage) -> None:
    talk = stage.listen()
    path = stage.write(ONE, "one")
    daemon = stage.daemon(talk)
    daemon._save("running")
    stage.place = stage.place.with_name(f"{stage.place.name}--claude-worktrees-wt")
    stage.place.mkdir()
    path.rename(stage.place / path.name)
    stage.write(ONE, "two")
    stage.time += 10
    assert not talk.is_due()  # it has to settle
    stage.time += 10
    assert talk.is_due()
    daemon._save("ended")
    assert stage.said() == ["one", "two"]


def test_it_costs_what_is_new(stage: Stage) -> None:
    talk = stage.listen()
    stage.write(ONE, "one", "two")
    stage.daemon(talk)._save("running")
    stage.write(ONE, "three")
    parts = talk.now(stage.line.head).state
    assert isinstance(parts, Parts)
    assert parts.goes_on
    assert [len(part["lines"]) for part in parts.again()] == [1]


def test_only_whole_lines_count(stage: Stage) -> None:
    daemon = stage.daemon(stage.listen())
    path = stage.write(ONE, "one")
    whole = path.stat().st_size
    with path.open("a") as file:
        file.write('{"type":"user"')
    daemon._save("running")
    assert stage.line.load()["transcript"]["offset"] == whole


def test_what_was_there_before_the_agent_is_not_its_own_until_it_grows(stage: Stage) -> None:
    stage.write(ONE, "old")
    talk = stage.listen()
    assert talk.now(None).state is None
    stage.write(ONE, "new")  # it was resumed
    stage.daemon(talk)._save("running")
    assert stage.said() == ["old", "new"]


def test_another_session_of_the_agent_is_followed(stage: Stage) -> None:
    daemon = stage.daemon(stage.listen())
    stage.write(ONE, "one")
    daemon._save("running")
    stage.write(TWO, "two")
    daemon._save("running")
    assert stage.said() == ["two"]


@pytest.mark.parametrize(
    "more",
    [{"cwd": "/elsewhere"}, {"version": "3.0.1"}, {"type": "odd"}, {"sessionId": TWO}],
)
def test_what_is_of_another_directory_or_not_known_is_left_out(
    stage: Stage, more: dict[str, Any]
) -> None:
    daemon = stage.daemon(stage.listen())
    for _ in range(2):
        stage.write(ONE, "one", **more)
        daemon._save("running")
        assert stage.said() == []


def test_an_unknown_format_is_said_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    talk = stage.listen()
    for text in "ab":
        with (stage.place / f"{ONE}.jsonl").open("a") as file:
            file.write(f"{text}\n")
        assert talk.now(None).state is None
    assert len([each for each in caplog.records if "is left out" in each.message]) == 1


def test_nothing_is_known_of_a_transcript_before_it_says_where_it_is(stage: Stage) -> None:
    talk = stage.listen()
    (stage.place / f"{ONE}.jsonl").write_text(f'{{"type":"mode","sessionId":"{ONE}"}}\n')
    assert talk.now(None).state is None
    stage.write(ONE, "one")
    assert talk.now(None).state is not None


def test_conversations_of_two_agents_are_not_mixed_and_that_is_told_once(stage: Stage) -> None:
    talk = stage.listen()
    stage.company = Others.SOME
    stage.write(ONE, "one")
    stage.write(TWO, "two")
    said = [talk.now(None) for _ in range(2)]
    assert [each.state for each in said] == [None, None]
    assert "cannot be told apart" in said[0].about["conversation"]
    assert said[1].about == {}


def test_what_another_says_that_is_gone_before_it_is_read_is_not_ours(stage: Stage) -> None:
    talk = stage.listen()
    stage.write(ONE, "ours")
    assert talk.now(None).about["session"] == ONE
    stage.company = Others.SOME
    assert not talk.is_due()
    stage.company = Others.NONE
    stage.time += 0.5
    stage.write(TWO, "of another")
    assert talk.now(None).about["session"] == ONE


def test_the_copy_of_a_rewind_is_no_agents_until_one_goes_on_with_it(stage: Stage) -> None:
    talk = stage.listen()
    sessions.remember_timeline(stage.environment, TWO, "t")
    stage.write(TWO, "copied")
    assert talk.now(None).state is None
    stage.write(TWO, "gone on with")
    assert talk.now(None).about["session"] == TWO


def test_what_is_said_without_a_change_of_files_is_due_when_it_is_quiet(stage: Stage) -> None:
    talk = stage.listen()
    stage.write(ONE, "one")
    assert not talk.is_due()  # it may go on
    stage.time += 1
    assert not talk.is_due()  # not so soon after the last
    stage.time += 1.5
    assert talk.is_due()
    stage.daemon(talk)._save("running")
    stage.time += 9
    assert not talk.is_due()
    with (stage.place / f"{ONE}.jsonl").open("a") as file:
        file.write(f'{{"type":"mode","sessionId":"{ONE}"}}\n')
    for _ in range(3):
        stage.time += 3
        assert not talk.is_due()  # nothing was said


def test_one_who_does_not_stop_talking_is_saved_all_the_same(stage: Stage) -> None:
    talk = stage.listen()
    looks = []
    for text in "abcdefghijklmnop":
        stage.write(ONE, text)
        looks.append(talk.is_due())
        stage.time += 0.4
    assert any(looks)


def test_once_hooks_save_the_conversation_is_theirs(stage: Stage) -> None:
    talk = stage.listen()
    stage.write(ONE, "one")
    stage.line.save({}, metadata={"hook": "Stop"})
    assert talk.now(stage.line.head).state is None
    stage.write(ONE, "two")
    stage.time += 9
    assert not talk.is_due()


def test_a_transcript_that_is_gone_leaves_what_was_saved(stage: Stage) -> None:
    daemon = stage.daemon(stage.listen())
    path = stage.write(ONE, "one")
    daemon._save("running")
    path.unlink()
    daemon._save("running")
    assert stage.said() == ["one"]


def test_what_was_purged_does_not_come_back_while_the_agent_talks_on(
    stage: Stage, tmp_path: Path
) -> None:
    daemon = stage.daemon(stage.listen())
    stage.write(ONE, "sesame")
    daemon._save("running")
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as other:
        other.store.purge(text="sesame")
    stage.write(ONE, "two")
    daemon._save("running")
    assert daemon.failed_saves == 0
    assert stage.said() == ["[purged]", "two"]


def test_a_call_that_was_under_way_has_no_result_even_if_one_came_later(stage: Stage) -> None:
    """The files are from the midst of it, and its result would tell of others."""
    daemon = stage.daemon(stage.listen())
    stage.write(ONE, "do it")
    stage.call(ONE, "toolu_1")
    daemon._save("running")
    stage.call(ONE, "toolu_1", is_result=True)
    daemon._save("running")
    after, midst = stage.line.checkpoints()
    told = []
    for each in (midst, after):
        back = resume(each.state, each.metadata, stage.environment, Place("t"))
        assert back is not None
        assert back.session is not None
        told.append((back.why, (stage.place / f"{back.session}.jsonl").read_text()))
    assert "1 call has no result" in told[0][0]
    assert "is unknown; look at the files" in told[0][1]
    assert told[1][0] == ""
    assert '"content":"ok"' in told[1][1]


def test_codex_says_in_its_first_line_where_it_works(stage: Stage) -> None:
    home = stage.project.parent / "codex"
    place = home / "sessions/2026/01/02"
    place.mkdir(parents=True)
    talk = stage.listen(CODEX, home)

    def begin(session: str, **more: Any) -> None:
        about = {
            "id": session,
            "session_id": session,
            "cwd": str(stage.project),
            "cli_version": "0.166.0",
            "history_mode": "paginated",
            "originator": "codex_exec",
        }
        line = {"ordinal": 0, "type": "session_meta", "payload": {**about, **more}}
        (place / f"rollout-2026-01-02T03-04-05-{session}.jsonl").write_text(json.dumps(line) + "\n")

    begin(ONE, originator="codex_vscode")
    begin(TWO, session_id=ONE)  # a subagent
    assert talk.now(None).state is None
    three = ONE.replace("1", "3")
    begin(three)
    assert talk.now(None).about == {"agent": "codex", "session": three}


def test_the_transcript_of_an_agent_that_is_known_is_read_until_a_hook_calls(
    project: Path,
) -> None:
    environment = {"CLAUDE_CONFIG_DIR": str(project / "claude"), "HOME": str(project)}

    def conversation(command: str) -> Conversation:
        return transcripts.of_a_run(environment, [command], 1, CallLog(str(project)))

    assert conversation("bash") is NO_CONVERSATION
    assert conversation("/usr/bin/claude") is not NO_CONVERSATION


def test_a_change_in_the_first_call_of_an_agent_is_told_of_that_call(stage: Stage) -> None:
    """The transcript is as new as the change: it was never looked at before."""
    calls = CallLog(str(stage.project))
    talk, work = stage.listen(calls=calls), stage.vault.workspace(stage.project)
    daemon = Recorder(stage.line, work, ["x"], NoMissedSaves(), talk, calls=calls)
    daemon.begin()
    stage.write(ONE, "do it")
    block = {"type": "tool_use", "id": "one", "name": "Bash", "input": {"command": "touch made"}}
    moment = datetime.now(UTC).isoformat()
    stage.add(ONE, {"role": "assistant", "content": [block]}, timestamp=moment)
    (stage.project / "made").touch()
    daemon.save_changes(is_burst=True)
    head = stage.line.head
    assert head is not None
    (told,) = head.metadata["changed_by"]
    assert [each["tool_use_id"] for each in told["calls"]] == ["one"]
    assert told["paths"] == ["made"]


@pytest.mark.parametrize("company", [Others.SOME, Others.NONE, Others.UNKNOWN])
def test_calls_of_another_agent_that_works_here_are_candidates_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, company: Others
) -> None:
    """Its hooks tell the daemon of its own run."""
    moment = datetime.now(UTC).isoformat()
    for session, id, place in ((ONE, "theirs", stage.project), (TWO, "elsewhere", stage.place)):
        block = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": id}}
        said = {"role": "assistant", "content": [block]}
        stage.add(session, said, timestamp=moment, cwd=str(place))
    monkeypatch.setattr(running_agents, "others", lambda *about: company)
    monkeypatch.chdir(stage.project)
    calls = CallLog(str(stage.project))
    transcripts.of_a_run(stage.environment, ["codex"], 1, calls)
    own = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_use_id": "own"}
    given = {"tool_name": "Bash", "tool_input": {"command": "own"}}
    calls.has_hooks = True
    calls.hook(CODEX, events.parse(json.dumps({**own, **given}).encode()), time.time())
    (stage.project / "made").touch()
    about = calls.about_burst(Look(FileDiff(added=("made",))), 0.0)
    (told,) = about.metadata["changed_by"]
    found = {each["tool_use_id"] for each in told["calls"]}
    assert found == ({"own", "theirs"} if company is Others.SOME else {"own"})


def test_once_a_hook_calls_nothing_more_is_read(stage: Stage) -> None:
    calls = CallLog(str(stage.project))
    talk = stage.listen(calls=calls)
    stage.write(ONE, "hello")
    calls.has_hooks = True
    assert not talk.is_due()
    assert talk.now(None) == NOTHING_SAID
    assert talk.why_unsaved(has_worked=True) == ""


def test_why_nothing_is_saved_is_told_at_the_end(stage: Stage) -> None:
    talk = stage.listen()
    assert talk.why_unsaved(has_worked=False) == ""
    assert "no hook has called, and no transcript has grown" in talk.why_unsaved(has_worked=True)
    (stage.place / f"{ONE}.jsonl").write_text('{"type": "of tomorrow"}\n')
    talk.now(None)
    assert "lines of type 'of tomorrow' are not known" in talk.why_unsaved(has_worked=False)
    stage.write(TWO, "hello")
    talk.now(None)
    assert talk.why_unsaved(has_worked=True) == ""


def test_a_session_that_is_only_opened_again_has_nothing_new_to_save(stage: Stage) -> None:
    """Its hooks may be about to call: nothing is saved in their place."""
    stage.write(ONE, "hello")
    talk = stage.listen()
    with (stage.place / f"{ONE}.jsonl").open("a") as file:
        file.write(json.dumps({"type": "mode", "sessionId": ONE}) + "\n")
    for _ in range(3):
        assert not talk.is_due()
        stage.time += 10
    stage.write(ONE, "more")
    assert not talk.is_due()
    stage.time += 10
    assert talk.is_due()


def test_the_last_words_of_a_session_that_a_rewind_has_left_are_not_saved(stage: Stage) -> None:
    """Its agent is ended, and goes on in a copy."""
    daemon = stage.daemon(stage.listen(is_left=transcripts.LeftSessions(stage.environment)))
    stage.write(ONE, "one", "two")
    daemon._save("running")
    with subprocess.Popen(["sleep", "60"]) as agent:
        began = processes.started(agent.pid)
        assert began is not None
        sessions.leave(stage.environment, ONE, (agent.pid, began))
        stage.write(ONE, "hardsave rewind")
        daemon._save("running")
        assert stage.said() == ["one", "two"]
        agent.kill()
    stage.write(ONE, "the end")
    daemon._save("running")
    assert stage.said() == ["one", "two"]
    sessions.remember_timeline(stage.environment, TWO, "t")
    stage.write(TWO, "one")
    daemon._save("running")
    assert stage.said() == ["one", "two"], "a copy counts when an agent goes on with it"
    stage.write(TWO, "three")
    daemon._save("running")
    assert stage.said() == ["one", "three"]
    stage.write(ONE, "on")
    daemon._save("running")
    assert stage.said()[-1] == "on", "its user has come back to it"
