"""The skill for agents: its form, and every command and program of it, typed as it stands there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import SKILL, blocks

MAIN = SKILL / "SKILL.md"
PAGES = [MAIN, *sorted((SKILL / "references").glob("*.md"))]
MOST_CHARACTERS = 1024  # of a description, as the format has it
MOST_LINES = 500


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line]


def typed(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home = folder.parent  # of this page alone, not the user's
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={"PATH": path, "HOME": str(home), "XDG_DATA_HOME": str(home / "data")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "parser.py").write_text("old = 1\n")
    (folder / "README.md").write_text("read me\n")
    (folder / "data.txt").write_text("data")
    return folder


def test_its_head_is_as_the_format_of_skills_wants_it() -> None:
    _, head, body = MAIN.read_text().split("---\n", 2)
    told = yaml.safe_load(head)
    assert told.keys() == {"name", "description"}
    assert told["name"] == "hardsave"
    assert 100 < len(told["description"]) <= MOST_CHARACTERS
    assert "Use it BEFORE a risky step" in told["description"]
    assert len(body.splitlines()) < MOST_LINES


def test_its_main_page_leads_to_all_others() -> None:
    for page in PAGES[1:]:
        assert f"({page.relative_to(SKILL)})" in MAIN.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SKILL)))
def test_every_command_of_a_page_does_what_it_is_typed_for(page: Path, project: Path) -> None:
    """An agent edits and removes something behind each."""
    for number, command in enumerate(commands(page)):
        done = typed(command, project)
        assert done.returncode == 0, (command, done)
        (project / "src" / "parser.py").write_text(f"new = {number}\n")
        (project / "src" / f"junk-{number}.py").write_text("")
        (project / "README.md").unlink(missing_ok=True)


def test_what_the_main_page_says_brings_the_files_back(project: Path) -> None:
    save, *_, preview, rewind, undo = commands(MAIN)
    for command, parser, readme in (
        (save, "old = 1\n", True),
        ("rm README.md; echo broken > src/parser.py", "broken\n", False),
        (preview, "broken\n", False),
        (rewind, "old = 1\n", True),
        (undo, "broken\n", False),
    ):
        assert typed(command, project).returncode == 0
        assert (project / "src" / "parser.py").read_text() == parser
        assert (project / "README.md").exists() == readme


def test_its_programs_print_what_was_saved(project: Path) -> None:
    guard, back = blocks(SKILL / "references" / "python.md", "python")
    (project / "guard.py").write_text(guard)
    (project / "back.py").write_text(back)
    assert typed("python guard.py", project).stdout == "data\n"
    assert typed("python back.py", project).stdout.splitlines() == [
        "1 changed",
        "{'turn': 1} data",
        "{'turn': 2}",
    ]
