"""The real Claude Code, offline, against a model that says what a script says."""

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.integration.agents.stage import (
    HARDSAVE,
    UNTIL_ANSWERED,
    UNTIL_HEARD,
    UNTIL_SAVED,
    Stage,
)
from tests.integration.cli.screen import Screen


def claude() -> str | None:
    """The program: the one that is named, the one in the SDK's wheel, or the one on PATH."""
    if named := os.environ.get("HARDSAVE_TEST_CLAUDE"):
        return named
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is not None and found.origin is not None:
        bundled = Path(found.origin).parent / "_bundled" / "claude"
        if bundled.exists():
            return str(bundled)
    return shutil.which("claude")


CLAUDE = claude()
NO_HOOKS = ("--settings", '{"disableAllHooks": true}')
pytestmark = pytest.mark.skipif(CLAUDE is None, reason="Claude Code is not installed")


class ClaudeStage(Stage):
    """Claude Code with our hooks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "claude", "CLAUDE_CONFIG_DIR")
        self.environment |= {
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def claude(self, script: list[Reply], *arguments: str) -> list[dict[str, Any]]:
        """Let it work through a script; what it asked the model."""
        with ScriptedModel(script) as model:
            done = self.run(self.command(*arguments), {"ANTHROPIC_BASE_URL": model.anthropic_url})
            assert done.returncode == 0, done
            # Requests without tools are the client's own: titles, topics.
            return [each.body for each in model.requests if each.body.get("tools")]

    def command(self, *arguments: str) -> list[str]:
        assert CLAUDE is not None
        return [CLAUDE, "-p", "--dangerously-skip-permissions", *arguments]

    def is_known_to_its_user(self) -> None:
        """As if a user had answered what Claude Code asks at a terminal for the first time."""
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answers = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": ["none"], "rejected": []},
            "projects": {str(self.project): known},
        }
        (self.config / ".claude.json").write_text(json.dumps(answers))

    def transcripts(self) -> dict[str, str]:
        """Every transcript, by what is in it."""
        return {path: hash for path, hash in self.kept().items() if path.endswith(".jsonl")}


def bash(command: str, id: str) -> Call:
    return Call("Bash", {"command": command, "description": "run it"}, id=id)


def said(request: dict[str, Any]) -> list[Any]:
    """What a request holds of the conversation, block by block, without what is about caching."""
    return list(_said(request["messages"]))


def _said(messages: list[dict[str, Any]]) -> Iterator[Any]:
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield message["role"], {k: v for k, v in block.items() if k != "cache_control"}


def results(request: dict[str, Any]) -> list[Any]:
    return [block for _, block in said(request) if block["type"] == "tool_result"]


def test_files_and_conversation_come_back_together_at_every_boundary(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    edited = stage.project / "edited.txt"
    edited.write_text("one\n")
    change = {"file_path": str(edited), "old_string": "one", "new_string": "two"}
    script = [
        Reply("I look.", (Call("Read", {"file_path": str(edited)}, id="toolu_1"),)),
        Reply(calls=(Call("Edit", change, id="toolu_2"),)),
        Reply(
            calls=(
                bash("echo b > made.txt", "toolu_3"),
                bash(UNTIL_SAVED % 3 + "rm edited.txt", "toolu_4"),
            )
        ),
        Reply("Done."),
    ]
    stage.hardsave("init", "--yes")
    original = stage.claude(script, "do it")
    assert stage.files() == {"made.txt": "b\n"}

    (line,) = stage.hardsave("timelines")
    saved = {
        (about["hook"], about.get("tool_use_id") or about.get("tool")): each
        for each in stage.hardsave("log", "--timeline", line["name"])
        for about in [each["metadata"]]
    }
    before = stage.transcripts()
    one, two, end = {"edited.txt": "one\n"}, {"edited.txt": "two\n"}, {"made.txt": "b\n"}
    expected = {
        ("PostToolBatch", "Bash, Bash"): (end, 3),
        ("PostToolUse", "toolu_4"): (end, 3),
        ("PostToolUse", "toolu_3"): ({**two, **end}, 3),
        ("PostToolBatch", "Edit"): (two, 2),
        ("PostToolUse", "toolu_2"): (two, 2),
        ("PostToolBatch", "Read"): (one, 1),
        ("PostToolUse", "toolu_1"): (one, 1),
        ("Stop", None): (end, 3),  # the last: it goes on with the original
    }
    for boundary, (files, request) in expected.items():
        target = saved[boundary]["id"]
        back = stage.hardsave("rewind", target, "--timeline", line["name"], "--yes")
        assert stage.files() == files, boundary
        more = "1 more call" in back["conversation"]["why"]
        assert more == (boundary == ("PostToolUse", "toolu_3"))
        assert {**stage.transcripts(), **before} == stage.transcripts(), "an original was touched"
        (asked,) = stage.claude(
            [*script[:request], *[Reply("On.")] * 4],
            *NO_HOOKS,
            *("--resume", back["conversation"]["session"], "go on"),
        )
        known = said(original[request])
        assert said(asked)[: len(known)] == known, boundary
        assert "go on" in json.dumps(said(asked)[len(known) :])
        assert "changed on disk" not in json.dumps(asked["messages"])
        assert ("Done." in json.dumps(said(asked)[len(known) :])) == (boundary == ("Stop", None))


def test_a_call_that_was_killed_is_answered_once_and_truly(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    calls = (
        bash("echo b > made.txt", "toolu_1"),
        bash(UNTIL_SAVED % 1 + "echo $$ > pid; exec sleep 600", "toolu_2"),
    )
    with (
        ScriptedModel([Reply(calls=calls)]) as model,
        stage.started(stage.command("do it"), {"ANTHROPIC_BASE_URL": model.anthropic_url}),
    ):
        stage.wait_for(stage.project / "pid")
        stage.wait_until(lambda: '"tool_use_id":"toolu_1"' in stage.story())
    stage.end_tool()
    target = stage.checkpoints()["PostToolUse", "toolu_1"]["id"]
    back = stage.hardsave("rewind", target, "--yes")["conversation"]
    assert back["why"].startswith("1 call has no result")
    (asked,) = stage.claude([Reply("On.")] * 4, "--resume", back["session"], "go on")
    blocks = [block for _, block in said(asked)]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert [each["tool_use_id"] for each in results] == called
    whole, truth = sorted(results, key=lambda each: str(each["tool_use_id"]))
    assert not whole.get("is_error")
    assert truth["is_error"]
    assert "unknown" in json.dumps(truth)


def test_before_the_first_prompt_of_a_fork_there_is_what_it_was_forked_from(tmp_path: Path) -> None:
    """Claude Code writes that down with the prompt, and not before."""
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply("One."), Reply("Two."), Reply("On.")]
    stage.claude(script, "the first prompt")
    (old,) = stage.transcripts()
    stage.claude(script, "--resume", Path(old).stem, "--fork-session", "the second prompt")
    (target,) = (
        each for each in stage.hardsave("log") if each["description"] == "before: the second prompt"
    )
    assert not target["timeline"].endswith(Path(old).stem)
    session = stage.hardsave("rewind", target["id"], "--yes")["conversation"]["session"]
    (asked,) = stage.claude(script, *NO_HOOKS, "--resume", session, "go on")
    words = json.dumps(said(asked))
    assert "the first prompt" in words
    assert "One." in words
    assert "the second prompt" not in words


def test_what_other_hooks_told_the_model_comes_back_with_the_result(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    path = stage.config / "settings.json"
    settings = json.loads(path.read_text())
    told = {"hookEventName": "PostToolUse", "additionalContext": "A linter is not content."}
    command = f"echo '{json.dumps({'hookSpecificOutput': told})}'"
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": command}]}
    settings["hooks"]["PostToolUse"].append(hook)
    path.write_text(json.dumps(settings))
    script = [Reply(calls=(bash("echo b > made.txt", "toolu_1"),)), Reply("Done.")]
    original = stage.claude(script, "do it")
    assert "not content" in json.dumps(said(original[1]))
    for each in stage.hardsave("log"):
        if each["metadata"].get("tool") == "Bash":
            session = stage.hardsave("rewind", each["id"], "--yes")["conversation"]["session"]
            (asked,) = stage.claude([Reply("On.")] * 4, *NO_HOOKS, "--resume", session, "go on")
            known = said(original[1])
            assert said(asked)[: len(known)] == known, each["metadata"]["hook"]


def test_what_a_skill_says_comes_back_with_its_result(tmp_path: Path) -> None:
    """Claude Code writes it down as a line of its own, behind the result."""
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    skill = stage.project / ".claude/skills/foo/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: foo\ndescription: does foo\n---\nDo the foo thing.\n")
    script = [Reply(calls=(Call("Skill", {"skill": "foo"}, id="toolu_1"),)), Reply("Done.")]
    original = stage.claude(script, "do it")
    known = said(original[1])
    assert "Do the foo thing." in json.dumps(known)
    for each in stage.hardsave("log"):
        if each["metadata"].get("tool") == "Skill":
            session = stage.hardsave("rewind", each["id"], "--yes")["conversation"]["session"]
            (asked,) = stage.claude([Reply("On.")] * 4, *NO_HOOKS, "--resume", session, "go on")
            assert said(asked)[: len(known)] == known, each["metadata"]["hook"]


def test_a_session_that_enters_a_worktree_comes_back_from_before_and_after(tmp_path: Path) -> None:
    """Claude Code moves the transcript to the folder of the worktree."""
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    for words in ("init -q", "commit -q --allow-empty -m first"):
        who = ["-c", "user.name=n", "-c", "user.email=e"]
        assert stage.run(["git", *who, *words.split()], {}).returncode == 0
    script = [
        Reply(calls=(bash("echo b > made.txt", "toolu_1"),)),
        Reply(calls=(Call("ToolSearch", {"query": "select:EnterWorktree"}, id="toolu_2"),)),
        Reply(calls=(Call("EnterWorktree", {"name": "wt"}, id="toolu_3"),)),
        Reply(calls=(bash("echo c > inside.txt", "toolu_4"),)),
        Reply("Done."),
    ]
    original = stage.claude(script, "do it")
    inside = stage.project / ".claude/worktrees/wt/inside.txt"
    assert inside.exists()
    saved, before = stage.checkpoints(), stage.transcripts()
    for number in (4, 1):
        target = saved["PostToolUse", f"toolu_{number}"]["id"]
        back = stage.hardsave("rewind", target, "--yes")["conversation"]
        assert back["why"] == ""
        assert inside.exists() == (number == 4)
        assert {**stage.transcripts(), **before} == stage.transcripts(), "an original was touched"
        (asked,) = stage.claude([Reply("On.")] * 9, *NO_HOOKS, "--resume", back["session"], "go on")
        known = said(original[number])
        assert said(asked)[: len(known)] == known


def test_at_a_terminal_it_goes_back_too(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    stage.is_known_to_its_user()
    edited = stage.project / "edited.txt"
    edited.write_text("one\n")
    change = {"file_path": str(edited), "old_string": "one", "new_string": "two"}
    script = [
        Reply("I look.", (Call("Read", {"file_path": str(edited)}, id="toolu_1"),)),
        Reply(calls=(Call("Edit", change, id="toolu_2"),)),  # only here are such edits noted
        Reply("I write.", (bash("echo b > made.txt", "toolu_3"),)),
        Reply("It is done."),
        Reply("It goes on."),
    ]
    assert CLAUDE is not None
    command = [CLAUDE, "--dangerously-skip-permissions"]
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        with stage.screen([*command, "do it"], url) as screen:
            screen.wait_for("It is done.")
            stage.wait_until(lambda: ("Stop", None) in stage.checkpoints())
        (line,) = stage.hardsave("timelines")
        boundaries = [
            each
            for each in stage.hardsave("log", "--timeline", line["name"])
            if each["metadata"].get("tool") == "Bash"
        ]
        assert len(boundaries) == 2  # after the call, and after all of its answer
        assert '"file-history-delta"' in stage.story()
        for checkpoint in boundaries:
            back = stage.hardsave("rewind", checkpoint["id"], "--yes")["conversation"]
            assert back["why"] == ""  # no call without a result
            with stage.screen([*command, "--resume", back["session"], "go on"], url) as screen:
                screen.wait_for("It goes on.")
        asked = [each.body for each in model.requests if each.body.get("tools")]
    then = next(said(each) for each in asked if len(results(each)) == 3)
    for now in [said(each) for each in asked if results(each)][-2:]:
        assert now[: len(then)] == then
        assert "go on" in json.dumps(now[-1])


def ask(screen: Screen, prompt: str, answer: str) -> None:
    """Type a prompt, and wait for the last words about it."""
    screen.wait_for("bypass permissions")
    screen.type(prompt)
    screen.wait_for(prompt)
    screen.wait_for(answer, key="\r")


def go_back(screen: Screen, prompt: str) -> None:
    """By Claude Code's own rewind, to just before the newest prompt that is left."""
    screen.type("/rewind")
    screen.wait_for("(current)", key="\r")
    screen.wait_for("\u276f (current)", gone=True, key="\x1b[A")
    screen.wait_for(f"\u2502 {prompt}", key="\r")
    screen.wait_for("Restore conversation", gone=True, key="\r")
    screen.wait_for("bypass permissions")
    screen.type("\x15")  # the prompt stands there again
    screen.wait_for(prompt, gone=True)


