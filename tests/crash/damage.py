"""Stores that are damaged on purpose, and a reader that compares everything with the truth.

Every read is right or raises `Corrupt`. It is never wrong, shorter or empty.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw

import hardsave
from hardsave.errors import Corrupt
from hardsave.stores import packs
from hardsave.stores.local.database import CHECKSUM_VFS, load_checksums
from tests.crash import plants, scenarios
from tests.crash.invariants import Promise, promises
from tests.crash.scenarios import STORE, Session

Shape = Literal["closed", "live", "merged"]
SAVES = 30  # on each of two timelines

Damage = tuple[Literal["flip", "cut", "delete"], str, int]
"""What is done to which file (by its suffix): the bit that is flipped, the bytes that stay."""


class Reading(NamedTuple):
    """What reading everything gave: what was wrong, and how many reads raised `Corrupt`."""

    wrong: list[str]
    corrupt: int


def build(folder: str, shape: Shape, bugs: list[str] | None = None) -> list[str]:
    """Two timelines, one forked from the other. Returns what was told.

    closed   all of it is in the main file
    live     one half is in the main file, the other in a WAL that nobody has closed
    merged   as live, and the last to write was a merge of packs
    """
    scenarios.prepare()
    for bug in bugs or []:
        plants.PLANTS[bug]()
    told: list[str] = []
    session = Session(Path(folder), told.append)
    for number in range(SAVES):
        session.save("main") if number % 3 else session.append("main")
        if number % 10 == 9:
            session.merge()
    session.fork("main", "side")
    session.checkpoint("RESTART")
    for _ in range(SAVES):
        session.save("side")
    if shape == "closed":
        session.close()
    elif shape == "merged":
        session.merge()
    return told


def read_damaged(folder: str, told: list[str], damages: list[Damage]) -> list[Reading]:
    """Do each damage to a copy of its own, and read that."""
    found = []
    for damage in damages:
        copy = Path(folder + "-damaged")
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm"))
        inflict(copy, damage)
        found.append(read(str(copy), told))
        shutil.rmtree(copy)
    return found


def inflict(folder: Path, damage: Damage) -> None:
    kind, suffix, at = damage
    path = folder / (STORE + suffix)
    if kind == "delete":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:at])
    else:
        data = bytearray(path.read_bytes())
        data[at // 8] ^= 1 << at % 8
        path.write_bytes(data)


def forge(folder: str) -> None:
    """Change what every pack holds, length for length, beneath valid page checksums."""
    load_checksums()
    connection = apsw.Connection(f"{folder}/{STORE}", vfs=CHECKSUM_VFS)
    query = "SELECT id, directory, body, size FROM packs"
    rows: list[Any] = connection.execute(query).fetchall()
    for pack, directory, body, size in rows:
        objects = packs.unpack(directory, body, size).items()
        forged = [(address, data.replace(b"user", b"USER")) for address, data in objects]
        (made,) = packs.pack(forged, target=None)
        connection.execute("UPDATE packs SET body = ? WHERE id = ?", (made.body, pack))
    connection.close()


def read(folder: str, told: list[str], bugs: list[str] | None = None) -> Reading:
    """Read everything there is, in every way there is, and compare it with what was told."""
    for bug in bugs or []:
        plants.PLANTS[bug]()
    try:
        vault = hardsave.open(scenarios.url(folder))
    except Corrupt:
        return Reading([], 1)
    except Exception as error:  # noqa: BLE001 # anything but Corrupt is a finding
        return Reading([f"open: {type(error).__name__}: {error}"], 0)
    with vault:
        return _read_all(vault, promises(told))


def _read_all(vault: hardsave.Vault, truth: dict[str, Promise]) -> Reading:
    wrong: list[str] = []
    corrupt = 0
    for what, get, expected in _questions(vault, truth):
        try:
            got = get()
        except Corrupt:
            corrupt += 1
        except Exception as error:  # noqa: BLE001 # anything but Corrupt is a finding
            wrong.append(f"{what}: {type(error).__name__}: {error}")
        else:
            if got != expected:
                wrong.append(f"{what}: {got!r:.60} instead of {expected!r:.60}")
    return Reading(wrong + _complaints_about_verify(vault, corrupt), corrupt)


def _complaints_about_verify(vault: hardsave.Vault, corrupt: int) -> list[str]:
    """It raises nothing, and where reads are `Corrupt` it reports something."""
    try:
        verification = vault.store.verify()
    except Exception as error:  # noqa: BLE001 # nothing is expected, so anything is a finding
        return [f"verify: {type(error).__name__}: {error}"]
    return ["verify finds nothing"] if corrupt and verification.ok else []


Question = tuple[str, Callable[[], object], object]


def _questions(vault: hardsave.Vault, truth: dict[str, Promise]) -> Iterator[Question]:
    """Every read, with its right answer."""
    yield "timelines", lambda: [line.name for line in vault.timelines()], sorted(truth)
    forks = [name for name, promise in truth.items() if 0 in promise.done]
    store = vault._context.store
    yield "log", lambda: [entry.timeline for entry in store.log(None, 0, 100)], forks
    for name, promise in truth.items():
        yield from _questions_about(vault, name, {n: i for n, i in promise.done.items() if n})


def _questions_about(vault: hardsave.Vault, name: str, ids: dict[int, str]) -> Iterator[Question]:
    last = max(ids)
    newest_first = [(number, ids[number]) for number in range(last, 0, -1)]

    def listed() -> list[tuple[int, str]]:
        """In pages, as people turn them."""
        found: list[tuple[int, str]] = []
        after: str | None = None
        while True:
            page = vault.timeline(name).checkpoints(limit=25, after=after)
            found += [(each.seq, each.id) for each in page]
            after = page.next
            if after is None:
                return found

    def head() -> str | None:
        found = vault.timeline(name).head
        return found.id if found else None

    yield f"checkpoints of {name}", listed, newest_first
    yield f"length of {name}", lambda: len(vault.timeline(name)), last
    yield f"head of {name}", head, ids[last]
    for number, id in newest_first:
        yield from _questions_about_one(vault, name, number, id)


def _questions_about_one(
    vault: hardsave.Vault, name: str, number: int, id: str
) -> Iterator[Question]:
    place = f"{name}:{number}"
    yield f"{place} by id", lambda: (vault.get(id).timeline, vault.get(id).seq), (name, number)
    yield f"{place} by number", lambda: vault.get(place).id, id
    truth = scenarios.state(name, number)
    yield f"{place} loaded", lambda: vault.timeline(name).load(id), truth


def flips(path: Path, suffix: str, count: int, dice: random.Random) -> list[Damage]:
    bits = path.stat().st_size * 8
    return [("flip", suffix, bit) for bit in dice.sample(range(bits), min(count, bits))]


def cuts(path: Path, suffix: str, count: int, dice: random.Random) -> list[Damage]:
    """Cut anywhere, and at the ends of pages, where it shows least."""
    size = path.stat().st_size
    anywhere = dice.sample(range(size), count // 2)
    pages = dice.sample(range(0, size, 4096), min(count - count // 2, size // 4096))
    return [("cut", suffix, at) for at in [*anywhere, *pages]]
