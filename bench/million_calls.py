"""One call on a large store, in a process of its own: `python -m bench.million_calls URL CALL`.

Prints what it cost as JSON: CPU seconds of the call, its peak memory, how much it answered.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hardsave
from bench.machine import check
from bench.million_store import LONG, TIMELINES, message, name

REPEATED = 30  # calls of less than a few milliseconds: the median of so many
WARM = 200  # timelines whose handles are warm
APPENDS = 2_000


class Cost(NamedTuple):
    """What one call took."""

    cpu: float
    peak_bytes: int
    answered: int = 0


def _once(work: Callable[[], int]) -> tuple[float, int]:
    begin = time.process_time()
    answered = work()
    return time.process_time() - begin, answered


def _repeated(work: Callable[[], int]) -> tuple[float, int]:
    found = sorted(_once(work) for _ in range(REPEATED))
    return found[len(found) // 2]


def open_again(url: str) -> tuple[float, int]:
    def work() -> int:
        hardsave.open(url).close()
        return 1

    return _repeated(work)


def page(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:
        line = vault.timeline(LONG)
        return _repeated(lambda: len(line.checkpoints(limit=50)))


def newest(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:
        return _repeated(lambda: len(vault.sessions(limit=50)))


def stats(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:
        return _repeated(lambda: vault.store.stats().checkpoints)


def follow(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:

        def work() -> int:
            return sum(1 for _ in vault.follow(stop=lambda: True))

        return _repeated(work)


def poll(url: str) -> tuple[float, int]:
    """A hundred polls of a follower to which nothing happens; the cost of one."""
    polls = 100
    with hardsave.open(url) as vault:
        asked = iter(range(polls))
        following = vault.follow(poll_seconds=0.001, stop=lambda: next(asked, None) is None)
        cpu, answered = _once(lambda: sum(1 for _ in following))
    return cpu / polls, answered


def append(url: str) -> tuple[float, int]:
    chosen = random.Random(1)  # no secret
    with hardsave.open(url, durability="process") as vault:
        lines = [vault.timeline(name(at * (TIMELINES // WARM))) for at in range(WARM)]
        for line in lines:
            line.append({"messages": [message(chosen, 0)]})

        def work() -> int:
            for at in range(APPENDS):
                lines[at % WARM].append({"messages": [message(chosen, at)]})
            return APPENDS

        cpu, answered = _once(work)
    return cpu / APPENDS, answered


def head(url: str) -> tuple[float, int]:
    """The head's whole state, read by a process that has read nothing else."""
    with hardsave.open(url) as vault:
        line = vault.timeline(name(TIMELINES // 3))
        return _once(lambda: len(line.load()["messages"]))


def verify(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:

        def work() -> int:
            found = vault.store.verify()
            check(found.ok, f"not sound: {found.faults[:3]}")
            return found.checkpoints

        return _once(work)


def gc(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:
        return _once(lambda: vault.store.gc().objects)


def compact(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:

        def work() -> int:
            vault.store.compact()
            return 1

        return _once(work)


def export(url: str) -> tuple[float, int]:
    target = Path(url.removeprefix("sqlite:///")).with_suffix(".export")
    with hardsave.open(url) as vault:
        return _once(lambda: vault.export_file(target).checkpoints)


def retention(url: str) -> tuple[float, int]:
    with hardsave.open(url) as vault:
        return _once(lambda: vault.retention.plan().considered)


def search(url: str) -> tuple[float, int]:
    """The first search of a store whose index is not begun yet."""
    with hardsave.open(url) as vault:
        cpu, unsearched = _once(lambda: vault.search("aurora").unsearched)
    check(unsearched > 0, "the whole index was built by one search")
    return cpu, unsearched


def index(url: str) -> tuple[float, int]:
    """The search index, from nothing but what the first search has taken in."""
    with hardsave.open(url) as vault:
        return _once(lambda: len(vault.search("aurora", wait=True)))


CALLS: dict[str, Callable[[str], tuple[float, int]]] = {
    call.__name__: call
    for call in (
        *(open_again, page, newest, stats, follow, poll, append, head, verify, gc, compact),
        *(export, retention, search, index),
    )
}


def main() -> None:
    url, call = sys.argv[1:]
    cpu, answered = CALLS[call](url)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(Cost(cpu, peak, answered)))


if __name__ == "__main__":
    main()
