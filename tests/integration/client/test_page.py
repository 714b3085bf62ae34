"""The page about calling the server: its programs run, in each of the three languages."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.server.route import Allowed
from tests.docs.pages import DOCS, blocks
from tests.unit.cli.jobs_project import agent
from tests.unit.server.job_server import OWN_TOKEN, serving

PAGE = DOCS / "howto" / "client.md"
LIMIT = 60
SAID = ["session-1", "message 1", "checkpoint_saved", "fix-1", "note"]
"""What each of the programs prints."""


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A conversation, and a job that asks."""
    url = f"sqlite:///{tmp_path / 'served.db'}"
    with hardsave.open(url) as vault:
        line = vault.timeline("session-1")
        for number in range(3):
            line.append({"messages": [{"role": "user", "content": f"message {number}"}]})
        vault.jobs.add("fix-1", "Fix it", agent="careful", max_turns=5)
        Worker(vault, {"careful": agent(careful=True)}).run(until_idle=True)
    return url


@pytest.fixture
def server(store: str, tmp_path: Path) -> Iterator[str]:
    """It has something to tell again and again."""
    over = threading.Event()

    def save() -> None:
        with hardsave.open(store) as vault:
            while not over.wait(0.2):
                vault.timeline("elsewhere").save({"a": 1})

    thread = threading.Thread(target=save)
    with serving(store, tmp_path, allowed=Allowed()) as client:
        thread.start()
        yield f"http://127.0.0.1:{client.port}"
        over.set()
        thread.join()


def curl(program: str, folder: Path) -> list[str]:
    return ["sh", "-ec", program]


def python(program: str, folder: Path) -> list[str]:
    return [sys.executable, "-c", program]


def javascript(program: str, folder: Path) -> list[str]:
    path = folder / "page.mjs"
    path.write_text(program)
    return ["node", str(path)]


LANGUAGES: dict[str, tuple[str, Callable[[str, Path], list[str]]]] = {
    "bash": ("curl", curl),
    "python": (sys.executable, python),
    "javascript": ("node", javascript),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_programs_of_the_page_do_what_it_says(
    language: str, server: str, store: str, tmp_path: Path
) -> None:
    needed, command = LANGUAGES[language]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed: the {language} of the page was NOT run")
    every = blocks(PAGE, language)
    assert len(every) == 7
    program = "\n".join(every).replace("http://localhost:8765", server)
    done = subprocess.run(
        command(program, tmp_path),
        env={**os.environ, "HARDSAVE_TOKEN": OWN_TOKEN},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert [said for said in SAID if said not in done.stdout] == [], done.stdout
    with hardsave.open(store) as vault:
        line = vault.timeline("session-1")
        assert line.get("by-hand").seq == 4
        assert line.load("by-hand")["messages"][-1]["content"] == "Try again"
        assert line.get().seq == 1
        assert vault.jobs.get("fix-1").question is None


def test_each_thing_is_shown_in_every_language() -> None:
    counts = {len(blocks(PAGE, language)) for language in LANGUAGES}
    assert counts == {7}
