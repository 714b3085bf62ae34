"""The second net: strace kills a process as it enters a system call, or lets the call fail.

Nothing in the process is changed, so this net also sees what the injector cannot: shared
memory, the syncs of folders inside SQLite, openings for reading. strace counts the calls of
each kind for each thread; a run that is only watched says which ones touch the store.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import Any, NamedTuple

from tests.crash.launcher import HANGS_AFTER_SECONDS, ROOT, Ended
from tests.crash.rig import Rig, Run
from tests.crash.scenarios import SCENARIOS

# A question mark: not every machine has every call.
_WATCHED = (
    "?open,?openat,?pwrite64,?ftruncate,?fallocate,?fsync,?fdatasync,?unlink,?unlinkat,"
    "?mkdir,?mkdirat,?rename,?renameat2,?flock"
)
_LINE = re.compile(r"^(?P<process>\d+) +(?P<call>\w+)\(")


class Point(NamedTuple):
    """The so-manieth call of a kind, and how it looked."""

    call: str
    number: int
    line: str


def what_is_missing() -> str | None:
    """Why this net cannot be used here; None if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    command = [*_strace("/dev/null"), sys.executable, "-c", ""]
    probe = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else f"strace cannot be used: {probe.stderr.strip()}"


def points(rig: Rig, scenario: str) -> list[Point]:
    """Every call of a scenario's first process from the first one on a file of the store."""
    run = _run(rig, scenario, [])
    assert run.ended[0].code == 0, run.ended[0].words
    lines = (run.folder / "trace").read_text(errors="replace").splitlines()
    matches = [match for line in lines if (match := _LINE.match(line))]
    found: list[Point] = []
    counts: dict[str, int] = {}
    for match in matches:
        if match["process"] != matches[0]["process"]:
            continue  # a thread counts by itself
        call = match["call"]
        counts[call] = counts.get(call, 0) + 1
        if found or str(run.store) in match.string:
            found.append(Point(call, counts[call], match.string))
    return found


def kill(rig: Rig, scenario: str, point: Point) -> Run:
    """Run a scenario whose first process is killed there."""
    return _run(rig, scenario, [f"inject={point.call}:signal=KILL:when={point.number}"])


def fail(rig: Rig, scenario: str, point: Point, error: str) -> Run:
    """Run a scenario in whose first process a call fails, once; it goes on afterwards."""
    injected = [f"inject={point.call}:error={error}:when={point.number}"]
    return _run(rig, scenario, injected, forgiving=True)


def _run(rig: Rig, scenario: str, injected: list[str], *, forgiving: bool = False) -> Run:
    folder = rig.fresh(scenario)
    tracing = [*_strace(str(folder / "trace")), *[f"-e{each}" for each in injected]]
    given = {"folder": str(folder / "disk"), "scenario": scenario, "watched": False}
    steps = {"told": str(folder / "told-steps"), "forgiving": forgiving}
    commands = [[*tracing, *_child(given | steps)]]
    if SCENARIOS[scenario].beside:
        beside = {"told": str(folder / "told-beside"), "part": "beside"}
        commands.append(_child(given | beside))
    return Run(folder, [_wait(process) for process in [_start(command) for command in commands]])


def _strace(output: str) -> list[str]:
    return ["strace", "-f", "-qq", f"-etrace={_WATCHED}", "-esignal=none", "-o", output]


def _child(given: dict[str, Any]) -> list[str]:
    return [sys.executable, "-m", "tests.crash.child", json.dumps(given)]


def _start(command: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that strace can be ended together with what it traces
    )


def _wait(process: "subprocess.Popen[bytes]") -> Ended:
    try:
        _, words = process.communicate(timeout=HANGS_AFTER_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, words = process.communicate()
    return Ended(process.returncode, None, words.decode(errors="replace"))
