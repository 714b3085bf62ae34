"""A project's file comes with a clone: what could do harm counts once the user has trusted it."""

import logging
import os
import sys
from pathlib import Path

import pytest

import hardsave
from hardsave import config
from hardsave.config import file, trust
from tests.unit.cli.conftest import Run


@pytest.fixture
def elsewhere(project: Path, tmp_path: Path) -> Path:
    """A project whose file names another store."""
    store = tmp_path / "elsewhere.db"
    (project / config.PROJECT_FILE).write_text(f"store: {store}\ntasks:\n  max_attempts: 9\n")
    return store


def test_untrusted_it_is_left_out_and_that_is_said(
    project: Path, elsewhere: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), hardsave.open() as vault:
        assert vault.tasks.add("t").max_attempts == 9
    assert not elsewhere.exists()
    assert "hardsave.yaml:1: store is left out" in caplog.text
    assert "hardsave trust" in caplog.text


def test_only_what_removes_and_reruns_nothing_needs_no_trust() -> None:
    free = {key.setting for keys in file.SECTIONS.values() for key in keys.values()}
    free -= {key.setting for ks in file.SECTIONS.values() for key in ks.values() if key.needs_trust}
    assert free == {
        "retain_automatically", "hooks_daemon", "max_attempts", "compress", "recovery",
    }  # fmt: skip


def test_a_strangers_file_cannot_make_a_failing_save_stop_an_agent(project: Path, run: Run) -> None:
    (project / config.PROJECT_FILE).write_text("strict: true\n")
    with hardsave.open() as vault:
        assert not vault.strict
    run("trust", "--yes")
    with hardsave.open() as vault:
        assert vault.strict
    with hardsave.open(strict=False) as vault:
        assert not vault.strict


