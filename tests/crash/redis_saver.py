"""Saves on a timeline of its own without a pause, and says which saves have returned.

python -m tests.crash.redis_saver URL TIMELINE
"""

import sys

from hardsave.errors import Conflict
from hardsave.stores.redis import RedisStore
from hardsave.testing.batches import Line


def main() -> None:
    url, name = sys.argv[1:]
    store = RedisStore(url)
    line = Line(store, name)
    while True:
        try:
            record = line.save()
        except Conflict:  # the server has lost what was acknowledged
            line.standing = store.timeline(None, name)
            continue
        sys.stdout.write(f"{record.id.hex()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
