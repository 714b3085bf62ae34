"""Appends in turns with bare INSERTs of the same bytes, as a process of its own. Prints JSON.

`python -m bench.beside_floor`; with a delay, each sync of either takes so much longer.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import hardsave
from bench.floor import BareInsert
from bench.machine import check
from bench.payload import Conversation
from bench.stopwatch import median, timed
from bench.store_file import Packs, url
from bench.worker import SyncCounter

WAL_TURNS = 300  # enough for 8 MiB, at which a WAL file is written over from its beginning
TURN_BYTES = 10_000  # what one turn stores is less, and a merge of packs is more


def run(place: Path, turns: int, delay_seconds: float) -> dict[str, Any]:
    """Medians of an append and of its floor, in seconds, and what was stored."""
    slow = SyncCounter(delay_seconds) if delay_seconds else None  # beneath all that is opened
    conversation = Conversation(turns)
    floor = BareInsert(place / "bare.db")
    ours, bare = [], []
    with hardsave.open(url(place / "appends.db")) as vault:
        line = vault.timeline("main")
        for turn in range(1, WAL_TURNS):
            line.append(conversation.delta(turn))
        packs = Packs(place / "appends.db")
        line.append(conversation.delta(WAL_TURNS))
        data = _one_turn(packs, b"")
        floor.warm_up(data)
        for turn in range(WAL_TURNS + 1, turns + 1):
            if turn % 2:  # every other time the floor goes first, with the bytes before
                bare.append(floor.insert(data))
            ours.append(timed(partial(line.append, conversation.delta(turn)))[0])
            data = _one_turn(packs, data)
            if not turn % 2:
                bare.append(floor.insert(data))
        check(line.load() == conversation.state(turns), "what was appended is not there")
        packs.close()
    floor.close()
    check(slow is None or slow.count > turns, "the delay was not in the way of all syncs")
    found = {"append": median(ours), "floor": median(bare)}
    return {**found, "bytes": len(data), "pragmas": floor.pragmas}


def _one_turn(packs: Packs, before: bytes) -> bytes:
    """The pack of the last append; `before` if a merge has taken it in already."""
    return next((pack for pack in packs.fresh() if len(pack) < TURN_BYTES), before)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", type=Path)
    parser.add_argument("turns", type=int)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    given = parser.parse_args()
    print(json.dumps(run(given.place, given.turns, given.delay_ms / 1000)))


if __name__ == "__main__":
    main()
