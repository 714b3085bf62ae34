"""Tasks and steps, beside DBOS on SQLite: what a step costs, and how long a restart takes."""

import json
import signal
import subprocess
import sys
from typing import Any

from bench import report
from bench.machine import ROOT, Broken, check
from bench.report import Row, at_least, at_most
from bench.setting import Setting

SHIPPED = ""
FULL, NORMAL = "WAL/FULL", "WAL/NORMAL"


def steps(setting: Setting) -> list[Row]:
    """A step that does nothing, against DBOS's and against the bare commits that it needs."""
    count = setting.choose(1_000, 200)
    power, process = (_ours(setting, "steps", count, how) for how in ("power", "process"))
    theirs = {
        pragmas: _theirs(setting, "steps", setting.choose(400, 100), pragmas)
        for pragmas in (SHIPPED, FULL, NORMAL)
    }
    best = {pragmas: min(found["times"]) for pragmas, found in theirs.items()}
    force = {pragmas: f"DBOS: {found['pragmas']}" for pragmas, found in theirs.items()}
    return [
        report.ratio(
            "a step, both WAL/NORMAL, against DBOS",
            process["alone"],
            best[NORMAL],
            at_least(8),
            note=f"one task, one after the other, policy retry; {force[NORMAL]}, best of 3",
        ),
        report.ratio(
            "a step, ours WAL/FULL, against DBOS as shipped",
            power["alone"],
            best[SHIPPED],
            at_least(3.5),
            note=f"{force[SHIPPED]}",
        ),
        report.ratio(
            "a step, both WAL/FULL, against DBOS", power["alone"], best[FULL], note=force[FULL]
        ),
        report.growth(
            "a step, policy retry / one bare INSERT + commit, FULL",
            power["one"],
            power["bare"],
            at_most(1.6),
            names=("step", "floor"),
            note="medians, in turns; the floor is through the same library, VFS and pragmas",
        ),
        report.growth(
            "a step, policy fail / two bare INSERT + commit, FULL",
            power["two"],
            power["bare_twice"],
            at_most(1.6),
            names=("step", "floor"),
        ),
        report.growth(
            "a step, policy retry / one bare INSERT + commit, NORMAL",
            process["one"],
            process["bare"],
            names=("step", "floor"),
            note="without a sync the floor is next to nothing, and Python weighs more",
        ),
    ]


def restart(setting: Setting) -> list[Row]:
    """Tasks in progress when their process is killed, and done again after its restart."""
    count = setting.choose(1_000, 100)
    ours = _killed_and_finished(setting, "ours", count, "power")
    rows = []
    for pragmas, target in ((SHIPPED, None), (FULL, at_least(5))):
        theirs = _killed_and_finished(setting, "dbos", count, pragmas)
        rows.append(
            report.ratio(
                f"{count:,} in progress, kill -9, restart, all done, against DBOS "
                f"{pragmas or 'as shipped'}",
                ours["seconds"],
                theirs["seconds"],
                target,
                note="ours FULL, 8 threads; of two steps the first was recorded before; from "
                "opening or launch to the last one done, imports not counted",
            )
        )
    return [
        *rows,
        Row(
            "recorded steps that were run again after the restart",
            ours=f"of {count:,}",
            value=float(ours["repeated"]),
            unit="",
            target=at_most(0),
        ),
    ]


def claims(setting: Setting) -> list[Row]:
    """Claim and finish, in a small and in a large ledger."""
    count = setting.choose(100_000, 10_000)
    found = _ours(setting, "claims", count, "power")
    return [
        report.growth(
            f"claim + finish of a task, {count:,} / 100 in the ledger",
            found["large"],
            found["small"],
            at_most(1.5),
            names=(f"{count:,}", "100"),
            note="medians of 600, in turns; half of them completed, a quarter pending",
        )
    ]


def _ours(setting: Setting, what: str, count: int, durability: str) -> Any:
    path = setting.place / f"tasks-{durability}.db"
    return _answer("work_ours", what, path, count, "--durability", durability)


def _theirs(setting: Setting, what: str, count: int, pragmas: str) -> Any:
    path = setting.place / f"dbos-{pragmas.replace('/', '-')}-{what}.db"
    return _answer("work_dbos", what, path, count, "--pragmas", pragmas)


def _killed_and_finished(setting: Setting, who: str, count: int, how: str) -> Any:
    path = setting.place / f"restart-{who}-{how.replace('/', '-')}.db"
    module = "work_ours" if who == "ours" else "work_dbos"
    option = ("--durability" if who == "ours" else "--pragmas", how)
    begun = subprocess.run(_command(module, "begin", path, count, *option), cwd=ROOT, check=False)
    check(begun.returncode == -signal.SIGKILL, f"{who} ended with {begun.returncode}, not killed")
    return _answer(module, "finish", path, count, *option)


def _answer(module: str, *words: object) -> Any:
    done = subprocess.run(_command(module, *words), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    lines = done.stdout.splitlines()
    if not lines:
        raise Broken(f"{module} {words} said nothing")
    return json.loads(lines[-1])


def _command(module: str, *words: object) -> list[str]:
    return [sys.executable, "-m", f"bench.{module}", *map(str, words)]
