"""Following what is committed, beside the writers: nothing is missed and nothing comes late."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hardsave.objects.records import CheckpointRecord, EntryRecord, LogRecord
from hardsave.stores.base import Batch, Store
from hardsave.testing.batches import Line, a_note
from hardsave.testing.duties import happened
from hardsave.testing.processes import ProcessPool
from hardsave.testing.threads import at_once

_PAGE = 7  # many pages of few rows
_EVERYTHING = 10_000

Row = CheckpointRecord | LogRecord | EntryRecord


class Following:
    """Needs a `store` fixture, `open_store`, and the `pool` of `Processes`."""

    def open_store(self, folder: Path) -> Store:
        raise NotImplementedError

    def test_a_follower_beside_writers_misses_nothing(self, store: Store) -> None:
        lines = [Line(store, f"line {n}", user=(None, None, "ada")[n]) for n in range(3)]
        done = threading.Event()
        left = [len(lines)]

        def write(line: Line) -> None:
            try:
                for turn in range(12):
                    label = f"{line.name} {turn}"
                    line.save()
                    store.commit(a_note(label, line.user))
                    store.commit(Batch(line.user, happened(label, None)))
                    time.sleep(0.001)  # so that followers come between
            finally:
                left[0] -= 1
                if not left[0]:
                    done.set()

        def follow(user: str | None) -> None:
            assert followed(store, user, done.is_set) == everything(store, user)

        calls: list[Callable[[], None]] = [lambda line=line: write(line) for line in lines]  # type: ignore[misc] # bound to the loop
        calls += [lambda: follow(None), lambda: follow("ada")]
        at_once(calls)

    def test_a_follower_beside_other_processes_misses_nothing(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        users = (None, None, "ada")  # numbers are given per user: two processes write for one
        workers = pool.at(tmp_path, len(users))
        for at, (each, user) in enumerate(zip(workers, users, strict=True)):
            each.tell("save", timeline=f"line {at}", count=25, writer=f"w{at}", user=user)
        answered: list[object] = []

        def is_done() -> bool:
            while len(answered) < len(workers) and workers[len(answered)].has_answered():
                answered.append(workers[len(answered)].answer())
            return len(answered) == len(workers)

        found = followed(store, None, is_done)
        assert found == everything(store, None)
        assert len(found) == 50
        assert store.latest_number(None) >= found[-1].number
        assert len(everything(store, "ada")) == 25
        store.close()


def followed(store: Store, user: str | None, is_done: Callable[[], bool]) -> list[Row]:
    """All that a follower sees until the writers have ended: up to the latest number at a time,
    below which nothing is still to come."""
    found: list[Row] = []
    after, is_last = 0, False
    while not is_last:
        is_last = is_done()
        latest = store.latest_number(user)
        found += _between(store, user, after, latest)
        after = latest
    return found


def everything(store: Store, user: str | None) -> list[Row]:
    return _between(store, user, 0, store.latest_number(user))


def _between(store: Store, user: str | None, after: int, upto: int) -> list[Row]:
    rows: list[Row] = [
        *_pages(lambda at: store.saved(user, at, _PAGE), after, upto),
        *_pages(lambda at: store.log(user, at, _PAGE), after, upto),
        *_pages(lambda at: store.happened(user, at, _PAGE), after, upto),
    ]
    return sorted(rows, key=lambda row: row.number)


def _pages(read: Callable[[int], Sequence[Row]], after: int, upto: int) -> list[Row]:
    found: list[Row] = []
    for _ in range(_EVERYTHING):
        rows = read(after)
        found += [row for row in rows if row.number <= upto]
        if not rows or rows[-1].number >= upto:
            return found
        after = rows[-1].number
    raise AssertionError("pages without an end")
