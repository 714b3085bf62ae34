"""The real Codex, offline, against a model that says what a script says."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hardsave.agents.codex import hooks as codex_hooks
from hardsave.agents.settings import places
from hardsave.runtime.scripted import Call, Reply, Script, ScriptedModel
from tests.integration.agents.stage import (
    HARDSAVE,
    UNTIL_ANSWERED,
    UNTIL_HEARD,
    UNTIL_SAVED,
    Stage,
)
from tests.integration.cli.screen import Screen

CODEX = os.environ.get("HARDSAVE_TEST_CODEX") or shutil.which("codex")
pytestmark = pytest.mark.skipif(CODEX is None, reason="Codex is not installed")

PATCH = "*** Begin Patch\n*** Update File: edited.txt\n@@\n-one\n+two\n*** End Patch\n"
PLAIN, CODED = "gpt-5.5", "gpt-6.1-sol"  # the one calls tools, the other writes scripts that do


class CodexStage(Stage):
    """Codex with our hooks, which its user has trusted."""

    def __init__(self, folder: Path, model: str = PLAIN) -> None:
        super().__init__(folder, "codex", "CODEX_HOME")
        (self.project / "edited.txt").write_text("one\n")
        self.model = model
        self.hooks = self.config / "hooks.json"

    def codex(self, script: Script, *arguments: str, trusted: bool = True) -> list[Any]:
        """Let it work through a script; what it asked the model."""
        with ScriptedModel(script) as model:
            self.configure(model.openai_url, trusted=trusted)
            done = self.run(self.command(*arguments), {})
            assert done.returncode == 0, done
            return [each.body for each in model.requests]

    def resumed(self, script: Script, session: str) -> Any:
        """Go on with a session, and see that it is this one and no other."""
        before = self.transcripts()
        (asked,) = self.codex(script, "-c", "features.hooks=false", "resume", session, "go on")
        assert asked["prompt_cache_key"] == session
        after = self.transcripts()
        assert {path for path in after if after[path] != before[path]} == {
            path for path in after if path.endswith(f"-{session}.jsonl")
        }
        return asked

    def transcripts(self) -> dict[str, str]:
        return {path: hash for path, hash in self.kept().items() if path.endswith(".jsonl")}

    def command(self, *arguments: str) -> list[str]:
        assert CODEX is not None
        options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return [CODEX, "exec", *options, *arguments]

    def configure(self, url: str, *, trusted: bool = True) -> None:
        text = (
            f'model = "{self.model}"\nmodel_provider = "local"\n'
            f'[model_providers.local]\nname = "local"\nbase_url = "{url}"\n'
            'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
            f'[projects."{self.project}"]\ntrust_level = "trusted"\n'
            "[features]\ndaemon_auto_start = false\n"  # at a terminal it would leave one behind
            '[notice.model_migrations]\n"gpt-5.5" = "gpt-6-sol"\n'  # as if declined
        )
        for place in places(self.hooks.read_text()) if trusted else ():
            text += f'[hooks.state."{codex_hooks.key(str(self.hooks), place)}"]\n'
            text += f'trusted_hash = "{codex_hooks.fingerprint(place)}"\n'
        (self.config / "config.toml").write_text(text)

    def rewind(self, checkpoint: Any) -> Any:
        """Go back, and see that one transcript is new in the folder of Codex, and that is all; or
        that the original is gone on with."""
        before = self.kept()
        done = self.hardsave("rewind", checkpoint["id"], "--yes")
        after = self.kept()
        assert {path: after.get(path) for path in before} == before
        (own,) = (path for path in after if f"-{done['conversation']['session']}.jsonl" in path)
        assert after.keys() - before.keys() == {own} - before.keys()
        return done["conversation"]


def shell(command: str, id: str) -> Call:
    return Call("exec_command", {"cmd": command, "yield_time_ms": 30000}, id=id)


def asked_with(request: dict[str, Any]) -> dict[str, Any]:
    """A request without the ids that Codex makes out of the session's."""
    known = [
        {key: value for key, value in item.items() if key != "id"}
        if item.get("role") == "developer"
        else item
        for item in request["input"]
    ]
    return {
        **{k: v for k, v in request.items() if k not in ("client_metadata", "prompt_cache_key")},
        "input": known,
    }


