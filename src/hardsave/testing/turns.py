"""Turns and paths of this host, the clock, and calls that are repeated because a reply was lost."""

import pytest

from hardsave.errors import Misuse
from hardsave.stores.base import MAX_NOTE, Query, Store
from hardsave.testing.batches import Line, an_object
from hardsave.testing.duties import an_owner


class Turns:
    """Needs a `store` fixture."""

    def test_a_turn_is_had_by_one_caller_until_its_block_ends(self, store: Store) -> None:
        with store.once("clean") as ours:
            assert ours is not None
            with store.once("clean") as refused, store.once("other") as another:
                assert refused is None
                assert another is not None
            with store.once("clean") as still_refused:
                assert still_refused is None
        with pytest.raises(ZeroDivisionError):
            _fail_with(store, "clean")
        with store.once("clean") as ours:
            assert ours is not None

    def test_a_turn_has_the_note_of_the_one_before(self, store: Store) -> None:
        notes = [b"", b"long " * 100, b"short", bytes(MAX_NOTE)]
        for before, note in zip([b"", *notes], notes, strict=False):
            with store.once("clean") as turn:
                assert turn is not None
                assert turn.read() == before
                turn.write(note)
                assert turn.read() == note
        with store.once("other") as turn:
            assert turn is not None
            assert turn.read() == b""
            with pytest.raises(Misuse):
                turn.write(bytes(MAX_NOTE + 1))

    def test_paths_of_this_host_begin_alike_and_end_as_they_were_asked_for(
        self, store: Store
    ) -> None:
        names = ("", "files-", "files-1-cache", "search")
        paths = [store.local(name) for name in names]
        if None in paths:
            assert set(paths) == {None}
            return
        begins = {str(path).removesuffix(name) for path, name in zip(paths, names, strict=True)}
        assert len(begins) == 1
        assert paths == [begins.copy().pop() + name for name in names]

    def test_what_a_commit_survives_is_known(self, store: Store) -> None:
        assert store.durability() in ("power", "process", "nothing")
        assert store.is_shared in (True, False)

    # A reply may be lost after what was asked for was done

    def test_leases_pins_and_objects_may_be_asked_for_again(self, store: Store) -> None:
        owner, objects = an_owner("one"), an_object("ahead")
        for _ in range(2):
            assert store.hold(None, owner, is_new=True)
        assert store.owners(None) == [owner]
        for _ in range(2):
            assert store.hold(None, owner._replace(until=2_000))
            store.put(None, objects, pin=b"pin", seconds=60)
        assert store.owners(None) == [owner._replace(until=2_000)]
        line = Line(store)
        line.commit(line.next(objects=objects))
        for _ in range(2):
            store.unpin(None, b"pin")
            store.let_go(None, owner.id)
        assert store.owners(None) == []
        assert [row.seq for row in store.checkpoints(None, Query("main", 9))] == [1]
        assert store.stats(None).objects == 1


def _fail_with(store: Store, name: str) -> None:
    with store.once(name) as ours:
        assert ours is not None
        _ = 1 // 0
