"""A client of a store on PostgreSQL: threads that save, each on a timeline of its own, and in turn
without and with a deadline, as requests to a server have it.

`python -m tests.crash.postgres_client URL NAME THREADS` prints the id of each save that returned.
"""

import itertools
import sys
import threading

import hardsave


def work(vault: hardsave.Vault, name: str) -> None:
    line = vault.timeline(name)
    for seconds in itertools.cycle((3600, 20)):
        with hardsave.deadline(seconds):
            saved = line.append({"said": [name]})
        sys.stdout.write(f"{saved.id}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    url, name, count = sys.argv[1:]
    with hardsave.open(url) as vault:
        for at in range(int(count)):
            threading.Thread(target=work, args=(vault, f"{name}{at}"), daemon=True).start()
        threading.Event().wait()