def _is_of_tools(item: dict[str, Any]) -> bool:
    """Whether Codex says that a tool is gone: without a terminal it has others."""
    return item.get("role") == "developer" and "Removed deferred tool" in json.dumps(item)


def check_goes_on(original: dict[str, Any], resumed: dict[str, Any]) -> list[Any]:
    """The same request as then, and only the new prompt behind it; what is new."""
    then, now = asked_with(original), asked_with(resumed)
    count = len(then["input"])
    assert now["input"][:count] == then["input"]
    assert {**now, "input": None} == {**then, "input": None}
    new: list[Any] = now["input"][count:]
    assert new[-1]["content"] == [{"type": "input_text", "text": "go on"}]
    return new[:-1]


def test_files_and_conversation_come_back_together_at_every_boundary(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    script = [
        Reply("I look.", (shell("cat edited.txt", "c1"),)),
        Reply(calls=(Call("apply_patch", {"input": PATCH}, id="c2"),)),
        Reply(
            calls=(
                shell("echo b > made.txt", "c3"),
                shell(UNTIL_SAVED % 3 + "rm edited.txt", "c4"),
            )
        ),
        Reply("Done."),
    ]
    stage.hardsave("init", "--yes")
    original = stage.codex(script, "do it")
    assert stage.files() == {"made.txt": "b\n"}

    saved = stage.checkpoints()
    one, two = {"edited.txt": "one\n"}, {"edited.txt": "two\n"}
    both, end = {**two, "made.txt": "b\n"}, {"made.txt": "b\n"}
    expected = [
        ("PostToolUse", "c4", end, 3),
        ("PostToolUse", "c3", both, 3),
        ("PreToolUse", "c3", two, 2),
        ("PostToolUse", "c2", two, 2),
        ("PreToolUse", "c2", one, 1),
        ("PostToolUse", "c1", one, 1),
        ("PreToolUse", "c1", one, 0),
        ("SessionEnd", None, end, 3),  # it goes on with the original
        ("Stop", None, end, 3),
    ]
    for hook, call, files, request in expected:
        back = stage.rewind(saved[hook, call])
        assert stage.files() == files, (hook, call)
        assert ("1 more call" in back["why"]) == ((hook, call) == ("PostToolUse", "c3"))
        asked = stage.resumed([*script[:request], *[Reply("On.")] * 4], back["session"])
        new = check_goes_on(original[request], asked)
        answers = ["Done."] if hook in ("Stop", "SessionEnd") else []
        assert [item["content"][0]["text"] for item in new] == answers

    source = saved["Stop", None]["metadata"]["session"]
    assert check_goes_on(original[3], stage.resumed([*script, *[Reply("On.")] * 4], source))

    before = stage.kept()
    done = stage.hardsave("rewind", saved["UserPromptSubmit", None]["id"], "--yes")
    assert done["conversation"]["command"] == "codex"  # nothing had been said yet
    assert stage.files() == one
    assert stage.kept() == before


def test_tools_that_a_script_calls_come_back_too(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path, CODED)
    wait = json.dumps(UNTIL_SAVED % 2 + "rm edited.txt")
    code = f"""
        await tools.apply_patch({json.dumps(PATCH)});
        text("patched");
        const run = (cmd) => tools.exec_command({{cmd, yield_time_ms: 30000}});
        text(JSON.stringify(await Promise.all([run("echo b > made.txt"), run({wait})])));
    """
    script = [
        Reply("I do.", (Call("exec", {"input": code}, id="c1"),)),
        *[Reply("On.")] * 4,
    ]
    stage.hardsave("init", "--yes")
    original = stage.codex(script, "do it")
    (line,) = stage.hardsave("timelines")
    saved = stage.hardsave("log", "--timeline", line["name"])
    patched = {"edited.txt": "two\n"}
    boundaries = [
        each
        for each in reversed(saved)
        if each["metadata"]["hook"] in ("PreToolUse", "PostToolUse")
    ]
    first, second, *_, last = boundaries
    for checkpoint, files, request, later in (
        (first, {"edited.txt": "one\n"}, 0, False),
        (second, patched, 1, True),
        (last, {"made.txt": "b\n"}, 1, False),
    ):
        back = stage.rewind(checkpoint)
        assert stage.files() == files
        assert ("more call" in back["why"]) == later
        asked = stage.resumed([*script[:request], *[Reply("On.")] * 4], back["session"])
        assert check_goes_on(original[request], asked) == []


def test_before_a_patch_that_has_waited_for_a_command_both_are_told_of(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    patch = Call("apply_patch", {"input": PATCH}, id="c2")
    script = [Reply(calls=(shell("echo b > made.txt", "c1"), patch)), Reply("Done.")]
    stage.hardsave("init", "--yes")
    original = stage.codex(script, "do it")
    back = stage.rewind(stage.checkpoints()["PreToolUse", "c2"])
    assert stage.files() == {"edited.txt": "one\n", "made.txt": "b\n"}
    assert "1 more call" in back["why"]
    assert check_goes_on(original[1], stage.resumed([Reply("On.")] * 4, back["session"])) == []


def test_a_call_that_was_killed_is_answered_once_and_truly(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    calls = (
        shell("echo b > made.txt", "c1"),
        shell(UNTIL_SAVED % 1 + "echo $$ > pid; exec sleep 600", "c2"),
    )
    with ScriptedModel([Reply(calls=calls)]) as model:
        stage.configure(model.openai_url)
        with stage.started(stage.command("do it"), {}):
            stage.wait_for(stage.project / "pid")
            stage.wait_until(lambda: '"function_call_output"' in stage.story())
    stage.end_tool()
    back = stage.rewind(stage.checkpoints()["PostToolUse", "c1"])
    assert back["why"].startswith("1 call has no result")
    asked = stage.resumed([Reply("On.")] * 3, back["session"])
    results = {
        item["call_id"]: item["output"]
        for item in asked["input"]
        if item["type"] == "function_call_output"
    }
    assert set(results) == {"c1", "c2"}
    assert "exited with code 0" in results["c1"]
    assert "unknown" in results["c2"]
    assert len(results) == sum("output" in item["type"] for item in asked["input"])


def test_what_a_tool_did_before_codex_was_killed_comes_back_with_the_truth_about_it(
    tmp_path: Path,
) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    call = shell("echo b > made.txt; echo $$ > pid; exec sleep 600", "c1")
    with ScriptedModel([Reply(calls=(call,))]) as model:
        stage.configure(model.openai_url)
        watched = [*HARDSAVE.split(), "run", "--timeline", "mine", "--"]
        with stage.started([*watched, *stage.command("do it")], {}):
            stage.wait_for(stage.project / "pid")
    stage.end_tool()

    def ended() -> Any:
        """What the process beside Codex saved last."""
        newest, *_ = stage.hardsave("log", "--timeline", "mine")
        return newest if newest["status"] == "ended" else None

    stage.wait_until(lambda: ended() is not None)
    last = ended()
    (stage.project / "made.txt").unlink()
    back = stage.rewind(last)
    assert "made.txt" in stage.files()
    assert "1 call has no result" in back["why"]
    asked = stage.resumed([Reply("On.")] * 3, back["session"])
    (result,) = (item for item in asked["input"] if "output" in item)
    assert result["call_id"] == "c1"
    assert "unknown" in result["output"]


def test_a_session_that_goes_on_saves_on_the_same_timeline_and_can_go_back_again(
    tmp_path: Path,
) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply(calls=(shell("echo b > made.txt", "c1"),)), Reply("Done.")]
    stage.codex(script, "do it")
    first = stage.rewind(stage.checkpoints()["PostToolUse", "c1"])["session"]
    again = [*script[:1], Reply(calls=(shell("echo c > more.txt", "c2"),)), Reply("On.")]
    original = stage.codex(again, "resume", first, "go on")
    saved = stage.checkpoints()
    assert saved["PostToolUse", "c2"]["metadata"]["session"] == first
    back = stage.rewind(saved["PostToolUse", "c2"])
    assert stage.files() == {"edited.txt": "one\n", "made.txt": "b\n", "more.txt": "c\n"}
    asked = stage.resumed([*again[:2], Reply("On.")], back["session"])
    assert check_goes_on(original[1], asked) == []

    before_the_prompt = stage.rewind(saved["UserPromptSubmit", None])
    assert stage.files() == {"edited.txt": "one\n", "made.txt": "b\n"}
    asked = stage.resumed([*again[:1], Reply("On.")], before_the_prompt["session"])
    unasked = {**original[0], "input": original[0]["input"][:-1]}
    assert check_goes_on(unasked, asked) == []


def test_a_conversation_that_codex_has_compacted_goes_back_to_either_side(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    much, more = shell("seq 1 6000; echo b > made.txt", "c1"), shell("echo c > more.txt", "c2")
    # The turns are counted anew when a summary stands for what was said.
    script: Script = [
        [Reply(calls=(much,)), Reply(calls=(more,))],
        [Reply("It is about files."), Reply("Done.")],
    ]
    stage.hardsave("init", "--yes")
    original = stage.codex(script, "-c", "model_auto_compact_token_limit=12000", "do it")
    _, asked_for_a_summary, before, after = original
    saved = stage.checkpoints()

    back = stage.rewind(saved["PreToolUse", "c2"])
    assert stage.files().keys() == {"edited.txt", "made.txt"}
    assert check_goes_on(before, stage.resumed([Reply("On.")] * 4, back["session"])) == []

    back = stage.rewind(saved["PostToolUse", "c2"])
    assert stage.files().keys() == {"edited.txt", "made.txt", "more.txt"}
    assert check_goes_on(after, stage.resumed([Reply("On.")] * 4, back["session"])) == []

    back = stage.rewind(saved["PostToolUse", "c1"])
    assert stage.files().keys() == {"edited.txt", "made.txt"}
    asked = stage.resumed([Reply("On.")] * 4, back["session"])
    then = {**asked, "input": asked_for_a_summary["input"][:-1]}
    assert check_goes_on(then, asked) == []


def test_a_session_that_codex_forked_goes_back_too(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    script = [Reply("First."), Reply(calls=(shell("echo b > made.txt", "c1"),)), Reply("Done.")]
    stage.hardsave("init", "--yes")
    stage.codex(script, "do it")
    (source,) = stage.transcripts()
    original = stage.codex(script, "fork", source.removesuffix(".jsonl")[-36:], "and more")
    forked = next(
        line["name"]
        for line in stage.hardsave("timelines")
        if not line["name"].endswith(source.removesuffix(".jsonl")[-36:])
    )
    saved = {each["metadata"]["hook"]: each for each in stage.hardsave("log", "--timeline", forked)}
    for hook, request, known in (("PostToolUse", 1, None), ("UserPromptSubmit", 0, -1)):
        back = stage.rewind(saved[hook])
        asked = stage.resumed([Reply("On.")] * 4, back["session"])
        then = {**original[request], "input": original[request]["input"][:known]}
        assert check_goes_on(then, asked) == []


def test_a_session_that_its_user_has_archived_goes_back_too(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    script = [Reply(calls=(shell("echo b > made.txt", "c1"),)), Reply("Done.")]
    stage.hardsave("init", "--yes")
    original = stage.codex(script, "do it")
    saved = stage.checkpoints()["PostToolUse", "c1"]
    assert CODEX is not None
    assert stage.run([CODEX, "archive", saved["metadata"]["session"]], {}).returncode == 0
    back = stage.rewind(saved)
    assert back["why"] == ""
    assert check_goes_on(original[1], stage.resumed([Reply("On.")] * 4, back["session"])) == []


def test_hooks_that_are_not_trusted_do_not_run_and_doctor_says_so(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    stage.codex([Reply("Hello.")], "do it", trusted=False)
    assert stage.hardsave("timelines") == []
    found = {each["what"]: each for each in stage.hardsave("doctor")}["Codex"]
    assert found["level"] == "warning"
    assert "not trusted" in found["message"]


def test_a_transcript_that_is_not_as_known_is_refused_and_files_come_back(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply(calls=(shell("echo b > made.txt", "c1"),)), Reply("Done.")]
    stage.codex(script, "do it")
    target = stage.checkpoints()["PreToolUse", "c1"]
    (transcript,) = stage.config.glob("sessions/*/*/*/*.jsonl")
    transcript.write_text(transcript.read_text().replace("do it", "do this"))
    before = stage.kept()
    done = stage.run([*HARDSAVE.split(), "rewind", target["id"], "--yes"], {})
    assert done.returncode == 1
    assert "the conversation was left as it is" in done.stderr
    assert stage.files() == {"edited.txt": "one\n"}
    assert stage.kept() == before


def test_at_a_terminal_its_user_trusts_the_hooks_and_goes_back(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply("I write.", (shell("echo b > made.txt", "c1"),)), Reply("Done.")]
    assert CODEX is not None
    command = [CODEX, "--dangerously-bypass-approvals-and-sandbox"]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url, trusted=False)
        _trust_and_do(stage, [*command, "do it"])
        assert {each["what"]: each for each in stage.hardsave("doctor")}["Codex"]["level"] == "ok"
        saved = stage.checkpoints()["PostToolUse", "c1"]
        back = stage.rewind(saved)
        with stage.screen([*command, "resume", back["session"], "go on"], {}) as screen:
            screen.wait_for("Done.")
            _quit(screen)
        told = [each.body for each in model.requests]
    (then,) = (each for each in told if _is_main(each, saved["metadata"]["session"], 1))
    (now,) = (each for each in told if _is_main(each, back["session"], 1))
    assert check_goes_on(then, now) == []


def _trust_and_do(stage: CodexStage, command: list[str]) -> None:
    """Codex gives its terminal one second to hand over what was typed too early, and ends where a
    busy machine takes longer. Its user starts it again."""
    for _ in range(5):
        with stage.screen(command, {}) as screen:
            screen.wait_for("Hooks need review")
            try:
                screen.wait_for("› 2. Trust all", key="2")  # noqa: RUF001 # as Codex shows it
            except AssertionError:
                if "timed out discarding" not in screen.text:
                    raise
                continue
            screen.wait_for("Hooks need review", gone=True, key="\r")
            screen.wait_for("Done.")
            _quit(screen)
            return
    pytest.fail("Codex ends again and again before its hooks can be trusted")


def test_at_a_terminal_its_user_takes_codex_itself_back_and_it_goes_back_all_the_same(
    tmp_path: Path,
) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    calls = [shell(f"echo {n} > made-{n}.txt", f"c{n}") for n in (1, 2, 3)]
    script: Script = [
        Reply(calls=(calls[0],)),
        Reply("First."),
        [Reply(calls=(calls[1],)), Reply(calls=(calls[2],))],
        [Reply("Second."), Reply("Third.")],
        Reply("On."),
    ]
    assert CODEX is not None
    command = [CODEX, "--dangerously-bypass-approvals-and-sandbox", "do it"]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url)
        with stage.screen(command, {}) as screen:
            _wait_for_turns(stage, screen, 1)
            screen.type("and more")
            screen.wait_for("and more")
            screen.type("\r")
            _wait_for_turns(stage, screen, 2)
            screen.wait_for("↵ rewind", key="\x1b")
            screen.wait_for("Conversation reverted", key="\r")
            screen.type(" again")
            screen.wait_for("and more again")
            screen.type("\r")
            screen.wait_for("Third.")
            _quit(screen)
        told = [each.body for each in model.requests]
    saved = stage.checkpoints()
    for call, files in (("c3", ["made-1.txt", "made-2.txt", "made-3.txt"]), ("c2", None)):
        (then,) = (each for each in told if _last_result(each) == call)
        back = stage.rewind(saved["PostToolUse", call])
        assert list(stage.files())[1:] == (files or ["made-1.txt", "made-2.txt"])
        asked = stage.resumed([Reply("On.")] * 6, back["session"])
        known = asked_with(then)["input"]
        assert [each for each in asked_with(asked)["input"] if not _is_of_tools(each)][:-1] == known


def test_at_a_terminal_its_user_answers_a_question_and_goes_back_behind_it(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    colours = [{"label": name, "description": "A colour"} for name in ("Red", "Blue")]
    question = {"id": "q", "header": "Colour", "question": "Which one?", "options": colours}
    script = [
        Reply(calls=(Call("request_user_input", {"questions": [question]}, id="c1"),)),
        Reply(calls=(shell("echo b > made.txt", "c2"),)),
        Reply("Done."),
    ]
    assert CODEX is not None
    command = [CODEX, "--dangerously-bypass-approvals-and-sandbox"]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url)
        with stage.screen(command, {}) as screen:
            screen.wait_for("Plan mode", key="\x1b[Z")
            screen.type("do it")
            screen.wait_for("do it")
            screen.type("\r")
            screen.wait_for("Which one?")
            screen.wait_for("Done.", key="\r")
            _quit(screen)
        saved = stage.checkpoints()
        session = saved["PostToolUse", "c2"]["metadata"]["session"]
        told = [each.body for each in model.requests]
    for call, results in (("c1", 1), ("c2", 2)):
        (then,) = (each for each in told if _is_main(each, session, results))
        back = stage.rewind(saved["PostToolUse", call])
        assert back["why"] == ""
        asked = stage.resumed([Reply("On.")] * 4, back["session"])
        known = asked_with(then)["input"]  # the tools are others without a terminal
        assert asked_with(asked)["input"][: len(known)] == known


def _wait_for_turns(stage: CodexStage, screen: Screen, count: int) -> None:
    """Until so many have ended: what is typed before belongs to the one that is about to."""

    def have_ended() -> bool:
        screen._look()
        return screen.text.count("Worked for") == count

    stage.wait_until(have_ended)


def _last_result(request: dict[str, Any]) -> str | None:
    last = request["input"][-1]
    return last["call_id"] if last["type"] == "function_call_output" else None


def test_at_a_terminal_its_user_and_not_the_model_is_told_that_nothing_is_saved(
    tmp_path: Path,
) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    assert CODEX is not None
    command = [CODEX, "--dangerously-bypass-approvals-and-sandbox", "do it"]
    with ScriptedModel([Reply(calls=(shell("echo b", "c1"),)), Reply("It is done.")]) as model:
        stage.configure(model.openai_url)
        with stage.screen(command, stage.broken()) as screen:
            screen.wait_for("step is NOT saved")
            screen.wait_for("It is done.")
            _quit(screen)
        assert "NOT saved" not in json.dumps([each.body for each in model.requests])


def _quit(screen: Screen) -> None:
    screen.type("/quit")
    screen.wait_for("/quit")
    screen.type("\r")
    assert screen.ended() == 0


def _is_main(request: dict[str, Any], session: str, calls: int) -> bool:
    """At a terminal Codex also asks for a title."""
    results = sum(item["type"] == "function_call_output" for item in request["input"])
    return (request["prompt_cache_key"], results) == (session, calls)


def test_the_first_hook_of_a_session_leaves_a_daemon_that_ends_with_it(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [Reply(calls=(shell(UNTIL_ANSWERED + "echo b >> made", f"c{n}"),)) for n in "ab"]
    stage.codex([*script, Reply("Done.")], "do it")
    stage.wait_until(lambda: stage.daemons() == [])
    hooks = [each["metadata"]["hook"] for each in stage.hardsave("log")][::-1]
    tools = ["PreToolUse", "PostToolUse"] * 2
    expected = ["UserPromptSubmit", *tools, "Stop", "SessionEnd"]
    assert hooks == expected, stage.story()
    assert stage.answered() in ([len(hooks)], [len(hooks) - 1])  # the second may be too early


# Without hooks, beside a `hardsave run`


@pytest.mark.parametrize("is_installed", [False, True])
def test_without_hooks_that_run_the_conversation_is_read_along_and_comes_back(
    tmp_path: Path, is_installed: bool
) -> None:
    stage = CodexStage(tmp_path)
    if is_installed:
        stage.hardsave("init", "--yes")  # and not trusted
    wait = UNTIL_HEARD.replace("%s", "second")
    script = [
        Reply("I write.", (shell("echo b > made.txt", "c1"),)),
        Reply("I wait.", (shell(wait + "rm made.txt", "c2"),)),
        Reply("Done."),
    ]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url, trusted=False)
        done = stage.run(stage.watched(stage.command("do it")), {})
        assert done.returncode == 0, done
        assert "as Codex writes it down" in done.stderr
        original = [each.body for each in model.requests]
    saved = stage.saved()
    midst = next(each for each in saved if '"c2"' in each.lines)  # no file had changed
    back = stage.rewind({"id": midst.id})
    assert "no result" in back["why"]
    assert stage.files() == {"edited.txt": "one\n", "made.txt": "b\n"}
    script = [Reply("On.")] * 4
    (asked,) = stage.codex(script, "resume", back["session"], "go on", trusted=False)
    then, now = (asked_with(each)["input"] for each in (original[1], asked))
    assert now[: len(then)] == then
    (truth,) = (each for each in now[len(then) :] if each["type"] == "function_call_output")
    assert truth["call_id"] == "c2"
    assert "is unknown" in truth["output"]

    back = stage.rewind({"id": saved[-1].id})
    assert back["why"] == ""
    assert stage.files() == {"edited.txt": "one\n"}
    (asked,) = stage.codex(script, "resume", back["session"], "go on", trusted=False)
    assert "Done." in json.dumps(check_goes_on(original[2], asked))


# Hooks that are installed and not called


@pytest.mark.parametrize("is_trusted", [True, False], ids=["switched off", "untrusted"])
def test_where_installed_hooks_are_not_called_the_transcript_is_read(
    tmp_path: Path, *, is_trusted: bool
) -> None:
    stage = CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    options = ("-c", "features.hooks=false") if is_trusted else ()
    script = [Reply("I write.", (shell("echo b > made.txt; sleep 1", "c1"),)), Reply("Done.")]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url, trusted=is_trusted)
        done = stage.run(stage.watched(stage.command(*options, "do it")), {})
        assert done.returncode == 0, done
    last = stage.saved()[-1]
    assert "do it" in last.lines
    assert "Done." in last.lines
    assert last.metadata.get("hook") is None


# Hooks and a `hardsave run`: which call has made a change


def test_with_hooks_and_run_each_change_is_told_of_the_call_that_made_it(tmp_path: Path) -> None:
    stage = CodexStage(tmp_path)
    for number in range(4):
        (stage.project / f"f{number}").write_text("one\n")
    stage.hardsave("init", "--yes")
    commands = [f"rm f{number}; sleep {0.5 * number}; touch g{number}" for number in range(4)]
    calls = [Reply(calls=(shell(each, f"c{at}"),)) for at, each in enumerate(commands)]
    script = [
        *calls,
        Reply(calls=(Call("apply_patch", {"input": PATCH}, id="c9"),)),
        Reply("Done."),
    ]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url)
        assert stage.run(stage.watched(stage.command("do it")), {}).returncode == 0
    made = {f"{kind}{number}": f"c{number}" for kind in "fg" for number in range(4)}
    stage.check_told({**made, "edited.txt": "c9"})
