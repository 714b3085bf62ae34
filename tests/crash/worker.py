"""A process that runs tasks until it is killed, or nothing is left: python -m tests.crash.worker …

Every effect is a line of a file that has nothing to do with the store, written at once.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import hardsave

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


def tell(path: Path, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, line.encode() + b"\n")
    os.close(file)


def serve(options: argparse.Namespace) -> None:
    """Two steps a task, each of them an effect that takes a moment."""

    def effect(task: str, name: str) -> str:
        tell(options.effects, f"{task} {name}")
        time.sleep(options.seconds)
        return name

    def handler(attempt: hardsave.Attempt) -> str:
        for name in ("first", "second"):
            attempt.step(name, effect, attempt.id, name, unknown=options.unknown)
        return "done"

    with hardsave.open(options.url) as vault, vault.tasks.runner(f"worker {os.getpid()}") as runner:
        runner.run(handler, concurrency=2, until_idle=True, retry=AT_ONCE)


def stop_in_a_step(options: argparse.Namespace) -> None:
    """Say when the first step is done, wait for the file `go`, and write on."""

    def handler(attempt: hardsave.Attempt) -> None:
        attempt.step("first", lambda: tell(options.effects, "old first"))
        tell(options.effects, "ready")
        while not options.effects.with_name("go").exists():
            time.sleep(0.01)
        try:
            attempt.step("second", lambda: None)
        except hardsave.LeaseLost:
            tell(options.effects, f"lost {attempt.is_lost}")

    with hardsave.open(options.url) as vault:
        with vault.tasks.runner("stopped", lease_seconds=options.seconds) as runner:
            runner.run(handler, until_idle=True)
        tell(options.effects, "ended")


def hang(options: argparse.Namespace) -> None:
    """A handler that never ends by itself."""

    def handler(attempt: hardsave.Attempt) -> None:
        attempt.step("first", lambda: tell(options.effects, "ready"))
        time.sleep(600)

    with hardsave.open(options.url) as vault, vault.tasks.runner("hanging") as runner:
        runner.run(handler, grace_seconds=options.seconds)
        tell(options.effects, "stopped")


def fork(options: argparse.Namespace) -> None:
    """A handler whose child goes on with what it has inherited."""

    def handler(attempt: hardsave.Attempt) -> str:
        child = os.fork()
        if child == 0:
            try:
                attempt.step("in the child", lambda: 1)
            except hardsave.Misuse as error:
                tell(options.effects, f"child: {error}")
            os._exit(0)
        os.waitpid(child, 0)
        attempt.step("in the parent", lambda: 1)
        return "parent"

    with hardsave.open(options.url) as vault, vault.tasks.runner("forking") as runner:
        runner.run(handler, until_idle=True)


WAYS: dict[str, Any] = {
    "serve": serve,
    "stop": stop_in_a_step,
    "hang": hang,
    "fork": fork,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("url")
    parser.add_argument("effects", type=Path)
    parser.add_argument("--unknown", default="retry")
    parser.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args()
    WAYS[options.way](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
