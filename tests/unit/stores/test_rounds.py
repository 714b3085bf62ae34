"""Several commits in one transaction: what happens to one, or to all, is told to the right ones."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from hardsave.errors import Conflict, Unavailable
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Batch, ObjectsGone
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.open import file_identity
from hardsave.stores.sqlite.write.transaction import Item, Transaction
from hardsave.testing.batches import Line, an_entry, an_object, but, some_objects, trace
from tests.unit.stores.background import PATIENCE_SECONDS, start
from tests.unit.stores.processes import eventually


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


class Together:
    """Commits that share a round: they queue up behind one that cannot get the file's lock."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.sizes: list[int] = []
        self.failing = 0  # so many rounds of several are still to fail
        self._transact = store._writer._transact
        store._writer._transact = self._counted  # type: ignore[method-assign] # to look on

    def _counted(self, items: Sequence[Item]) -> Transaction:
        self.sizes.append(len(items))
        fails = self.failing and len(items) > 1
        self.failing -= bool(fails)
        if not fails:
            return self._transact(items)
        real, file_identity.status_of = file_identity.status_of, lambda path: None
        try:
            return self._transact(items)
        finally:
            file_identity.status_of = real

    def commit(self, *batches: Batch) -> list[int | Exception]:
        """Commit all of them in one round; what each was answered."""
        held = FileLock(self.store.path + "-lock")
        held.acquire(60)
        store, sizes = self.store, self.sizes
        first = start(lambda: store.commit(Batch(None, an_entry(f"first {sizes}"))))
        assert eventually(lambda: store._writer._group._leader is not None)
        futures: list[Future[int]] = []
        for batch in batches:
            waiting = len(store._writer._group._waiting)
            futures.append(start(partial(store.commit, batch)))
            assert eventually(self._more_than(waiting))
        held.release()
        first.result(PATIENCE_SECONDS)
        answers = [_answer(future) for future in futures]
        held.close()
        return answers

    def _more_than(self, waiting: int) -> Callable[[], bool]:
        return lambda: len(self.store._writer._group._waiting) > waiting


def _answer(future: "Future[int]") -> int | Exception:
    try:
        return future.result(PATIENCE_SECONDS)
    except (Conflict, Unavailable, ValueError) as error:
        return error


def test_commits_that_wait_together_share_a_transaction(store: SqliteStore) -> None:
    together = Together(store)
    lines = [Line(store, f"line {n}") for n in range(4)]
    numbers = together.commit(*(line.next() for line in lines))
    assert together.sizes == [1, 4]
    assert numbers == [2, 3, 4, 5]
    assert store.stats(None).objects == 4
    assert store.verify() == []


def test_a_conflict_in_a_group_is_its_batchs_own(store: SqliteStore) -> None:
    good, bad, other = Line(store, "good"), Line(store, "bad"), Line(store, "other")
    bad.save()
    bad.standing = None
    stale = Line(store, "bad", writer="stale").next()
    gone = but(other.next(), requires=[b"?" * 20])
    answers = Together(store).commit(good.next(), stale, gone, Line(store, "last").next())
    assert isinstance(answers[0], int)
    assert isinstance(answers[1], Conflict)
    assert isinstance(answers[2], ObjectsGone)
    assert answers[3] == answers[0] + 1
    assert store.missing(None, stale.objects) == set(stale.objects)
    assert store.missing(None, gone.objects) == set(gone.objects)
    assert [row.name for row in store.timelines(None, None, 9)] == ["bad", "good", "last"]
    assert store.verify() == []


@pytest.mark.parametrize("leads", [True, False])
def test_a_value_that_cannot_be_stored_fails_no_other_callers_batch(
    store: SqliteStore, leads: bool
) -> None:
    batch = Line(store, "bad").next()
    assert isinstance(batch.event, CheckpointRecord)
    bad = batch._replace(event=batch.event._replace(status="\udcff"))
    good, last = Line(store, "good").next(), Line(store, "last").next()
    together = Together(store)
    answers = together.commit(*((bad, good, last) if leads else (good, bad, last)))
    assert together.sizes == [1, 3]
    assert isinstance(answers.pop(0 if leads else 1), UnicodeEncodeError)
    assert answers == [2, 3]
    assert store.verify() == []


