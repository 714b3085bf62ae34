"""What sessions offer, as others see it."""

from hardsave.stores.ledger import Work
from hardsave.tasks.offers import offer, offered
from tests.unit.tasks.room import Room


def test_the_offers_of_all_that_run_are_known_and_of_nobody_else() -> None:
    room = Room()
    with room.tasks.runner("one") as one:
        offer(one, {"agents": ["a"]})
        with room.tasks.runner("two") as two:
            offer(two, {"agents": ["b"]})
            assert offered(room.tasks) == [{"agents": ["a"]}, {"agents": ["b"]}]
        assert offered(room.tasks) == [{"agents": ["a"]}]
    assert offered(room.tasks) == []
    offer(one, {"agents": ["a"]})  # it has ended
    assert offered(room.tasks) == []


def test_an_offer_that_stands_is_not_written_again_and_one_that_was_lost_is() -> None:
    room = Room()
    with room.tasks.runner("one") as one:
        offer(one, "this")
        before = len(room.tasks.happened(limit=1000))
        offer(one, "this")
        assert len(room.tasks.happened(limit=1000)) == before
        context = room.tasks._context  # somebody who began at the same time has not seen it
        context.commit(context.entry("offers", None, {"by": {}}), Work())
        assert offered(room.tasks) == []
        offer(one, "this")
        assert offered(room.tasks) == ["this"]
