"""Tasks: what a batch may do to them, who may do it, and how they are found."""

import threading

import pytest

from hardsave.errors import Conflict, LeaseLost
from hardsave.objects.hashing import digest
from hardsave.objects.records import CheckpointRecord, EntryRecord, OwnerRecord, TaskRecord
from hardsave.stores.base import Batch, Changes, Store
from hardsave.stores.ledger import Fence, TaskMove, TaskQuery, Work
from hardsave.testing.batches import MOMENT, Line, an_entry, an_id, walk

OTHERS = (None, "None", "ada", "Ada")


def a_task(name: str, **about: object) -> TaskRecord:
    """A pending task that is due."""
    made = TaskRecord(
        name=name,
        text=f"do {name}",
        key=digest(name.encode()),
        state="pending",
        priority=0,
        created_at=MOMENT,
        epoch=0,
        generation=1,
        attempts=0,
        max_attempts=3,
        not_before=0,
        due=0,
        after=(),
        waits_for=None,
        owner=None,
        started_at=None,
        ended_at=None,
        done=0,
        total=0,
        error=None,
        result=None,
        question=None,
        metadata=b"\x80",
    )
    return made._replace(**about)  # type: ignore[arg-type] # as the caller says


def happened(label: str, task: str | None, *, step: str | None = None, at: int = 0) -> EntryRecord:
    kind = "step_done" if step is not None else "happened"
    return EntryRecord(0, an_id(label), task, kind, 1, at, MOMENT, step, label.encode())


def an_owner(label: str, until: int = 1_000) -> OwnerRecord:
    return OwnerRecord(an_id(label), label, "host", b"bootboot", 7, 42, 99, MOMENT, until)


def add(store: Store, task: TaskRecord, user: str | None = None) -> TaskRecord:
    """Commit a new task; it, as it stands."""
    work = Work(moves=(TaskMove(None, task),))
    store.commit(Batch(user, happened(f"add {task.name}", task.name), work=work))
    found = store.task(user, task.name)
    assert found is not None
    return found


def move(
    store: Store, task: TaskRecord, label: str, user: str | None = None, **to: object
) -> TaskRecord:
    """Commit a change of a task; it, as it stands."""
    become = task._replace(**to)  # type: ignore[arg-type] # as the caller says
    work = Work(moves=(TaskMove(task.epoch, become),))
    store.commit(Batch(user, happened(label, task.name, at=become.epoch), work=work))
    found = store.task(user, task.name)
    assert found is not None
    return found


def names(tasks: list[TaskRecord]) -> list[str]:
    return [task.name for task in tasks]


