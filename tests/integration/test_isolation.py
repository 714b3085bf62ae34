"""What an agent writes into a folder that `PYTHONPATH` names is not run by us, nor stops a hook."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.agents import interpreter
from tests.integration.hooked import LIMIT, Stage

MODULES = ("apsw", "blake3", "click", "json", "ormsgpack", "rich", "select", "signal", "typing")
HARDSAVE = [str(Path(sys.executable).parent / "hardsave")]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A project whose own folder comes first wherever Python looks."""
    made = Stage(tmp_path)
    trace = f"open({str(tmp_path / 'was-run')!r}, 'a').write(__name__)\n"
    for name in MODULES:
        (made.work / f"{name}.py").write_text(f"{trace}raise RuntimeError('not for you')\n")
    made.environment["PYTHONPATH"] = str(made.work)
    yield made
    made.end()


@pytest.fixture(autouse=True)
def nothing_was_run(tmp_path: Path) -> Iterator[None]:
    yield
    assert not (tmp_path / "was-run").exists(), (tmp_path / "was-run").read_text()


def test_hooks_save_and_leave_a_daemon_all_the_same(stage: Stage) -> None:
    agent = stage.agent(PYTHONPATH=str(stage.work))
    agent.hooks("c0")
    stage.daemon()
    agent.hooks("c1")
    stage.end()
    assert stage.calls() == ["c0", "c1"]
    assert stage.handed_over() == 1


def test_a_run_is_saved_and_every_command_works(stage: Stage) -> None:
    def does(*words: str) -> str:
        done = subprocess.run(
            [*HARDSAVE, *words],
            cwd=stage.work,
            env=stage.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    does("run", "--timeline", "r", "--", "sh", "-c", "rm f")
    assert "r:1" in does("log", "--timeline", "r")
    does("rewind", "r:1", "--yes")
    assert (stage.work / "f").read_text() == "one"


def test_what_the_environment_says_is_obeyed_where_only_that_leads_to_us() -> None:
    own = os.path.dirname(os.path.dirname(hardsave.__file__))
    assert interpreter.options({}) == ["-E", "-P"]
    assert interpreter.options({"PYTHONPATH": "/nowhere"}) == ["-E", "-P"]
    assert interpreter.options({"PYTHONPATH": f"/nowhere{os.pathsep}{own}/"}) == ["-P"]
    others = [each for each in sys.path if each != own]
    assert interpreter.options({}, others) == ["-P"]
