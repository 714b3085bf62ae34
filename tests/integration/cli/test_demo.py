"""`hardsave demo --interactive`: the viewer goes on with a key, and kills the agent with a key."""

import os
import re
import signal
from pathlib import Path

import pytest

from hardsave.stores.host import processes
from tests.integration.cli.conftest import Project

KILL = "press any key"


def left_behind(folder: Path) -> list[str]:
    """Temporary folders, and processes that work in one."""
    folders = [path.name for path in folder.glob("hardsave-demo-*")]
    return folders + [
        arguments for arguments in map(_arguments, os.listdir("/proc")) if str(folder) in arguments
    ]


def _arguments(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_text()
    except OSError:
        return ""


def test_the_viewer_kills_the_agent_at_any_moment_and_it_goes_on(
    project: Project, tmp_path: Path
) -> None:
    with project.screen("demo", "crash", "--interactive", TMPDIR=str(tmp_path)) as seen:
        seen.wait_for("any key: begin")
        assert KILL not in seen.text
        seen.type("x")
        seen.wait_for("turn 2:")
        seen.type("k")
        seen.wait_for("Killed with SIGKILL")
        assert "turn 7:" not in seen.text  # where it is killed by itself
        last = int(re.findall(r"turn (\d):", seen.text)[-1])
        assert f"Turn {last} was the last one saved" in seen.text
        seen.wait_for(f"turn {last + 1}:")
        assert seen.ended() == 0
        assert "8 checkpoints, 16 messages, nothing twice." in seen.text
        assert seen.is_as_before()
    assert left_behind(tmp_path) == []


def test_a_viewer_leaves_between_two_scenes(project: Project, tmp_path: Path) -> None:
    with project.screen("demo", "--interactive", height=60, TMPDIR=str(tmp_path)) as seen:
        seen.wait_for("An agent that is killed, and goes on (1 of 4)")
        seen.type("q")
        assert seen.ended() == 0
        assert "turn 1" not in seen.text
        assert seen.is_as_before()
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("how", ["\x03", signal.SIGTERM, signal.SIGHUP])
def test_however_an_interactive_demo_ends_nothing_is_left_behind(
    how: str | signal.Signals, project: Project, tmp_path: Path
) -> None:
    with project.screen("demo", "files", "--interactive", TMPDIR=str(tmp_path)) as seen:
        seen.wait_for("any key: begin")
        seen.type(" ")
        seen.wait_for("deleted everything")
        assert len(left_behind(tmp_path)) >= 2  # the folder, and the agent that works there
        if isinstance(how, str):
            seen.type(how)
        else:
            os.kill(seen.process.pid, how)
        assert seen.ended() == 130
        assert "Traceback" not in seen.text
        assert seen.is_as_before()
    assert left_behind(tmp_path) == []


def test_without_a_terminal_an_interactive_demo_is_refused_in_one_sentence(
    project: Project,
) -> None:
    ran = project.run("demo", "--interactive")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "hardsave: --interactive waits for keys, and there is no terminal; leave it out\n"
    )
    assert project.run("demo", "--interactive", "--json").returncode == 2


def test_ctrl_c_at_a_terminal_stops_a_server_of_tasks_cleanly(project: Project) -> None:
    project.run("tasks", "add", "t1")
    with project.screen("tasks", "run", "--", "sh", "-c", "echo pid=$$; sleep 600") as seen:
        seen.wait_for("pid=")
        found = re.search(r"pid=(\d+)", seen.text)
        assert found is not None
        seen.type("\x03")
        assert seen.ended() == 0
        assert "t1: handed back; the attempt does not count" in seen.text
        assert processes.started(int(found[1])) is None
    assert "clean start: 1 task to do" in project.run("tasks", "recover").stdout
