"""A process that saves at a steady rate: `python -m bench.steady_saver URL`.

For every line that it is sent, `SAVES RATE`, it prints JSON: when each checkpoint was there, by its
id, as the monotonic clock of this machine says.
"""

import json
import random
import sys
import time

import hardsave
from bench.million_store import message


def save(line: hardsave.Timeline, saves: int, rate: float) -> dict[str, float]:
    chosen = random.Random(saves)  # no secret
    found: dict[str, float] = {}
    began = time.monotonic()
    for at in range(saves):
        time.sleep(max(0.0, began + at / rate - time.monotonic()))
        made = line.append({"messages": [message(chosen, at)]})
        found[made.id] = time.monotonic()
    return found


def main() -> None:
    with hardsave.open(sys.argv[1]) as vault:
        line = vault.timeline("live")
        print("ready", flush=True)
        for told in sys.stdin:
            saves, rate = told.split()
            print(json.dumps(save(line, int(saves), float(rate))), flush=True)


if __name__ == "__main__":
    main()
