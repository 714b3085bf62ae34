"""A store of many checkpoints: ten thousand timelines in turn, messages of thirty words."""

import random
from pathlib import Path

import hardsave
from bench.store_file import url

TIMELINES = 10_000
LONG = "long"  # one timeline has more than a page at every size
_LONG_CHECKPOINTS = 60
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SEED = random.Random(7)  # no secret
_WORDS = ["".join(_SEED.choices(_LETTERS, k=_SEED.randint(3, 9))) for _ in range(5_000)]


def name(at: int) -> str:
    return f"run-{at:05}"


def message(chosen: random.Random, at: int) -> dict[str, str]:
    role = "assistant" if at % 2 else "user"
    return {"role": role, "content": " ".join(chosen.choices(_WORDS, k=30))}


def build(path: Path, begin: int, end: int, timelines: int = TIMELINES) -> None:
    """Save checkpoints `begin` to `end`, each an append to the next timeline."""
    chosen = random.Random(begin)  # no secret
    with hardsave.open(url(path), durability="process") as vault:
        if begin == 0:
            long = vault.timeline(LONG)
            for at in range(_LONG_CHECKPOINTS):
                long.append({"messages": [message(chosen, at)]})
        lines = [vault.timeline(name(at)) for at in range(timelines)]
        for at in range(begin, end):
            lines[at % timelines].append({"messages": [message(chosen, at // timelines)]})
