"""Power losses in a recorded run: every disk that one may leave, opened and checked."""

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator

from tests.crash import disk
from tests.crash.disk import Disk, Image
from tests.crash.rig import Rig, Run

BATCH = 20  # states that one process looks at

State = tuple[str, Image, list[str]]
"""When it happened, what is on the disk, and what had been told by then."""
Ways = Callable[[Disk], Iterator[tuple[str, Image]]]


def states(run: Run, start: dict[str, bytes], ways: Ways) -> list[State]:
    """Disks after a power loss at each event of a run, each only once."""
    found: dict[bytes, State] = {}
    told = list(run.told_before)
    now = Disk(start)
    for at, event in enumerate(run.events):
        now.happen(event)
        if event.kind == "note":
            told = [*told, event.path]
        for how, image in ways(now):
            moment = f"{how} after event {at} ({event.kind} {event.path})"
            found.setdefault(_fingerprint(image, told), (moment, image, told))
    return list(found.values())


def only_lost(now: Disk) -> Iterator[tuple[str, Image]]:
    """The plainest loss: what was not synced is gone."""
    yield "lost", disk.lost(now)


def all_ways(dice: random.Random, often: int) -> Ways:
    """Lost and kept, and `often` times reordered and torn."""

    def ways(now: Disk) -> Iterator[tuple[str, Image]]:
        yield "lost", disk.lost(now)
        yield "kept", disk.kept(now)
        for _ in range(often):
            yield "reordered", disk.reordered(now, dice)
            yield "torn", disk.torn(now, dice)

    return ways


def faults(rig: Rig, found: list[State]) -> list[str]:
    """What does not hold in any of the states."""
    wrong: list[str] = []
    for start in range(0, len(found), BATCH):
        wrong += _faults_of_batch(rig, found[start : start + BATCH])
    return wrong


def _faults_of_batch(rig: Rig, batch: list[State]) -> list[str]:
    folders = [rig.folder() for _ in batch]
    cases = []
    for folder, (_, image, told) in zip(folders, batch, strict=True):
        disk.put(image, folder)
        cases.append((str(folder), told))
    wrong = []
    answers = rig.launcher.call("invariants.check_all", cases=cases)
    for folder, (moment, _, _), answer in zip(folders, batch, answers, strict=True):
        wrong += [f"{moment}, see {folder}: {fault}" for fault in answer]
        if not answer:
            shutil.rmtree(folder)
    return wrong


def _fingerprint(image: Image, told: list[str]) -> bytes:
    found = hashlib.blake2b(repr(told).encode())
    for path, data in sorted(image.items()):
        found.update(f"{path} {None if data is None else len(data)} ".encode())
        found.update(data or b"")
    return found.digest()
