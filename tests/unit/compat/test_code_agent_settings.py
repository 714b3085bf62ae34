"""CodeAgent's manager goes by the settings of the project that it is given, wherever its program
was started, and by CodeAgent's own file; what a stranger's file says does no harm."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.compat.code_agent import CheckpointManager
from hardsave.config import CODE_AGENT_FILE, trust
from hardsave.config.trust import ProjectFile
from hardsave.errors import Misuse

PRINTED = """\
# CodeAgent's file, with much that is not ours
project:
  base_dir: ${PROJECT_DIR}
server:
  check_interval: 60
  max_iterations: null
  http: {enabled: true, port: 3456}
  checkpoint:
    enabled: true
    checkpoint_file: ".codeagent_checkpoint.json"
    max_task_attempts: 3
    keep_completed_tasks: 100
docs:
  supported_extensions: [".md", ".txt"]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project; the program stands elsewhere, in another one with settings of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "hardsave.yaml").write_text("tasks: {max_attempts: 77}\n")
    monkeypatch.chdir(elsewhere)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def manager(project: Path) -> Iterator["Opened"]:
    opened = Opened(project)
    yield opened
    for each in opened.all:
        each.close()


class Opened:
    def __init__(self, project: Path) -> None:
        self.project = project
        self.all: list[CheckpointManager] = []

    def __call__(self, checkpoint_file: str | None = None) -> CheckpointManager:
        self.all.append(CheckpointManager(self.project, checkpoint_file))
        return self.all[-1]


def say(project: Path, text: str, *, file: str = CODE_AGENT_FILE, trusted: bool = True) -> None:
    path = project / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if trusted:
        for found in (trust.look(project), trust.look_code_agent(project)):
            if isinstance(found, ProjectFile):
                trust.trust(found, os.environ, sys.platform)


def completed(manager: CheckpointManager, count: int) -> None:
    for number in range(count):
        manager.start_task(f"do {number}", f"t{number}")
        manager.mark_task_completed(f"t{number}")


def tasks(manager: CheckpointManager) -> list[str]:
    found: list[dict[str, str]] = json.loads(manager.checkpoint_file.read_text())["tasks"]
    return [task["task_id"] for task in found]


@pytest.mark.parametrize("file", ["hardsave.yaml", CODE_AGENT_FILE])
def test_settings_are_those_of_the_project_not_of_where_the_program_stands(
    manager: Opened, project: Path, file: str
) -> None:
    said = "{max_task_attempts: 2, keep_completed_tasks: 3, checkpoint_file: mirror.json}"
    say(project, f"server: {{checkpoint: {said}}}\n", file=file)
    opened = manager()
    opened.start_task("x", "t")
    assert opened.should_retry("t")
    opened.mark_task_failed("t", "no")
    opened.mark_task_start("t")
    assert not opened.should_retry("t")
    assert opened._tasks.get("t").max_attempts == 2
    completed(opened, 8)
    for _ in range(10):
        opened.increment_iteration()
    assert opened.get_statistics()["completed"] == 3
    assert opened.checkpoint_file == project / "mirror.json"
    assert tasks(opened) == ["t", "t5", "t6", "t7"]


def test_cleaning_up_goes_by_the_project_too(manager: Opened, project: Path) -> None:
    say(project, "tasks: {cleanup_every: 2, keep_completed: 1}\n", file="hardsave.yaml")
    opened = manager()
    completed(opened, 3)
    opened.increment_iteration()
    assert opened.get_statistics()["completed"] == 3
    opened.increment_iteration()
    assert opened.get_statistics()["completed"] == 1


