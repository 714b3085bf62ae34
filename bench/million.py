"""A million checkpoints: what grows with the store, and by how much.

One store grows from 20,000 over 200,000 to 1,000,000 checkpoints. At each size every call runs in a
process of its own, on the store or on a copy of it where it changes something. CPU time is
compared: the machine may have other work.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import report
from bench.machine import ROOT, check
from bench.million_calls import Cost
from bench.million_store import TIMELINES, build
from bench.report import Row, at_most
from bench.setting import Setting
from bench.store_file import url

SIZES = (20_000, 200_000, 1_000_000)
QUICK = (10_000, 20_000, 40_000)

PER_CHECKPOINT = {"verify": 1.3, "gc": 1.3, "export": 1.3, "index": 1.5, "retention": 1.5}
"""By how much a checkpoint may cost more in the largest store than in a small one of the same
shape: as many checkpoints as in the smallest, on so few timelines that states are as long as in
the largest. In the smallest, a state has two messages and not a hundred."""
FLAT = {"open_again": 1.5, "page": 1.5, "follow": 1.5, "poll": 1.5, "newest": 1.5, "append": 1.5}
"""By how much the whole call may."""
MOST_MS = {
    **dict.fromkeys(("open_again", "page", "follow", "poll", "newest"), 10.0),
    "stats": 20.0,
    "head": 30.0,
    "head, compacted": 10.0,
    "search": 500.0,
    **dict.fromkeys(("hardsave log", "hardsave log --all", "hardsave timelines"), 400.0),
}
"""How many milliseconds of CPU a call on the largest store may take."""
MOST_MB = 300.0

NAMES = {
    "open_again": "open and close",
    "page": "a page of 50 checkpoints",
    "newest": "the newest 50 timelines",
    "stats": "stats",
    "follow": "follow: start",
    "poll": "follow: a poll without news",
    "append": "append, warm handles",
    "head": "the head's state, cold",
    "search": "a search before there is an index",
    "verify": "verify",
    "gc": "gc",
    "export": "export",
    "retention": "a retention plan",
    "index": "the first search index",
    "compact": "compact",
}
LOOKS = ("open_again", "page", "newest", "stats", "follow", "poll", "head", "retention", "verify")
CHANGES = ("append", "export", "search", "index", "gc", "compact")
COMMANDS = (("log",), ("log", "--all"), ("timelines",))

Measured = dict[str, Cost]


def million(setting: Setting) -> list[Row]:
    """Every call at every size."""
    sizes = QUICK if setting.quick else SIZES
    path = setting.place / "runs.db"
    found: dict[int, Measured] = {}
    begin = 0
    for size in sizes:
        _build(path, begin, size)
        found[size] = _measured(path)
        begin = size
    alike = setting.place / "alike.db"
    _build(alike, 0, sizes[0], TIMELINES * sizes[0] // sizes[-1])
    return _rows(found, {call: _cost(alike, call).cpu / sizes[0] for call in PER_CHECKPOINT})


def _build(path: Path, begin: int, end: int, timelines: int = TIMELINES) -> None:
    """In a process of its own, so that what it kept in memory is gone."""
    child = os.fork()
    if child == 0:
        build(path, begin, end, timelines)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    check(status == 0, f"no store of {end:,} checkpoints was built")


def _measured(path: Path) -> Measured:
    found = {call: _cost(path, call) for call in LOOKS}
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(folder, path.name)
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, folder)
        for words in COMMANDS:
            found[" ".join(("hardsave", *words))] = _command(copy, *words)
        found |= {call: _cost(copy, call) for call in CHANGES}
        found["head, compacted"] = _cost(copy, "head")
    return found


def _cost(path: Path, call: str) -> Cost:
    done = subprocess.run(
        [sys.executable, "-m", "bench.million_calls", url(path), call],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return Cost(*json.loads(done.stdout))


def _command(path: Path, *words: str) -> Cost:
    """The third run of a command: the first may have had to bring something up to date."""
    program = Path(sys.executable).with_name("hardsave")
    before = 0.0
    for _ in range(3):
        before = _children_cpu()
        subprocess.run(
            [program, *words, "--store", url(path)],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=path.parent,
        )
    return Cost(_children_cpu() - before, 0)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# What is shown


def _rows(found: dict[int, Measured], alike: dict[str, float]) -> list[Row]:
    rows = []
    for call in found[max(found)]:
        rows.append(_growth(call, found))
        if call in alike:
            rows.append(_compared(call, found, alike[call]))
        if call in MOST_MS:
            most = at_most(MOST_MS[call])
            value = found[max(found)][call].cpu * 1e3
            rows.append(Row(f"{_name(call)}, CPU", value=value, unit="ms", target=most))
    return [*rows, _memory(found), _note(found)]


def _name(call: str) -> str:
    return NAMES.get(call, call.replace("head", NAMES["head"]))


def _growth(call: str, found: dict[int, Measured]) -> Row:
    """At every size."""
    is_per_checkpoint = call in PER_CHECKPOINT
    *before, last = [
        cost[call].cpu / (size if is_per_checkpoint else 1) for size, cost in found.items()
    ]
    return Row(
        f"{_name(call)}{', per checkpoint' if is_per_checkpoint else ''}",
        ours=report.duration(last),
        other=f"{', '.join(map(report.duration, before))} before",
        value=last / before[0],
        target=at_most(FLAT[call]) if call in FLAT else None,
    )


def _compared(call: str, found: dict[int, Measured], alike: float) -> Row:
    """With a small store of the same shape."""
    last = found[max(found)][call].cpu / max(found)
    return Row(
        f"{_name(call)}, per checkpoint, states of the same length",
        ours=report.duration(last),
        other=f"{report.duration(alike)} of {min(found):,}",
        value=last / alike,
        target=at_most(PER_CHECKPOINT[call]),
    )


def _memory(found: dict[int, Measured]) -> Row:
    largest = found[max(found)]
    worst = max(largest, key=lambda call: largest[call].peak_bytes)
    peak = largest[worst].peak_bytes / 1e6
    name = NAMES.get(worst, worst)
    return Row("peak memory of any call", ours=name, value=peak, unit="MB", target=at_most(MOST_MB))


def _note(found: dict[int, Measured]) -> Row:
    sizes = ", ".join(f"{size:,}" for size in found)
    return Row(
        "checkpoints",
        ours=f"{max(found):,}",
        other=sizes,
        note=f"{TIMELINES:,} timelines in turn, messages of 30 words; CPU time, and how many times "
        "that of the smallest store it is",
    )
