"""What holds after every crash, looked at by a fresh process.

The store opens. Every acknowledged save is there, under its id and with its content. At
most the save in flight is there besides. `verify` finds nothing. The next save works, and
is there when the store is opened again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import hardsave
from hardsave.errors import HardsaveError
from tests.crash import purging, scenarios


@dataclass
class Promise:
    """What a process said about one timeline."""

    begun: int = -1
    done: dict[int, str] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)

    @property
    def last(self) -> int:
        return max(self.done, default=-1)


def promises(told: Iterable[str]) -> dict[str, Promise]:
    """What must be there, and what may be, by timeline."""
    found: dict[str, Promise] = {}
    for line in told:
        word, *rest = line.split()
        if word in ("failed", "exported", "purging", "purged"):
            continue
        promise = found.setdefault(rest[0], Promise())
        number = int(rest[1])
        if word == "dropped":
            promise.dropped.add(number)
            continue
        promise.begun = max(promise.begun, number)
        if word == "done":
            promise.done[number] = rest[2]
    return found


def check(folder: str, told: list[str]) -> list[str]:
    """What does not hold, one line each."""
    expected = promises(told)
    try:
        with hardsave.open(scenarios.url(folder)) as vault:
            scenarios.take_back(vault)
            faults = compare(vault, expected)
            faults += vault.store.verify().faults
            faults += _half_imports(vault) + _bad_exports(Path(folder), told)
        if any(line.startswith("purging") for line in told):
            faults += purging.faults(scenarios.url(folder), Path(folder), told)
        if faults:
            return faults
        lines = list(told)
        session = scenarios.Session(Path(folder), lines.append)
        for timeline in expected or ["main"]:
            session.append(timeline) if timeline != "side" else session.save(timeline)
        session.close()
        with hardsave.open(scenarios.url(folder)) as vault:
            return compare(vault, promises(lines)) + list(vault.store.verify().faults)
    except HardsaveError as error:
        return [f"{type(error).__name__}: {error}"]


def _half_imports(vault: hardsave.Vault) -> list[str]:
    found = len(vault.timeline(scenarios.IMPORTED))
    return [f"{found} of an import are there"] if found not in (0, scenarios.IMPORTED_SAVES) else []


def _bad_exports(folder: Path, told: Iterable[str]) -> list[str]:
    """An export that is there is whole, and one that was acknowledged is there."""
    wanted = max((int(line.split()[1]) for line in told if line.startswith("exported")), default=0)
    file = folder / scenarios.EXPORT
    if not file.exists():
        return ["the export is gone"] if wanted else []
    with hardsave.open("memory://") as empty:
        found = empty.import_file(file).checkpoints
    return [f"{found} of {wanted} checkpoints are in the export"] if found < wanted else []


def check_all(cases: list[tuple[str, list[str]]]) -> list[list[str]]:
    """`check` for many folders, one after the other, in one process."""
    return [check(folder, told) for folder, told in cases]


def compare(vault: hardsave.Vault, expected: dict[str, Promise]) -> list[str]:
    """Where the store differs from what was promised."""
    names = {line.name for line in vault.timelines()}
    known = {*expected, purging.LINE}  # which is looked at by itself
    faults = [f"timeline {name!r} was never begun" for name in sorted(names - known)]
    for name, promise in expected.items():
        if name in names:
            faults += _compare_line(vault, name, promise)
        elif promise.done:
            faults.append(f"timeline {name!r} is lost, with {len(promise.done)} saves")
    return faults


def _compare_line(vault: hardsave.Vault, name: str, promise: Promise) -> list[str]:
    page = vault.timeline(name).checkpoints(limit=1000)
    last = page[0].seq if page else 0
    if last < promise.last:
        return [f"timeline {name!r} ends at {last}, but {promise.last} was acknowledged"]
    faults = []
    if last > promise.begun:
        faults.append(f"timeline {name!r} goes on to {last}, but {promise.begun} was the last")
    if [found.seq for found in page] != [
        number for number in range(last, 0, -1) if number not in promise.dropped
    ]:
        faults.append(f"timeline {name!r} has gaps: {[found.seq for found in page]}")
    for found in page:
        if found.id != promise.done.get(found.seq, found.id):
            faults.append(f"{name}:{found.seq} is {found.id}, not {promise.done[found.seq]}")
        if vault.timeline(name).load(found.id) != scenarios.state(name, found.seq):
            faults.append(f"{name}:{found.seq} does not hold what was saved")
    return faults
