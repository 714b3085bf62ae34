"""What the tour of the command line shows is what happens when it is typed."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "howto" / "command-line.md"
LOST = DOCS / "howto" / "when-it-matters.md"
# Typed from the first line to the last.
TYPED = ("recovery", "strategy", "rollback", "examples", "server")


class Typed(NamedTuple):
    """A command, and what the page says that it prints."""

    command: str
    printed: str


def typed(console: str) -> list[Typed]:
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    return [Typed(*part.split("\n", 1)) for part in parts]


def ran(command: str, folder: Path) -> str:
    """Both streams, as a terminal shows them."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home = folder.parent  # of this page alone, not the user's
    environment = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    environment["XDG_DATA_HOME"] = str(home / "data")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def shape(printed: str, folder: Path) -> list[str]:
    """A run's own times, ids and places replaced, and its columns set as narrow as they go."""
    text = printed.replace(str(folder.parent / "data"), "/home/you/.local/share")
    text = text.replace(str(folder), "/home/you/project").replace(str(folder.parent), "/home/you")
    for pattern, stands_for in (
        (r"\b(now|\d+ (second|minute)s? ago|\d+s)\b", "AGE"),  # in words, or on a narrow terminal
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d( UTC|Z)?)?|\b\d\d:\d\d:\d\d\b", "TIME"),
        (r"\bprocess \d+", "PROCESS"),
        (r"\bhs_(…|[\w-]{43})", "TOKEN"),
        (r"\b(run-)?[0-9a-f]{12}\b", "HASH"),
        (r"chk_(…|[0-9a-f]{24})", "CHK"),
        (r"project-[0-9a-f]{16}", "PROJECT"),
        (r"[\d.]+ [KMGT]iB free", "ROOM"),
        (r"[\d.]+ (bytes|KiB) in", "SIZE in"),
        (r"(?<=file system )\s*.*", "KIND"),
        (r"[\d,]+ may be watched", "LIMIT"),
        (r" +", " "),
    ):
        text = re.sub(pattern, stands_for, text)
    return [line.strip() for line in text.strip().splitlines()]


def written(page: Path, folder: Path) -> None:
    """The files that a page shows, each under the name in its first line: `# agent.py`."""
    for language in ("python", "yaml"):
        for block in blocks(page, language):
            (folder / block.split("\n", 1)[0].removeprefix("# ")).write_text(block)


@pytest.mark.parametrize("name", TYPED)
def test_what_a_page_shows_is_what_is_printed(name: str, tmp_path: Path) -> None:
    page = DOCS / "howto" / f"{name}.md"
    folder = tmp_path / "project"
    folder.mkdir()
    written(page, folder)
    steps = [step for block in blocks(page, "console") for step in typed(block)]
    assert len(steps) > 5
    for command, printed in steps:
        found = ran(command, folder)
        assert shape(found, folder) == shape(printed, folder), command
    unused = [path.name for path in folder.glob("*.py") if path.name not in str(steps)]
    assert unused == [], "a program that no command runs"


def test_every_command_of_the_tour_prints_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (program,) = blocks(PAGE, "python")
    steps = [step for block in blocks(PAGE, "console") for step in typed(block)]
    assert len(steps) > 15
    for command, printed in steps:
        if command.startswith("python"):
            (folder / "agent.py").write_text(program)
        found = ran(command, folder)
        assert shape(found, folder) == shape(printed, folder), command


def test_what_is_typed_when_it_matters_does_what_it_says(tmp_path: Path) -> None:
    """Where the project's directory is gone, one beside it."""
    folder, beside = tmp_path / "project", tmp_path / "beside"
    folder.mkdir()
    beside.mkdir()
    steps = [step for block in blocks(LOST, "console") for step in typed(block)]
    assert len(steps) > 8
    for command, printed in steps:
        found = ran(command, folder if folder.exists() else beside)
        assert shape(found, folder) == shape(printed, folder), command


def test_the_reading_of_a_console_tells_commands_from_what_they_print() -> None:
    assert typed("$ a\nb\nc\n$ d\n") == [Typed("a", "b\nc\n"), Typed("d", "")]
