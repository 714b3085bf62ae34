"""What front ends list: timelines by their last update with counts, forks, ancestors."""

from collections.abc import Sequence

import pytest

from hardsave.errors import Conflict
from hardsave.objects.records import CheckpointRecord, TimelineRecord, Tombstone
from hardsave.stores.base import Batch, Changes, Move, Store, TimelineQuery, TimelineRow
from hardsave.testing.batches import (
    MOMENT,
    SECOND,
    Line,
    an_entry,
    an_id,
    but,
    operate,
    walk,
)
from hardsave.testing.reading import NAMES


class Listing:
    """Needs a `store` fixture."""

    # Timelines by their last update

    def test_deleted_timelines_are_listed_if_they_are_asked_for(self, store: Store) -> None:
        gone, here = Line(store, "gone"), Line(store, "here")
        gone.save()
        here.save()
        assert gone.standing is not None
        deleted = gone.standing._replace(head=None, is_deleted=True)
        gone.commit(Batch(None, an_entry("delete"), Move(gone.standing, deleted)))
        assert [row.name for row in store.timelines(None, None, 10)] == ["here"]
        assert store.timelines(None, None, 10, deleted=True)[0] == deleted
        assert [row.line.name for row in _recent(store)] == ["here"]
        assert {row.line.name for row in _recent(store, deleted=True)} == {"gone", "here"}

    def test_timelines_come_by_their_last_update(self, store: Store) -> None:
        one, two, three = Line(store, "one"), Line(store, "two"), Line(store, "three")
        for line in (one, one, one, two, three, three):  # each save is a second later on its line
            line.save()
        Line(store, "one", user="ada").save()
        rows = _recent(store)
        assert [row.line.name for row in rows] == ["one", "three", "two"]
        assert [row.line for row in rows] == [one.standing, three.standing, two.standing]
        assert [row.newest for row in rows] == [one.saved[-1], three.saved[-1], two.saved[-1]]
        assert [row.head for row in rows] == [row.newest for row in rows]
        assert [row.updated_at for row in rows] == [MOMENT + n * SECOND for n in (3, 2, 1)]

    def test_timelines_of_one_update_come_by_name_and_in_pages(self, store: Store) -> None:
        for name in reversed(NAMES):
            Line(store, name).save()
        for limit in (1, 3, len(NAMES), len(NAMES) + 1):
            found = walk(
                lambda at, n: store.recent_timelines(None, TimelineQuery(n, at)),
                lambda row: (row.updated_at, row.line.name),
                limit,
            )
            assert [row.line.name for row in found] == list(NAMES)

    def test_a_timeline_that_was_rewound_has_its_head_and_its_newest(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        line.commit(line.moved("back", head=first.id))
        hidden = line.save()
        operate(store, "hide", Changes(hide=[hidden.id]))
        line.commit(line.moved("again", head=first.id))
        (row,) = _recent(store)
        assert (row.newest, row.head) == (second, first)

    def test_a_fork_without_a_save_has_a_head_alone(self, store: Store) -> None:
        source = Line(store).save_files(b"/w")
        fork = TimelineRecord("try", source.id, 0, MOMENT + 9 * SECOND, source.id)
        store.commit(Batch(None, an_entry("fork"), Move(None, fork)))
        row = _recent(store)[0]
        assert row == (fork, MOMENT + 9 * SECOND, None, source, 0)
        assert _recent(store, workspace=b"/w")[0] == row

    def test_timelines_of_a_workspace_are_those_whose_newest_files_are_of_it(
        self, store: Store
    ) -> None:
        here, moved, plain = Line(store, "here"), Line(store, "moved"), Line(store, "plain")
        here.save_files(b"/w")
        here.save()
        moved.save_files(b"/w")
        moved.save_files(b"/w/x")
        plain.save()
        assert [row.line.name for row in _recent(store, workspace=b"/w")] == ["here"]
        assert [row.line.name for row in _recent(store, workspace=b"/w/x")] == ["moved"]
        assert _recent(store, workspace=b"/") == []
        assert len(_recent(store)) == 3

    def test_timelines_are_found_by_the_beginning_of_their_names(self, store: Store) -> None:
        for name in ("a", "a%", "ab", "a_b", "A", "é", "éa"):
            Line(store, name).save()
        for prefix, found in (("a", ["a", "a%", "a_b", "ab"]), ("a_", ["a_b"]), ("é", ["é", "éa"])):
            rows = store.recent_timelines(None, TimelineQuery(100, prefix=prefix))
            assert [row.line.name for row in rows] == found

    def test_timelines_are_found_by_a_text_in_name_or_title(self, store: Store) -> None:
        for name, title in (("one", "Mend the Roof"), ("Roofs", ""), ("two", "É"), ("100%", "")):
            batch = Line(store, name).next()
            assert batch.move is not None
            become = batch.move.become._replace(title=title)
            store.commit(but(batch, move=Move(None, become)))
        for text, found in (
            ("ROOF", {"one", "Roofs"}),
            ("the r", {"one"}),
            ("é", set()),
            ("É", {"two"}),
            ("%", {"100%"}),
            ("onemend", set()),
        ):
            rows = store.recent_timelines(None, TimelineQuery(100, text=text))
            assert {row.line.name for row in rows} == found, text

    def test_timelines_are_found_by_the_status_of_their_newest(self, store: Store) -> None:
        running, done, back = Line(store, "running"), Line(store, "done"), Line(store, "back")
        running.save(status="done")
        running.save(status="running")
        done.save(status="done")
        back.save(status="done")
        last = back.save(status="running")
        operate(store, "hide", Changes(hide=[last.id]))
        for limit in (1, 5):
            found = walk(
                lambda at, n: store.recent_timelines(None, TimelineQuery(n, at, status="done")),
                lambda row: (row.updated_at, row.line.name),
                limit,
            )
            assert [row.line.name for row in found] == ["back", "done"]

    # Counts that are kept

    def test_counts_and_last_updates_follow_what_operations_do(self, store: Store) -> None:
        line, other = Line(store), Line(store, "other")
        saved = [line.save() for _ in range(4)]
        other.save()
        first, second, _, last = (record.id for record in saved)
        _expect(store, saved)
        line.commit(line.moved("back", head=first))
        hid = operate(store, "hide", Changes(hide=[second, last]))
        _expect(store, [saved[0], saved[2]])
        operate(store, "hide once more", Changes(hide=[last]))  # it changes nothing
        _expect(store, [saved[0], saved[2]])
        operate(store, "show", Changes(show=[hid]))
        _expect(store, saved)
        operate(store, "hide again", Changes(hide_again=[hid]))
        _expect(store, [saved[0], saved[2]])
        operate(store, "drop", Changes(drop=[last, saved[2].id]))  # one of them cannot be seen
        _expect(store, saved[:1])
        assert store.count(None, "other") == 1
        assert store.stats(None).checkpoints == 2

    def test_counts_follow_what_is_imported(self, store: Store) -> None:
        line = Line(store)
        records = [line.save(), line.save()]
        line.commit(line.moved("back", head=records[0].id))
        operate(store, "drop", Changes(drop=[records[1].id]))
        _expect(store, records[:1])
        theirs = records[1]._replace(hidden=0)
        stone = Tombstone(an_id("stone"), "main", 9, None)
        operate(store, "import", Changes(checkpoints=[theirs], tombstones=[stone]))
        _expect(store, records)
        operate(store, "import", Changes(checkpoints=[_beside(theirs)], hide=[an_id("beside")]))
        _expect(store, records)

    def test_a_refused_batch_counts_nothing(self, store: Store) -> None:
        line, late = Line(store), Line(store, writer="late")
        saved = [line.save()]
        for batch in (late.next(), but(line.next(), requires=[bytes(20)])):
            with pytest.raises(Conflict):
                store.commit(batch)
            _expect(store, saved)

    # Where history forks

    def test_children_of_a_rewound_timeline_are_all_found(self, store: Store) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        line.commit(line.moved("back", head=first.id))
        third = line.save()
        fourth = line.save()
        assert store.children(None, first.id) == [second, third]
        assert store.children(None, third.id) == [fourth]
        assert store.children(None, an_id("nowhere")) == []

    def test_children_of_what_was_dropped_are_found(self, store: Store) -> None:
        line, fork = Line(store), Line(store, "fork", writer="fork")
        first, second = line.save(), line.save()
        _fork(fork, first)
        forked = fork.save()
        operate(store, "drop", Changes(drop=[first.id]))
        assert store.children(None, first.id) == [second, forked]

    def test_branches_are_where_the_history_of_a_timeline_forks(self, store: Store) -> None:
        line, fork = Line(store), Line(store, "fork", writer="fork")
        saved = [line.save() for _ in range(4)]
        _fork(fork, saved[1])
        forked = [fork.save(), fork.save()]
        line.commit(line.moved("back", head=saved[2].id))
        again = line.save()
        hidden = _fork_of(store, "hidden", saved[0])
        operate(store, "hide", Changes(hide=[hidden.id]))
        assert store.branches(None, "main", 1, 9) == [forked[0], again]
        assert store.branches(None, "main", 2, 2) == [forked[0]]
        assert store.branches(None, "main", 4, 9) == []
        assert store.branches(None, "fork", 1, 9) == []
        assert store.branches("ada", "main", 1, 9) == []
        assert store.branches(None, "nowhere", 1, 9) == []

    # Ancestors

    def test_ancestors_come_from_every_timeline_in_pages(self, store: Store) -> None:
        line, fork = Line(store), Line(store, "fork", writer="fork")
        saved = [line.save() for _ in range(3)]
        _fork(fork, saved[1])
        forked = [fork.save(), fork.save()]
        way = [*forked[::-1], *saved[1::-1]]
        assert store.ancestors(None, forked[1].id, 10) == way
        assert store.ancestors(None, forked[1].id, 3) == way[:3]
        assert store.ancestors(None, saved[0].id, 10) == saved[:1]
        assert store.ancestors("ada", forked[1].id, 10) == []
        assert store.ancestors(None, an_id("nowhere"), 10) == []

    def test_ancestors_end_where_one_was_dropped(self, store: Store) -> None:
        line = Line(store)
        saved = [line.save() for _ in range(4)]
        by = operate(store, "hide", Changes(hide=[saved[2].id]))
        operate(store, "drop", Changes(drop=[saved[1].id]))
        way = [saved[3], saved[2]._replace(hidden=by)]
        assert store.ancestors(None, saved[3].id, 10) == way


def _recent(
    store: Store, *, workspace: bytes | None = None, deleted: bool = False
) -> list[TimelineRow]:
    return store.recent_timelines(None, TimelineQuery(100, None, workspace, deleted))


def _expect(store: Store, seen: Sequence[CheckpointRecord]) -> None:
    """These, in the order of their numbers, can be seen on the timeline `main`."""
    (row,) = store.recent_timelines(None, TimelineQuery(9, prefix="main"))
    newest = seen[-1]
    assert row.newest is not None
    assert (row.saved, row.newest.id, row.updated_at) == (len(seen), newest.id, newest.created_at)
    assert store.count(None, "main") == len(seen)


def _beside(record: CheckpointRecord) -> CheckpointRecord:
    return record._replace(id=an_id("beside"), seq=7, created_at=MOMENT + 99 * SECOND)


def _fork(line: Line, source: CheckpointRecord) -> None:
    """Let a line begin at a checkpoint of another."""
    line.standing = TimelineRecord(line.name, source.id, 0, MOMENT, source.id)
    line.store.commit(Batch(None, an_entry(f"fork {line.name}"), Move(None, line.standing)))


def _fork_of(store: Store, name: str, source: CheckpointRecord) -> CheckpointRecord:
    """The first save of a fork."""
    line = Line(store, name, writer=name)
    _fork(line, source)
    return line.save()
