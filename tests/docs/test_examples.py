"""The examples do what they say, crashes included."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hardsave.cli.commands.demo import SCENES
from hardsave.cli.demo import agent_server, files, job
from hardsave.cli.main import main
from hardsave.config import file
from hardsave.tasks import settings
from tests.docs.pages import DOCS, blocks

EXAMPLES = DOCS.parent / "examples"
HARDSAVE = str(Path(sys.executable).with_name("hardsave"))


def test_work_survives_a_killed_server_and_nothing_runs_twice() -> None:
    command = [HARDSAVE, "demo", "tasks"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said = done.stdout.splitlines()
    for scene in range(1, 5):
        assert any(line.startswith(f"{scene}. ") for line in said)
    actions = [line for line in said if line.startswith("    ")]
    assert len(set(actions)) == len(actions) >= 11  # one may have been under way when it died
    assert "interrupted: test-the-parser" in done.stderr
    assert "   4 of 5 tasks completed, 1 failed." in said


def test_files_of_a_killed_agent_come_back_and_the_rest_of_the_demo_holds(tmp_path: Path) -> None:
    """From a directory that has nothing of the repository."""
    done = subprocess.run(
        [HARDSAVE, "demo", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        cwd=tmp_path,
    )
    played = json.loads(done.stdout)
    assert [each["scene"] for each in played] == [*SCENES]
    quick = [each for each in played if each["scene"] != "job"]  # whose clients take long to import
    assert sum(each["seconds"] for each in quick) < 30
    assert "parser~2: succeeded" in done.stderr
    assert "3 files, 8 messages" in done.stderr
    assert "files: 3 created" in done.stderr
    assert "still done outside: mail#1" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_scene_that_does_not_hold_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TEXTS", {**files.TEXTS, "README.md": "another text"})
    monkeypatch.setattr(files, "_seen", lambda work: {})
    assert main(["demo", "files"]) == 1


def test_a_job_is_left_out_visibly_where_no_agent_can_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "NEEDED", "no_such_library")
    assert main(["demo", "job"]) == 0
    assert "left out: it needs Pydantic AI" in capsys.readouterr().out


def test_the_example_and_the_demo_are_one() -> None:
    example = EXAMPLES / "agent_server.py"
    assert example.is_symlink()
    assert example.samefile(agent_server.__file__)


def test_a_server_is_short_enough_to_be_copied() -> None:
    lines = (EXAMPLES / "agent_server.py").read_text().split('"""', 2)[2].splitlines()
    assert len([line for line in lines if line.strip()]) <= 40


@pytest.mark.parametrize("number", range(2))
def test_the_page_about_tasks_prints_what_it_says(number: int) -> None:
    page = DOCS / "howto" / "tasks.md"
    first, _, last = blocks(page, "python")
    program, printed = (first, last)[number], blocks(page, "text")[number]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == printed


def test_a_program_of_the_page_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = blocks(DOCS / "howto" / "tasks.md", "python")[1]
    (tmp_path / "Makefile").write_text("all:\n\t@ls store.db-child-lock-*\n")
    monkeypatch.chdir(tmp_path)
    script = f"""{program}
with hardsave.open("sqlite:///{tmp_path}/store.db") as vault:
    vault.tasks.add("t1")
    with vault.tasks.runner("s") as runner:
        runner.run(build, until_idle=True)
    assert vault.tasks.get("t1").result == 0
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


def test_the_settings_of_the_page_are_understood() -> None:
    (text,) = blocks(DOCS / "howto" / "tasks.md", "yaml")
    assert settings.combined([file.read(text, "tasks.md")]).max_attempts == 5
