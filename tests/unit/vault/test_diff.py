"""What changed between two checkpoints, seen from the vault."""

from collections.abc import Callable
from typing import Any

import pytest

from hardsave.errors import Misuse, NotFound
from hardsave.timeline.diff import Diff
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Watched, messages

Compare = Callable[[Any, Any], Diff]


@pytest.fixture
def compare(vault: Vault, line: Timeline) -> Compare:
    def compare(old: Any, new: Any) -> Diff:
        return vault.diff(line.save(old), line.save(new))

    return compare


def paths(some: tuple[Any, ...]) -> list[str]:
    return [str(path) for path in some]


def test_equal_checkpoints_do_not_differ(compare: Compare, vault: Vault, line: Timeline) -> None:
    states: list[Any] = [{}, {"a": [1, {"b": None}]}, {"messages": messages(300)}, [], None]
    for state in states:
        found = compare(state, state)
        assert not found
        assert (found.added, found.removed, found.changed) == ((), (), ())
    head = line.get()
    assert not vault.diff(head, head)


@pytest.mark.parametrize("count", [3, 50, 1_000])
def test_appended_messages_are_added_and_nothing_else(compare: Compare, count: int) -> None:
    found = compare({"messages": messages(count)}, {"messages": messages(count + 2)})
    assert paths(found.added) == [f"messages[{count}]", f"messages[{count + 1}]"]
    assert found.removed == found.changed == ()


@pytest.mark.parametrize("count", [3, 50, 1_000])
def test_a_change_in_an_old_message_is_its_path(compare: Compare, count: int) -> None:
    after = messages(count)
    after[1]["content"] = "edited"
    found = compare({"messages": messages(count)}, {"messages": after})
    assert paths(found.changed) == ["messages[1].content"]
    assert found.added == found.removed == ()
    assert found


@pytest.mark.parametrize("count", [5, 50, 1_000])
def test_what_is_taken_from_the_front_is_removed_and_nothing_else(
    compare: Compare, count: int
) -> None:
    found = compare({"messages": messages(count)}, {"messages": messages(count)[2:]})
    assert paths(found.removed) == ["messages[0]", "messages[1]"]
    assert found.added == found.changed == ()


@pytest.mark.parametrize("count", [5, 50, 1_000])
def test_an_insertion_is_one_addition(compare: Compare, count: int) -> None:
    before = messages(count)
    found = compare({"messages": before}, {"messages": [*before[:3], "new", *before[3:]]})
    assert paths(found.added) == ["messages[3]"]
    assert found.removed == found.changed == ()


@pytest.mark.parametrize("count", [3, 500])
def test_keys_of_maps_are_added_removed_and_changed(compare: Compare, count: int) -> None:
    before = {f"key {n}": "x" * 100 for n in range(count)}
    after = {**before, "key 0": "y", "new-key": 1}
    del after["key 1"]
    found = compare(before, after)
    assert paths(found.added) == ["['new-key']"]
    assert paths(found.removed) == ["['key 1']"]
    assert paths(found.changed) == ["['key 0']"]


def test_paths_are_tuples_that_lead_into_the_states(vault: Vault, line: Timeline) -> None:
    old = line.save({"a": {"b": [1, 2, 3]}, 7: "x"})
    new = line.save({"a": {"b": [1, 5, 3, 4]}})
    found = vault.diff(old, new)
    assert found.changed == (("a", "b", 1),)
    assert found.added == (("a", "b", 3),)
    assert found.removed == ((7,),)
    assert new.read(*found.changed[0]) == 5
    assert new.read(*found.added[0]) == 4
    assert old.read(*found.removed[0]) == "x"


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, True), (0, False), (1, 1.0), ("1", 1), ([1], (1,)), (b"a", "a"), (None, False), ({}, [])],
)
def test_a_change_of_type_is_a_change(compare: Compare, old: Any, new: Any) -> None:
    for wrap in (lambda value: {"a": value}, lambda value: [value], lambda value: value):
        found = compare(wrap(old), wrap(new))
        assert found
        assert len(found.changed) == 1
        assert found.added == found.removed == ()


def test_a_status_of_its_own_is_a_difference(vault: Vault, line: Timeline) -> None:
    found = vault.diff(line.save({}), line.save({}, status="failed"))
    assert found
    assert (found.old_status, found.new_status) == ("running", "failed")
    assert found.changed == ()
    assert not vault.diff(line.save({}), line.save({}))


def test_metadata_and_names_are_no_difference(vault: Vault, line: Timeline) -> None:
    assert not vault.diff(line.save({}), line.save({}, name="x", metadata={"a": 1}))


def test_checkpoints_may_be_named_by_refs(vault: Vault, line: Timeline) -> None:
    first, second = line.save({"a": 1}), line.save({"b": 1})
    wanted = vault.diff(first, second)
    assert vault.diff(first.id, "main:2") == wanted
    assert vault.diff(first.id[:14], second) == wanted
    assert vault.diff("main:2", "main:1").added == wanted.removed
    with pytest.raises(NotFound):
        vault.diff(first, "main:3")
    with pytest.raises(Misuse):
        vault.diff("@~1", "@")


def test_checkpoints_of_different_timelines_compare(vault: Vault) -> None:
    one = vault.timeline("one").save({"messages": messages(100)})
    two = vault.timeline("two").save({"messages": messages(101)})
    assert paths(vault.diff(one, two).added) == ["messages[100]"]


def test_few_objects_are_read_of_a_large_state(
    vault: Vault, line: Timeline, store: Watched
) -> None:
    state: dict[str, Any] = {"messages": messages(10_000), "turn": 1}
    first = line.save(state)
    second = line.append({"messages": messages(1, start=10_000)})
    state["messages"][5_000]["content"] = "edited"
    state["turn"] = 2
    third = line.save(state)
    for old, new, added, changed in (
        (first, second, ["messages[10000]"], []),
        (first, third, [], ["messages[5000].content", "turn"]),
    ):
        store.forget_reads()
        found = vault.diff(old, new)
        assert paths(found.added) == added
        assert sorted(paths(found.changed)) == sorted(changed)
        assert len(store.read_hashes) < 100
        assert store.reads < 40
    store.forget_reads()
    assert not vault.diff(first, first)
    assert store.reads == 0


def test_comparing_revives_no_class(vault: Vault, line: Timeline) -> None:
    import dataclasses

    @dataclasses.dataclass
    class Thing:
        a: int

    found = vault.diff(line.save({"thing": Thing(1)}), line.save({"thing": Thing(2)}))
    assert len(found.changed) == 1
    assert found.changed[0][0] == "thing"