def test_what_its_user_gave_up_by_its_own_rewind_does_not_come_back(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    stage.is_known_to_its_user()
    calls = {n: Reply(calls=(bash(f"echo > {n}.txt", n),)) for n in ("one", "two", "three", "four")}
    script = [
        [calls["one"], calls["four"]],
        [Reply("First done."), Reply("Fourth done.")],
        [calls["two"], calls["three"]],
        [Reply("Second done."), Reply("Third done.")],
    ]
    assert CLAUDE is not None
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        with stage.screen([CLAUDE, "--dangerously-skip-permissions"], url) as screen:
            ask(screen, "the first", "First done.")
            ask(screen, "the second", "Second done.")
            go_back(screen, "the second")
            ask(screen, "the third", "Third done.")
            go_back(screen, "the third")
            go_back(screen, "the first")
            ask(screen, "the fourth", "Fourth done.")
            stage.wait_until(lambda: stage.hardsave("log")[0]["seq"] == 16)
    known = {
        "before: the third": ["one"],
        "after Bash: echo > three.txt": ["one", "three"],
        "before: the fourth": None,
        "after Bash: echo > four.txt": ["four"],
        "answered": ["four"],
    }
    for checkpoint in stage.hardsave("log"):
        what = checkpoint["description"]
        if what in known:
            session = stage.hardsave("rewind", checkpoint["id"], "--yes")["conversation"]["session"]
            expected = known.pop(what)
            assert (session is None) == (expected is None)
            if session is not None:
                (asked,) = stage.claude([Reply("On.")] * 9, *NO_HOOKS, "--resume", session, "on")
                assert [each["tool_use_id"] for each in results(asked)] == expected, what
    assert known == {}


def test_at_a_terminal_its_user_and_not_the_model_is_told_that_nothing_is_saved(
    tmp_path: Path,
) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    stage.is_known_to_its_user()
    assert CLAUDE is not None
    command = [CLAUDE, "--dangerously-skip-permissions", "do it"]
    with ScriptedModel([Reply(calls=(bash("echo b", "toolu_1"),)), Reply("It is done.")]) as model:
        more = {"ANTHROPIC_BASE_URL": model.anthropic_url, **stage.broken()}
        with stage.screen(command, more) as screen:
            screen.wait_for("step is NOT saved")
            screen.wait_for("It is done.")
        assert "NOT saved" not in json.dumps([each.body for each in model.requests])


def test_the_first_hook_of_a_session_leaves_a_daemon_that_ends_with_it(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply(calls=(bash(UNTIL_ANSWERED + "echo b >> made", f"toolu_{n}"),)) for n in "ab"]
    stage.claude([*script, Reply("Done.")], "do it")
    stage.wait_until(lambda: stage.daemons() == [])
    hooks = [each["metadata"]["hook"] for each in stage.hardsave("log")][::-1]
    tools = ["PostToolUse", "PostToolBatch"] * 2
    expected = ["UserPromptSubmit", *tools, "Stop", "SessionEnd"]
    assert hooks == expected, stage.story()
    assert stage.answered() in ([len(hooks)], [len(hooks) - 1])  # the second may be too early


def test_a_session_that_was_killed_leaves_no_daemon(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    calls = (bash("echo $$ > pid; exec sleep 600", "toolu_1"),)
    with (
        ScriptedModel([Reply(calls=calls)]) as model,
        stage.started(stage.command("do it"), {"ANTHROPIC_BASE_URL": model.anthropic_url}),
    ):
        stage.wait_for(stage.project / "pid")
        stage.wait_until(lambda: len(stage.daemons()) == 1)
    stage.wait_until(lambda: stage.daemons() == [])  # although a tool of its goes on
    stage.end_tool()


# Without hooks, beside a `hardsave run`


def test_without_hooks_the_conversation_is_read_along_and_comes_back(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    wait = UNTIL_HEARD.replace("%s", "second")
    script = [
        Reply("I write.", (bash("echo b > made.txt", "toolu_1"),)),
        Reply("I wait.", (bash(wait + "mv made.txt moved.txt", "toolu_2"),)),
        Reply("Done."),
    ]
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        done = stage.run(stage.watched(stage.command("do it")), url)
        assert done.returncode == 0, done
        assert "as Claude Code writes it down" in done.stderr
        original = [each.body for each in model.requests if each.body.get("tools")]
    saved = stage.saved()
    before = stage.transcripts()
    midst = next(each for each in saved if '"toolu_2"' in each.lines)  # no file had changed
    back = stage.hardsave("rewind", midst.id, "--yes")["conversation"]
    assert "no result" in back["why"]
    assert stage.files() == {"made.txt": "b\n"}
    assert {**stage.transcripts(), **before} == stage.transcripts(), "an original was touched"
    (asked,) = stage.claude([Reply("On.")] * 4, "--resume", back["session"], "go on")
    known = said(original[1])
    assert said(asked)[: len(known)] == known
    assert [each["tool_use_id"] for each in results(asked)] == ["toolu_1", "toolu_2"]
    assert "unknown" in json.dumps(results(asked)[1])

    back = stage.hardsave("rewind", saved[-1].id, "--yes")["conversation"]
    assert back["why"] == ""
    assert stage.files() == {"moved.txt": "b\n"}
    (asked,) = stage.claude([Reply("On.")] * 4, "--resume", back["session"], "go on")
    known = said(original[2])
    assert said(asked)[: len(known)] == known
    assert "Done." in json.dumps(said(asked)[len(known) :])


def test_without_hooks_a_session_that_is_resumed_is_read_from_its_beginning(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.claude([Reply("One.")], "the first prompt")
    (old,) = stage.transcripts()
    stage.claude([Reply("Other.")], "of another session")
    with ScriptedModel([Reply("One."), Reply("Two.")]) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        command = stage.command("--resume", Path(old).stem, "the second prompt")
        assert stage.run(stage.watched(command), url).returncode == 0
    last = stage.saved()[-1]
    assert last.metadata["session"] == Path(old).stem
    assert last.lines == Path(old).read_text().removesuffix("\n")
    assert "the first prompt" in last.lines
    assert "the second prompt" in last.lines


def test_conversations_of_two_agents_in_one_directory_are_not_mixed(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    wait = (bash("echo $$ > pid; exec sleep 600", "toolu_1"),)
    with (
        ScriptedModel([Reply(calls=wait)]) as model,
        stage.started(stage.command("other"), {"ANTHROPIC_BASE_URL": model.anthropic_url}),
    ):
        stage.wait_for(stage.project / "pid")
        with ScriptedModel([Reply("Done.")]) as other:
            url = {"ANTHROPIC_BASE_URL": other.anthropic_url}
            done = stage.run(stage.watched(stage.command("do it")), url)
            assert done.returncode == 0
        saved = stage.saved()
        why = "their conversations cannot be told apart"
        stage.wait_until(lambda: why in stage.run([*HARDSAVE.split(), "doctor"], {}).stdout)
        assert why in stage.run([*HARDSAVE.split(), "log", "--timeline", "t"], {}).stderr
    stage.end_tool()
    assert "NOT saved: another Claude Code works here" in done.stderr
    assert {each.lines for each in saved} == {""}
    (told,) = (each.metadata for each in saved if "conversation" in each.metadata)
    assert "cannot be told apart" in told["conversation"]


def test_an_agent_that_a_tool_starts_is_another(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    with ScriptedModel([Reply("An inner answer.")]) as inner:
        wait = UNTIL_HEARD.replace("%s", "first")
        other = f"ANTHROPIC_BASE_URL={inner.anthropic_url} {CLAUDE} -p inner > out.txt; sleep 1; "
        call = bash(wait + other + "echo b > made.txt", "toolu_1")
        with ScriptedModel([Reply("I begin.", (call,)), Reply("Done.")]) as model:
            url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
            assert stage.run(stage.watched(stage.command("do it")), url).returncode == 0
    saved = stage.saved()
    assert stage.files() == {"made.txt": "b\n", "out.txt": "An inner answer.\n"}
    assert "Done." in saved[-1].lines
    assert len({each.metadata["session"] for each in saved if each.lines}) == 1


def test_with_hooks_the_transcript_is_not_read(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    with ScriptedModel([Reply(calls=(bash("echo b > b; sleep 1", "t"),)), Reply("Done.")]) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        done = stage.run(stage.watched(stage.command("do it")), url)
        assert "writes it down" not in done.stderr
    saved = stage.saved()
    assert any("Done." in each.lines for each in saved)
    assert all("hook" in each.metadata for each in saved if "session" in each.metadata)


# Hooks that are installed and not called


@pytest.mark.parametrize(
    "options", [("--setting-sources", "project,local"), NO_HOOKS], ids=["sources", "disabled"]
)
def test_where_installed_hooks_are_not_called_the_transcript_is_read(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    stage = ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply("I write.", (bash("echo b > made.txt; sleep 1", "t1"),)), Reply("Done.")]
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        done = stage.run(stage.watched(stage.command(*options, "do it")), url)
        assert done.returncode == 0, done
    last = stage.saved()[-1]
    assert "do it" in last.lines
    assert "Done." in last.lines
    assert last.metadata.get("hook") is None


# Hooks and a `hardsave run`: which call has made a change


def test_with_hooks_and_run_each_change_is_told_of_the_call_that_made_it(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    for number in range(6):
        (stage.project / f"f{number}").write_text("one\n")
    stage.hardsave("init", "--yes")
    commands = [f"rm f{number}; sleep {0.3 * number}; touch g{number}" for number in range(6)]
    calls = [Reply(calls=(bash(each, f"t{at}"),)) for at, each in enumerate(commands)]
    edited = {"file_path": str(stage.project / "new.txt"), "content": "new\n"}
    script = [*calls, Reply(calls=(Call("Write", edited, id="t9"),)), Reply("Done.")]
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        assert stage.run(stage.watched(stage.command("do it")), url).returncode == 0
    made = {path: f"t{path[1:]}" for path in ("f0", "f1", "f2", "f3", "f4", "f5")}
    made |= {path.replace("f", "g"): id for path, id in made.items()} | {"new.txt": "t9"}
    stage.check_told(made)


def test_a_conversation_is_resumed_where_its_project_was_moved_to(tmp_path: Path) -> None:
    stage = ClaudeStage(tmp_path)
    (stage.project / "a.txt").write_text("one\n")
    stage.hardsave("init", "--yes")
    stage.claude([Reply("A blue door.")] * 4, "remember the door")
    (path,) = stage.transcripts()
    session = Path(path).stem
    old, stage.project = stage.project, stage.project.rename(stage.project.with_name("moved"))
    done = stage.hardsave("move", str(old), str(stage.project))
    assert done["conversations"][0]["sessions"] == [session]
    (asked,) = stage.claude([Reply("On.")] * 4, "--resume", session, "go on")
    assert "A blue door." in str(said(asked))
    (line,) = stage.hardsave("timelines")
    assert line["name"] == f"claude-{session}"
