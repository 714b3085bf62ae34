"""A deep agent whose process is killed: it goes on, and nothing that was acknowledged is lost."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.scripted_agent import THREAD, agent, written

TURNS = 12
ROOT = Path(__file__).parents[3]


def kill_and_go_on(folder: Path, kills: int, draw: random.Random, durability: str) -> None:
    (folder / "work").mkdir(parents=True)
    told: list[str] = []
    for _ in range(kills):
        stop_after, pause = draw.randrange(1, 12), draw.randrange(3_000)
        told += _run(folder, durability, stop_after, pause)
        _check(folder, told, is_exact=durability == "sync")
    told += _run(folder, durability)
    found = _check(folder, told, is_exact=durability == "sync")
    assert found["messages"][-1].content == "done"
    assert written(found["messages"]) == {f"f{n}.txt" for n in range(TURNS)}


def _run(folder: Path, durability: str, stop_after: int | None = None, pause: int = 0) -> list[str]:
    """What a process tells until it is killed, so many lines and a moment after its start."""
    command = [sys.executable, "-m", "tests.frameworks.langgraph.scripted_agent"]
    with subprocess.Popen(
        [*command, str(folder), str(TURNS), durability], stdout=subprocess.PIPE, cwd=ROOT, text=True
    ) as process:
        assert process.stdout is not None
        told: list[str] = []
        for line in process.stdout:
            told.append(line)
            if len(told) == stop_after:
                for _ in range(pause):  # anywhere between this line and the next ones
                    os.sched_yield()
                process.send_signal(signal.SIGKILL)
        assert process.wait() in (0, -signal.SIGKILL)
    return [line for line in told if line.endswith("\n")]


def _check(folder: Path, told: list[str], *, is_exact: bool) -> dict[str, Any]:
    """What was told is there, and each checkpoint has the files that its messages have written. If
    puts run beside the next step, a step that is run once more may find files of the next."""
    with hardsave.open(f"sqlite:///{folder}/store.db") as vault:
        saver = HardsaveSaver(vault, workspace=folder / "work")
        graph = agent(saver, TURNS)
        found = {one.checkpoint["id"]: one for one in saver.list(THREAD)}
        for line in told:
            kind, id, *rest = line.split()
            assert id in found or kind == "writes", line
            if kind == "writes" and id in found:  # else it waits in memory for its put
                tasks = [task for task, *_ in found[id].pending_writes or []]
                assert tasks.count(rest[0]) >= int(rest[1]), line
        for one in found.values():
            saved = saver.checkpoint(one.config)
            assert saved is not None
            assert saved.files is not None
            messages = graph.get_state(one.config).values.get("messages", [])
            files = {each.path for each in saved.files.directory()}
            assert files == written(messages) if is_exact else files >= written(messages)
        assert vault.store.verify().faults == ()
        return dict(graph.get_state(THREAD).values)


def test_a_deep_agent_that_is_killed_three_times_goes_on(tmp_path: Path) -> None:
    kill_and_go_on(tmp_path / "run", 3, random.Random(7), "sync")


@pytest.mark.torture
def test_a_deep_agent_that_is_killed_fifty_times_goes_on(tmp_path: Path) -> None:
    for number in range(10):
        durability = "async" if number % 2 else "sync"
        kill_and_go_on(tmp_path / f"{number}", 5, random.Random(100 + number), durability)
