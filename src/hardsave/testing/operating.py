"""What operations change: hide and show, drop, replace, move several timelines, import."""

import pytest

from hardsave.errors import Conflict
from hardsave.objects.records import CheckpointRecord, TimelineRecord, Tombstone
from hardsave.stores.base import Batch, Changes, CheckpointGone, Move, Query, Store
from hardsave.testing.batches import (
    MOMENT,
    Line,
    a_note,
    an_entry,
    an_id,
    but,
    operate,
    trace,
    walk,
)

EVERY_ID = bytes(12), b"\xff" * 12


class Operating:
    """Needs a `store` fixture."""

    # Hidden

    def test_what_is_hidden_is_found_by_its_id_alone(self, store: Store) -> None:
        line = Line(store)
        first, second, third = line.save(), line.save(name="here"), line.save()
        by = operate(store, "hide", Changes(hide=[second.id]))
        assert store.checkpoint(None, second.id) == second._replace(hidden=by)
        assert _listed(store) == [third, first]
        assert _listed(store, name="here") == []
        assert store.count(None, "main") == 2
        found = store.checkpoints_between(None, *EVERY_ID, 10)
        assert {record.id for record in found} == {first.id, third.id}
        assert store.children(None, first.id) == []
        assert store.stats(None).checkpoints == 2

    def test_what_is_hidden_is_listed_if_a_query_asks_for_it(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        by = operate(store, "hide", Changes(hide=[first.id]))
        hidden = first._replace(hidden=by)
        assert _listed(store, hidden=True) == [second, hidden]
        assert store.saved(None, 0, 10) == [hidden, second]

    def test_what_a_commit_hid_is_shown_again_and_nothing_else(self, store: Store) -> None:
        line = Line(store)
        saved = [line.save() for _ in range(4)]
        one = operate(store, "one", Changes(hide=[saved[0].id, saved[1].id]))
        operate(store, "two", Changes(hide=[saved[2].id]))
        operate(store, "show", Changes(show=[one]))
        assert [record.id for record in _listed(store)] == [saved[at].id for at in (3, 1, 0)]
        found = store.checkpoint(None, saved[0].id)
        assert found is not None
        assert not found.is_hidden

    def test_what_was_shown_again_is_hidden_again(self, store: Store) -> None:
        line = Line(store)
        saved = [line.save() for _ in range(3)]
        by = operate(store, "hide", Changes(hide=[saved[0].id]))
        operate(store, "show", Changes(show=[by]))
        operate(store, "again", Changes(hide_again=[by]))
        assert _listed(store) == [saved[2], saved[1]]
        assert store.checkpoint(None, saved[0].id) == saved[0]._replace(hidden=by)

    def test_what_is_hidden_stays_so_by_whom_it_was(self, store: Store) -> None:
        record = Line(store).save()
        first = operate(store, "first", Changes(hide=[record.id]))
        second = operate(store, "second", Changes(hide=[record.id]))
        operate(store, "show", Changes(show=[second]))
        assert store.checkpoint(None, record.id) == record._replace(hidden=first)

    def test_a_repeated_operation_changes_nothing(self, store: Store) -> None:
        line = Line(store)
        first, _ = line.save(), line.save()
        by = operate(store, "hide", Changes(hide=[first.id]))
        operate(store, "show", Changes(show=[by]))
        assert operate(store, "hide", Changes(hide=[first.id])) == by
        assert store.count(None, "main") == 2

    def test_hiding_what_is_not_there_changes_nothing(self, store: Store) -> None:
        Line(store).save()
        Line(store, user="ada").save()
        (theirs,) = store.saved("ada", 0, 1)
        changes = Changes(
            hide=[an_id("unknown"), theirs.id], drop=[theirs.id], replace=[theirs], show=[99]
        )
        operate(store, "nothing", changes)
        assert store.count(None, "main") == store.count("ada", "main") == 1
        assert store.checkpoint("ada", theirs.id) == theirs

    # Dropped

    def test_what_is_dropped_leaves_a_tombstone(self, store: Store) -> None:
        line = Line(store)
        first, second, third = line.save(), line.save(), line.save()
        operate(store, "drop", Changes(drop=[second.id]))
        assert store.checkpoint(None, second.id) is None
        stone = Tombstone(second.id, "main", 2, first.id)
        assert store.tombstone(None, second.id) == stone
        assert store.tombstones(None, "main", None, 10) == [stone]
        assert store.tombstone(None, first.id) is None
        assert store.tombstone("ada", second.id) is None
        assert _listed(store, hidden=True) == [third, first]
        assert store.saved(None, 0, 10) == [first, third]
        assert store.checkpoints_between(None, second.id, second.id, 10) == []

    def test_a_head_is_not_dropped(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        before = trace(store)
        with pytest.raises(Conflict):
            operate(store, "drop", Changes(drop=[first.id, second.id]))
        assert trace(store) == before
        assert store.tombstones(None, "main", None, 10) == []

    def test_what_becomes_a_head_is_not_dropped(self, store: Store) -> None:
        line = Line(store)
        first, _ = line.save(), line.save()
        batch = but(line.moved("back", head=first.id), changes=Changes(drop=[first.id]))
        with pytest.raises(Conflict):
            store.commit(batch)
        assert store.checkpoint(None, first.id) == first

    def test_tombstones_come_page_by_page(self, store: Store) -> None:
        line = Line(store)
        saved = [line.save() for _ in range(9)]
        Line(store, "other").save()
        operate(store, "drop", Changes(drop=[record.id for record in saved[:-1]]))
        found = walk(
            lambda at, limit: store.tombstones(None, "main", at, limit),
            lambda stone: int(stone.seq),
            limit=3,
        )
        assert [stone.seq for stone in found] == list(range(8, 0, -1))

    def test_tombstones_can_be_brought_along(self, store: Store) -> None:
        line = Line(store)
        there = line.save()
        stones = [Tombstone(an_id("once"), "main", 7, there.id)]
        stones += [Tombstone(there.id, "main", 1, None)]  # of one that is here: no stone
        operate(store, "import", Changes(tombstones=stones))
        assert store.tombstones(None, "main", None, 10) == stones[:1]
        assert store.tombstone(None, there.id) is None

    def test_what_comes_back_has_no_tombstone(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        operate(store, "drop", Changes(drop=[first.id]))
        operate(store, "import", Changes(checkpoints=[first]))
        assert store.tombstone(None, first.id) is None
        assert [record.id for record in _listed(store)] == [second.id, first.id]

    # What an operation relies on

    def test_a_checkpoint_that_was_dropped_is_not_kept(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        operate(store, "drop", Changes(drop=[first.id]))
        before = trace(store)
        with pytest.raises(CheckpointGone):
            operate(store, "keep", Changes(keeps=[second.id, first.id], hide=[second.id]))
        assert trace(store) == before

    def test_a_checkpoint_that_is_hidden_is_kept(self, store: Store) -> None:
        line = Line(store)
        first, _ = line.save(), line.save()
        operate(store, "hide", Changes(hide=[first.id]))
        operate(store, "keep", Changes(keeps=[first.id]))

    def test_an_operation_may_insist_on_being_the_next(self, store: Store) -> None:
        number = store.commit(a_note("the latest"))
        Line(store).save()  # no entry of the log
        store.commit(a_note("another user's", user="ada"))
        assert operate(store, "next", Changes(latest=number)) > number
        with pytest.raises(Conflict):
            operate(store, "too late", Changes(latest=number))
        assert len(store.log(None, 0, 10)) == 2

    # Replace, move, import

    def test_a_checkpoint_is_replaced_but_for_its_place(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(name="before"), line.save()
        new = CheckpointRecord(
            99, first.id, "other", 77, second.id, 5, "after", "manual", "done", "why",
            b"\x81\xa1a\x01", second.root, second.root, b"/w", "t1", 2, 3, b"\x91\x02", 12,
        )  # fmt: skip
        operate(store, "replace", Changes(replace=[new]))
        expected = first._replace(
            name="after", kind="manual", status="done", description="why",
            metadata=b"\x81\xa1a\x01", root=second.root, snapshot=second.root, workspace=b"/w",
            task="t1", generation=2, attempt=3, summary=b"\x91\x02",
        )  # fmt: skip
        assert store.checkpoint(None, first.id) == expected
        assert _listed(store) == [second, expected]
        assert _listed(store, name="after") == [expected]
        assert _listed(store, name="before") == []

    def test_many_timelines_move_at_once(self, store: Store) -> None:
        lines = [Line(store, name) for name in ("a", "b", "c")]
        heads = [line.save().id for line in lines]
        for line in lines:
            line.save()
        moves = [_back(line, head) for line, head in zip(lines, heads, strict=True)]
        moves.append(Move(None, TimelineRecord("new", heads[0], 0, MOMENT, heads[0])))
        operate(store, "move", Changes(moves=moves))
        for move in moves:
            assert store.timeline(None, move.become.name) == move.become

    def test_one_timeline_that_moved_on_stops_all_the_others(self, store: Store) -> None:
        lines = [Line(store, name) for name in ("a", "b", "c")]
        heads = [line.save().id for line in lines]
        for line in lines:
            line.save()
        moves = [_back(line, head) for line, head in zip(lines, heads, strict=True)]
        lines[1].save()
        before = trace(store)
        with pytest.raises(Conflict):
            operate(store, "move", Changes(moves=moves, hide=heads))
        assert trace(store) == before

    def test_a_deleted_timeline_is_there_and_not_listed(self, store: Store) -> None:
        lines = [Line(store, name) for name in ("a", "b")]
        for line in lines:
            line.save()
        standing = lines[0].standing
        assert standing is not None
        become = standing._replace(head=None, is_deleted=True)
        operate(store, "delete", Changes(moves=[Move(standing, become)]))
        assert store.timeline(None, "a") == become
        assert [row.name for row in store.timelines(None, None, 10)] == ["b"]
        assert store.stats(None).timelines == 1

    def test_checkpoints_can_be_brought_along_in_their_order(self, store: Store) -> None:
        source = Line(store, user="ada")
        records = [source.save(name="first"), source.save()]
        become = TimelineRecord("main", records[-1].id, 2, MOMENT, None)
        batch = Batch(
            None,
            an_entry("import"),
            Move(None, become),
            changes=Changes(checkpoints=records),
        )
        number = store.commit(batch)
        found = store.saved(None, 0, 10)
        assert [record._replace(number=0) for record in found] == [
            record._replace(number=0) for record in records
        ]
        numbers = [record.number for record in found]
        assert 0 < numbers[0] < numbers[1] < number

    # Purging

    def test_the_last_purge_is_the_last_commit_that_said_so(self, store: Store) -> None:
        for user in (None, "ada"):
            assert store.last_purge(user) == 0
            line = Line(store, user=user)
            line.save()
            first = operate(store, "purge", Changes(purges=True), user)
            assert store.last_purge(user) == first
            line.save()
            operate(store, "no purge", Changes(hide=[line.saved[0].id]), user)
            assert store.last_purge(user) == first
            dropping = Changes(drop=[line.saved[0].id], purges=True)
            assert operate(store, "drop", dropping, user) == store.last_purge(user) > first
        assert store.last_purge("bob") == 0

    # Reading what happened

    def test_children_come_in_the_order_of_commits_from_every_timeline(self, store: Store) -> None:
        line, fork = Line(store), Line(store, "fork", writer="fork")
        first = line.save()
        second = line.save()
        fork.standing = TimelineRecord("fork", first.id, 0, MOMENT, first.id)
        begin = Batch(None, an_entry("fork"), Move(None, fork.standing))
        store.commit(begin)
        forked = fork.save()
        assert store.children(None, first.id) == [second, forked]
        assert store.children(None, second.id) == []
        assert store.children("ada", first.id) == []

    def test_saved_goes_on_after_a_number(self, store: Store) -> None:
        lines = [Line(store, name) for name in ("a", "b")]
        saved = [lines[at % 2].save() for at in range(7)]
        store.commit(a_note("between"))
        saved.append(lines[0].save())
        found = walk(
            lambda at, limit: store.saved(None, at or 0, limit),
            lambda record: int(record.number),
            limit=3,
        )
        assert list(found) == saved

    def test_the_log_is_read_backwards_too(self, store: Store) -> None:
        for at in range(7):
            store.commit(a_note(f"note {at}"))
        found = walk(
            lambda at, limit: store.log_before(None, at, limit),
            lambda entry: int(entry.number),
            limit=3,
        )
        assert list(found) == store.log(None, 0, 10)[::-1]
        assert store.log_before("ada", None, 10) == []

    def test_the_log_of_one_timeline_is_read_without_that_of_others(self, store: Store) -> None:
        for name in ("a", "b", None, "a", "b", "b"):
            note = an_entry(f"note {len(store.log(None, 0, 10))}")
            store.commit(Batch(None, note._replace(timeline=name)))
        own = [e for e in store.log(None, 0, 10)[::-1] if e.timeline in ("a", None)]
        found = walk(
            lambda at, limit: store.log_before(None, at, limit, "a"),
            lambda entry: int(entry.number),
            limit=2,
        )
        assert list(found) == own
        assert [entry.timeline for entry in own] == ["a", None, "a"]

    def test_old_log_entries_are_forgotten(self, store: Store) -> None:
        store.commit(a_note("theirs", user="ada"))
        numbers = [store.commit(a_note(f"note {at}")) for at in range(4)]
        last = operate(store, "forget", Changes(forget_log=numbers[1]))
        assert [entry.number for entry in store.log(None, 0, 10)] == [*numbers[2:], last]
        assert len(store.log("ada", 0, 10)) == 1


def _listed(
    store: Store, *, name: str | None = None, hidden: bool = False
) -> list[CheckpointRecord]:
    return store.checkpoints(None, Query("main", limit=100, name=name, hidden=hidden))


def _back(line: Line, head: bytes) -> Move:
    assert line.standing is not None
    return Move(line.standing, line.standing._replace(head=head))
