"""Tasks: what a batch may do to them, what is noted of it, and how they go."""

import pytest

from hardsave.errors import Conflict, LeaseLost
from hardsave.objects.hashing import digest
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Batch, Changes, Store
from hardsave.stores.ledger import Fence, Latest, TaskMove, TaskQuery, Work
from hardsave.testing.batches import MOMENT, Line, an_entry, an_id, walk
from hardsave.testing.duties import a_task, add, an_owner, happened, move, names

OTHERS = (None, "None", "ada", "Ada")


class Working:
    """Tasks and their entries."""

    # One task

    def test_a_task_comes_back_as_it_was_added(self, store: Store) -> None:
        task = a_task(
            "t1",
            text="two\nlines",
            priority=-3,
            after=(),
            error="e",
            result=b"\x01",
            question=b"\x02",
            metadata=b"\x80",
            started_at=MOMENT,
            ended_at=MOMENT + 1,
            done=1,
            total=2,
            not_before=5,
            due=5,
        )
        found = add(store, task)
        assert found == task._replace(place=found.place)
        assert store.task_by_key(None, task.key) == found
        assert store.task(None, "t2") is None
        assert store.task_by_key(None, b"another") is None

    def test_a_name_or_a_key_is_added_once(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        for label, other in (
            ("same name", a_task("t1", key=b"another key")),
            ("same key", a_task("t2", key=task.key)),
        ):
            batch = Batch(
                None, happened(label, other.name), work=Work(moves=(TaskMove(None, other),))
            )
            with pytest.raises(Conflict):
                store.commit(batch)
        assert store.tasks(None, TaskQuery(limit=9)) == [task]

    def test_a_move_at_an_old_epoch_is_refused_and_writes_nothing(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        taken = move(store, task, "claim", state="in_progress", epoch=1, owner=an_id("me"))
        become = task._replace(state="completed", epoch=1)
        late = Work(
            moves=(TaskMove(0, become),), entries=(happened("late step", "t1", step="a#1"),)
        )
        with pytest.raises(LeaseLost):
            store.commit(Batch(None, happened("late", "t1"), work=late))
        assert store.task(None, "t1") == taken
        assert store.journal(None, "t1", 1) == []
        assert [entry.data for entry in store.entries(None, "t1")] == [b"add t1", b"claim"]

    def test_a_fence_keeps_an_old_attempt_out(self, store: Store) -> None:
        task = move(store, add(store, a_task("t1")), "claim", epoch=1)

        def step(label: str, epoch: int) -> None:
            entry = happened(label, "t1", step=f"{label}#1", at=epoch)
            store.commit(Batch(None, entry, work=Work(fences=(Fence("t1", epoch),))))

        step("mine", 1)
        for epoch in (0, 2):
            with pytest.raises(LeaseLost):
                step("not mine", epoch)
        nowhere = Batch(None, happened("x", None), work=Work(fences=(Fence("t2", 0),)))
        with pytest.raises(LeaseLost):
            store.commit(nowhere)
        assert [entry.step for entry in store.journal(None, task.name, 1)] == ["mine#1"]

    def test_a_batch_that_comes_twice_is_recognised(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        become = task._replace(epoch=1, state="in_progress")
        batch = Batch(None, happened("claim", "t1"), work=Work(moves=(TaskMove(0, become),)))
        assert store.commit(batch) == store.commit(batch)
        assert store.task(None, "t1") == become
        entry = happened("one", "t1", step="a#1")
        step = Batch(None, entry, work=Work(fences=(Fence("t1", 1),)))
        number = store.commit(step)
        move(store, become, "taken over", epoch=2)
        assert store.commit(step) == number
        assert len(store.journal(None, "t1", 1)) == 1

    # Entries

    def test_entries_have_numbers_of_the_same_row_as_saves(self, store: Store) -> None:
        line = Line(store)
        first = line.save().number
        add(store, a_task("t1"))
        second = line.save().number
        entries = (happened("one", "t1"), happened("two", "t1"))
        last = store.commit(
            Batch(None, happened("three", "t1", step="s#1"), work=Work(entries=entries))
        )
        numbers = [entry.number for entry in store.entries(None, "t1")]
        assert numbers == [first + 1, second + 1, second + 2]
        assert [entry.number for entry in store.journal(None, "t1", 1)] == [last] == [second + 3]
        assert line.save().number == last + 1

    def test_a_save_and_the_ledger_are_one_commit(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        line = Line(store)
        work = Work(moves=(TaskMove(0, task._replace(epoch=1, state="in_progress")),))
        line.commit(line.next()._replace(work=work))
        standing = store.task(None, "t1")
        assert standing is not None
        assert standing.epoch == 1
        with pytest.raises(LeaseLost):
            store.commit(line.next()._replace(work=work))
        assert store.timeline(None, "main") == line.standing

    def test_a_checkpoint_knows_whose_attempt_saved_it(self, store: Store) -> None:
        line = Line(store)
        batch = line.next()
        assert isinstance(batch.event, CheckpointRecord)
        event = batch.event._replace(task="t1", generation=2, attempt=3)
        number = line.commit(batch._replace(event=event))
        plain = line.save()
        assert store.checkpoint(None, event.id) == event._replace(number=number)
        assert store.saved(None, 0, 9) == [event._replace(number=number), plain]

    def test_what_an_operation_adds_comes_right_before_it_and_entries_before_that(
        self, store: Store
    ) -> None:
        line = Line(store)
        first, second = line.save(), line.save()
        add(store, a_task("t1"))
        added = first._replace(id=an_id("added"), seq=7, parent=second.id)
        changes = Changes(hide=[first.id], checkpoints=[added])
        work = Work(entries=(happened("one", "t1"), happened("two", "t1")))
        number = store.commit(Batch(None, an_entry("both"), changes=changes, work=work))
        assert [entry.number for entry in store.entries(None, "t1")][1:] == [number - 3, number - 2]
        assert [row.number for row in store.saved(None, second.number, 9)] == [number - 1]
        hidden = store.checkpoint(None, first.id)
        assert hidden is not None
        assert hidden.hidden == number

    def test_entries_come_by_task_in_order_and_in_pages(self, store: Store) -> None:
        for name in ("t1", "t2"):
            add(store, a_task(name))
        for number in range(5):
            store.commit(Batch(None, happened(f"e{number}", "t1")))
            store.commit(Batch(None, happened(f"s{number}", "t1", step=f"s#{number}")))
        store.commit(Batch(None, happened("whole", None)))
        pages = walk(lambda at, n: store.entries(None, "t1", at or 0, n), lambda e: e.number, 2)
        assert [e.data.decode() for e in pages] == ["add t1", "e0", "e1", "e2", "e3", "e4"]
        assert [e.data for e in store.entries(None, None)] == [b"whole"]
        assert [e.step for e in store.journal(None, "t1", 1)] == [f"s#{n}" for n in range(5)]
        assert store.journal(None, "t1", 2) == []
        assert store.entries(None, "t3") == []

    def test_the_latest_of_a_kind_is_found(self, store: Store) -> None:
        assert store.latest_entry(None, "happened") is None
        store.commit(Batch(None, happened("one", None)))
        store.commit(Batch(None, happened("two", None)))
        store.commit(Batch(None, happened("three", None)._replace(kind="other")))
        found = store.latest_entry(None, "happened")
        assert found is not None
        assert found.data == b"two"
        assert found.task is None

    def test_what_happened_to_all_of_them_comes_in_the_order_of_commits(self, store: Store) -> None:
        for name in ("t1", "t2"):
            add(store, a_task(name))
        store.commit(Batch(None, happened("whole", None)))
        store.commit(Batch(None, happened("step", "t1", step="s#1")))
        Line(store).save()
        store.commit(Batch("ada", happened("hers", None)))
        last = store.commit(Batch(None, happened("one", "t1")))
        pages = walk(lambda at, n: store.happened(None, at or 0, n), lambda e: e.number, limit=2)
        found = list(pages)
        told = [(entry.task, entry.data) for entry in found]
        assert told == [
            ("t1", b"add t1"),
            ("t2", b"add t2"),
            (None, b"whole"),
            ("t1", b"one"),
        ]
        assert found[-1].number == last
        assert store.happened(None, last, 9) == []

    # Going for good

    def test_a_forgotten_task_is_gone_with_its_entries(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            add(store, a_task(name, state="completed"))
        store.commit(Batch(None, happened("step", "a", step="s#1")))
        number = store.commit(Batch(None, happened("gone", None), work=Work(forget=["a", "b"])))
        assert names(store.tasks(None, TaskQuery(9))) == ["c"]
        assert store.entries(None, "a") == store.journal(None, "a", 1) == []
        assert store.task_by_key(None, digest(b"a")) is None
        again = add(store, a_task("a"))
        assert [entry.number for entry in store.entries(None, "a")] == [number + 1]
        assert again.epoch == 0

    def test_old_entries_about_the_ledger_itself_go_but_the_latest_of_a_kind(
        self, store: Store
    ) -> None:
        add(store, a_task("t1"))
        first = happened("first", None)._replace(kind="rare")
        store.commit(Batch(None, first))
        store.commit(Batch("ada", happened("hers", None)))
        for number in range(6):
            store.commit(Batch(None, happened(f"e{number}", None)))
        store.commit(Batch(None, happened("last", None), work=Work(keep_itself=2)))
        kept = [entry.data for entry in store.entries(None, None)]
        assert kept == [b"first", b"e4", b"e5", b"last"]
        latest = store.latest_entry(None, "rare")
        assert latest is not None
        assert latest.data == b"first"
        assert [entry.data for entry in store.entries("ada", None)] == [b"hers"]
        assert [entry.data for entry in store.entries(None, "t1")] == [b"add t1"]

    def test_of_two_who_follow_the_latest_entry_of_a_kind_one_does(self, store: Store) -> None:
        def follow(label: str, latest: Latest, user: str | None = None) -> None:
            store.commit(Batch(user, happened(label, None), work=Work(latest=latest)))

        follow("first", Latest("happened", None))
        for wrong in (None, an_id("other")):
            with pytest.raises(Conflict, match="'happened'"):
                follow("late", Latest("happened", wrong))
        follow("second", Latest("happened", an_id("first")))
        follow("hers", Latest("happened", None), "ada")
        with pytest.raises(Conflict):
            follow("late", Latest("happened", an_id("first")))
        assert [entry.data for entry in store.entries(None, None)] == [b"first", b"second"]

    # Whose they are

    def test_tasks_are_seen_by_their_user_only(self, store: Store) -> None:
        for user in OTHERS:
            add(store, a_task("t1", text=f"of {user!r}", owner=an_id("o")), user)
            store.commit(Batch(user, happened("step", "t1", step="s#1"), work=Work()))
            store.commit(Batch(user, happened(f"{user!r}", None)))
            store.hold(user, an_owner("one")._replace(session=f"of {user!r}"), is_new=True)
        move_of_ada = store.task("ada", "t1")
        assert move_of_ada is not None
        move(store, move_of_ada, "ada's", "ada", epoch=4)
        for user in OTHERS:
            mine = f"of {user!r}"
            task = store.task(user, "t1")
            assert task is not None
            assert (task.text, task.epoch) == (mine, 4 if user == "ada" else 0)
            assert [each.text for each in store.tasks(user, TaskQuery(9))] == [mine]
            assert [each.text for each in store.due(user, MOMENT, 9)] == [mine]
            assert store.task_counts(user) == {"pending": 1}
            assert len(store.journal(user, "t1", 1)) == 1
            assert [e.data for e in store.entries(user, None)] == [repr(user).encode()]
            assert [each.session for each in store.owners(user)] == [mine]
        assert store.tasks("unknown", TaskQuery(9)) == []
        assert store.due("unknown", MOMENT, 9) == []
        assert store.owners("unknown") == []
        store.let_go("unknown", an_id("one"))
        assert len(store.owners(None)) == 1

    def test_the_log_knows_nothing_of_the_ledger(self, store: Store) -> None:
        add(store, a_task("t1"))
        store.commit(Batch(None, an_entry("note")))
        assert [entry.data for entry in store.log(None, 0, 9)] == [b"note"]
        assert store.saved(None, 0, 9) == []
