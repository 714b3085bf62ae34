"""FlowAgent's manager: comparing, events, and records as plain data."""

import asyncio
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from hardsave.compat.flowagent import Checkpoint, CheckpointManager, CheckpointStorage, Tree
from hardsave.errors import Misuse
from tests.unit.compat.test_flowagent_storage import WHOLE, OwnStorage, checkpoint, run

NOW = datetime(2026, 3, 1, tzinfo=UTC)


# Records


def test_a_record_round_trips_as_a_dict_and_as_json() -> None:
    assert Checkpoint.from_dict(WHOLE.to_dict()) == WHOLE
    plain = checkpoint(1, collected_fields={"city": "Paris"})
    assert Checkpoint.from_dict(json.loads(json.dumps(plain.to_dict()))) == plain


def test_a_dict_of_a_record_shares_nothing_with_it() -> None:
    one = checkpoint(1, collected_fields={"list": [1]})
    one.to_dict()["collected_fields"]["list"].append(2)
    data = one.to_dict()
    Checkpoint.from_dict(data).collected_fields["list"].append(2)
    assert one.collected_fields == {"list": [1]} == data["collected_fields"]


def test_older_and_newer_records_are_read() -> None:
    least = {"id": "1", "agent_id": "a", "agent_type": "A", "user_id": "u", "status": "DONE"}
    found = Checkpoint.from_dict({**least, "of_the_future": 1})
    assert (found.version, found.collected_fields, found.parent_checkpoint_id) == (1, {}, None)
    with pytest.raises(Misuse, match="status"):
        Checkpoint.from_dict({key: least[key] for key in least if key != "status"})


def test_times_become_utc_and_none_means_local() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    naive = NOW.astimezone().replace(tzinfo=None)
    for given in (NOW, east, naive):
        found = checkpoint(1, timestamp=given)
        assert found.timestamp == NOW
        assert found.timestamp.tzinfo is UTC


# Comparing


def compared(old: dict[str, Any], new: dict[str, Any]) -> Any:
    async def session() -> Any:
        manager = CheckpointManager()
        await manager.save_checkpoint(checkpoint(1, collected_fields=old))
        await manager.save_checkpoint(checkpoint(2, collected_fields=new, status="DONE"))
        return await manager.compare("chk_user_123_1", "chk_user_123_2")

    return run(session())


def test_comparing_tells_what_was_added_removed_and_modified() -> None:
    diff = compared({"a": 1, "b": 2, "c": [1]}, {"b": 2, "c": [1, 2], "d": 4})
    assert (diff.old_status, diff.new_status, diff.status_changed) == ("RUNNING", "DONE", True)
    assert (diff.added, diff.removed) == ({"d": 4}, {"a": 1})
    assert diff.modified == {"c": ([1], [1, 2])}
    assert diff.changed_fields == ["a", "c", "d"]


def test_comparing_sees_types() -> None:
    assert compared({"a": [1], "b": {"x": 0}}, {"a": [True], "b": {"x": 0.0}}).changed_fields == [
        "a",
        "b",
    ]
    assert compared({"a": float("nan")}, {"a": float("nan")}).changed_fields == []


def test_comparing_with_what_is_not_there_is_none() -> None:
    async def session() -> None:
        manager = CheckpointManager()
        await manager.save_checkpoint(checkpoint(1))
        assert await manager.compare("chk_user_123_1", "chk_nobody") is None
        assert await manager.compare("chk_nobody", "chk_user_123_1") is None

    run(session())


def test_what_only_somebodys_own_storage_can_hold_is_compared_too() -> None:
    class Thing:
        pass

    class Sharing(OwnStorage):
        async def load(self, checkpoint_id: str) -> Checkpoint | None:
            return checkpoint(1, collected_fields={"thing": thing})

    thing = Thing()
    found = run(CheckpointManager(Sharing()).compare("a", "b"))
    assert found.changed_fields == []


# Events


def test_handlers_of_both_kinds_are_told_and_a_failing_one_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def session() -> list[str]:
        manager = CheckpointManager()
        seen: list[str] = []

        @manager.on("checkpoint_saved")
        def plain(saved: Checkpoint) -> None:
            seen.append(f"plain {saved.id}")

        @manager.on("checkpoint_saved")
        def fails(saved: Checkpoint) -> None:
            raise ValueError("no")

        @manager.on("checkpoint_saved")
        async def awaited(saved: Checkpoint) -> None:
            await asyncio.sleep(0)
            found = await manager.load(saved.id)
            seen.append(f"awaited {found.id if found else None}")

        assert plain.__name__ == "plain"
        assert await manager.save_checkpoint(checkpoint(1)) == "chk_user_123_1"
        return seen

    assert run(session()) == ["plain chk_user_123_1", "awaited chk_user_123_1"]
    assert "a handler of checkpoint_saved failed" in caplog.text