def test_code_agents_file_may_say_much_that_is_not_ours(
    manager: Opened, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say(project, PRINTED.replace("100", "2"))
    opened = manager()
    completed(opened, 3)
    for _ in range(10):
        opened.increment_iteration()
    assert opened.get_statistics()["completed"] == 2
    assert caplog.text == ""


def test_switched_off_in_code_agents_file_it_keeps_nothing(manager: Opened, project: Path) -> None:
    say(
        project,
        PRINTED.replace("  checkpoint:\n    enabled: true", "  checkpoint:\n    enabled: no"),
    )
    manager().add_task("t", "x")
    assert manager().get_statistics()["total_tasks"] == 0
    assert [path.name for path in project.iterdir()] == ["config"]


def test_the_projects_own_file_is_more_specific(manager: Opened, project: Path) -> None:
    say(project, PRINTED)
    say(project, "tasks: {max_attempts: 1}\n", file="hardsave.yaml")
    opened = manager()
    opened.start_task("x", "t")
    assert not opened.should_retry("t")


def test_of_a_strangers_file_only_the_retry_limit_counts_and_the_rest_is_named(
    manager: Opened, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "main.py").write_text("print('mine')\n")
    said = (
        "{enabled: false, checkpoint_file: main.py, max_task_attempts: 1, keep_completed_tasks: 0}"
    )
    say(project, f"server: {{checkpoint: {said}}}\n", trusted=False)
    opened = manager()
    completed(opened, 3)
    for _ in range(20):
        opened.increment_iteration()
    assert opened.is_task_completed("do 0")  # else it would run again
    opened.start_task("x", "t")
    assert not opened.should_retry("t")
    assert (project / "main.py").read_text() == "print('mine')\n"
    assert opened.checkpoint_file.name == ".codeagent_checkpoint.json"
    for key in ("enabled", "checkpoint_file", "keep_completed_tasks"):
        assert f"config.yaml:1: server.checkpoint.{key} is left out" in caplog.text
    assert f"type: hardsave trust -C {project}\n" in caplog.text
    assert "max_task_attempts" not in caplog.text


def test_trust_ends_when_code_agents_file_changes(manager: Opened, project: Path) -> None:
    say(project, "server: {checkpoint: {checkpoint_file: mirror.json}}\n")
    assert manager().checkpoint_file.name == "mirror.json"
    say(project, "server: {checkpoint: {checkpoint_file: main.py}}\n", trusted=False)
    assert manager().checkpoint_file.name == ".codeagent_checkpoint.json"


@pytest.mark.parametrize(
    "said",
    [
        "server: {checkpoint: {max_task_attempts: 1:1:1.0}}\n",
        "server: {checkpoint: {max_attempts: 5}}\n",
        "server: {checkpoint: 5}\n",
        "server: {checkpoint: {enabled: false}, checkpoint: {enabled: true}}\n",
        "{\n",
        "a: " + "x" * (200 << 10),
    ],
)
def test_code_agents_file_that_cannot_be_read_stops_no_server(
    manager: Opened, project: Path, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "settings/hardsave/config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("tasks: {keep_completed: 0, cleanup_every: 1}\n")
    say(project, said, trusted=False)
    opened = manager()
    completed(opened, 1)
    opened.increment_iteration()
    assert opened.is_task_completed("do 0")  # what the file says of it is not known
    assert "config.yaml is left out, because it cannot be read" in caplog.text


@pytest.mark.parametrize("said", ["[1, 2]\n", "", "server: here\n", "server: {port: 1}\n"])
def test_a_config_yaml_without_that_section_is_another_programs(
    manager: Opened, project: Path, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    say(project, said, trusted=False)
    manager().add_task("t", "x")
    assert caplog.text == ""


# The file in a folder


def test_the_file_may_lie_in_a_folder_and_is_kept_out_of_git(
    manager: Opened, project: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    say(project, "server: {checkpoint: {checkpoint_file: state/agent/tasks.json}}\n")
    opened = manager()
    opened.add_task("a", "A")
    opened.add_task("b", "B")
    assert opened.checkpoint_file == project / "state/agent/tasks.json"
    assert tasks(opened) == ["a", "b"]
    assert opened.backup_file.exists()
    status = ["git", "-C", str(project), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b"?? config/\n"


def test_a_project_below_the_top_of_its_repository_is_kept_out_of_git_too(
    manager: Opened, project: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(project.parent)], check=True)
    (project.parent / ".gitignore").write_text("data\nelsewhere\n.gitignore\n")
    opened = manager("st[a]te/tasks.json")
    opened.add_task("a", "A")
    (project / "state").mkdir()
    (project / "state" / "tasks.json").touch()
    status = ["git", "-C", str(project), "status", "--porcelain", "-uall"]
    shown = subprocess.run(status, capture_output=True, check=True).stdout
    assert shown == b"?? project/state/tasks.json\n"


def test_a_folder_that_is_a_link_leads_no_file_out_of_the_project(
    manager: Opened, project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "state").symlink_to(outside)
    say(project, "server: {checkpoint: {checkpoint_file: state/deep/tasks.json}}\n")
    opened = manager()
    opened.add_task("a", "A")
    assert opened.get_task("a") is not None
    assert list(outside.iterdir()) == []
    assert "leads out of" in caplog.text


def test_a_program_that_names_another_place_means_it(
    manager: Opened, project: Path, tmp_path: Path
) -> None:
    opened = manager(str(tmp_path / "status" / "tasks.json"))
    opened.add_task("a", "A")
    assert tasks(opened) == ["a"]
    assert list(project.iterdir()) == []


def test_a_project_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="is no directory"):
        CheckpointManager(tmp_path / "gone")


def test_a_project_without_a_named_store_is_remembered_with_its_own(
    manager: Opened, project: Path, tmp_path: Path
) -> None:
    manager().add_task("a", "A")
    assert list((tmp_path / "data/hardsave/projects").glob("project-*/project.json"))


def test_warnings_are_given_once(
    manager: Opened, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say(project, "server: {checkpoint: {keep_completed_tasks: 7}}\n", trusted=False)
    with caplog.at_level(logging.WARNING):
        manager()
        manager()
    assert caplog.text.count("is left out") == 1
