"""The examples do what they say, crashes included."""

import subprocess
import sys

from hardsave.tasks import settings
from tests.docs.pages import DOCS, blocks

EXAMPLES = DOCS.parent / "examples"


def test_work_survives_a_killed_server_and_nothing_runs_twice() -> None:
    command = [sys.executable, str(EXAMPLES / "work_that_survives.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said = done.stdout.splitlines()
    for scene in range(1, 5):
        assert any(line.startswith(f"{scene}. ") for line in said)
    actions = [line for line in said if line.startswith("    ")]
    assert len(set(actions)) == len(actions) >= 11  # one may have been under way when it died
    assert "interrupted: test-the-parser" in done.stderr
    assert "   4 of 5 tasks completed, 1 failed." in said


def test_a_server_is_short_enough_to_be_copied() -> None:
    lines = (EXAMPLES / "agent_server.py").read_text().split('"""', 2)[2].splitlines()
    assert len([line for line in lines if line.strip()]) <= 40


def test_the_page_about_tasks_prints_what_it_says() -> None:
    page = DOCS / "howto" / "tasks.md"
    (program,) = blocks(page, "python")
    (printed,) = blocks(page, "text")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == printed


def test_the_settings_of_the_page_are_understood() -> None:
    (text,) = blocks(DOCS / "howto" / "tasks.md", "yaml")
    assert settings.of_text(text, "tasks.md").max_attempts == 5
