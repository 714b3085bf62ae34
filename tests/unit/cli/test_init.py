import errno
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from hardsave.agents import install
from hardsave.agents import settings as settings_of_agents
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex import hooks as codex_hooks
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.spec import MARK
from hardsave.cli.errors import Exit
from hardsave.daemon import save, spool
from hardsave.errors import Conflict
from hardsave.vault import findings
from tests.unit.cli.conftest import Run


@pytest.fixture
def settings(tmp_path: Path, project: Path) -> Path:
    return tmp_path / "claude" / "settings.json"


def test_init_shows_the_change_writes_it_and_takes_it_back(run: Run, settings: Path) -> None:
    before = json.dumps({"model": "opus"}, indent=2) + "\n"
    settings.write_text(before)
    settings.chmod(0o640)
    ran = run("init", "--yes")
    assert ran.code == Exit.DONE
    assert '+    "PostToolBatch": [' in ran.err
    command = json.loads(settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert shlex.split(command)[0] == sys.executable
    assert settings.stat().st_mode & 0o777 == 0o640
    assert "already" in run("init").out  # nothing to ask
    assert run("init", "--undo", "--yes", "--json").data[0]["changed"] is True
    assert settings.read_text() == before


def test_a_command_inside_of_the_agents_comes_with_the_hooks_and_goes_with_them(
    run: Run, settings: Path, tmp_path: Path
) -> None:
    (tmp_path / "codex").mkdir()
    command = settings.parent / "commands" / "hardsave-rewind.md"
    skill = tmp_path / "codex" / "skills" / "hardsave-rewind" / "SKILL.md"
    assert f"/hardsave-rewind installed as {command}" in run("init", "--yes").out
    assert f"!`{shlex.quote(sys.executable)} " in command.read_text()
    assert "hardsave rewind --yes REF" in skill.read_text()
    command.write_text(command.read_text().replace(sys.executable, "/gone/python"))
    told = {each["what"]: each["message"] for each in run("doctor", "--json").data}
    assert told["Claude Code"].startswith("/hardsave-rewind inside of it is of another hardsave")
    assert f"+!`{shlex.quote(sys.executable)} " in run("init", "--yes").err, "it is renewed"
    assert "/hardsave-rewind is there already" in run("init", "--yes").out
    assert run("init", "--undo", "--yes").code == Exit.DONE
    assert not command.exists()
    assert not skill.parent.exists()
    assert not list(settings.parent.iterdir())


def test_a_command_that_is_not_ours_is_left_as_it_is(run: Run, settings: Path) -> None:
    (command := settings.parent / "commands" / "hardsave-rewind.md").parent.mkdir()
    command.write_text("mine\n")
    for undo in ([], ["--undo"]):
        ran = run("init", "--yes", *undo)
        assert f"left as it is, because it is not ours: {command}" in ran.out
        assert command.read_text() == "mine\n"


def test_a_skill_is_installed_if_it_is_asked_for_renewed_and_removed(
    run: Run, settings: Path, tmp_path: Path
) -> None:
    (tmp_path / "codex").mkdir()
    folders = [home / "skills" / "hardsave" for home in (settings.parent, tmp_path / "codex")]
    run("init", "--yes")
    assert not any(folder.exists() for folder in folders)
    shown = run("init", "--skill")
    assert (shown.code, folders[0].exists()) == (Exit.USAGE, False)
    assert f"new: {folders[0] / 'SKILL.md'}" in shown.err

    assert f"the skill is installed: {folders[1] / 'SKILL.md'}" in run("init", "--skill", "-y").out
    wanted = ["SKILL.md", "references/commands.md", "references/python.md"]
    for folder in folders:
        found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.md"))
        assert found == [*wanted, "references/recovery.md"]
        assert f"type `{shlex.quote(sys.executable)} " in (folder / "SKILL.md").read_text()
    assert "the skill is there already" in run("init", "--skill").out

    (page := folders[0] / "references" / "commands.md").write_text(f"<!-- {MARK} -->\nold\n")
    told = {each["what"]: each["message"] for each in run("doctor", "--json").data}
    assert told["Claude Code"].startswith("our skill inside of it is of another hardsave")
    changed = [each for each in run("init", "--yes", "--json").data if each["changed"]]
    assert [(each["part"], each["path"]) for each in changed] == [("skill", str(page))]
    assert "before-refactor" in page.read_text()

    assert f"the skill is removed: {folders[0] / 'SKILL.md'}" in run("init", "--undo", "-y").out
    assert not list(settings.parent.iterdir())
    assert not list((tmp_path / "codex").iterdir())


def test_a_skill_and_pages_of_it_that_are_not_ours_are_left_as_they_are(
    run: Run, settings: Path
) -> None:
    folder = settings.parent / "skills" / "hardsave"
    (page := folder / "references" / "commands.md").parent.mkdir(parents=True)
    page.write_text("mine\n")
    run("init", "--skill", "--yes")
    assert "name: hardsave" in (folder / "SKILL.md").read_text()
    run("init", "--undo", "--yes")
    assert [path for path in folder.rglob("*") if path.is_file()] == [page]
    assert page.read_text() == "mine\n"

    (folder / "SKILL.md").write_text("name: hardsave\n")
    ran = run("init", "--skill", "--yes")
    assert f"left as it is, because it is not ours: {folder / 'SKILL.md'}" in ran.out
    assert not (folder / "references" / "python.md").exists()
    assert (folder / "SKILL.md").read_text() == "name: hardsave\n"


def test_an_install_of_a_skill_that_was_cut_short_is_removed_or_ended(
    run: Run, settings: Path
) -> None:
    run("init", "--skill", "--yes")
    (main := settings.parent / "skills" / "hardsave" / "SKILL.md").unlink()
    run("init", "--yes")
    assert main.exists()
    main.unlink()
    run("init", "--undo", "--yes")
    assert not main.parent.exists()


@pytest.mark.parametrize("beside", ["--project", "--undo"])
def test_a_skill_is_of_a_user_and_removed_with_the_rest(
    beside: str, run: Run, settings: Path
) -> None:
    ran = run("init", "--skill", beside, "--yes")
    assert ran.code == Exit.USAGE
    assert f"--skill means nothing beside {beside}" in ran.err
    assert not list(settings.parent.iterdir())


def test_settings_that_init_has_made_go_with_its_hooks(run: Run, settings: Path) -> None:
    run("init", "--yes")
    ours = settings.read_text()
    ran = run("init", "--undo", "--yes")
    assert (ran.code, settings.exists()) == (Exit.DONE, False)
    assert f"removed from {settings}" in ran.out
    for theirs in (ours.replace("{", '{\n  "model": "opus",', 1), ours.replace("\n", "\r\n")):
        settings.write_bytes(theirs.encode())
        run("init", "--undo", "--yes")
        assert "hooks" not in json.loads(settings.read_text())


def test_settings_that_are_a_link_stay_one(run: Run, settings: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    settings.symlink_to(real)
    assert run("init", "--yes").code == Exit.DONE
    assert settings.is_symlink()
    assert "hardsave" in real.read_text()
    real.write_text(json.dumps(json.loads(real.read_text()), indent=2) + "\n")
    assert run("init", "--undo", "--yes").code == Exit.DONE
    assert (settings.is_symlink(), real.read_text().strip()) == (True, "{}")


def test_settings_with_comments_are_left_as_they_are(run: Run, settings: Path) -> None:
    settings.write_text('{"a": 1} // mine\n')
    ran = run("init", "--yes")
    assert ran.code == Exit.USAGE
    assert "left as it is" in ran.err
    assert "; mend it first" in ran.err
    assert settings.read_text() == '{"a": 1} // mine\n'


def test_a_project_has_settings_of_its_own(run: Run, settings: Path, project: Path) -> None:
    assert run("init", "--project", "--yes").code == Exit.DONE
    assert (project / ".claude/settings.local.json").exists()
    assert not settings.exists()


def test_hooks_that_would_call_an_environment_in_a_cache_are_warned_about(
    run: Run, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "uv"
    monkeypatch.setattr(sys, "prefix", str(cache / "archive-v0" / "abc"))
    Path(sys.prefix).mkdir(parents=True)
    (Path(sys.prefix) / "CACHEDIR.TAG").touch()  # as uv marks environments that stay
    assert "in a cache" not in run("init", "--yes").err
    assert run("init", "--undo", "--yes").code == Exit.DONE
    (cache / "CACHEDIR.TAG").touch()
    assert f"in a cache ({sys.prefix})" in run("init").err  # before it is written
    assert "in a cache" in run("init", "--yes").err
    assert "in a cache" not in run("init", "--undo", "--yes").err


def test_where_claude_code_is_not_found_nothing_is_made(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    assert run("init", "--yes").code == Exit.NOT_FOUND
    assert not (tmp_path / "nowhere").exists()


def test_an_agent_that_was_never_started_finds_its_hooks_when_it_is(
    run: Run, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.parent.rmdir()
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    ran = run("init", "--yes")
    assert (ran.code, f"installed in {settings}" in ran.out) == (Exit.DONE, True)
    assert "hardsave" in settings.read_text()
    assert (settings.parent / CLAUDE_CODE.command_file).exists()
    assert run("init", "--undo", "--yes").code == Exit.DONE
    assert not (settings.parent / CLAUDE_CODE.command_file).exists()


def test_settings_of_one_long_line_are_shown_where_they_change(run: Run, settings: Path) -> None:
    settings.write_text(json.dumps({"env": {"A": "a" * 1500, "B": "b" * 1500}}))
    shown = run("init", "--yes").err
    assert max(map(len, shown.splitlines())) < 300
    (added,) = (line for line in shown.splitlines() if line.startswith("+…"))
    assert "UserPromptSubmit" in added
    assert "characters in all" in added
    assert len(run("init", "--undo", "--yes", "--json").data[0]["diff"]) > 6000, "programs read all"


def test_settings_that_were_changed_meanwhile_are_not_overwritten(settings: Path) -> None:
    settings.write_text("{}")
    change = install.plan(CLAUDE_CODE, settings, undo=False)
    settings.write_text('{"a": 1}')
    with pytest.raises(Conflict):
        install.apply(change)
    assert settings.read_text() == '{"a": 1}'
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]


# Codex


@pytest.fixture
def hooks(tmp_path: Path, project: Path) -> Path:
    (tmp_path / "codex").mkdir()
    return tmp_path / "codex" / "hooks.json"


def trusted(hooks: Path) -> None:
    """As Codex writes it when its user has trusted every hook."""
    text = "".join(
        f'[hooks.state."{codex_hooks.key(str(hooks), place)}"]\n'
        f'trusted_hash = "{codex_hooks.fingerprint(place)}"\n'
        for place in settings_of_agents.places(hooks.read_text())
    )
    hooks.with_name("config.toml").write_text(text)


def test_both_agents_get_their_hooks_and_give_them_back(
    run: Run, settings: Path, hooks: Path
) -> None:
    theirs = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}})
    hooks.write_text(theirs)
    ran = run("init", "--yes")
    assert ran.code == Exit.DONE
    found = json.loads(hooks.read_text())["hooks"]
    assert set(found) == set(CODEX.hooks)
    assert found["Stop"][0] == json.loads(theirs)["hooks"]["Stop"][0]
    assert found["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert found["PreToolUse"][0]["hooks"][0]["command"].endswith(" codex")
    assert settings.exists()
    assert "Codex silently runs no hook that you have not trusted" in ran.err
    assert run("init", "--undo", "--yes").code == Exit.DONE
    assert json.loads(hooks.read_text()) == json.loads(theirs)


def test_what_was_written_before_something_went_wrong_is_said(
    run: Run, settings: Path, hooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = install.apply

    def fail(change: install.Change) -> None:
        if change.agent is CODEX:
            raise PermissionError(errno.EACCES, "Permission denied", str(change.path))
        apply(change)

    monkeypatch.setattr(install, "apply", fail)
    ran = run("init", "--yes")
    assert ran.code == Exit.FAILED
    assert f"Claude Code: hooks installed in {settings}" in ran.err
    assert f"Codex: {hooks} was left as it is" in ran.err
    assert settings.exists()


def test_what_was_trusted_is_not_asked_for_again(run: Run, hooks: Path) -> None:
    run("init", "--yes")
    trusted(hooks)
    assert "trusted" not in run("init").err


def test_hooks_are_installed_and_removed_also_where_trust_cannot_be_read(
    run: Run, hooks: Path
) -> None:
    hooks.with_name("config.toml").write_text("no TOML")
    ran = run("init", "--yes", "--json")
    assert ran.code == Exit.DONE
    codex, command = (each for each in ran.data if each["agent"] == "Codex")
    assert (codex["not_trusted"], command["not_trusted"]) == (list(CODEX.hooks), [])
    assert "that you have not trusted" in run("init", "--yes").err
    assert run("init", "--undo", "--yes", "--json").code == Exit.DONE


def test_a_project_leaves_codex_alone(run: Run, hooks: Path) -> None:
    assert run("init", "--project", "--yes").code == Exit.DONE
    assert not hooks.exists()


def test_the_doctor_knows_whether_codex_trusts_us(run: Run, hooks: Path) -> None:
    def looked() -> dict[str, str]:
        found = {each["what"]: each for each in run("doctor", "--json").data}
        return dict(found["Codex"])

    assert "does not call us" in looked()["message"]
    run("init", "--yes")
    found = looked()
    assert found["level"] == "warning"
    assert "PreToolUse" in found["message"]
    assert "Trust all" in found["remedy"]
    trusted(hooks)
    assert looked()["level"] == "ok"
    hooks.with_name("config.toml").write_text("not toml")
    assert looked()["level"] == "failure"


def test_the_doctor_knows_what_keeps_codex_from_running_any_hook(
    run: Run, hooks: Path, project: Path
) -> None:
    run("init", "--yes")
    trusted(hooks)
    assert not install.is_silent(CODEX, os.environ, project)
    own = project / ".codex" / "config.toml"
    own.parent.mkdir()
    own.write_text("[features]\nhooks = false\n")
    found = {each["what"]: each for each in run("doctor", "--json").data}["Codex"]
    assert found["level"] == "warning"
    assert found["message"] == f"leaves all hooks out: {own} switches hooks off"
    assert install.is_silent(CODEX, os.environ, project)  # so that a run reads along
    own.unlink()
    hooks.write_text(json.dumps({"$schema": "x", **json.loads(hooks.read_text())}))
    found = {each["what"]: each for each in run("doctor", "--json").data}["Codex"]
    assert found["message"] == f"leaves all hooks out: {hooks} has '$schema' beside 'hooks'"


def test_a_project_lets_hooks_run_that_its_user_has_switched_off_elsewhere(
    run: Run, hooks: Path, project: Path
) -> None:
    run("init", "--yes")
    trusted(hooks)
    with hooks.with_name("config.toml").open("a") as config:
        config.write("[features]\nhooks = false\n")
    own = project / ".codex" / "config.toml"
    own.parent.mkdir()
    own.write_text("[features]\nhooks = true\n")
    found = {each["what"]: each for each in run("doctor", "--json").data}["Codex"]
    assert found["level"] == "ok"
    assert not install.is_silent(CODEX, os.environ, project)


def test_a_command_that_calls_us_among_others_is_left_and_named(run: Run, settings: Path) -> None:
    theirs = {"hooks": [{"type": "command", "command": "hardsave-hook && say done"}]}
    settings.write_text(json.dumps({"hooks": {"Stop": [theirs]}}))
    for options in (["--yes"], ["--undo", "--yes"]):
        done = run("init", *options)
        assert "not all of it is ours: hardsave-hook && say done" in done.err
        assert json.loads(settings.read_text())["hooks"]["Stop"] == [theirs]
    assert list(json.loads(settings.read_text())["hooks"]) == ["Stop"]


# The doctor


def claude_code(run: Run) -> dict[str, str]:
    found = {each["what"]: each for each in run("doctor", "--json").data}
    return dict(found["Claude Code"])


def test_hooks_that_are_switched_off_are_found(run: Run, settings: Path, project: Path) -> None:
    run("init", "--yes")
    assert claude_code(run)["level"] == "ok"
    told = json.loads(settings.read_text())
    settings.write_text(json.dumps({**told, "disableAllHooks": True}))
    found = claude_code(run)
    assert found["level"] == "warning"
    assert f"{settings} has disableAllHooks" in found["message"]
    own = project / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text('{"disableAllHooks": false}')  # what is nearer counts
    assert claude_code(run)["level"] == "ok"
    own.with_name("settings.local.json").write_text("not JSON")
    assert install.switched_off(CLAUDE_CODE, os.environ, project) == ""


def test_who_installs_hooks_that_are_switched_off_is_told_so(
    run: Run, settings: Path, hooks: Path
) -> None:
    settings.write_text('{"disableAllHooks": true}')
    config = hooks.with_name("config.toml")
    config.write_text("[features]\nhooks = false\n")
    told = run("init", "--yes").err
    assert f"Claude Code leaves all hooks out, so NOTHING IS SAVED: {settings} has" in told
    assert f"Codex leaves all hooks out, so NOTHING IS SAVED: {config} switches" in told
    assert "NOTHING" not in run("init", "--undo", "--yes").err


def test_an_event_that_does_not_call_us_any_more_is_found(run: Run, settings: Path) -> None:
    run("init", "--yes")
    told = json.loads(settings.read_text())
    del told["hooks"]["PostToolBatch"]
    settings.write_text(json.dumps(told))
    found = claude_code(run)
    assert (found["level"], found["remedy"]) == ("warning", "hardsave init")
    assert found["message"].endswith("not at PostToolBatch")


def test_what_is_wrong_with_hooks_of_a_project_is_mended_there(
    run: Run, settings: Path, project: Path
) -> None:
    own = project / ".claude" / "settings.local.json"
    for is_users_too in (False, True):
        run("init", "--project", "--yes")
        if is_users_too:
            run("init", "--yes")
        own.write_text(own.read_text().replace(sys.executable, "/gone/python"))
        found = claude_code(run)
        assert (found["level"], found["remedy"]) == ("warning", "hardsave init --project")
        assert run(*found["remedy"].split()[1:], "--yes").code == Exit.DONE
        assert claude_code(run)["level"] == "ok"
    run("init", "--undo", "--yes")
    told = json.loads(own.read_text())
    del told["hooks"]["Stop"]
    own.write_text(json.dumps(told))
    found = claude_code(run)
    assert (found["level"], found["remedy"]) == ("warning", "hardsave init --project")


def test_the_doctor_tells_of_missed_saves(run: Run, project: Path) -> None:
    save.work(b"nonsense", os.environ)
    found = {each["what"]: each for each in run("doctor", "--json").data}["missed saves"]
    assert found["level"] == "warning"
    assert found["message"].startswith("1 save missed: what has changed here is NOT saved: not the")


def test_the_doctor_does_not_say_that_none_was_missed_where_it_cannot_look(
    run: Run, project: Path
) -> None:
    notes = spool.folder(os.environ, project)
    notes.parent.mkdir(parents=True)
    notes.write_text("in the way")
    ran = run("doctor", "--json")
    found = {each["what"]: each for each in ran.data}["missed saves"]
    assert (ran.code, found["level"]) == (Exit.FAILED, "failure")


def test_a_hook_whose_python_is_gone_is_found() -> None:
    found = findings.hooks("Codex", "codex", is_found=True, events=["Stop"], gone=["/old/python"])
    assert (found.level, found.remedy) == ("warning", "hardsave init")


def script(path: Path, code: int) -> Path:
    """A program that says whether it was called, in the place of a Python."""
    path.write_text(f'#!/bin/sh\necho "$@" >> {path}.called\nexit {code}\n')
    path.chmod(0o755)
    return path


def called_by(path: Path, program: Path) -> None:
    path.write_text(path.read_text().replace(shlex.quote(sys.executable), str(program)))


def test_a_hook_whose_python_does_not_find_us_any_more_is_found(
    run: Run, settings: Path, tmp_path: Path
) -> None:
    run("init", "--yes")
    bare = script(tmp_path / "bare", 1)
    called_by(settings, bare)
    found = claude_code(run)
    assert (found["level"], found["remedy"]) == ("warning", "hardsave init")
    assert f"calls {bare}, in which there is no hardsave" in found["message"]
    assert Path(f"{bare}.called").read_text() == "-E -P -c import hardsave.daemon.hook\n"
    script(bare, 0)
    assert claude_code(run)["level"] == "ok"


def test_what_a_project_names_is_not_run(run: Run, project: Path, tmp_path: Path) -> None:
    run("init", "--project", "--yes")
    theirs = script(tmp_path / "theirs", 1)
    called_by(project / ".claude" / "settings.local.json", theirs)
    assert claude_code(run)["level"] == "ok"
    assert not Path(f"{theirs}.called").exists()


def test_a_store_that_cannot_be_opened_is_one_fault_and_the_rest_is_looked_at(run: Run) -> None:
    Path("no-store.db").write_text("something else")
    ran = run("doctor", "--store", "no-store.db", "--json")
    found = {each["what"]: each for each in ran.data}
    assert ran.code == 1
    assert [what for what, each in found.items() if each["level"] == "failure"] == ["store"]
    assert "see 'store'" in found["workspace"]["message"]
    assert found["Claude Code"]["level"] == found["file system"]["level"] == "ok"


def test_settings_that_are_no_text_are_left_as_they_are(run: Run, settings: Path) -> None:
    data = b'{"note": "\xff"}'
    settings.write_bytes(data)
    ran = run("init", "--yes")
    assert (ran.code, "was left as it is" in ran.err) == (Exit.USAGE, True)
    assert settings.read_bytes() == data


def test_what_is_not_ours_keeps_every_byte(run: Run, settings: Path) -> None:
    text = (
        '{\r\n   "permissions": {"allow": ["Bash(ls:*)", "Read"], "deny": []},\r\n'
        '   "half": "\\ud83d", "\\u0061": 1.50, "large": 1e400,\r\n'
        '   "hooks": {"Stop": [{"hooks": [{"type":"command","command":"theirs"}]}]}\r\n}'
    )
    settings.write_bytes(text.encode())
    assert run("init", "--yes").code == 0
    assert settings.read_bytes().startswith(text.encode().partition(b"}]}]}")[0])
    assert b"hardsave" in settings.read_bytes()
    assert run("init", "--undo", "--yes").code == 0
    assert settings.read_bytes() == text.encode()


def test_a_hook_of_ours_that_was_edited_is_looked_at(run: Run, settings: Path) -> None:
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "no-such/hardsave-hook 'it"}]}]}
    settings.write_text(json.dumps({"hooks": hooks}))
    found = {each["what"]: each for each in run("doctor", "--json").data}
    assert "no-such/hardsave-hook, which is not there" in found["Claude Code"]["message"]
