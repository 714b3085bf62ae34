"""Large things, the end of a store, and what is found when it is opened again."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.errors import Conflict, Misuse
from hardsave.objects.hashing import digest
from hardsave.stores import on_disk
from hardsave.stores.base import Batch, Query, Store
from hardsave.testing.batches import Line, a_note, an_entry, an_id, some_objects, trace


class Lasting:
    """Needs a `store` fixture, and `open_store`."""

    persists = True
    """Whether a store is still there after it was closed."""

    def open_store(self, folder: Path) -> Store:
        """Open the store in `folder`, for the first time or again."""
        raise NotImplementedError

    # Large things

    def test_a_large_object_comes_back(self, store: Store) -> None:
        noise = random.Random(5).randbytes(5 * 1024 * 1024)  # noqa: S311 # no secret
        dull = bytes(5 * 1024 * 1024)
        objects = {digest(noise): noise, digest(dull): dull}
        store.commit(Batch(None, an_entry("large"), objects=objects))
        assert store.read(None, list(objects)) == objects

    def test_many_objects_in_one_batch_come_back(self, store: Store) -> None:
        objects = some_objects("one of many", 3_000)
        line = Line(store)
        line.commit(line.next(objects=objects))
        assert store.missing(None, objects) == set()
        assert store.read(None, list(objects)) == objects
        assert store.stats(None).objects == 3_000

    def test_many_small_commits_stay_readable(self, store: Store) -> None:
        line = Line(store)
        for _ in range(100):
            line.save()
        roots = [row.root for row in line.saved]
        assert store.missing(None, roots) == set()
        for root in roots:
            assert root in store.read(None, [root])
        assert store.read(None, roots).keys() >= set(roots)
        assert list(store.verify()) == []

    def test_what_was_synced_is_there_and_saving_goes_on(self, store: Store) -> None:
        on_disk.sync(store)
        line = Line(store)
        line.save()
        on_disk.sync(store)
        line.save()
        assert [row.seq for row in store.checkpoints(None, Query(line.name, 9))] == [2, 1]

    # The end

    def test_closing_twice_is_fine(self, store: Store) -> None:
        Line(store).save()
        store.close()
        store.close()

    def test_every_use_after_closing_is_misuse(self, store: Store) -> None:
        batch = Line(store).next()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: store.commit(batch),
            lambda: store.read(None, list(batch.objects)),
            lambda: store.read(None, []),
            lambda: store.missing(None, list(batch.objects)),
            lambda: store.missing(None, []),
            lambda: store.timeline(None, "main"),
            lambda: store.timelines(None, None, 1),
            lambda: store.checkpoint(None, an_id("x")),
            lambda: store.checkpoints_between(None, bytes(12), b"\xff" * 12, 1),
            lambda: store.checkpoints(None, Query("main", limit=1)),
            lambda: store.count(None, "main"),
            lambda: store.log(None, 0, 1),
            lambda: store.log_before(None, None, 1),
            lambda: store.log_entry(None, b"?" * 12),
            lambda: store.children(None, an_id("x")),
            lambda: store.branches(None, "main", 1, 1),
            lambda: store.ancestors(None, an_id("x"), 1),
            lambda: store.saved(None, 0, 1),
            lambda: store.tombstone(None, an_id("x")),
            lambda: store.tombstones(None, "main", None, 1),
            lambda: store.put(None, batch.objects, pin=b"pin", seconds=1),
            lambda: store.unpin(None, b"pin"),
            lambda: store.collect(lambda data: ()),
            lambda: store.latest_number(None),
            lambda: store.once("turn"),
            lambda: store.stats(None),
            store.verify,
        ]
        for call in calls:
            with pytest.raises(Misuse):
                call()

    # Open again

    def test_everything_is_there_when_opened_again(self, tmp_path: Path) -> None:
        store = self._open_first(tmp_path)
        objects = some_objects("kept", 10)
        for user in (None, "ada"):
            line = Line(store, user=user)
            for number in range(3):
                line.save(name=f"step {number}", description="a\nb")
            line.commit(line.next(objects=objects))
            store.commit(a_note("a note", user=user))
        before = [trace(store, user) for user in (None, "ada")]
        store.close()
        again = self.open_store(tmp_path)
        assert [trace(again, user) for user in (None, "ada")] == before
        for user in (None, "ada"):
            found = again.read(user, list(objects))
            assert {address: found[address] for address in objects} == objects
        assert list(again.verify()) == []
        again.close()

    def test_work_goes_on_when_opened_again(self, tmp_path: Path) -> None:
        store = self._open_first(tmp_path)
        line = Line(store)
        first = line.next()
        number = line.commit(first)
        line.save()
        store.close()
        again = line.store = self.open_store(tmp_path)
        before = trace(again)
        assert again.commit(first) == number  # a repeat is still known
        assert trace(again) == before
        assert line.save().number > number
        assert again.timeline(None, "main") == line.standing
        again.close()

    def test_a_store_opened_twice_is_one_store(self, tmp_path: Path) -> None:
        one, two = self._open_first(tmp_path), self.open_store(tmp_path)
        line, other = Line(one), Line(two, writer="two")
        for _ in range(3):
            line.save()
            assert two.timeline(None, "main") == line.standing
            assert two.missing(None, [line.saved[-1].root]) == set()
            with pytest.raises(Conflict):
                two.commit(other.next())
            other.standing = line.standing
            assert other.save().number > line.saved[-1].number
            assert one.checkpoint(None, other.saved[-1].id) == other.saved[-1]
            line.standing = other.standing
        two.close()
        line.save()
        one.close()

    def _open_first(self, folder: Path) -> Store:
        if not self.persists:
            pytest.skip("this store is gone when it is closed")
        return self.open_store(folder)
