"""Run the simulation over many seeds, and print what came of it.

python -m tests.simulation --seeds 300 --workers 20 --jobs 500 --lease 25
"""

import argparse
import logging
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.simulation import Outcome, Setting, Simulation


def run(setting: Setting, seed: int) -> Outcome:
    before = logging.root.manager.disable
    logging.disable()  # that workers are taken for dead is what is simulated
    try:
        return Simulation(seed, setting).run()
    finally:
        logging.disable(before)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seeds", type=int, default=300)
    asked.add_argument("--workers", type=int, default=20)
    asked.add_argument("--jobs", type=int, default=500)
    asked.add_argument("--lease", type=float, default=25.0)
    asked.add_argument(
        "--leaps", type=float, default=0.0, help="seconds between leaps of the server's clock"
    )
    given = asked.parse_args()
    setting = Setting(
        workers=given.workers, jobs=given.jobs, lease_seconds=given.lease, leap_every=given.leaps
    )
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(partial(run, setting), range(given.seeds)))
    for line in lines(setting, outcomes):
        sys.stdout.write(f"{line}\n")


def lines(setting: Setting, outcomes: list[Outcome]) -> list[str]:
    takeovers = sorted(took for each in outcomes for took in each.takeovers)
    calls: Counter[str] = sum((each.calls for each in outcomes), Counter())
    jobs = sum(each.finished for each in outcomes)
    worker_seconds = setting.workers * sum(each.seconds for each in outcomes)
    idle = calls["due"] + calls["tasks"] + calls["owners"] + calls["moment"] + calls["hold"]
    wrong = [each for outcome in outcomes for each in outcome.wrong]
    told = {
        "seeds": len(outcomes),
        "workers": setting.workers,
        "jobs": f"{setting.jobs} of {setting.steps} steps",
        "lease": f"{setting.lease_seconds:g} s",
        "finished": f"{jobs} of {len(outcomes) * setting.jobs}",
        "attempts": sum(each.claims for each in outcomes),
        "workers killed": sum(each.crashes for each in outcomes),
        "attempts that were refused a write": sum(each.lost for each in outcomes),
        "writes of a second owner, or made twice": len(wrong),
        "takeovers": len(takeovers),
        "half of them within": f"{_at(takeovers, 0.5):.1f} s",
        "99 % of them within": f"{_at(takeovers, 0.99):.1f} s",
        "all of them within": f"{_at(takeovers, 1):.1f} s",
        "commits for each job": f"{calls['commit'] / jobs:.2f}",
        "other calls for each worker and second": f"{idle / worker_seconds:.2f}",
    }
    return [*(f"{name:42} {value}" for name, value in told.items()), *wrong]


def _at(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


if __name__ == "__main__":
    main()
