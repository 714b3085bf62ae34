"""A process that appends for as long as it is told, to a store with or without a backup.

`python -m bench.appender`. For every line that it is sent, a number of seconds, it prints JSON:
how often it has appended, the time and the processor's time that it took, threads included, and
its resident memory afterwards.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import hardsave
from bench.payload import ALPHABET, CHARACTERS
from hardsave.stores.sqlite import SqliteStore

TEXTS = 1_000  # that have not a letter in common; a pack holds a quarter as many
KILOBYTE = 1024


class Talk:
    """Turns without end, no two messages alike, and made in no time.

    Messages are windows on one long text, side by side; each time round they are one letter
    further on.
    """

    def __init__(self) -> None:
        letters = (TEXTS + 1) * CHARACTERS
        self._text = "".join(random.Random(0).choices(ALPHABET, k=letters))  # no secret
        self._count = 0
        self._turn = 0

    def next(self) -> dict[str, Any]:
        self._turn += 1
        messages = [self._message(role) for role in ("user", "assistant")]
        return {"messages": messages, "turn": self._turn}

    def _message(self, role: str) -> dict[str, str]:
        further, at = divmod(self._count, TEXTS)
        self._count += 1
        begin = at * CHARACTERS + further % CHARACTERS
        return {"role": role, "content": self._text[begin : begin + CHARACTERS]}


def append(line: hardsave.Timeline, talk: Talk, seconds: float) -> dict[str, float]:
    appends = 0
    begin, spent = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        line.append(talk.next())
        appends += 1
    taken = time.perf_counter() - begin
    spent = time.process_time() - spent
    return {"appends": appends, "seconds": taken, "spent": spent, "resident": resident()}


def resident() -> int:
    """Bytes of memory that this process has now; 0 where the kernel does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * KILOBYTE


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--no-backup", action="store_true")
    given = parser.parse_args()
    talk = Talk()
    store = SqliteStore(given.path, backup=not given.no_backup)
    with hardsave.Vault(store) as vault:
        line = vault.timeline("main")
        print("ready", flush=True)
        for told in sys.stdin:
            print(json.dumps(append(line, talk, float(told))), flush=True)


if __name__ == "__main__":
    main()
