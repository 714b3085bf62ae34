"""Tasks that wait: which are due, for whom they wait, and who may claim them."""

import threading

import pytest

from hardsave.errors import Conflict, LeaseLost
from hardsave.stores.base import Batch, Store
from hardsave.stores.ledger import TaskMove, TaskQuery, Work, every
from hardsave.testing.batches import MOMENT, an_id, walk
from hardsave.testing.duties import a_task, add, an_owner, happened, move, names


class Queueing:
    """Who works on what, and when."""

    # Finding

    def test_due_tasks_come_by_priority_and_then_in_order(self, store: Store) -> None:
        for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1), ("e", 5)):
            add(store, a_task(name, priority=priority))
        assert names(store.due(None, MOMENT, 9)) == ["b", "e", "a", "c", "d"]
        assert names(store.due(None, MOMENT, 2)) == ["b", "e"]

    def test_a_higher_priority_comes_first_however_many_were_due_before_it(
        self, store: Store
    ) -> None:
        for number in range(100):
            add(store, a_task(f"early-{number}", due=MOMENT + number))
        add(store, a_task("urgent", due=MOMENT + 500, priority=1))
        found = names(store.due(None, MOMENT + 500, 3))
        assert found == ["urgent", "early-0", "early-1"]
        assert len(store.due(None, MOMENT + 500, 200)) == 101

    def test_only_what_is_pending_and_whose_time_has_come_is_due(self, store: Store) -> None:
        add(store, a_task("now"))
        add(store, a_task("soon", due=MOMENT + 5, priority=9))
        add(store, a_task("never", due=None, question=b"\x01"))
        for state in ("in_progress", "completed", "failed", "rolled_back"):
            add(store, a_task(state, state=state))
        assert names(store.due(None, MOMENT + 4, 9)) == ["now"]
        assert names(store.due(None, MOMENT + 5, 9)) == ["soon", "now"]

    def test_tasks_are_listed_in_the_order_they_were_added(self, store: Store) -> None:
        for name in ("c", "a", "d", "b"):
            add(store, a_task(name, state="completed" if name in "ab" else "pending"))
        found = list(
            walk(
                lambda at, limit: store.tasks(None, TaskQuery(limit, after=at or 0)),
                lambda task: task.place,
                limit=2,
            )
        )
        assert names(found) == ["c", "a", "d", "b"]
        assert names(store.tasks(None, TaskQuery(9, state="completed"))) == ["a", "b"]
        after = found[1].place
        assert names(store.tasks(None, TaskQuery(9, state="completed", after=after))) == ["b"]
        assert store.tasks(None, TaskQuery(9, after=found[-1].place)) == []
        assert store.task_counts(None) == {"pending": 2, "completed": 2}

    def test_a_listing_goes_on_behind_tasks_that_are_forgotten_and_added_anew(
        self, store: Store
    ) -> None:
        for name in "abcde":
            add(store, a_task(name))
        every_two = every(store, None, TaskQuery(2))
        seen = [next(every_two).name, next(every_two).name]
        store.commit(Batch(None, happened("gone", None), work=Work(forget=seen)))
        moved = add(store, a_task("b"))
        move(store, moved, "claim", state="in_progress", epoch=1)
        assert names(list(every_two)) == ["c", "d", "e", "b"]

    def test_tasks_are_listed_newest_first_behind_those_that_are_gone(self, store: Store) -> None:
        for name in "abcdef":
            add(store, a_task(name, state="failed" if name in "bf" else "pending"))
        add(store, a_task("hers"), "ada")
        newest = TaskQuery(2, newest_first=True)
        every_two = every(store, None, newest)
        seen = [next(every_two).name, next(every_two).name]
        assert seen == ["f", "e"]
        store.commit(Batch(None, happened("gone", None), work=Work(forget=["e"])))
        add(store, a_task("new"))
        assert names(list(every_two)) == ["d", "c", "b", "a"]
        assert names(list(every(store, None, newest._replace(state="failed")))) == ["f", "b"]
        assert names(store.tasks("ada", newest)) == ["hers"]

    def test_retries_are_found_behind_many_other_tasks(self, store: Store) -> None:
        for number in range(20):
            add(store, a_task(f"t{number}", due=MOMENT + 2, priority=9))
        for name, due in (("early", MOMENT), ("first", MOMENT + 1), ("second", MOMENT + 3)):
            add(store, a_task(name, due=due, attempts=1, priority=-1))
        add(store, a_task("late", due=MOMENT + 4, attempts=1))
        add(store, a_task("asks", due=None, attempts=1, question=b"\x01"))
        add(store, a_task("running", state="in_progress", due=MOMENT + 2, attempts=1))
        add(store, a_task("hers", due=MOMENT + 2, attempts=1), "ada")
        pages = walk(
            lambda at, limit: store.retries(None, MOMENT, MOMENT + 3, at or 0, limit),
            lambda task: task.place,
            limit=1,
        )
        assert names(list(pages)) == ["first", "second"]

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

    def test_a_lease_that_was_renewed_is_not_reclaimed(self, store: Store) -> None:
        task = add(store, a_task("t1"))
        owner = an_owner("one")
        store.hold(None, owner, is_new=True)
        store.hold(None, owner._replace(until=2_000))
        back = TaskMove(0, task._replace(epoch=1))
        with pytest.raises(Conflict):
            store.commit(
                Batch(None, happened("reclaim", None), work=Work(moves=(back,), reclaim=(owner,)))
            )
        assert store.task(None, "t1") == task
        alive = owner._replace(until=2_000)
        assert store.owners(None) == [alive]
        store.commit(
            Batch(None, happened("reclaim", None), work=Work(moves=(back,), reclaim=(alive,)))
        )
        assert store.owners(None) == []
        assert not store.hold(None, alive)

    def test_only_an_owner_with_a_lease_can_claim(self, store: Store) -> None:
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
        assert first.clock == second.clock
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
