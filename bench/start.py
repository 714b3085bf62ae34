"""What a process pays before its first save: import, open, save."""

import subprocess
import sys

import hardsave
from bench import report
from bench.machine import check
from bench.report import Row, at_most
from bench.setting import Setting
from bench.stopwatch import in_turns, median, timed
from bench.store_file import url

IMPORT = "import hardsave; hardsave.Vault"  # the name alone loads nothing
SAVE = """
import sys, hardsave
with hardsave.open(sys.argv[1]) as vault:
    vault.timeline("main").save({"messages": [{"role": "user", "content": "hello"}], "turn": 1})
"""


def start(setting: Setting) -> list[Row]:
    """Whole processes against `python -I -c pass`, in turns."""
    path = setting.place / "start.db"
    fresh = iter(range(1_000_000))
    rounds = setting.choose(15, 7)
    times = in_turns(
        rounds + 1,  # the first warms the caches up, and is dropped
        lambda: _process("pass"),
        lambda: _process(IMPORT),
        lambda: _process(SAVE, url(path)),
        lambda: _process(SAVE, url(setting.place / f"start-{next(fresh)}.db")),
    )
    bare, imported, saved, created = (found[1:] for found in times)
    with hardsave.open(url(path)) as vault:
        check(len(vault.timeline("main")) == rounds + 1, "a process lost its save")
    return [
        _beyond("import hardsave and its vault", imported, bare, 60),
        _beyond("import, open, one save", saved, bare, 100),
        _beyond("import, open a new store, one save", created, bare, 100),
    ]


def _process(program: str, *arguments: str) -> float:
    command = [sys.executable, "-I", "-c", program, *arguments]
    return timed(lambda: subprocess.run(command, check=True))[0]


def _beyond(figure: str, times: list[float], bare: list[float], most: float) -> Row:
    best = (min(times) - min(bare)) * 1000
    return Row(
        f"{figure}, beyond bare Python",
        ours=report.duration(median(times)),
        other=f"{report.duration(median(bare))} bare",
        value=(median(times) - median(bare)) * 1000,
        unit="ms",
        target=at_most(most),
        note=f"medians of {len(times)} processes; the best: {best:.0f} ms",
    )