def test_nobody_is_told_of_a_save_that_failed() -> None:
    class Full(OwnStorage):
        async def save(self, checkpoint: Checkpoint) -> str:
            raise OSError("disk full")

    async def session() -> list[Checkpoint]:
        manager = CheckpointManager(Full())
        seen: list[Checkpoint] = []
        manager.on("checkpoint_saved")(seen.append)
        with pytest.raises(OSError, match="disk full"):
            await manager.save_checkpoint(checkpoint(1))
        return seen

    assert run(session()) == []


def test_an_unknown_event_is_refused() -> None:
    with pytest.raises(Misuse, match="there is no event 'saved'"):
        CheckpointManager().on("saved")  # type: ignore[arg-type] # that is the test


# Storages of one's own


def test_a_storage_without_the_optional_methods_says_so() -> None:
    manager = CheckpointManager(OwnStorage())
    with pytest.raises(Misuse, match="OwnStorage cannot delete; give it a method clear_user"):
        run(manager.clear_user_history("a"))
    with pytest.raises(Misuse, match="clear_before"):
        run(manager.cleanup_old_checkpoints(30))
    with pytest.raises(Misuse, match="OwnStorage cannot delete; give it a method clear_agent"):
        run(manager.clear_agent_history("a"))
    with pytest.raises(Misuse, match="name a user_id, or give it a method list_by_agent"):
        run(manager.list_by_agent("a"))


def test_a_storage_without_the_three_methods_cannot_be_made() -> None:
    class Half(CheckpointStorage):
        async def save(self, checkpoint: Checkpoint) -> str:
            return checkpoint.id

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract] # that is the test


def test_odd_numbers_are_refused() -> None:
    manager = CheckpointManager()
    with pytest.raises(Misuse, match="limit is not negative"):
        run(manager.list_by_user("a", limit=-1))
    with pytest.raises(Misuse, match="offset is not negative"):
        run(manager.list_by_agent("a", offset=-1))
    with pytest.raises(Misuse, match="an agent's id is a text"):
        run(manager.list_by_agent(None))  # type: ignore[arg-type] # that is the test
    with pytest.raises(Misuse, match="max_age_days"):
        run(manager.cleanup_old_checkpoints(-1))
    assert run(manager.get("nobody")) is None


# Trees


def family() -> list[Checkpoint]:
    """1 - 2 - 3, and a branch 2 - 4; 6 comes from 5, which is gone."""
    parents = {1: None, 2: 1, 3: 2, 4: 2, 6: 5}
    return [
        checkpoint(n, parent_checkpoint_id=None if above is None else f"chk_user_123_{above}")
        for n, above in parents.items()
    ]


def last_digits(found: list[Checkpoint]) -> list[int]:
    return [int(one.id[-1]) for one in found]


def test_a_tree_knows_paths_children_leaves_and_depth() -> None:
    async def session() -> None:
        manager = CheckpointManager()
        for one in reversed(family()):
            await manager.save_checkpoint(one)
        await manager.save_checkpoint(checkpoint(9, "somebody else"))
        tree = await manager.tree("user_123")
        assert len(tree) == 5
        assert last_digits(tree.path("chk_user_123_4")) == [1, 2, 4]
        assert last_digits(tree.path("chk_user_123_6")) == [6]
        assert last_digits(tree.children("chk_user_123_2")) == [3, 4]
        assert last_digits(tree.leaves()) == [3, 4, 6]
        assert last_digits(tree.roots()) == [1, 6]
        assert (tree.depth("chk_user_123_4"), tree.depth("chk_user_123_1")) == (2, 0)
        assert (tree.path("nobody"), tree.children("nobody"), tree.depth("nobody")) == ([], [], 0)

    run(session())


def test_a_knot_of_parents_is_walked_once() -> None:
    knot = [checkpoint(1), checkpoint(2)]
    knot[0].parent_checkpoint_id, knot[1].parent_checkpoint_id = knot[1].id, knot[0].id
    assert last_digits(Tree(knot).path(knot[0].id)) == [2, 1]
    assert Tree(knot).roots() == []
