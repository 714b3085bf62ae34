"""`commit`: all or nothing, repeatable, numbered, and only if what it expects still holds."""

from collections.abc import Iterator

import pytest

from hardsave.errors import Conflict
from hardsave.objects.hashing import digest
from hardsave.objects.records import TimelineRecord
from hardsave.stores.base import Batch, Changes, Move, ObjectsGone, Store
from hardsave.testing.batches import (
    MOMENT,
    Line,
    a_note,
    an_entry,
    an_id,
    an_object,
    but,
    some_objects,
    trace,
)
from hardsave.testing.duties import happened


class Writing:
    """Needs a `store` fixture."""

    # All or nothing

    def test_a_commit_writes_objects_timeline_and_checkpoint(self, store: Store) -> None:
        line = Line(store)
        batch = line.next(objects=some_objects("first", 3), name="plan")
        line.commit(batch)
        assert store.missing(None, batch.objects) == set()
        assert store.timeline(None, "main") == line.standing
        assert store.checkpoint(None, batch.event.id) == line.saved[0]

    def test_a_commit_writes_a_log_entry(self, store: Store) -> None:
        entry = an_entry("cleaned up", timeline="main")
        number = store.commit(Batch(user=None, event=entry, objects=an_object("rest")))
        assert store.log(None, 0, 10) == [entry._replace(number=number)]
        assert store.missing(None, an_object("rest")) == set()

    def test_a_conflicting_batch_leaves_no_trace(self, store: Store) -> None:
        line, late = Line(store), Line(store, writer="late")
        line.save()
        late.standing = line.standing
        line.save()
        _refuses(store, late.next(), Conflict)

    def test_a_conflicting_log_entry_leaves_no_trace(self, store: Store) -> None:
        line = Line(store)
        first = line.save()
        stale = line.moved("back", head=first.id)
        line.save()
        _refuses(store, but(stale, objects=some_objects("with it", 2)), Conflict)

    def test_a_batch_whose_required_objects_are_gone_leaves_no_trace(self, store: Store) -> None:
        line = Line(store)
        line.save()
        _refuses(store, but(line.next(), requires=[digest(b"never stored")]), ObjectsGone)

    def test_a_first_batch_that_is_refused_leaves_no_trace(self, store: Store) -> None:
        line = Line(store, user="new")
        _refuses(store, but(line.next(), requires=[digest(b"never stored")]), ObjectsGone)
        assert store.timeline("new", "main") is None

    def test_after_a_conflict_the_next_commit_works(self, store: Store) -> None:
        line, late = Line(store), Line(store, writer="late")
        line.save()
        _refuses(store, late.next(), Conflict)
        late.standing = line.standing
        late.save()
        assert store.timeline(None, "main") == late.standing

    # Repeats

    def test_a_repeated_save_answers_as_before_and_changes_nothing(self, store: Store) -> None:
        line = Line(store)
        line.save()
        batch = line.next(name="twice")
        number = line.commit(batch)
        _repeats(store, batch, number)

    def test_a_repeated_first_save_answers_as_before(self, store: Store) -> None:
        line = Line(store)
        batch = line.next()
        _repeats(store, batch, line.commit(batch))

    def test_a_repeated_log_entry_answers_as_before(self, store: Store) -> None:
        batch = Batch(user=None, event=an_entry("once"), objects=an_object("once"))
        _repeats(store, batch, store.commit(batch))

    def test_a_repeat_is_recognised_after_the_timeline_moved_on(self, store: Store) -> None:
        line = Line(store)
        batches = [line.next()]
        numbers = [line.commit(batches[0])]
        for _ in range(5):
            batches.append(line.next())
            numbers.append(line.commit(batches[-1]))
        store.commit(a_note("and something else"))
        for batch, number in zip(batches, numbers, strict=True):
            _repeats(store, batch, number)

    def test_an_id_that_comes_twice_is_recognised_after_the_timeline_has_moved(
        self, store: Store
    ) -> None:
        line, other = Line(store), Line(store, "other", writer="other")
        first = line.save()
        line.save()
        for each in (line, other, Line(store, "new", writer="new")):
            batch = each.next()
            again = but(batch, event=batch.event._replace(id=first.id))
            _repeats(store, again, first.number)
            each.save()
        assert store.verify() == []

    def test_a_repeat_is_recognised_before_its_expectation_is_checked(self, store: Store) -> None:
        # The timeline goes away and comes back: what the batch expects holds once more.
        line = Line(store)
        first, second = line.save(), line.save()
        back = line.moved("back", head=first.id)
        number = line.commit(back)
        line.commit(line.moved("and forth", head=second.id))
        assert back.move is not None
        assert store.timeline(None, "main") == back.move.expect
        _repeats(store, back, number)

    def test_a_repeated_move_to_the_same_place_is_recognised(self, store: Store) -> None:
        line = Line(store)
        head = line.save().id
        batch = line.moved("stays", head=head)
        _repeats(store, batch, line.commit(batch))

    def test_a_repeat_is_recognised_before_its_requirements_are_checked(self, store: Store) -> None:
        line = Line(store)
        batch = line.next()
        number = line.commit(batch)
        _repeats(store, but(batch, requires=[digest(b"never stored")]), number)

    # Numbers

    def test_the_numbers_of_a_users_commits_rise(self, store: Store) -> None:
        for user in (None, "ada"):
            lines = [Line(store, name, user=user) for name in ("one", "two")]
            numbers = [line.save().number for _ in range(3) for line in lines]
            numbers.append(store.commit(a_note("note", user=user)))
            numbers.append(lines[0].save().number)
            assert numbers == sorted(set(numbers))
            assert numbers[0] > 0

    def test_the_latest_number_lies_between_what_has_returned_and_what_will(
        self, store: Store
    ) -> None:
        for user in (None, "ada"):
            seen = store.latest_number(user)
            for batch in _of_every_kind(store, user):
                number = store.commit(batch)
                assert seen < number <= store.latest_number(user)
                assert store.commit(batch) == number  # a repeat is no later commit
                seen = store.latest_number(user)
        assert store.latest_number("a user without commits") >= 0

    def test_a_refused_batch_and_a_repeat_leave_the_numbers_in_order(self, store: Store) -> None:
        line = Line(store)
        first = line.next()
        number = line.commit(first)
        _refuses(store, Line(store, writer="late").next(), Conflict)
        assert store.commit(first) == number
        assert line.save().number > number

    # What a move expects

    def test_a_timeline_with_another_head_or_number_is_a_conflict(self, store: Store) -> None:
        line, late = Line(store), Line(store, writer="late")
        old, new = line.save(), line.save()
        right = TimelineRecord("main", new.id, 2, MOMENT, None)
        for wrong in (
            right._replace(head=old.id),  # the number is right
            right._replace(last_seq=1),  # the head is right
            right._replace(head=None),
            right._replace(last_seq=3),
            None,
        ):
            late.standing = wrong
            _refuses(store, late.next(), Conflict)

    def test_a_timeline_that_should_exist_and_does_not_is_a_conflict(self, store: Store) -> None:
        line = Line(store, "nowhere")
        line.standing = TimelineRecord("nowhere", an_id("its head"), 4, MOMENT, None)
        _refuses(store, line.next(), Conflict)

    def test_only_head_and_number_are_expected(self, store: Store) -> None:
        line = Line(store)
        line.save()
        assert line.standing is not None
        batch = line.next()
        assert batch.move is not None
        vague = line.standing._replace(created_at=1, origin=an_id("elsewhere"))
        line.commit(but(batch, move=Move(vague, batch.move.become)))
        assert store.timeline(None, "main") == batch.move.become

    def test_a_timeline_becomes_what_its_move_says(self, store: Store) -> None:
        line = Line(store)
        line.save()
        assert line.standing is not None
        become = TimelineRecord("main", None, 7, MOMENT + 9, an_id("another origin"))
        store.commit(Batch(None, an_entry("cleared"), Move(line.standing, become)))
        assert store.timeline(None, "main") == become

    def test_a_title_stays_until_a_move_changes_it(self, store: Store) -> None:
        line = Line(store)
        line.save()
        assert line.standing is not None
        named = line.standing._replace(title="fix the parser")
        line.commit(Batch(None, an_entry("named"), Move(line.standing, named)))
        line.save()
        found = store.timeline(None, "main")
        assert found is not None
        assert found.title == "fix the parser"
        without = found._replace(title="[purged]")
        store.commit(Batch(None, an_entry("purge"), changes=Changes(moves=[Move(found, without)])))
        line.save()  # it remembers the title that there was
        after = store.timeline(None, "main")
        assert after is not None
        assert (after.title, after.last_seq) == ("[purged]", 3)

    def test_a_head_may_be_nothing_and_is_expected_as_such(self, store: Store) -> None:
        line = Line(store)
        saved = line.save()
        stale = line.next()
        line.commit(line.moved("emptied", head=None))
        _refuses(store, stale, Conflict)
        after = line.save()
        assert (after.seq, after.parent) == (saved.seq + 1, None)

    def test_a_timeline_may_begin_without_a_checkpoint(self, store: Store) -> None:
        source = Line(store).save()
        fork = TimelineRecord("try-2", source.id, 0, MOMENT, source.id)
        batch = Batch(None, an_entry("fork", timeline="try-2"), Move(None, fork))
        store.commit(batch)
        assert store.timeline(None, "try-2") == fork
        assert store.count(None, "try-2") == 0
        line = Line(store, "try-2")
        line.standing = fork
        assert (line.save().seq, line.saved[0].parent) == (1, source.id)

    # Objects

    def test_required_objects_that_are_stored_are_no_hindrance(self, store: Store) -> None:
        line = Line(store)
        first = line.next(objects=some_objects("base", 5))
        line.commit(first)
        line.commit(but(line.next(), requires=set(first.objects)))
        assert store.count(None, "main") == 2

    def test_one_required_object_that_is_gone_is_enough(self, store: Store) -> None:
        line = Line(store)
        first = line.next(objects=some_objects("base", 5))
        line.commit(first)
        requires = [*first.objects, digest(b"never stored")]
        _refuses(store, but(line.next(), requires=requires), ObjectsGone)

    def test_storing_an_object_again_changes_nothing(self, store: Store) -> None:
        line = Line(store)
        line.commit(line.next(objects=an_object("shared")))
        before = store.stats(None).objects
        line.commit(line.next(objects=an_object("shared")))
        assert store.stats(None).objects == before == 1
        assert store.read(None, list(an_object("shared"))) == an_object("shared")
        assert list(store.verify()) == []

    def test_an_object_keeps_the_bytes_it_was_first_stored_with(self, store: Store) -> None:
        address = digest(b"one")
        store.commit(Batch(None, an_entry("first"), objects={address: b"one"}))
        store.commit(Batch(None, an_entry("second"), objects={address: b"two"}))
        assert store.read(None, [address])[address] == b"one"

    def test_a_batch_needs_no_objects(self, store: Store) -> None:
        line = Line(store)
        line.commit(line.next(objects={}))
        assert store.checkpoint(None, line.saved[0].id) == line.saved[0]
        assert store.stats(None).objects == 0

    def test_an_object_may_be_empty(self, store: Store) -> None:
        line = Line(store)
        line.commit(line.next(objects={digest(b""): b""}))
        assert store.missing(None, [digest(b"")]) == set()
        assert store.read(None, [digest(b"")]) == {digest(b""): b""}


def _of_every_kind(store: Store, user: str | None) -> Iterator[Batch]:
    """A save, an operation and something of the ledger, each as it is committed next."""
    yield Line(store, user=user).next()
    yield a_note("an operation", user)
    yield Batch(user, happened("of the ledger", None))


def _refuses(store: Store, batch: Batch, error: type[Conflict]) -> None:
    """The batch raises `error`, nothing milder, and cannot be seen anywhere afterwards."""
    before = trace(store, batch.user)
    with pytest.raises(Conflict) as caught:
        store.commit(batch)
    assert isinstance(caught.value, ObjectsGone) is (error is ObjectsGone)
    assert trace(store, batch.user) == before
    assert store.missing(batch.user, batch.objects) == set(batch.objects)
    assert store.checkpoint(batch.user, batch.event.id) is None


def _repeats(store: Store, batch: Batch, number: int) -> None:
    """The batch has been committed: once more answers the same, and changes nothing."""
    before = trace(store, batch.user)
    assert store.commit(batch) == number
    assert trace(store, batch.user) == before
