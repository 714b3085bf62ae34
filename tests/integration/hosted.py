"""A program of one host, for `test_two_hosts`: holds a task, or looks for those of dead processes.

python -m tests.integration.hosted shared|local PATH hold|look SECONDS
"""

import json
import sys

import hardsave
from hardsave.errors import HardsaveError
from hardsave.stores.host import processes
from hardsave.stores.sqlite import SqliteStore
from tests.contract.shared_stores import SharedStore

FIRST_NUMBERING = 0xEFFFFFFC  # of processes: every Linux host has one of this id


def hold(vault: hardsave.Vault, seconds: float) -> None:
    """Claim the task; complete it when told to."""
    with vault.tasks.runner("holder", lease_seconds=seconds) as runner:
        attempt = runner.claim("t1")
        tell("claimed")
        sys.stdin.readline()
        try:
            attempt.complete()
        except HardsaveError as error:
            tell(type(error).__name__)
        else:
            tell("completed")


def look(vault: hardsave.Vault, seconds: float) -> None:
    """What a runner finds when it begins, each time it is told to look."""
    while sys.stdin.readline():
        try:
            with vault.tasks.runner("looker", lease_seconds=seconds) as runner:
                tell([each.why for each in runner.report.dead])
        except HardsaveError as error:
            tell(str(error))


def tell(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    kind, path, what, seconds = sys.argv[1:]
    processes.space = lambda pid="self": FIRST_NUMBERING
    store = SharedStore(path) if kind == "shared" else SqliteStore(path)
    with hardsave.Vault(store) as vault:
        {"hold": hold, "look": look}[what](vault, float(seconds))


if __name__ == "__main__":
    main()
