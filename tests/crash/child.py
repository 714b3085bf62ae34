"""The side of the processes that are struck: `run` is called in a fresh process.

Also a program, for strace: python -m tests.crash.child ARGUMENTS-OF-RUN-AS-JSON
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from hardsave.stores.base import Durability
from tests.crash import plants, scenarios
from tests.crash.events import Journal
from tests.crash.injector import How, Layer, Strike, watch

Part = Literal["before", "steps", "beside"]


def run(
    folder: str,
    told: str,
    scenario: str,
    part: Part = "steps",
    watched: bool = True,
    strike: tuple[int, How, bool] | None = None,
    journal: str | None = None,
    forgiving: bool = False,
    durability: Durability = "power",
    bugs: list[str] | None = None,
) -> None:
    """Run one part of a scenario, and leave everything open."""
    tell = scenarios.teller(Path(told))
    layer: Layer | None = None
    if watched:
        planned = None if strike is None else Strike(*strike)
        record = None if journal is None else Journal(Path(journal))
        layer = watch(Path(folder), planned, record)
        tell = _both(tell, layer.note)
    chosen = scenarios.SCENARIOS[scenario]
    scenarios.prepare(merges=chosen.merges and part == "steps")
    for bug in bugs or []:
        plants.PLANTS[bug]()
    session = scenarios.Session(Path(folder), tell, forgiving=forgiving, durability=durability)
    session.take(getattr(chosen, part))
    if forgiving:  # once nothing goes wrong any more, the same process saves again
        if layer is not None:
            layer.heal()
        else:  # strace strikes once, and may not have done so yet
            session.take([lambda session: session.append("main")])
        session.append("main")


def _both(*tellers: Callable[[str], None]) -> Callable[[str], None]:
    def tell(text: str) -> None:
        for teller in tellers:
            teller(text)

    return tell


if __name__ == "__main__":
    run(**json.loads(sys.argv[1]))
    os._exit(0)  # as a process that ends without closing anything
