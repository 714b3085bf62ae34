"""A user never sees what another user has stored, also under the same name or id."""

import pytest

from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Batch, ObjectsGone, Query, Store
from hardsave.testing.batches import Line, a_note, an_entry, an_object, but, some_objects, trace

# None is a user of its own, and not the one of that name, nor the first, nor all of them.
USERS = (None, "None", "0", "ada", "Ada", "ada\u0301", "null", "🙂")


class Users:
    """Needs a `store` fixture."""

    def test_users_share_names_and_ids_and_nothing_else(self, store: Store) -> None:
        saved: dict[str | None, CheckpointRecord] = {}
        for user in USERS:
            line = Line(store, user=user)
            batch = line.next(status=f"of {user!r}")
            event = batch.event._replace(id=b"the same one")  # twelve bytes
            assert batch.move is not None
            move = batch.move._replace(become=batch.move.become._replace(head=event.id))
            assert isinstance(event, CheckpointRecord)
            line.commit(but(batch, event=event, move=move))
            saved[user] = line.saved[0]
        for user in USERS:
            assert store.checkpoint(user, b"the same one") == saved[user]
            assert store.checkpoints(user, Query("main", limit=99)) == [saved[user]]
            assert store.checkpoints_between(user, bytes(12), b"\xff" * 12, 99) == [saved[user]]
            assert store.count(user, "main") == 1

    def test_timelines_are_seen_by_their_user_only(self, store: Store) -> None:
        Line(store, "ours", user="ada").save()
        Line(store, "mine").save()
        for user in USERS:
            names = [row.name for row in store.timelines(user, None, 99)]
            assert names == {"ada": ["ours"], None: ["mine"]}.get(user, [])
            assert (store.timeline(user, "ours") is not None) is (user == "ada")
            assert store.count(user, "ours") == (user == "ada")

    def test_checkpoints_are_seen_by_their_user_only(self, store: Store) -> None:
        line = Line(store, user="ada")
        line.save(name="plan")
        record = line.save()
        for user in USERS:
            seen = user == "ada"
            assert (store.checkpoint(user, record.id) == record) is seen
            assert bool(store.checkpoints_between(user, record.id, record.id, 9)) is seen
            assert bool(store.checkpoints(user, Query("main", limit=9))) is seen
            assert bool(store.checkpoints(user, Query("main", limit=9, name="plan"))) is seen
            assert bool(store.checkpoints(user, Query("main", limit=9, seq=2))) is seen

    def test_the_log_is_seen_by_its_user_only(self, store: Store) -> None:
        for user in USERS:
            store.commit(a_note(f"of {user!r}", user=user))
        for user in USERS:
            assert [entry.data.decode() for entry in store.log(user, 0, 99)] == [f"of {user!r}"]

    def test_objects_are_seen_by_their_user_only(self, store: Store) -> None:
        (address,) = objects = an_object("a secret")
        store.commit(Batch("ada", an_entry("kept"), objects=objects))
        for user in USERS:
            assert (address in store.read(user, [address])) is (user == "ada")
            assert store.missing(user, [address]) == (set() if user == "ada" else {address})

    def test_whether_another_user_has_an_object_cannot_be_found_out(self, store: Store) -> None:
        objects = an_object("a secret")
        store.commit(Batch("ada", an_entry("kept"), objects=objects))
        for user in USERS:
            if user == "ada":
                continue
            with pytest.raises(ObjectsGone):
                store.commit(Batch(user, an_entry("guess"), requires=list(objects)))

    def test_the_same_object_is_stored_for_each_user(self, store: Store) -> None:
        objects = some_objects("common", 3)
        for user in USERS:
            store.commit(Batch(user, an_entry("kept"), objects=objects))
        for user in USERS:
            found = store.read(user, list(objects))
            assert {address: found[address] for address in objects} == objects
            assert store.stats(user).objects == 3

    def test_read_hands_over_nothing_of_another_user(self, store: Store) -> None:
        mine, theirs = some_objects("mine", 5), some_objects("theirs", 5)
        store.commit(Batch("ada", an_entry("1"), objects=mine))
        store.commit(Batch("bob", an_entry("2"), objects=theirs))
        assert not store.read("ada", [*mine, *theirs]).keys() & theirs.keys()

    def test_a_move_meets_its_own_users_timeline(self, store: Store) -> None:
        ada, bob = Line(store, user="ada"), Line(store, user="bob")
        ada.save()
        bob.save()  # "main" exists already, but not for bob
        ada.save()
        bob.save()
        assert store.timeline("ada", "main") == ada.standing
        assert store.timeline("bob", "main") == bob.standing

    def test_stats_are_of_one_user_but_for_the_disk(self, store: Store) -> None:
        ada = Line(store, user="ada")
        for number in range(3):
            ada.commit(ada.next(objects=some_objects(f"turn {number}", 2)))
        Line(store).save()
        found = {user: store.stats(user) for user in USERS}
        counts = {user: (s.timelines, s.checkpoints, s.objects) for user, s in found.items()}
        assert counts.pop("ada") == (1, 3, 6)
        assert counts.pop(None) == (1, 1, 1)
        assert set(counts.values()) == {(0, 0, 0)}
        # Not compared with each other: a backup may be growing meanwhile.
        assert all(stats.disk_bytes > 0 for stats in found.values())
        owners = {user for user, stats in found.items() if stats.own_bytes > 0}
        assert owners == {None, "ada"}

    def test_looking_on_behalf_of_an_unknown_user_writes_nothing(self, store: Store) -> None:
        Line(store).save()
        before = trace(store)
        assert trace(store, "unknown") == ([], [], [], (0, 0, 0))
        assert trace(store) == before
