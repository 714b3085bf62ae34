"""Two stores that live their own lives and exchange files, in any order."""

import contextlib
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Conflict, NotFound
from hardsave.stores.base import Batch, Changes
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.sqlite import SqliteStore
from hardsave.testing.batches import an_entry
from hardsave.vault.vault import Vault
from tests.unit.objects.strategies import examples
from tests.unit.vault.stage import Clock

NAMES = ("a", "b", "c")


class Life:
    """A vault, and what may happen to it."""

    def __init__(self, vault: Vault, draw: random.Random) -> None:
        self.vault = vault
        self.draw = draw

    def live(self) -> None:
        steps = [self.save] * 6 + [self.fork, self.rewind, self.delete, self.undo, self.drop]
        steps += [self.clear, self.remove]
        with contextlib.suppress(NotFound, Conflict):  # there may be nothing of the kind
            self.draw.choice(steps)()

    def save(self) -> None:
        line = self.vault.timeline(self.draw.choice(NAMES))
        line.append({"log": [self.draw.random()] * self.draw.choice([1, 40]), "n": 1})

    def fork(self) -> None:
        name = self.draw.choice(NAMES)
        self.vault.timeline(self.draw.choice(NAMES)).fork("@~1", name=name)

    def rewind(self) -> None:
        self.vault.timeline(self.draw.choice(NAMES)).rewind("@~2")

    def delete(self) -> None:
        self.vault.delete(f"{self.draw.choice(NAMES)}:{self.draw.randint(1, 6)}")

    def undo(self) -> None:
        self.vault.undo()

    def clear(self) -> None:
        self.vault.timeline(self.draw.choice(NAMES)).clear()

    def remove(self) -> None:
        self.vault.timeline(self.draw.choice(NAMES)).delete()

    def drop(self) -> None:
        found = self.vault.get(f"{self.draw.choice(NAMES)}:{self.draw.randint(1, 6)}")._record
        batch = Batch(None, an_entry("gone"), changes=Changes(drop=[found.id]))
        self.vault._context.store.commit(batch)


def visible(vault: Vault) -> dict[str, Any]:
    """Every checkpoint that is listed: its number, parent and state, by id."""
    return {
        each.id: (each.seq, each.parent, each.created_at, each.read())
        for line in vault.timelines()
        for each in line.checkpoints(limit=1_000)
    }


def histories(vault: Vault) -> dict[str, list[str]]:
    found = {}
    for line in vault.timelines():
        head = line.head
        found[line.name] = [] if head is None else [head.id, *(c.id for c in line.ancestors())]
    return found


def check_carried(source: Vault, target: Vault, folder: Path, names: list[str] | None) -> None:
    file, again = folder / "out", folder / "again"
    before, lines = visible(target), histories(target)
    source.export_file(file, timelines=names)
    done = target.import_file(file)
    after = visible(target)
    assert target.store.verify().faults == ()
    assert before.items() <= after.items()
    for name, history in histories(target).items():
        old = lines.get(name, [])
        assert old == [] or old[0] in history  # heads only go forwards
    assert done.checkpoints >= len(after) - len(before)
    assert done.skipped >= done.hidden
    repeated = target.import_file(file)
    assert (repeated.timelines, repeated.checkpoints, repeated.renamed) == ((), 0, {})
    with Vault(MemoryStore(), clock=Clock()) as empty:
        empty.import_file(file)
        assert empty.store.verify().faults == ()
        empty.export_file(again)
        assert again.read_bytes() == file.read_bytes()
        if names is None:
            assert visible(empty) == visible(source)
            assert histories(empty) == histories(source)


def play(a: Vault, b: Vault, folder: Path, seed: int, rounds: int) -> None:
    draw = random.Random(seed)
    lives = [Life(a, draw), Life(b, draw)]
    for _ in range(rounds):
        for life in lives:
            for _ in range(draw.randint(0, 6)):
                life.live()
        source, target = draw.sample(lives, 2)
        names = [line.name for line in source.vault.timelines()]
        chosen = draw.choice([None, [draw.choice(names)] if names else None])
        check_carried(source.vault, target.vault, folder, chosen)


@examples(12)
@given(st.integers(0, 1 << 32))
def test_files_between_two_stores_lose_nothing_and_repeat_nothing(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        a, b = (Vault(MemoryStore(), clock=Clock()) for _ in range(2))
        play(a, b, Path(folder), seed, rounds=4)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_on_sqlite(tmp_path: Path, seed: int) -> None:
    with (
        Vault(SqliteStore(tmp_path / "a.db", durability="process"), clock=Clock()) as a,
        Vault(SqliteStore(tmp_path / "b.db", durability="process"), clock=Clock()) as b,
    ):
        play(a, b, tmp_path, seed, rounds=4)


@pytest.mark.torture
@examples(5_000)
@given(st.integers(0, 1 << 62))
def test_the_same_for_a_long_time(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        a, b = (Vault(MemoryStore(), clock=Clock()) for _ in range(2))
        play(a, b, Path(folder), seed, rounds=8)
