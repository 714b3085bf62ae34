"""What README.md and the pages behind it show happens: programs run, commands exist."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.docs.pages import CONTRIBUTING, DOCS, README, ROOT, blocks
from tests.docs.picture import AS_TEXT, PICTURE, words_of
from tests.docs.test_howto import ran, typed
from tests.docs.test_howto import shape as lines

PROGRAMS = blocks(README, "python")
MORE = blocks(DOCS / "howto" / "python.md", "python")


def run(program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program as a reader would: in a folder of its own, with a store of its own."""
    environment = {**os.environ, "HARDSAVE_STORE": str(folder / "store.db")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z]+):(?!=)", makefile, re.MULTILINE))


def make_commands(text: str) -> set[str]:
    return set(re.findall(r"(?:^|`|\n)make ([a-z]+)", text))


def test_every_program_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    """One after the other in one folder, as a reader tries them from top to bottom."""
    assert len(PROGRAMS) == 1
    assert len(MORE) == 7
    for program in (*PROGRAMS, *MORE):
        ended = run(program, tmp_path)
        if "SIGKILL" in program:
            assert ended.returncode == -signal.SIGKILL, ended.stderr
            ended = run(program, tmp_path)
        assert ended.returncode == 0, ended.stderr
        promised = re.findall(r"# prints: (.*)", program)
        assert not promised or ended.stdout.splitlines() == promised, program


def test_the_program_that_crashes_goes_on_where_it_was(tmp_path: Path) -> None:
    (program,) = [program for program in PROGRAMS if "SIGKILL" in program]
    printed = run(program, tmp_path).stdout + run(program, tmp_path).stdout
    assert [printed] == blocks(README, "text")


def test_what_the_terminal_shows_is_what_it_shows(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (console,) = blocks(AS_TEXT, "console")
    (shown, script), *steps = typed(console)
    assert shown == "cat ../agent.sh"
    (tmp_path / "agent.sh").write_text(_patient(script))
    for command, printed in steps:
        found = ran(command, folder)
        assert lines(found, folder) == lines(printed, folder), command
        if "hardsave run" in command:
            _wait_for_the_end(tmp_path)


def test_the_picture_says_what_the_text_says(tmp_path: Path) -> None:
    said = words_of(PICTURE.read_text())
    (console,) = blocks(AS_TEXT, "console")
    assert _bare(said, tmp_path) == _bare(console, tmp_path)


def _bare(text: str, folder: Path) -> list[str]:
    """Without spaces: a picture has places instead."""
    return [line.replace(" ", "") for line in lines(text, folder)]


# Signals to the daemon: on a slow machine it may see half of a change, and save that.
BESIDE = """
at=$(grep -ls "$HARDSAVE_SOCKET" /proc/[0-9]*/cmdline | xargs grep -ls daemon.main)
beside() { kill -s $1 $(echo $at | tr -dc 0-9); }
"""


def _patient(script: str) -> str:
    """The same agent; where it sleeps, it waits until what it has done was saved."""
    parts = script.split("sleep 1")
    waits = [
        f"beside CONT; until hardsave show s1:{seq} >/dev/null 2>&1; do sleep 0.1; done; "
        + ("" if seq == 4 else "beside STOP")
        for seq in (2, 3, 4)
    ]
    acts = "".join(part + wait for part, wait in zip(parts, [*waits, ""], strict=True))
    return f"{BESIDE}beside STOP\n{acts}"


def _wait_for_the_end(tmp_path: Path) -> None:
    end = time.monotonic() + 60
    while not any("saves," in log.read_text() for log in tmp_path.rglob("*-run.log")):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_every_make_command_exists() -> None:
    pages = (README, CONTRIBUTING, DOCS / "promises.md")
    named = set[str]().union(*(make_commands(page.read_text()) for page in pages))
    assert {"run", "test"} <= make_commands(README.read_text())
    assert named <= targets((ROOT / "Makefile").read_text())


def test_what_the_demo_prints_is_what_it_prints() -> None:
    command = [str(Path(sys.executable).with_name("hardsave")), "demo", "crash"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    (shown,) = blocks(DOCS / "promises.md", "text")
    assert shape(printed) == shape(shown)


def shape(printed: str) -> list[str]:
    """Return a run's own lines without their numbers: on a slow machine it is killed later."""
    lines = [line for line in printed.splitlines() if not line.startswith("    turn")]
    return [re.sub(r"[0-9]+", "N", line) for line in lines]


def test_the_reading_of_commands_can_find_some_that_do_not_exist() -> None:
    assert make_commands("run `make nonsense`\nmake test\nthey make sense") == {"nonsense", "test"}
    assert targets("run: $(READY)/core ## go\nBIN := x\nALL:=y\n") == {"run"}
