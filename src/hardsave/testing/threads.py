"""Many writers at once: exactly one of those who contend wins, and the others lose nothing."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from hardsave.errors import Conflict
from hardsave.stores.base import Batch, Query, Store
from hardsave.testing.batches import Line, an_entry, an_object, trace

PATIENCE_SECONDS = 60.0  # a store that hangs fails the test instead of stopping the run

Result = TypeVar("Result")


class Threads:
    """Needs a `store` fixture."""

    def test_of_two_writers_on_one_timeline_exactly_one_wins(self, store: Store) -> None:
        lines = [Line(store, writer="one"), Line(store, writer="two")]
        for turn in range(1, 26):
            batches = [line.next() for line in lines]
            answers = at_once([_attempt(store, batch) for batch in batches])
            won = [n for n, answer in enumerate(answers) if isinstance(answer, int)]
            assert len(won) == 1, answers
            winner, loser = batches[won[0]], batches[1 - won[0]]
            assert store.checkpoint(None, loser.event.id) is None
            assert store.missing(None, loser.objects) == set(loser.objects)
            assert winner.move is not None
            assert store.timeline(None, "main") == winner.move.become
            assert store.count(None, "main") == turn
            for line in lines:
                line.standing = winner.move.become

    def test_one_of_many_creates_a_timeline(self, store: Store) -> None:
        lines = [Line(store, writer=str(number)) for number in range(6)]
        answers = at_once([_attempt(store, line.next()) for line in lines])
        assert len([answer for answer in answers if isinstance(answer, int)]) == 1
        assert store.count(None, "main") == 1

    def test_writers_on_their_own_timelines_all_win(self, store: Store) -> None:
        lines = [Line(store, f"line {n}", user=(None, "ada")[n % 2]) for n in range(8)]

        def save(line: Line) -> list[int]:
            return [line.save().number for _ in range(20)]

        numbers = at_once([lambda line=line: save(line) for line in lines])  # type: ignore[misc] # bound to the loop
        for user in (None, "ada"):
            pairs = zip(lines, numbers, strict=True)
            together = [n for line, some in pairs if line.user == user for n in some]
            assert len(set(together)) == len(together) == 80
        for line, own in zip(lines, numbers, strict=True):
            assert own == sorted(own)
            found = store.checkpoints(line.user, Query(line.name, limit=99))
            assert found == line.saved[::-1]
            roots = [row.root for row in found]
            assert store.missing(line.user, roots) == set()
        assert list(store.verify()) == []

    def test_one_batch_from_many_threads_is_one_commit(self, store: Store) -> None:
        line = Line(store)
        line.save()
        for _ in range(5):
            batch = line.next()
            answers = at_once([lambda batch=batch: store.commit(batch)] * 4)  # type: ignore[misc] # bound to the loop
            assert len(set(answers)) == 1
            line.commit(batch)
        assert store.count(None, "main") == 6
        assert len({row.number for row in trace(store).checkpoints}) == 6

    def test_a_conflict_does_not_touch_those_who_commit_beside_it(self, store: Store) -> None:
        lines = [Line(store, f"line {number}") for number in range(4)]
        stale = [Line(store, f"line {number}", writer="stale") for number in range(4)]
        for line in lines:
            line.save()
        for _ in range(5):
            batches = [line.next() for line in lines]
            refused = [line.next() for line in stale]
            answers = at_once([_attempt(store, batch) for batch in batches + refused])
            assert [type(answer) for answer in answers] == [int] * 4 + [Conflict] * 4
            for line, batch in zip(lines, batches, strict=True):
                line.commit(batch)
        assert [store.count(None, line.name) for line in lines] == [6] * 4

    def test_a_reader_never_sees_half_a_batch(self, store: Store) -> None:
        line = Line(store)
        line.save()
        done = threading.Event()

        def write() -> None:
            try:
                for _ in range(60):
                    line.save()
            finally:
                done.set()

        def look() -> None:
            last = False
            while not last:
                last = done.is_set()
                standing = store.timeline(None, "main")
                assert standing is not None
                assert standing.head is not None
                head = store.checkpoint(None, standing.head)
                assert head is not None, "a head without its checkpoint"
                assert head.root in store.read(None, [head.root]), "a checkpoint without its state"
                assert store.count(None, "main") >= head.seq

        at_once([look, look, write])
        assert store.count(None, "main") == 61

    def test_an_object_stored_by_many_at_once_is_stored_once(self, store: Store) -> None:
        for turn in range(10):
            objects = an_object(f"shared {turn}")
            batches = [
                Batch(None, an_entry(f"{turn} {writer}"), objects=objects) for writer in range(4)
            ]
            at_once([_attempt(store, batch) for batch in batches])
        assert store.stats(None).objects == 10
        assert list(store.verify()) == []


def _attempt(store: Store, batch: Batch) -> Callable[[], int | Conflict]:
    def attempt() -> int | Conflict:
        try:
            return store.commit(batch)
        except Conflict as error:
            return error

    return attempt


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """What each call answers, when all of them start together."""
    barrier = threading.Barrier(len(calls))
    futures: list[Future[Result]] = [Future() for _ in calls]

    def run(call: Callable[[], Result], future: Future[Result]) -> None:
        try:
            barrier.wait(PATIENCE_SECONDS)
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 # raised where the answer is read
            future.set_exception(error)

    for pair in zip(calls, futures, strict=True):
        threading.Thread(target=run, args=pair, daemon=True).start()
    return [future.result(PATIENCE_SECONDS) for future in futures]
