"""`collect`: what no checkpoint leads to goes, and nothing else ever does."""

import threading

import pytest

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Batch, Changes, ObjectsGone, Store
from hardsave.testing.batches import (
    Line,
    a_parent,
    an_entry,
    an_object,
    but,
    operate,
    refs_of,
    some_objects,
    trace,
)
from hardsave.testing.claiming import compact_if_claimed

PIN = b"a pin of sixteen"


class Collecting:
    """Needs a `store` fixture."""

    def test_what_nothing_leads_to_goes(self, store: Store) -> None:
        stray = some_objects("stray", 5)
        kept = Line(store).save()
        store.commit(Batch(None, an_entry("stray"), objects=stray))
        done = store.collect(refs_of, exact=True)
        assert (done.objects, done.object_bytes) == (5, sum(map(len, stray.values())))
        assert store.missing(None, [*stray, kept.root]) == set(stray)
        assert not store.read(None, list(stray)).keys() & set(stray)
        assert store.stats(None).objects == 1
        assert list(store.verify()) == []

    def test_everything_that_a_checkpoint_leads_to_stays(self, store: Store) -> None:
        tree = _tree("kept")
        Line(store).save_tree(tree)
        before = trace(store)
        assert store.collect(refs_of, exact=True).objects == 0
        assert trace(store) == before
        assert store.read(None, list(tree)).keys() >= tree.keys()

    def test_files_of_a_checkpoint_stay_as_long_as_it_does(self, store: Store) -> None:
        line = Line(store)
        record = line.save_files(b"/w")
        line.save()
        assert record.snapshot is not None
        assert store.collect(refs_of, exact=True).objects == 0
        operate(store, "drop", Changes(drop=[record.id]))
        assert store.collect(refs_of, exact=True).objects == 2
        assert store.missing(None, record.roots) == set(record.roots)

    def test_what_only_a_dropped_checkpoint_led_to_goes(self, store: Store) -> None:
        line = Line(store)
        shared = some_objects("shared", 3)
        old = shared | _tree("old", *shared)
        dropped = line.save_tree(old)
        kept = _tree("new", *shared)
        batch = but(line.next(objects=kept), requires=list(shared))
        assert isinstance(batch.event, CheckpointRecord)
        line.commit(but(batch, event=batch.event._replace(root=list(kept)[-1])))
        assert store.collect(refs_of, exact=True).objects == 0
        operate(store, "drop", Changes(drop=[dropped.id]))
        assert store.collect(refs_of, exact=True).objects == len(old) - len(shared)
        assert store.missing(None, [*old, *kept]) == old.keys() - shared.keys()
        assert store.collect(refs_of, exact=True).objects == 0
        assert list(store.verify()) == []

    def test_what_a_hidden_checkpoint_leads_to_stays(self, store: Store) -> None:
        line = Line(store)
        tree = _tree("hidden")
        record = line.save_tree(tree)
        line.save()
        operate(store, "hide", Changes(hide=[record.id]))
        assert store.collect(refs_of, exact=True).objects == 0
        assert store.missing(None, tree) == set()

    def test_what_a_replaced_checkpoint_led_to_goes(self, store: Store) -> None:
        line = Line(store)
        old, new = line.save_tree(_tree("old")), line.save_tree(_tree("new"))
        operate(store, "replace", Changes(replace=[old._replace(root=new.root)]))
        store.collect(refs_of, exact=True)
        assert store.missing(None, [*_tree("old"), *_tree("new")]) == set(_tree("old"))

    def test_garbage_that_is_kept_to_save_work_has_all_that_it_refers_to(
        self, store: Store
    ) -> None:
        line = Line(store)
        gone = [line.save_tree(_tree(f"old {at}")) for at in range(20)]
        kept = [line.save_tree(_tree(f"new {at}")) for at in range(20)]
        operate(store, "drop", Changes(drop=[record.id for record in gone]))
        store.collect(refs_of)
        found = store.missing(None, [record.root for record in gone + kept])
        assert found <= {record.root for record in gone}
        for at in range(20):
            assert store.missing(None, _tree(f"new {at}")) == set()
            whole = store.missing(None, _tree(f"old {at}"))
            # An object that stays has all that it refers to.
            assert list(_tree(f"old {at}"))[-1] in whole or not whole
        assert list(store.verify()) == []

    def test_each_users_objects_go_apart(self, store: Store) -> None:
        tree = _tree("both")
        ours, theirs = Line(store), Line(store, user="ada")
        record = ours.save_tree(tree)
        theirs.save_tree(tree)
        ours.save()
        operate(store, "drop", Changes(drop=[record.id]))
        assert store.collect(refs_of, exact=True).objects == len(tree)
        assert store.missing(None, tree) == set(tree)
        assert store.missing("ada", tree) == set()

    def test_what_went_can_be_stored_again(self, store: Store) -> None:
        line = Line(store)
        tree = _tree("again")
        record = line.save_tree(tree)
        line.save()
        operate(store, "drop", Changes(drop=[record.id]))
        store.collect(refs_of, exact=True)
        line.save_tree(tree)
        assert store.missing(None, tree) == set()
        found = store.read(None, list(tree))
        assert {address: found[address] for address in tree} == tree
        assert store.collect(refs_of, exact=True).objects == 0
        assert list(store.verify()) == []

    def test_what_went_cannot_be_relied_on(self, store: Store) -> None:
        line = Line(store)
        record = line.save()
        line.save()
        assert store.missing(None, [record.root]) == set()
        operate(store, "drop", Changes(drop=[record.id]))
        store.collect(refs_of, exact=True)
        with pytest.raises(ObjectsGone):
            line.commit(but(line.next(), requires=[record.root]))

    def test_a_new_object_is_stored_after_everything_went(self, store: Store) -> None:
        for at in range(3):
            objects = some_objects(f"stray {at}", 3)
            store.commit(Batch(None, an_entry(f"stray {at}"), objects=objects))
            assert store.missing(None, objects) == set()
            assert store.collect(refs_of, exact=True).objects == 3
            assert store.missing(None, objects) == set(objects)
        line = Line(store)
        assert store.missing(None, [line.save().root]) == set()
        assert list(store.verify()) == []

    # Pins

    def test_what_is_pinned_stays_until_it_is_given_back(self, store: Store) -> None:
        ahead, stray = some_objects("ahead", 3), an_object("stray")
        store.commit(Batch(None, an_entry("stray"), objects=stray))
        store.put(None, ahead, pin=PIN, seconds=60)
        assert store.missing(None, ahead) == set()
        done = store.collect(refs_of, exact=True)
        assert (done.objects, done.left) == (0, (None,))
        assert store.missing(None, [*ahead, *stray]) == set()
        store.unpin(None, PIN)
        done = store.collect(refs_of, exact=True)
        assert (done.objects, done.left) == (4, ())
        store.unpin(None, PIN)  # gone already, which is fine

    def test_a_pin_lasts_so_many_seconds_after_the_last_put(self, store: Store) -> None:
        store.put(None, an_object("first"), pin=PIN, seconds=0)
        store.put(None, an_object("second"), pin=PIN, seconds=60)
        assert store.collect(refs_of, exact=True).objects == 0
        store.put(None, an_object("third"), pin=PIN, seconds=0)
        assert store.collect(refs_of, exact=True).objects == 3

    def test_one_users_pin_holds_nothing_of_anothers(self, store: Store) -> None:
        for user in (None, "ada"):
            store.commit(Batch(user, an_entry("stray"), objects=an_object("stray")))
        store.put("ada", an_object("ahead"), pin=PIN, seconds=60)
        done = store.collect(refs_of, exact=True)
        assert (done.objects, done.left) == (1, ("ada",))
        assert store.missing("ada", an_object("stray")) == set()
        assert store.missing(None, an_object("stray")) == set(an_object("stray"))

    def test_what_was_put_ahead_is_there_for_its_batch(self, store: Store) -> None:
        line = Line(store)
        ahead = some_objects("ahead", 3)
        store.put(None, ahead, pin=PIN, seconds=60)
        root = a_parent("root", *ahead)
        line.commit(but(line.next(objects=root), requires=list(ahead)))
        store.unpin(None, PIN)
        assert store.collect(refs_of, exact=True).objects == 0
        assert store.missing(None, [*ahead, *root]) == set()

    # Damage

    def test_behind_what_is_missing_nothing_is_removed(self, store: Store) -> None:
        stray, absent = an_object("stray"), an_object("absent")
        Line(store).save_tree(a_parent("root", *absent))
        store.commit(Batch(None, an_entry("stray"), objects=stray))
        before = trace(store)
        with pytest.raises(Corrupt):
            store.collect(refs_of)
        assert trace(store) == before
        assert store.missing(None, stray) == set()

    # Beside others

    def test_compacting_changes_nothing_that_can_be_seen(self, store: Store) -> None:
        lines = [Line(store), Line(store, user="ada")]
        for line in lines * 20:
            line.save()
        before = [trace(store, line.user) for line in lines]
        for _ in range(2):
            compact_if_claimed(store)
            assert [trace(store, line.user) for line in lines] == before
            for line in lines:
                roots = [record.root for record in line.saved]
                assert store.missing(line.user, roots) == set()
                assert store.read(line.user, roots).keys() >= set(roots)
        assert list(store.verify()) == []
        lines[0].save()

    def test_collecting_beside_writers_takes_nothing_from_them(self, store: Store) -> None:
        faults: list[BaseException] = []
        done = threading.Event()

        def write(name: str) -> None:
            try:
                _churn(Line(store, name), done)
            except BaseException as error:  # noqa: BLE001 # handed to the test
                faults.append(error)

        threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for at in range(20):
            store.collect(refs_of, exact=at % 2 == 0)
        done.set()
        for thread in threads:
            thread.join()
        assert faults == []
        for record in store.saved(None, 0, 10_000):
            assert _reaches(store, record.root)
        assert list(store.verify()) == []


def _tree(label: str, *more: Hash) -> dict[Hash, bytes]:
    """Objects on three levels, the root last."""
    leaves = some_objects(label, 4)
    inner = a_parent(f"{label} inner", *leaves)
    return leaves | inner | a_parent(f"{label} root", *inner, *more)


def _churn(line: Line, done: threading.Event) -> None:
    """Save few states over and over, and drop all but the newest."""
    at = 0
    while not done.is_set():
        at += 1
        line.save_tree(_tree(f"state {at % 3}"))
        if at % 4 == 0:
            gone = [record.id for record in line.saved[-4:-1]]
            operate(line.store, f"{line.name} {at}", Changes(drop=gone))


def _reaches(store: Store, root: Hash) -> bool:
    """Whether everything behind a root can be read."""
    frontier = {root}
    while frontier:
        found = store.read(None, list(frontier))
        if frontier - found.keys():
            return False
        frontier = {ref for address in frontier for ref in refs_of(found[address])}
    return True