def test_those_who_have_waited_for_the_lock_together_give_up_together(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = FileLock(store.path + "-lock")
    held.acquire(60)
    acquire, tries = store._lock.acquire, []

    def impatient(seconds: float) -> None:
        tries.append(seconds)
        assert len(tries) > 1 or eventually(lambda: len(store._writer._group._waiting) == 5)
        acquire(0.05)

    monkeypatch.setattr(store._lock, "acquire", impatient)
    futures = [start(lambda n=n: Line(store, f"line {n}").save()) for n in range(6)]  # type: ignore[misc] # bound to the loop
    errors = [future.exception(PATIENCE_SECONDS) for future in futures]
    assert {type(error) for error in errors} == {Unavailable}
    assert len({id(error) for error in errors}) == 6
    assert len(tries) == 2  # of the first, and of all others
    held.close()
    Line(store).save()


def test_one_object_stored_by_several_in_a_group_is_stored_once(store: SqliteStore) -> None:
    shared = some_objects("shared", 3)
    together = Together(store)
    together.commit(*(Batch(None, an_entry(f"{n}"), objects=shared) for n in range(3)))
    assert together.sizes == [1, 3]
    assert store.stats(None).objects == 3
    assert store.missing(None, shared) == set()
    assert store.verify() == []


def test_an_object_of_a_refused_batch_is_stored_by_the_next_one(store: SqliteStore) -> None:
    """The two are in one round; the first is taken back after its pack was written."""
    line = Line(store, "line")
    line.save()
    shared = an_object("shared")
    batch = line.next(objects=shared)
    assert isinstance(batch.event, CheckpointRecord)
    same_number = but(batch, event=batch.event._replace(seq=1))
    answers = Together(store).commit(same_number, Batch(None, an_entry("x"), objects=shared))
    assert isinstance(answers[0], Exception)
    assert isinstance(answers[1], int)
    assert store.missing(None, shared) == set()
    assert store.read(None, list(shared)) == shared
    assert store.verify() == []


def test_when_a_group_fails_its_leader_is_told_and_the_others_repeat(store: SqliteStore) -> None:
    together = Together(store)
    together.failing = 1
    lines = [Line(store, f"line {n}") for n in range(3)]
    answers = together.commit(*(line.next() for line in lines))
    assert isinstance(answers[0], Unavailable)
    assert all(isinstance(answer, int) for answer in answers[1:])
    assert [store.count(None, line.name) for line in lines] == [0, 1, 1]
    assert store.verify() == []


def test_objects_of_a_group_that_failed_are_not_there_to_rely_on(store: SqliteStore) -> None:
    store.missing(None, [b"?" * 20])  # so that what is stored is kept in mind from now on
    together = Together(store)
    together.failing = 10
    lost = [an_object(f"lost {n}") for n in range(3)]
    before = trace(store)
    answers = together.commit(
        *(Batch(None, an_entry(f"lost {n}"), objects=objects) for n, objects in enumerate(lost))
    )
    assert isinstance(answers[0], Unavailable)
    if any(isinstance(answer, int) for answer in answers):
        lost = [objects for objects, a in zip(lost, answers, strict=True) if not isinstance(a, int)]
    else:
        assert trace(store).counts == before.counts
    for objects in lost:
        assert store.missing(None, objects) == set(objects)
        assert not store.read(None, list(objects)).keys() & objects.keys()
        with pytest.raises(ObjectsGone):
            store.commit(Batch(None, an_entry(f"relies on {objects}"), requires=list(objects)))


def test_after_a_group_that_failed_what_is_stored_can_be_relied_on(store: SqliteStore) -> None:
    store.missing(None, [b"?" * 20])  # so that what is stored is kept in mind from now on
    together = Together(store)
    together.failing = 10
    together.commit(
        *(Batch(None, an_entry(f"lost {n}"), objects=an_object(f"lost {n}")) for n in range(3))
    )
    together.failing = 0
    for n in range(5):
        objects = an_object(f"kept {n}")
        store.commit(Batch(None, an_entry(f"kept {n}"), objects=objects))
        store.commit(Batch(None, an_entry(f"relies {n}"), requires=list(objects)))
    assert store.verify() == []


def test_a_closing_store_waits_for_a_group_under_way(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "closing.db")
    held = FileLock(store.path + "-lock")
    held.acquire(60)
    saved: list[int] = []
    thread = threading.Thread(target=lambda: saved.append(Line(store).save().number))
    thread.start()
    assert eventually(lambda: store._writer._group._leader is not None)
    threading.Timer(0.2, held.release).start()
    store.close()
    thread.join()
    assert saved == [1]
    again = SqliteStore(tmp_path / "closing.db")
    assert again.count(None, "main") == 1
    again.close()
    held.close()


def test_an_id_that_was_used_before_is_recognised_beside_others(store: SqliteStore) -> None:
    line, other = Line(store), Line(store, "other", writer="other")
    first = line.save()
    line.save()
    batch = line.next(objects=an_object("of the repeat"))
    again = but(batch, event=batch.event._replace(id=first.id))
    answers = Together(store).commit(again, other.next())
    assert answers[0] == first.number
    assert isinstance(answers[1], int)
    assert store.timeline(None, "main") == line.standing
    assert store.missing(None, batch.objects) == set(batch.objects)
    line.save()
    assert store.verify() == []
