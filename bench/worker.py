"""A process of the crowd: saves from threads, or as one of several processes. Prints JSON.

It runs on its own so that nothing else is loaded, and so that the VFS underneath can be
replaced before the store loads its own on top of it.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import apsw

import hardsave
from bench.machine import check
from bench.payload import Conversation
from bench.stopwatch import timed

SLOW_SECONDS = 0.002


class SyncCounter(apsw.VFS):
    """The default VFS, which counts its syncs and makes each as slow as asked."""

    def __init__(self, delay_seconds: float) -> None:
        self.delay_seconds = delay_seconds
        self.count = 0
        self.beneath = apsw.vfs_names()[0]
        super().__init__("sync-counter", base=self.beneath, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _CountedFile(self, name, flags)


class _CountedFile(apsw.VFSFile):
    def __init__(self, counter: SyncCounter, name: Any, flags: list[int]) -> None:
        self._counter = counter
        super().__init__(counter.beneath, name, flags)

    def xSync(self, flags: int) -> None:
        self._counter.count += 1
        if self._counter.delay_seconds:
            time.sleep(self._counter.delay_seconds)
        super().xSync(flags)


# Threads


def threads(url: str, sync: str, crowd: int, saves: int, rounds: int) -> dict[str, Any]:
    """Rates of one thread and of many, round by round, and the syncs that the many took."""
    counter = None
    if sync != "real":
        counter = SyncCounter(SLOW_SECONDS if sync == "slow" else 0.0)
    talks = [Conversation(saves, number=number) for number in range(crowd)]
    found: dict[str, Any] = {"one": [], "many": [], "saves": 0, "syncs": 0}
    with hardsave.open(url) as vault:
        for number in range(rounds):
            alone, _ = timed(Crowd(vault, f"alone-{number}", talks[:1]).run)
            found["one"].append(saves / alone)
            many = Crowd(vault, f"many-{number}", talks)
            before = counter.count if counter else 0
            together, _ = timed(many.run)
            found["many"].append(crowd * saves / together)
            found["saves"] += crowd * saves
            found["syncs"] += counter.count - before if counter else 0
    return found


class Crowd:
    """Threads with a timeline each. Everything but the saves is made before they run."""

    def __init__(self, vault: hardsave.Vault, name: str, talks: list[Conversation]) -> None:
        self._talks = talks
        self._lines = [vault.timeline(f"{name}-{number}") for number in range(len(talks))]
        for line in self._lines:
            line.save({"messages": [], "turn": 0})

    def run(self) -> None:
        running = [
            threading.Thread(target=_save_all, args=pair)
            for pair in zip(self._lines, self._talks, strict=True)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        for line, talk in zip(self._lines, self._talks, strict=True):
            check(len(line) == talk.turns + 1, f"{line.name} lost a save")
            check(line.load() == talk.delta(talk.turns), f"{line.name} is not what was saved")


def _save_all(line: hardsave.Timeline, talk: Conversation) -> None:
    for turn in range(1, talk.turns + 1):
        line.save(talk.delta(turn))


# Processes


def process(url: str, number: int, saves: int) -> dict[str, Any]:
    """The latency of every save, once the word is given; what failed, in words."""
    talk = Conversation(saves, number=number)
    times: list[float] = []
    errors: list[str] = []
    with hardsave.open(url) as vault:
        line = vault.timeline(f"process-{number}")
        print("ready", flush=True)
        sys.stdin.readline()
        for turn in range(1, saves + 1):
            delta = talk.delta(turn)
            begin = time.perf_counter()
            try:
                line.save(delta)
            except hardsave.HardsaveError as error:
                errors.append(str(error))
            times.append(time.perf_counter() - begin)
    return {"times": times, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    several = commands.add_parser("threads")
    several.add_argument("--sync", choices=("real", "counted", "slow"), required=True)
    several.add_argument("--crowd", type=int, required=True)
    several.add_argument("--rounds", type=int, required=True)
    one = commands.add_parser("process")
    one.add_argument("--number", type=int, required=True)
    for command in (several, one):
        command.add_argument("--saves", type=int, required=True)
        command.add_argument("url")
    given = vars(parser.parse_args())
    runs: dict[str, Callable[..., dict[str, Any]]] = {"threads": threads, "process": process}
    run = runs[given.pop("command")]
    print(json.dumps(run(**given)))


if __name__ == "__main__":
    main()