class Working:
    """Needs a `store` fixture."""

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
        assert add(store, task) == task
        assert store.task_by_key(None, task.key) == task
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
        found = list(walk(lambda at: store.entries(None, "t1", at or 0, 2), lambda e: e.number))
        assert [e.data.decode() for e in found] == ["add t1", "e0", "e1", "e2", "e3", "e4"]
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

    # Finding

    def test_due_tasks_come_by_priority_and_then_in_order(self, store: Store) -> None:
        for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1), ("e", 5)):
            add(store, a_task(name, priority=priority))
        assert names(store.due(None, MOMENT, 9)) == ["b", "e", "a", "c", "d"]
        assert names(store.due(None, MOMENT, 2)) == ["b", "e"]

    def test_only_what_is_pending_and_whose_time_has_come_is_due(self, store: Store) -> None:
        add(store, a_task("now"))
        add(store, a_task("soon", due=MOMENT + 5, priority=9))
        add(store, a_task("never", due=None, question=b"\x01"))
        for state in ("in_progress", "completed", "failed", "rolled_back"):
            add(store, a_task(state, state=state))
        assert names(store.due(None, MOMENT, 9)) == ["now"]
        assert names(store.due(None, MOMENT + 5, 9)) == ["soon", "now"]

    def test_tasks_are_listed_in_the_order_they_were_added(self, store: Store) -> None:
        for name in ("c", "a", "d", "b"):
            add(store, a_task(name, state="completed" if name in "ab" else "pending"))
        every = list(
            walk(lambda at: store.tasks(None, TaskQuery(2, after=at)), lambda task: task.name)
        )
        assert names(every) == ["c", "a", "d", "b"]
        assert names(store.tasks(None, TaskQuery(9, state="completed"))) == ["a", "b"]
        assert names(store.tasks(None, TaskQuery(9, state="completed", after="a"))) == ["b"]
        assert store.tasks(None, TaskQuery(9, after="unknown")) == []
        assert store.task_counts(None) == {"pending": 2, "completed": 2}

    def test_tasks_are_found_by_their_owner(self, store: Store) -> None:
        for name, owner in (("a", "one"), ("b", "two"), ("c", "one")):
            add(store, a_task(name, state="in_progress", owner=an_id(owner)))
        query = TaskQuery(9, state="in_progress", owner=an_id("one"))
        assert names(store.tasks(None, query)) == ["a", "c"]

    # Waiting for others

    def test_a_task_waits_until_all_others_are_completed(self, store: Store) -> None:
        one, two = add(store, a_task("one")), add(store, a_task("two"))
        three = add(store, a_task("three", after=("one", "two"), not_before=7))
        assert (three.waits_for, three.due, three.after) == ("one", None, ("one", "two"))
        move(store, one, "one done", state="completed", epoch=1)
        assert store.task(None, "three") == three._replace(waits_for="two")
        two = move(store, two, "two failed", state="failed", epoch=1)
        assert store.task(None, "three") == three._replace(waits_for="two")
        move(store, two, "two done", state="completed", epoch=2)
        assert store.task(None, "three") == three._replace(waits_for=None, due=7)

    def test_what_has_asked_something_waits_for_the_answer_too(self, store: Store) -> None:
        one = add(store, a_task("one"))
        two = add(store, a_task("two", after=("one",), question=b"?", not_before=7))
        move(store, one, "one done", state="completed", epoch=1)
        assert store.task(None, "two") == two._replace(waits_for=None, due=None)

    def test_what_is_completed_already_is_not_waited_for(self, store: Store) -> None:
        add(store, a_task("one", state="completed"))
        assert add(store, a_task("two", after=("one",))).due == 0

    def test_what_is_rolled_back_is_waited_for_again(self, store: Store) -> None:
        one = add(store, a_task("one", state="completed"))
        two = add(store, a_task("two", after=("one",), not_before=7, due=7))
        asks = add(store, a_task("asks", after=("one",), due=None, question=b"?"))
        begun = add(store, a_task("begun", after=("one",), state="in_progress"))
        one = move(store, one, "taken back", state="rolled_back", epoch=1)
        assert store.task(None, "two") == two._replace(waits_for="one", due=None)
        assert store.task(None, "asks") == asks
        assert store.task(None, "begun") == begun
        move(store, one, "done again", state="completed", epoch=2)
        assert store.task(None, "two") == two

    def test_what_happened_to_all_of_them_comes_in_the_order_of_commits(self, store: Store) -> None:
        for name in ("t1", "t2"):
            add(store, a_task(name))
        store.commit(Batch(None, happened("whole", None)))
        store.commit(Batch(None, happened("step", "t1", step="s#1")))
        Line(store).save()
        store.commit(Batch("ada", happened("hers", None)))
        last = store.commit(Batch(None, happened("one", "t1")))
        found = list(walk(lambda at: store.happened(None, at or 0, 2), lambda e: e.number))
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

    # Leases

    def test_a_lease_is_taken_renewed_and_given_back(self, store: Store) -> None:
        one, two = an_owner("one"), an_owner("two")._replace(since=MOMENT + 1)
        assert not store.hold(None, one)
        assert store.hold(None, one, is_new=True)
        assert store.hold(None, two, is_new=True)
        assert store.hold(None, one._replace(until=5_000))
        assert store.owners(None) == [one._replace(until=5_000), two]
        store.let_go(None, one.id)
        store.let_go(None, one.id)
        assert store.owners(None) == [two]
        assert not store.hold(None, one)

    def test_nobody_is_buried_who_has_renewed_his_lease(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        owner = an_owner("one")
        store.hold(None, owner, is_new=True)
        store.hold(None, owner._replace(until=2_000))
        back = TaskMove(0, task._replace(epoch=1))
        with pytest.raises(Conflict):
            store.commit(
                Batch(None, happened("bury", None), work=Work(moves=(back,), bury=(owner,)))
            )
        assert store.task(None, "t1") == task
        alive = owner._replace(until=2_000)
        assert store.owners(None) == [alive]
        store.commit(Batch(None, happened("bury", None), work=Work(moves=(back,), bury=(alive,))))
        assert store.owners(None) == []
        assert not store.hold(None, alive)

    def test_only_the_living_can_claim(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        owner = an_owner("one")
        claim = Work(moves=(TaskMove(0, task._replace(epoch=1)),), alive=(owner.id,))
        with pytest.raises(LeaseLost):
            store.commit(Batch(None, happened("claim", "t1"), work=claim))
        assert store.task(None, "t1") == task
        store.hold(None, owner, is_new=True)
        store.commit(Batch(None, happened("claim", "t1"), work=claim))

    def test_the_time_of_leases_goes_on(self, store: Store) -> None:
        first, second = store.moment(), store.moment()
        assert first.boot == second.boot
        assert first.at <= second.at

    # Together

    def test_of_many_who_claim_a_task_one_gets_it(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        won: list[str] = []

        def claim(who: str) -> None:
            become = task._replace(epoch=1, state="in_progress", owner=an_id(who))
            work = Work(moves=(TaskMove(0, become),))
            try:
                store.commit(Batch(None, happened(f"claim by {who}", "t1"), work=work))
            except LeaseLost:
                return
            won.append(who)

        threads = [threading.Thread(target=claim, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        standing = store.task(None, "t1")
        assert standing is not None
        assert [an_id(who) for who in won] == [standing.owner]

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
        assert store.tasks("stranger", TaskQuery(9)) == []
        assert store.due("stranger", MOMENT, 9) == []
        assert store.owners("stranger") == []
        store.let_go("stranger", an_id("one"))
        assert len(store.owners(None)) == 1

    def test_the_log_knows_nothing_of_the_ledger(self, store: Store) -> None:
        add(store, a_task("t1"))
        store.commit(Batch(None, an_entry("note")))
        assert [entry.data for entry in store.log(None, 0, 9)] == [b"note"]
        assert store.saved(None, 0, 9) == []