def test_a_strangers_file_can_hold_work_back_and_never_let_it_run(
    project: Path, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (project / config.PROJECT_FILE).write_text("recovery: manual\n")
    assert run("tasks", "settings", "--json").data["recovery"] == "manual"
    user = tmp_path / "config" / "hardsave" / "config.yaml"
    user.parent.mkdir(parents=True)
    user.write_text("recovery: manual\n")
    (project / config.PROJECT_FILE).write_text("recovery: auto\ntasks:\n  profile: production\n")
    run("trust", "--yes")
    assert run("tasks", "settings", "--json").data["recovery"] == "manual"


def test_trusted_all_of_it_counts_until_it_changes(
    project: Path, elsewhere: Path, run: Run
) -> None:
    assert run("trust").code == 2  # there is no terminal to ask at
    shown = run("trust", "--yes")
    assert f"store: {elsewhere}" in shown.err
    assert run("trust", "--yes", "--json").data["trusted"] is True
    again = run("trust")  # there is nothing to ask
    assert (again.code, again.out) == (0, "it is trusted already, as it is now\n")
    with hardsave.open() as vault:
        vault.timeline("main").save({"by": "trust"})
    assert elsewhere.exists()
    assert run("log", "--json").data[0]["ref"] == "main:1"
    with (project / config.PROJECT_FILE).open("a") as written:
        written.write("# one comment more\n")
    assert run("log", "--json").data == []
    assert run("trust").code == 2
    assert run("trust", "--undo").code == 0
    assert run("trust", "--undo").out == "it was not trusted\n"


def test_trust_is_of_one_project_alone(
    project: Path, elsewhere: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("trust", "--yes")
    twin = tmp_path / "twin"
    twin.mkdir()
    (twin / config.PROJECT_FILE).write_bytes((project / config.PROJECT_FILE).read_bytes())
    monkeypatch.chdir(twin)
    with hardsave.open() as vault:
        vault.timeline("main").save({})
    assert not elsewhere.exists()


def test_what_needs_no_trust_is_not_asked_about(project: Path, run: Run) -> None:
    nothing: dict[str, object] = {"file": None, "trusted": False, "settings": {}, "files": []}
    assert run("trust", "--json").data == nothing
    (project / config.PROJECT_FILE).write_text("hooks:\n  daemon: false\n")
    assert "nothing in it needs to be trusted" in run("trust").out
    (project / config.PROJECT_FILE).write_text("tasks:\n  max_atempts: 9\n")
    ran = run("trust")
    assert (ran.code, "hardsave.yaml:2: tasks.max_atempts is not a setting" in ran.err) == (2, True)


def test_the_user_s_own_file_needs_no_trust_and_a_project_s_is_more_specific(
    project: Path, run: Run, tmp_path: Path
) -> None:
    own = tmp_path / "config/hardsave/config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(f"store: sqlite:///{tmp_path}/own.db\ntasks:\n  max_attempts: 7\n")
    assert run("save").code == 0
    assert (tmp_path / "own.db").exists()
    assert run("tasks", "settings", "--json").data["max_attempts"] == 7
    (project / config.PROJECT_FILE).write_text("tasks:\n  profile: long-running\n")
    assert run("trust", "--yes").code == 0
    assert run("tasks", "settings").out == (
        "max_attempts: 5\nkeep_completed: 500\ncleanup_every: 10\nrecovery: auto\n"
    )
    assert run("tasks", "settings", "--profile", "development", "--json").data == {
        "max_attempts": 1,
        "keep_completed": 50,
        "cleanup_every": 10,
        "recovery": "auto",
    }
    own.write_text("store: relative.db\n")
    refused = " ".join(run("log").err.split())  # lines are folded, where depends on the path
    assert "config.yaml:1: store is the URL of a store" in refused


def test_the_environment_outranks_every_file(
    project: Path, elsewhere: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("trust", "--yes")
    monkeypatch.setenv(config.STORE_VARIABLE, str(tmp_path / "named.db"))
    assert run("save").code == 0
    assert not elsewhere.exists()


@pytest.mark.parametrize("record", [b"", b"[]", b"{", b'{"hash": 3}'])
def test_a_damaged_record_trusts_nothing(record: bytes, project: Path, elsewhere: Path) -> None:
    found = trust.look(project)
    assert found is not None
    trust.trust(found, os.environ, sys.platform)
    assert trust.is_trusted(found, os.environ, sys.platform)
    trust._record(found, os.environ, sys.platform).write_bytes(record)
    assert not trust.is_trusted(found, os.environ, sys.platform)


def test_what_is_left_out_is_said_once(
    project: Path, elsewhere: Path, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        run("save")
        run("log")
    assert caplog.text.count("store is left out") == 1


def test_what_a_project_s_file_says_does_not_drive_the_terminal(project: Path, run: Run) -> None:
    (project / config.PROJECT_FILE).write_text('"\\e]0;mine\\a": 1\n')
    done = run("trust")
    assert done.code == 2
    assert r"\x1b]0;mine\x07 is not a setting" in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    "text", ["::: [", "stroe: x", "store: 3", "tasks: {max_attempts: 1" + ":1" * 400 + ".0}"]
)
def test_a_project_s_file_that_cannot_be_read_stops_no_save_and_no_task(
    project: Path, text: str, caplog: pytest.LogCaptureFixture, run: Run
) -> None:
    with hardsave.open() as vault:
        vault.timeline("main").save(1)
    (project / config.PROJECT_FILE).write_text(text)
    with caplog.at_level(logging.WARNING), hardsave.open() as vault:
        assert vault.timeline("main").save(2).seq == 2
        assert vault.tasks.add("t").max_attempts == 3
    assert "hardsave.yaml is left out, because it cannot be read: " in caplog.text
    assert "hardsave.yaml:1: " in caplog.text
    assert run("save").code == 0


@pytest.mark.parametrize("command", ["save", "status", "doctor"])
def test_every_command_says_that_a_project_s_file_cannot_be_read(
    command: str,
    project: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (project / config.PROJECT_FILE).write_text("tasks: {max_attempts: 1" + ":1" * 400 + ".0}\n")
    assert run("save").code == 0
    caplog.clear()
    monkeypatch.setattr(config, "_reported", set())  # as in a process of its own
    assert run(command).code == 0
    assert f"{project}/hardsave.yaml:1: tasks.max_attempts is a number" in caplog.text


# CodeAgent's own file

CODE_AGENT = """\
project: {base_dir: "${PROJECT_DIR}"}
server:
  check_interval: 60
  max_iterations: null
  checkpoint: {enabled: true, keep_completed_tasks: 5, max_task_attempts: 2}
"""


def test_code_agents_file_is_trusted_beside_the_projects_own(
    project: Path, elsewhere: Path, run: Run
) -> None:
    theirs = project / config.CODE_AGENT_FILE
    theirs.parent.mkdir()
    theirs.write_text(CODE_AGENT)
    shown = run("trust", "--yes")
    assert f"store: {elsewhere}" in shown.err
    assert "server.checkpoint.keep_completed_tasks: 5" in " ".join(shown.err.split())
    told = run("trust", "--json").data
    assert told["file"] == str(project / config.PROJECT_FILE)
    assert [(each["file"], each["trusted"]) for each in told["files"]] == [
        (str(project / config.PROJECT_FILE), True),
        (str(theirs), True),
    ]
    theirs.write_text(CODE_AGENT.replace("5", "0"))
    told = run("trust", "--json", "--yes").data
    assert [each["trusted"] for each in told["files"]] == [True, True]
    assert run("trust", "--undo").out == "it is trusted no longer\n"
    told = run("trust", "--undo", "--json").data
    assert [each["trusted"] for each in told["files"]] == [False, False]


@pytest.mark.parametrize("said", ["defaults: [model]\n", "server: {checkpoint: x.pt}\n", "{\n"])
def test_a_config_yaml_of_another_program_is_nothing_to_trust(
    project: Path, run: Run, said: str
) -> None:
    theirs = project / config.CODE_AGENT_FILE
    theirs.parent.mkdir()
    theirs.write_text(said)
    assert run("trust").code == 0
    (project / config.PROJECT_FILE).write_text("tasks: {keep_completed: 7}\n")
    assert run("trust", "--yes", "--json").data["trusted"] is True
