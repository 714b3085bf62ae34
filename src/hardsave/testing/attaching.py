"""Labels and notes: what belongs to a checkpoint, what is found by it, and what goes with it."""

import pytest

from hardsave.objects.records import CheckpointRecord, Id, Labels, Note
from hardsave.stores.base import Batch, Changes, CheckpointGone, Query, Store
from hardsave.testing.batches import Line, an_entry, an_id, but, operate

LOOP: Labels = (("run", "7"), ("source", "loop"))
INPUT: Labels = (("run", "7"), ("source", "input"))


def _encoded(text: str) -> bytes:
    """A short text as a note has it: `verify` may look at what it holds."""
    return bytes([0xA0 | len(text)]) + text.encode()


FIRST, SECOND = Note("task:0", _encoded("first")), Note("task:1", _encoded("second"))


class Attaching:
    """Needs a `store` fixture."""

    # Labels

    def test_labels_come_with_their_checkpoint(self, store: Store) -> None:
        line = Line(store)
        one, other, plain = _labelled(line, LOOP), _labelled(line, INPUT), line.save()
        assert store.labels(None, [one.id, other.id, plain.id]) == {one.id: LOOP, other.id: INPUT}

    def test_a_repeated_save_changes_no_label(self, store: Store) -> None:
        line = Line(store)
        batch = line.next()
        batch = but(batch, labels={batch.event.id: LOOP}, notes={batch.event.id: [FIRST]})
        number = line.commit(batch)
        store.put_notes(None, batch.event.id, [Note(FIRST.key, _encoded("later"))])
        assert store.commit(but(batch, labels={batch.event.id: INPUT})) == number
        assert store.labels(None, [batch.event.id]) == {batch.event.id: LOOP}
        assert _notes(store, batch.event.id) == [Note(FIRST.key, _encoded("later"))]

    def test_a_refused_save_leaves_no_label_and_no_note(self, store: Store) -> None:
        line, late = Line(store), Line(store, writer="late")
        line.save()
        batch = late.next()
        ids = [batch.event.id]
        with pytest.raises(Exception, match="exists already"):
            store.commit(but(batch, labels={ids[0]: LOOP}, notes={ids[0]: [FIRST]}))
        assert (store.labels(None, ids), store.notes(None, ids)) == ({}, {})
        assert store.labelled(None, LOOP, None, 10) == []

    def test_a_page_has_the_checkpoints_with_all_labels_that_are_asked_for(
        self, store: Store
    ) -> None:
        line, other = Line(store), Line(store, "other")
        saved = [_labelled(line, LOOP if at % 2 else INPUT) for at in range(6)]
        line.save()
        _labelled(other, LOOP)
        query = Query(timeline="main", limit=2, labels=LOOP[1:])
        page = store.checkpoints(None, query)
        assert page == [saved[5], saved[3]]
        rest = store.checkpoints(None, but(query, before_seq=page[-1].seq))
        assert rest == [saved[1]]
        both = but(query, limit=10, labels=LOOP)
        assert store.checkpoints(None, both) == [saved[5], saved[3], saved[1]]
        for missing in ((("source", "loo"),), (("source", "7"),), (("run", "8"), *LOOP[1:])):
            assert store.checkpoints(None, but(query, labels=missing)) == []

    def test_labelled_checkpoints_of_all_timelines_come_newest_first(self, store: Store) -> None:
        lines = [Line(store, name) for name in ("a", "b")]
        saved = [_labelled(line, LOOP) for _ in range(3) for line in lines]
        _labelled(lines[0], INPUT)
        newest = list(reversed(saved))
        assert store.labelled(None, LOOP, None, 4) == newest[:4]
        assert store.labelled(None, LOOP, newest[3].number, 4) == newest[4:]
        assert store.labelled(None, INPUT[1:], None, 4) == lines[0].saved[-1:]
        assert store.labelled("ada", LOOP, None, 4) == []

    def test_labels_take_the_place_of_those_before(self, store: Store) -> None:
        line = Line(store)
        one, other = _labelled(line, LOOP), _labelled(line, LOOP)
        changed: Labels = (("source", "[purged]"),)
        batch = Batch(None, an_entry("purge"), changes=Changes(replace=[one]))
        store.commit(but(batch, labels={one.id: changed, an_id("of nothing"): LOOP}))
        assert store.labels(None, [one.id, other.id]) == {one.id: changed, other.id: LOOP}
        assert store.labelled(None, LOOP, None, 10) == [other]
        assert store.labelled(None, changed, None, 10) == [one]

    def test_what_is_imported_brings_labels_and_notes(self, store: Store) -> None:
        line = Line(store)
        line.save()
        assert line.standing is not None
        new = line.next().event
        assert isinstance(new, CheckpointRecord)
        batch = Batch(None, an_entry("import"), changes=Changes(checkpoints=[new]))
        store.commit(but(batch, labels={new.id: LOOP}, notes={new.id: [FIRST, SECOND]}))
        assert store.labels(None, [new.id]) == {new.id: LOOP}
        assert _notes(store, new.id) == [FIRST, SECOND]

    def test_hidden_checkpoints_are_not_found_by_labels_and_keep_what_they_have(
        self, store: Store
    ) -> None:
        line = Line(store)
        one = _labelled(line, LOOP)
        line.save()
        store.put_notes(None, one.id, [FIRST])
        hidden = operate(store, "hide", Changes(hide=[one.id]))
        assert store.labelled(None, LOOP, None, 10) == []
        assert store.checkpoints(None, Query(timeline="main", limit=9, labels=LOOP)) == []
        operate(store, "show", Changes(show=[hidden]))
        assert [each.id for each in store.labelled(None, LOOP, None, 10)] == [one.id]
        assert _notes(store, one.id) == [FIRST]

    def test_what_is_dropped_takes_its_labels_and_notes_along(self, store: Store) -> None:
        line = Line(store)
        one = _labelled(line, LOOP)
        other = _labelled(line, LOOP)
        for each in (one, other):
            store.put_notes(None, each.id, [FIRST])
        line.save()
        operate(store, "drop", Changes(drop=[one.id]))
        ids = [one.id, other.id]
        assert store.labels(None, ids) == {other.id: LOOP}
        assert store.notes(None, ids) == {other.id: [FIRST]}
        assert store.labelled(None, LOOP, None, 10) == [other]
        assert list(store.verify()) == []

    # Notes

    def test_notes_are_listed_in_the_order_in_which_their_keys_came(self, store: Store) -> None:
        line = Line(store)
        one, other = line.save(), line.save()
        store.put_notes(None, one.id, [SECOND])
        store.put_notes(None, other.id, [FIRST])
        store.put_notes(None, one.id, [FIRST, Note(SECOND.key, _encoded("anew"))])
        found = store.notes(None, [one.id, other.id, an_id("of nothing")])
        assert found == {one.id: [Note(SECOND.key, _encoded("anew")), FIRST], other.id: [FIRST]}

    def test_a_note_that_is_there_stays_if_it_is_not_to_be_replaced(self, store: Store) -> None:
        id = Line(store).save().id
        store.put_notes(None, id, [FIRST])
        store.put_notes(None, id, [Note(FIRST.key, _encoded("late")), SECOND], replace=False)
        assert _notes(store, id) == [FIRST, SECOND]

    def test_a_note_without_data_removes_the_one_that_is_there(self, store: Store) -> None:
        one = Line(store).save()
        store.put_notes(None, one.id, [FIRST, SECOND])
        store.put_notes(None, one.id, [Note(FIRST.key, b""), Note("of nothing", b"")])
        assert _notes(store, one.id) == [SECOND]
        batch = Batch(None, an_entry("purge"), notes={one.id: [Note(SECOND.key, b"")]})
        store.commit(batch)
        assert store.notes(None, [one.id]) == {}

    def test_many_checkpoints_are_asked_about_at_once(self, store: Store) -> None:
        line = Line(store)
        ids = [_labelled(line, LOOP).id for _ in range(3)]
        store.put_notes(None, ids[2], [FIRST])
        many = [an_id(f"of nothing {at}") for at in range(1_200)]
        asked = [ids[0], *many, *ids[1:]]
        assert store.labels(None, asked) == dict.fromkeys(ids, LOOP)
        assert store.notes(None, asked) == {ids[2]: [FIRST]}

    def test_to_put_notes_again_changes_nothing(self, store: Store) -> None:
        id = Line(store).save().id
        for _ in range(2):
            store.put_notes(None, id, [FIRST, SECOND])
        assert _notes(store, id) == [FIRST, SECOND]

    def test_notes_of_a_checkpoint_that_is_not_there_are_refused(self, store: Store) -> None:
        line = Line(store)
        gone = line.save().id
        line.save()
        operate(store, "drop", Changes(drop=[gone]))
        for id in (gone, an_id("never saved")):
            with pytest.raises(CheckpointGone):
                store.put_notes(None, id, [FIRST])
            assert store.notes(None, [id]) == {}

    def test_notes_take_no_number_and_are_no_event(self, store: Store) -> None:
        line = Line(store)
        one = line.save()
        store.put_notes(None, one.id, [FIRST])
        assert line.save().number == one.number + 1
        assert store.log(None, 0, 10) == []

    def test_labels_and_notes_are_seen_by_their_user_only(self, store: Store) -> None:
        for user in (None, "ada"):
            line = Line(store, user=user)
            batch = line.next()
            event = batch.event._replace(id=an_id("the same"))
            line.commit(but(batch, event=event, labels={event.id: (("of", str(user)),)}))
            store.put_notes(user, event.id, [Note("of", _encoded(str(user)))])
        id = an_id("the same")
        for user in (None, "ada"):
            assert store.labels(user, [id]) == {id: (("of", str(user)),)}
            assert store.notes(user, [id]) == {id: [Note("of", _encoded(str(user)))]}
            found = store.labelled(user, (("of", str(user)),), None, 10)
            assert [each.id for each in found] == [id]
        assert store.notes("bob", [id]) == {}
        with pytest.raises(CheckpointGone):
            store.put_notes("bob", id, [FIRST])

    # Timelines

    def test_timelines_are_found_by_what_their_names_begin_with(self, store: Store) -> None:
        every = ["a", "a/1", "a/2", "a/\U0010ffff", "a/é", "a0", "A/1", "b", "\U0010ffff"]
        for name in every:
            Line(store, name).save()
        within = [name for name in sorted(every, key=str.encode) if name.startswith("a/")]

        def named(after: str | None, limit: int, prefix: str) -> list[str]:
            return [row.name for row in store.timelines(None, after, limit, prefix=prefix)]

        assert named(None, 10, "a/") == within
        assert named(within[1], 2, "a/") == within[2:4]
        assert named("A", 1, "a/") == within[:1]
        assert named("b", 10, "a/") == []
        assert named(None, 10, "c") == []
        assert named(None, 10, "\U0010ffff") == ["\U0010ffff"]
        assert named(None, 99, "") == sorted(every, key=str.encode)


def _labelled(line: Line, labels: Labels) -> CheckpointRecord:
    batch = line.next()
    line.commit(but(batch, labels={batch.event.id: labels}))
    return line.saved[-1]


def _notes(store: Store, id: Id) -> list[Note]:
    return store.notes(None, [id]).get(id, [])
