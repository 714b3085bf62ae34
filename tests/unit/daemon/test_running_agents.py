"""Whether another agent of the same kind works in the same directory."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec, is_called
from hardsave.daemon.running_agents import Others, at_work, others
from hardsave.stores.host import processes
from tests.unit.stores.processes import eventually


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        (["claude", "-p", "x"], True),
        (["/opt/claude"], True),
        (["node", "/opt/bin/claude", "-p"], True),
        (["/usr/bin/node", "/opt/claude.js"], True),
        (["/venv/bin/python3.11", "/venv/bin/claude"], True),
        (["vim", "claude"], False),
        (["claude-hud"], False),
        (["bash", "-c", "claude"], False),
        ([], False),
    ],
)
def test_a_program_is_known_by_its_name(words: list[str], is_one: bool) -> None:
    assert is_called(words, "claude") == is_one


def words_of(pid: int) -> tuple[str, ...]:
    """None for a moment, in which a program has begun and the system does not tell yet how."""
    seen = processes.look(pid)
    return () if seen is None else seen.words


@contextmanager
def started(program: Path, folder: Path, *words: str) -> Iterator[int]:
    process = subprocess.Popen([program, *words], cwd=folder)
    try:
        assert eventually(lambda: process.poll() is not None or words_of(process.pid))
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process tells its directory")
def test_another_one_in_the_same_directory_is_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    program, work = tmp_path / "claude", tmp_path / "work"
    program.symlink_to(sleep)
    work.mkdir()

    def company(agent: int) -> Others:
        return others(agent, "claude", os.path.realpath(work))

    assert company(1) is Others.NONE
    with started(program, work, "60") as one:
        assert company(one) is Others.NONE
        with started(program, tmp_path, "60"):
            assert company(one) is Others.NONE
            with monkeypatch.context() as patch:
                patch.setattr(processes, "directory", lambda pid: None)
                assert company(one) is Others.SOME  # it may be here
        with started(program, work, "app-server"):
            assert company(one) is Others.NONE
        with started(program, work, "61") as two:
            assert company(one) is Others.SOME
            assert company(two) is Others.SOME


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process tells its directory")
def test_agents_at_work_are_found_once_each_and_not_those_of_other_places(tmp_path: Path) -> None:
    sleep, bash = shutil.which("sleep"), shutil.which("bash")
    assert sleep is not None
    assert bash is not None
    (tmp_path / "claude").symlink_to(sleep)
    (tmp_path / "codex").write_text(f"#!{bash}\n{tmp_path}/bin/codex 60 & echo; wait\n")
    (tmp_path / "codex").chmod(0o700)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(sleep)
    below = tmp_path / "work" / "below"
    below.mkdir(parents=True)
    with (
        started(tmp_path / "claude", below, "60") as one,
        started(tmp_path / "claude", tmp_path, "60"),
        subprocess.Popen(
            [tmp_path / "codex"], cwd=below, stdout=subprocess.PIPE, start_new_session=True
        ) as two,
    ):
        assert two.stdout is not None
        assert two.stdout.readline() == b"\n"  # by now it has started the other
        found = at_work(tmp_path / "work")
        os.killpg(two.pid, signal.SIGKILL)
    assert {each.pid for each in found} == {one, two.pid}
    deadline = time.monotonic() + 60
    while at_work(tmp_path / "work") and time.monotonic() < deadline:
        time.sleep(0.01)  # no process waits for what the second one has started
    assert at_work(tmp_path / "work") == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process tells its directory")
@pytest.mark.parametrize("agent", registry.every(), ids=lambda agent: agent.name)
def test_a_tool_that_has_outlived_its_agent_is_found_once(tmp_path: Path, agent: AgentSpec) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "work").mkdir()
    told = {**os.environ, agent.session_variable: "s-1"}
    tool = [bash, "-c", "sleep 60 & echo; wait"]
    for place, is_found in ((tmp_path / "work", True), (tmp_path, False)):
        with subprocess.Popen(
            tool, cwd=place, env=told, stdout=subprocess.PIPE, start_new_session=True
        ) as left:
            assert left.stdout is not None
            assert left.stdout.readline() == b"\n"  # by now it has started another
            found = at_work(tmp_path / "work")
            os.killpg(left.pid, signal.SIGKILL)
        assert [each.pid for each in found] == [left.pid] * is_found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process tells its directory")
def test_a_tool_of_an_agent_that_is_there_is_not_named_besides(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = "export CLAUDE_CODE_SESSION_ID=s-1; bash -c 'sleep 60 & wait' & echo; wait"
    (tmp_path / "claude").write_text(f"#!{bash}\n{script}\n")
    (tmp_path / "claude").chmod(0o700)
    with subprocess.Popen(
        [tmp_path / "claude"], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"\n"
        found = at_work(tmp_path)
        tools = at_work(tmp_path, waiting={agent.pid})
        os.killpg(agent.pid, signal.SIGKILL)
    assert [each.pid for each in found] == [agent.pid]
    assert [each.command for each in tools] == ["bash -c sleep 60 & wait"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process tells its directory")
def test_what_an_agents_tool_pipes_our_words_to_is_not_at_work(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from hardsave.daemon.running_agents import at_work; "
        "from hardsave.daemon.processes import ancestors; "
        "print(at_work(Path.cwd(), ancestors()))"
    )
    piped = subprocess.run(
        ["bash", "-c", '"$0" -P -c "$1" | cat; true', sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "CLAUDE_CODE_SESSION_ID": "s-1"},
        capture_output=True,
        check=True,
    )
    assert piped.stdout == b"[]\n"
