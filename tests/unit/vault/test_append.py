from typing import Any

import pytest

from hardsave.errors import Conflict, Misuse, Unstorable
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Watched, messages


def test_lists_grow_and_other_keys_are_replaced(line: Timeline) -> None:
    line.save({"messages": [1, 2], "turn": 1, "notes": {"a": 1}, "pair": (1, 2)})
    line.append({"messages": [3], "turn": 2, "notes": {"b": 2}, "pair": (3,), "new": [4]})
    assert line.load() == {
        "messages": [1, 2, 3],
        "turn": 2,
        "notes": {"b": 2},
        "pair": (3,),
        "new": [4],
    }


def test_an_append_can_be_the_first_save(line: Timeline) -> None:
    line.append({"messages": messages(3)})
    assert line.load() == {"messages": messages(3)}
    line.append({})
    assert line.load() == {"messages": messages(3)}
    assert len(line) == 2


def test_a_list_and_something_else_replace_each_other(line: Timeline) -> None:
    line.save({"a": [1]})
    line.append({"a": "text"})
    assert line.load() == {"a": "text"}
    line.append({"a": [2]})
    assert line.load() == {"a": [2]}


def test_many_appends_are_one_long_list(line: Timeline, vault: Vault) -> None:
    for n in range(300):
        line.append({"messages": messages(2, start=2 * n), "turn": n})
    assert line.load() == {"messages": messages(600), "turn": 299}
    assert line.load("main:100") == {"messages": messages(200), "turn": 99}
    assert vault.store.verify().ok


def test_an_append_and_a_save_of_the_same_state_are_the_same(vault: Vault) -> None:
    one, two = vault.timeline("one"), vault.timeline("two")
    for n in range(40):
        one.append({"messages": messages(3, start=3 * n), "turn": n})
        two.save({"messages": messages(3 * n + 3), "turn": n})
        assert one.get()._record.root == two.get()._record.root


def test_appends_and_saves_alternate(line: Timeline, vault: Vault) -> None:
    state: dict[str, Any] = {"messages": []}
    for n in range(30):
        if n % 3 == 0:
            state["messages"] = state["messages"][1:] + messages(5, start=5 * n)
            line.save(state)
        else:
            line.append({"messages": messages(5, start=5 * n)})
            state["messages"] = state["messages"] + messages(5, start=5 * n)
        assert line.load() == state
    assert vault.store.verify().ok


def test_an_append_costs_what_is_new(line: Timeline, store: Watched) -> None:
    line.save({"messages": messages(2_000)})
    line.append({"messages": messages(1, start=2_000)})
    store.forget_reads()
    before = len(store.objects)
    for n in range(20):
        line.append({"messages": messages(1, start=2_001 + n)})
    assert store.reads == 0
    assert len(store.objects) - before < 20 * 6


def test_another_handle_appends_to_what_is_there(vault: Vault) -> None:
    vault.timeline("main").save({"messages": messages(500)})
    vault.timeline("main").append({"messages": messages(1, start=500)})
    assert vault.timeline("main").load() == {"messages": messages(501)}


def test_after_a_conflict_an_append_grows_the_new_head(vault: Vault) -> None:
    one, two = vault.timeline("main"), vault.timeline("main")
    one.append({"messages": messages(100)})
    two.load()
    two.append({"messages": messages(1, start=100)})
    with pytest.raises(Conflict):
        one.append({"messages": messages(1, start=999)})
    one.load()
    one.append({"messages": messages(1, start=101)})
    assert one.load() == {"messages": messages(102)}
    assert vault.store.verify().ok


def test_after_a_fork_each_side_grows_on_its_own(vault: Vault) -> None:
    one = vault.timeline("main")
    one.append({"messages": messages(100)})
    two = one.fork(name="other")
    one.append({"messages": ["one"]})
    two.append({"messages": ["two"]})
    assert one.load()["messages"] == [*messages(100), "one"]
    assert two.load()["messages"] == [*messages(100), "two"]


@pytest.mark.parametrize("delta", [[1], None, "text", 3])
def test_only_a_dict_can_be_appended(line: Timeline, delta: Any) -> None:
    with pytest.raises(Misuse, match="append takes a dict"):
        line.append(delta)
    assert len(line) == 0


@pytest.mark.parametrize("state", [[1], None, "text", (1, 2), messages(500)])
def test_only_to_a_dict_can_be_appended(line: Timeline, state: Any) -> None:
    line.save(state)
    with pytest.raises(Misuse, match="state that is a dict"):
        line.append({"a": 1})
    line.save({})
    line.append({"a": 1})
    assert line.load() == {"a": 1}


def test_a_failed_append_leaves_the_handle_usable(line: Timeline, vault: Vault) -> None:
    line.append({"messages": messages(100)})
    for n in range(3):
        with pytest.raises(Unstorable) as caught:
            line.append({"messages": [*messages(2, start=500), {"image": object()}], "turn": n})
        assert caught.value.path == "state.messages[2].image"
        line.append({"messages": messages(1, start=100 + n)})
    assert line.load() == {"messages": messages(103)}
    assert vault.store.verify().ok


def test_keys_that_are_no_texts_can_be_appended(line: Timeline) -> None:
    line.save({1: [1], (2, 3): "x"})
    line.append({1: [2], (2, 3): "y", None: 0})  # type: ignore[dict-item] # works all the same
    assert line.load() == {1: [1, 2], (2, 3): "y", None: 0}
