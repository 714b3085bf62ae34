"""A process that runs tasks of a store on a server: python -m tests.integration.workers.working …

What a task does is its text: `quick`, or `hold`, which waits for the file `go-ID`, or `slow`. An
effect is a line of a file that has nothing to do with the store, written at once.
"""

import argparse
import logging
import os
import random
import time
from pathlib import Path
from typing import Any

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.postgres import queue_thread
from hardsave.tasks import slots
from tests.integration.workers.agents import echoing, fated, filing

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


def tell(path: Path, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, line.encode() + b"\n")
    os.close(file)


def handle(options: argparse.Namespace, attempt: hardsave.Attempt) -> None:
    """Two steps, each of them an effect. A step that was lost is not recorded."""

    def effect(name: str) -> str:
        tell(options.effects, f"{attempt.id} {name} {options.name}")
        return name

    attempt.step("first", effect, "began")
    go = options.effects.with_name(f"go-{attempt.id}")
    while attempt.task.text == "hold" and not go.exists() and not attempt.is_lost:
        time.sleep(options.look)
    if attempt.task.text == "slow":
        for number in range(3):
            attempt.step(f"part {number}", lambda: time.sleep(random.random()))
    attempt.step("second", effect, "ended")


def run_tasks(options: argparse.Namespace, vault: hardsave.Vault) -> None:
    with vault.tasks.runner(options.name, lease_seconds=options.lease) as runner:
        runner.run(
            lambda attempt: handle(options, attempt),
            concurrency=options.concurrency,
            retry=AT_ONCE,
            grace_seconds=options.grace,
        )


def run_jobs(options: argparse.Namespace, vault: hardsave.Vault) -> None:
    echo = echoing(lambda said: tell(options.effects, f"{said} answered {options.name}"))
    known = {"files": filing, "fated": fated}
    agents: dict[str, Any] = {name: known.get(name, echo) for name in options.agents}
    Worker(vault, agents, unknown="retry").run(
        options.name,
        concurrency=options.concurrency,
        retry=AT_ONCE,
        lease_seconds=options.lease,
        grace_seconds=options.grace,
        periodic={
            f"chime{number}": {"cron": cron, "prompt": "strike", "agent": options.agents[0]}
            for number, cron in enumerate(options.cron)
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("effects", type=Path)
    parser.add_argument("name")
    parser.add_argument("--agents", nargs="*")
    parser.add_argument("--cron", nargs="*", default=[])
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--lease", type=float, default=60.0)
    parser.add_argument("--grace", type=float, default=0.0)
    parser.add_argument("--look", type=float, default=0.005)
    parser.add_argument("--poll", type=float, default=1.0)
    parser.add_argument("--ask", type=float, default=3600.0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    # Only a hint lets anything happen, unless a test says otherwise.
    slots.ASK_SECONDS = options.ask  # type: ignore[attr-defined] # it is imported there
    queue_thread._POLL_SECONDS = options.poll
    with hardsave.open(options.url) as vault:
        (run_tasks if options.agents is None else run_jobs)(options, vault)


if __name__ == "__main__":
    main()
