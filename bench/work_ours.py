"""Our tasks at work, as a process of its own: `python -m bench.work_ours`. Prints JSON."""

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import hardsave
from bench.floor import BareInsert
from bench.machine import check
from bench.stopwatch import in_turns, median, timed
from bench.store_file import url
from hardsave.stores.base import Durability

ROUNDS = 600
CONCURRENCY = 8


def steps(path: Path, durability: Durability, count: int) -> dict[str, Any]:
    """Seconds a step under each policy, in turns with the bare commits that it needs."""
    floor = BareInsert(path.with_suffix(".floor"), durability)
    with hardsave.open(url(path), durability=durability) as vault:
        vault.tasks.add("t")
        with vault.tasks.attempt("t") as attempt:
            data = b"\0" * 80  # an entry of the journal, about
            floor.warm_up(data)
            for _ in range(1_500):  # the WAL of the store too
                attempt.step("warm", lambda: 1)
            found = in_turns(
                count,
                # Each of ours before its floor, so that nobody follows himself: what the one before
                # has left in the processor's caches halves the time of a bare commit.
                lambda: timed(lambda: attempt.step("one", lambda: 1))[0],
                lambda: floor.insert(data),
                lambda: timed(lambda: attempt.step("two", lambda: 1, unknown="fail"))[0],
                lambda: floor.insert(data) + floor.insert(data),
            )
            alone = timed(lambda: [attempt.step("s", lambda: 1) for _ in range(count)])[0] / count
    one, bare, two, bare_twice = map(median, found)
    floor.close()
    return {"one": one, "two": two, "bare": bare, "bare_twice": bare_twice, "alone": alone}


def begin(path: Path, durability: Durability, count: int) -> None:
    """Have so many tasks in progress, and die."""
    vault = hardsave.open(url(path), durability=durability)
    for number in range(count):
        vault.tasks.add(f"t{number}")
        vault.tasks.claim(f"t{number}").step("first", lambda: 1)
    os.kill(os.getpid(), signal.SIGKILL)


def finish(path: Path, durability: Durability, count: int) -> dict[str, Any]:
    """Seconds from the restart until all of them are done."""
    repeated = []

    def handler(attempt: hardsave.Attempt) -> int:
        attempt.step("first", lambda: repeated.append(1))
        return attempt.step("second", lambda: 1)

    start = time.perf_counter()
    with hardsave.open(url(path), durability=durability) as vault:
        with vault.tasks.runner("again") as runner:
            interrupted = len(runner.report.interrupted)
            runner.run(handler, concurrency=CONCURRENCY, until_idle=True)
        seconds = time.perf_counter() - start
        done = vault.tasks.stats().completed
    check(done == interrupted == count, f"{interrupted} interrupted, {done} of {count} done")
    return {"seconds": seconds, "repeated": len(repeated)}


def claims(path: Path, durability: Durability, count: int) -> dict[str, Any]:
    """Seconds for claim and finish of one task, in a ledger of 100 and in one of `count`."""
    small, large = path.with_suffix(".small"), path.with_suffix(".large")
    with (
        hardsave.open(url(small), durability=durability) as few,
        hardsave.open(url(large), durability=durability) as many,
    ):
        fill(few, 100)
        fill(many, count)
        numbers = {id(few): 0, id(many): 0}

        def one(vault: hardsave.Vault) -> float:
            number = numbers[id(vault)] = numbers[id(vault)] + 1
            vault.tasks.add(f"new {number}", priority=1)
            return timed(lambda: _claim_and_finish(vault))[0]

        found = in_turns(ROUNDS, lambda: one(few), lambda: one(many))
    return dict(zip(("small", "large"), map(median, found), strict=True))


def _claim_and_finish(vault: hardsave.Vault) -> None:
    tasks = vault.tasks
    (record,) = tasks._context.store.due(None, tasks._context.clock(), 1)
    tasks.claim(record.name).complete()


def fill(vault: hardsave.Vault, count: int) -> None:
    """Tasks of every state, half of them done, in large batches."""
    from hardsave.stores.base import Batch
    from hardsave.stores.ledger import TaskMove, Work

    context = vault.tasks._context
    vault.tasks.add("model")
    model = context.store.task(None, "model")
    assert model is not None
    states = ["completed", "pending", "completed", "failed"]
    for first in range(0, count, 1_000):
        some = range(first, min(first + 1_000, count))
        moves = [
            TaskMove(
                None,
                model._replace(name=f"t{n}", key=n.to_bytes(20, "big"), state=states[n % 4]),
            )
            for n in some
        ]
        entries = [context.entry("added", move.become) for move in moves]
        work = Work(moves=moves, entries=entries)
        context.store.commit(Batch(None, context.entry("filled", None), work=work))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["steps", "begin", "finish", "claims"])
    parser.add_argument("path", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--durability", default="power")
    options = parser.parse_args()
    call = {"steps": steps, "begin": begin, "finish": finish, "claims": claims}[options.what]
    print(json.dumps(call(options.path, options.durability, options.count)), flush=True)


if __name__ == "__main__":
    main()
