"""Many writers at once: threads that share a sync, processes that share a store."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hardsave
from bench import report
from bench.machine import ROOT, check
from bench.report import Row, at_least, at_most
from bench.setting import Setting
from bench.stopwatch import median, percentile
from bench.store_file import url

THREADS = 16
PROCESSES = 8
WORKLOAD = "a timeline each, every save a state of two new messages of 1,024 characters"


# Threads


def threads(setting: Setting) -> list[Row]:
    """Sixteen threads against one, on the disk as it is, and with a sync that takes 2 ms."""
    real, counted, slow = (_threads(setting, sync) for sync in ("real", "counted", "slow"))
    return [
        Row(
            f"{THREADS} threads, saves per fsync",
            ours=f"{counted['saves']:,} saves",
            other=f"{counted['syncs']:,} fsyncs",
            value=counted["saves"] / counted["syncs"],
            unit="",
            target=at_least(8),
            note=f"{WORKLOAD}; all syncs of all files, counted by a VFS beneath the store's",
        ),
        _rates("", real, at_least(1.5), WORKLOAD),
        _rates(", a sync takes 2 ms more", slow, at_least(5), f"{WORKLOAD}; injected by that VFS"),
    ]


def _threads(setting: Setting, sync: str) -> dict[str, Any]:
    arguments = ["--sync", sync, "--crowd", THREADS, "--rounds", setting.choose(5, 2)]
    arguments += ["--saves", setting.choose(150, 60), url(setting.place / f"threads-{sync}.db")]
    done = subprocess.run(
        _command("threads", *arguments), cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rates(how: str, found: dict[str, Any], target: report.Target, note: str) -> Row:
    one, many = median(found["one"]), median(found["many"])
    return Row(
        f"{THREADS} threads against one, saves a second{how}",
        ours=f"{report.number(many)}/s",
        other=f"{report.number(one)}/s one",
        value=many / one,
        target=target,
        note=note,
    )


# Processes


def processes(setting: Setting) -> list[Row]:
    """Eight processes on one store: no error, nothing lost, nobody waits long."""
    path = setting.place / "processes.db"
    hardsave.open(url(path)).close()
    saves = setting.choose(1000, 200)
    seconds, answers = _run_together(path, saves)
    times = [taken for answer in answers for taken in answer["times"]]
    errors = [error for answer in answers for error in answer["errors"]]
    lost = PROCESSES * saves - len(errors) - _kept(path, saves)
    return [
        Row(
            f"{PROCESSES} processes, busy and other errors",
            ours=errors[0] if errors else f"none in {len(times):,} saves",
            value=len(errors),
            unit="",
            target=at_most(0),
            note=WORKLOAD,
        ),
        Row(
            f"{PROCESSES} processes, saves lost",
            ours=f"{report.number(len(times) / seconds)} saves/s in all",
            value=lost,
            unit="",
            target=at_most(0),
        ),
        Row(
            f"{PROCESSES} processes, p99.9 of a save",
            ours=f"median {report.duration(median(times))}, worst {report.duration(max(times))}",
            value=percentile(times, 0.999) * 1000,
            unit="ms",
            target=at_most(100),
        ),
    ]


def _run_together(path: Path, saves: int) -> tuple[float, list[dict[str, Any]]]:
    """Start all processes, wait until each is ready, give the word, collect the answers."""
    running = [
        subprocess.Popen(
            _command("process", "--number", number, "--saves", saves, url(path)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        for each in running:
            check(each.stdout is not None and each.stdout.readline() == "ready\n", "no start")
        begin = time.perf_counter()
        for each in running:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        answers = [json.loads(each.communicate()[0]) for each in running]
    finally:
        for each in running:
            each.kill()
            each.wait()
    return time.perf_counter() - begin, answers


def _kept(path: Path, saves: int) -> int:
    """How many checkpoints there are, each timeline's numbers being without a gap."""
    kept = 0
    with hardsave.open(url(path)) as vault:
        for line in vault.timelines():
            numbers = [found.seq for found in line.checkpoints(limit=saves + 1)]
            check(numbers == list(range(len(numbers), 0, -1)), f"{line.name} has a gap")
            check(len(line) == len(numbers), f"{line.name} counts wrongly")
            kept += len(numbers)
    return kept


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.worker", *map(str, arguments)]
