import typing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import msgspec
import pydantic
import pytest

import hardsave
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.objects.types import Types
from hardsave.objects.view import StateList, StateMap
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import MOMENT, SECOND, Clock, Watched, messages


def test_what_is_saved_is_loaded(line: Timeline) -> None:
    for state in ({"turn": 1}, {}, [], None, "text", 3, [1, {"a": (1, 2)}], {1: {2, 3}}):
        line.save(state)
        assert line.load() == state
        assert type(line.load()) is type(state)


def test_a_large_state_is_loaded_as_it_was(line: Timeline) -> None:
    state = {"messages": messages(300), "files": {f"{n}.py": "x" * n for n in range(300)}}
    line.save(state)
    assert line.load() == state
    assert list(line.load()["files"]) == list(state["files"])


def test_every_earlier_state_stays(line: Timeline) -> None:
    states = [{"messages": messages(n), "turn": n} for n in range(0, 60, 7)]
    for state in states:
        line.save(state)
    for back, state in enumerate(reversed(states)):
        assert line.load(f"@~{back}") == state
    for number, state in enumerate(states, 1):
        assert line.load(f"main:{number}") == state


def test_changes_in_place_are_noticed(line: Timeline) -> None:
    state: dict[str, Any] = {"messages": messages(200), "notes": {"a": [1]}}
    line.save(state)
    state["messages"][100]["content"] += "!"
    state["notes"]["a"].append(True)
    line.save(state)
    assert line.load() == state
    assert line.load("@~1")["notes"] == {"a": [1]}
    state["notes"]["a"][0] = True  # equal, and not the same
    line.save(state)
    assert line.load()["notes"]["a"][0] is True
    assert line.load("@~1")["notes"]["a"][0] == 1
    assert line.load("@~1")["notes"]["a"][0] is not True


def test_a_state_that_changes_after_its_save_does_not_change_what_was_saved(line: Timeline) -> None:
    state = {"list": [1]}
    checkpoint = line.save(state)
    state["list"].append(2)
    assert checkpoint.read() == {"list": [1]}
    assert line.load() == {"list": [1]}


def test_a_save_that_changes_nothing_stores_nothing_new(line: Timeline, store: Watched) -> None:
    state = {"messages": messages(200)}
    line.save(state)
    before = len(store.objects)
    line.save(state)
    assert len(store.objects) == before
    assert len(line) == 2


def test_a_change_stores_little(line: Timeline, store: Watched) -> None:
    state = {"messages": messages(500)}
    line.save(state)
    before = sum(map(len, store.objects.values()))
    state["messages"][250]["content"] = "changed"
    line.save(state)
    assert sum(map(len, store.objects.values())) - before < 3 * 1024


# Checkpoints


def test_a_checkpoint_says_all_about_itself(line: Timeline, clock: Clock) -> None:
    first = line.save({"turn": 1})
    second = line.save(
        {"turn": 2},
        name="plan-ready",
        kind="feature",
        status="waiting",
        description="two\nlines",
        metadata={"model": "m", "cost": 0.5, "tags": ["a"]},
    )
    assert (first.seq, first.parent, first.name) == (1, None, None)
    assert (first.kind, first.status, first.description) == ("automatic", "running", "")
    assert first.metadata == {}
    assert (second.seq, second.parent, second.name) == (2, first.id, "plan-ready")
    assert (second.kind, second.status, second.description) == ("feature", "waiting", "two\nlines")
    assert second.metadata == {"model": "m", "cost": 0.5, "tags": ["a"]}
    assert first.timeline == second.timeline == "main"
    assert first.user is None
    assert first.created_at == datetime.fromtimestamp(MOMENT // SECOND + 1, UTC)
    assert second.created_at - first.created_at == timedelta(seconds=1)
    assert second.created_at.tzinfo is UTC
    assert line.get().metadata == second.metadata


def test_ids_are_of_their_own_and_long_enough() -> None:
    with hardsave.open("memory://") as vault:
        line = vault.timeline("main")
        ids = {line.save(None).id for _ in range(100)}
    assert len(ids) == 100
    assert all(len(id) == 28 and id.startswith("chk_") for id in ids)


def test_checkpoints_are_equal_by_id(line: Timeline) -> None:
    first, second = line.save(1), line.save(1)
    assert first == line.get("main:1")
    assert first != second
    assert {first, second, line.get("main:1")} == {first, second}
    assert first != first.id
    assert repr(first) == f"<checkpoint {first.id} main:1>"
    assert "'x'" in repr(line.save(1, name="x"))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "automatic"),
        ({"name": "x"}, "manual"),
        ({"kind": "session"}, "session"),
        ({"name": "x", "kind": "automatic"}, "automatic"),
        ({"name": "x", "kind": "feature"}, "feature"),
    ],
)
def test_a_checkpoint_is_automatic_and_manual_when_named(
    line: Timeline, given: dict[str, Any], kind: str
) -> None:
    assert line.save({}, **given).kind == kind
    assert line.append({}, **given).kind == kind


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "two\nlines"},
        {"name": "@"},
        {"name": "main:3"},
        {"name": "x" * 201},
        {"name": "\ud800"},
        {"name": 3},
        {"kind": "other"},
        {"status": ""},
        {"status": None},
        {"status": ["running"]},
        {"status": "a\0b"},
        {"description": None},
        {"description": "\ud800"},
        {"metadata": "text"},
        {"metadata": ["list"]},
        {"metadata": {"a": object()}},
        {"metadata": {"a": "x" * (64 * 1024)}},
        {"expect": 3},
        {"expect": "@"},
        {"expect": "main:1"},
    ],
)
def test_what_is_wrong_about_a_checkpoint_is_misuse_and_saves_nothing(
    line: Timeline, wrong: dict[str, Any]
) -> None:
    line.save({"turn": 1})
    for write in (line.save, line.append):
        with pytest.raises(Misuse):
            write({"turn": 2}, **wrong)
    assert len(line) == 1
    line.save({"turn": 2})
    assert line.load() == {"turn": 2}


def test_metadata_that_cannot_be_stored_names_its_path(line: Timeline) -> None:
    with pytest.raises(hardsave.Unstorable) as caught:
        line.save({}, metadata={"a": [object()]})
    assert caught.value.path == "metadata.a[0]"


# Lazily


def test_the_state_is_read_as_far_as_it_is_touched(line: Timeline, store: Watched) -> None:
    line.save({"messages": messages(1_000), "turn": 7})
    checkpoint = line.get()
    store.forget_reads()
    state = checkpoint.state
    assert state["turn"] == 7
    assert isinstance(state, StateMap)
    assert isinstance(state["messages"], StateList)
    assert len(state["messages"]) == 1_000
    assert len(set(store.read_hashes)) < 10
    assert state["messages"][-20:] == messages(20, start=980)
    assert state["messages"][500] == messages(1, start=500)[0]
    assert len(set(store.read_hashes)) < 60


def test_a_path_into_the_state_is_read_as_plain_data(line: Timeline) -> None:
    line.save({"messages": messages(100), "a": {"b": [1, 2, 3]}})
    checkpoint = line.get()
    assert checkpoint.read("a", "b", -1) == 3
    assert checkpoint.read("messages", slice(-2, None)) == messages(2, start=98)
    assert type(checkpoint.read("messages")) is list
    assert checkpoint.read() == {"messages": messages(100), "a": {"b": [1, 2, 3]}}
    for path in (("c",), ("a", "x"), ("a", "b", 9), ("messages", 100)):
        with pytest.raises(NotFound, match=checkpoint.id):
            checkpoint.read(*path)
    for wrong in (("a", "b", "x"), ("a", "b", 0, 0)):
        with pytest.raises(Misuse):
            checkpoint.read(*wrong)


def test_an_old_checkpoint_keeps_its_state(line: Timeline) -> None:
    first = line.save({"messages": messages(100)})
    for n in range(20):
        line.append({"messages": messages(1, start=100 + n)})
    assert first.state["messages"] == messages(100)


# As a type


class Mood(Enum):
    CALM = "calm"


@dataclass
class Message:
    role: str
    content: str


@dataclass
class State:
    messages: list[Message]
    mood: Mood
    extra: dict[str, int] | None = None


class Model(pydantic.BaseModel):
    turn: int
    notes: list[str] = []


class Record(msgspec.Struct):
    turn: int


def test_a_state_is_loaded_as_a_type(line: Timeline) -> None:
    state = State([Message("user", "hello"), Message("agent", "hi")], Mood.CALM, {"a": 1})
    line.save(state)
    assert line.load(type=State) == state
    assert line.load() == {
        "messages": [{"role": "user", "content": "hello"}, {"role": "agent", "content": "hi"}],
        "mood": "calm",
        "extra": {"a": 1},
    }
    for value in (Model(turn=3, notes=["x"]), Record(turn=3)):
        line.save(value)
        assert line.load(type=type(value)) == value
        assert isinstance(line.load(), dict)


def test_plain_data_is_loaded_as_a_type(line: Timeline) -> None:
    line.save({"messages": [{"role": "user", "content": "hello"}], "mood": "calm"})
    assert line.load(type=State) == State([Message("user", "hello")], Mood.CALM)
    assert line.load("@", type=dict) == line.load()


class Plan(typing.TypedDict):
    messages: list[Message]


class Step(typing.NamedTuple):
    message: Message
    turn: int


def test_a_state_is_loaded_as_a_typed_dict_a_named_tuple_or_anything(line: Timeline) -> None:
    line.save({"messages": [Message("user", "hello")]})
    assert line.load(type=Plan) == {"messages": [Message("user", "hello")]}
    assert line.load(type=typing.Any) == line.load()
    line.save(Step(Message("user", "hello"), 1))
    assert line.load(type=Step) == Step(Message("user", "hello"), 1)
    assert isinstance(line.load(type=Step), Step)
    with pytest.raises(Misuse, match="does not become a Plan"):
        line.load(type=Plan)


def test_a_registered_class_comes_back_as_itself() -> None:
    types = Types()
    types.register(State)
    types.register(Message)
    types.register(Mood)
    line = Vault(MemoryStore(), types=types).timeline("main")
    state = State([Message("user", "hello")], Mood.CALM)
    line.save({"inner": state})
    assert line.load() == {"inner": state}


@pytest.mark.parametrize("value", [5, "Session", ["list"], {}])
def test_a_value_is_no_type(line: Timeline, value: Any) -> None:
    line.save({"a": 1})
    with pytest.raises(Misuse, match="type is a class"):
        line.load(type=value)


def test_a_type_that_does_not_fit_is_misuse(line: Timeline) -> None:
    line.save({"unknown": 1})
    with pytest.raises(Misuse, match="State"):
        line.load(type=State)
    line.save({"messages": [], "mood": "furious"})
    with pytest.raises(Misuse):
        line.load(type=State)
    assert line.load() == {"messages": [], "mood": "furious"}


# Heads


def test_a_timeline_begins_with_its_first_save(vault: Vault) -> None:
    line = vault.timeline("new")
    assert line.head is None
    assert len(line) == 0
    assert line  # a handle, however little is on it
    assert list(vault.timelines()) == []
    assert line.checkpoints()[:] == []
    with pytest.raises(NotFound, match="nothing was saved there"):
        line.load()
    first = line.save({})
    assert line.head == first
    assert [other.name for other in vault.timelines()] == ["new"]


def test_the_head_is_the_newest(line: Timeline) -> None:
    for turn in range(5):
        checkpoint = line.save(turn)
        assert line.head == checkpoint
        assert len(line) == turn + 1


def test_timelines_come_by_name_however_many(vault: Vault) -> None:
    names = sorted(f"line {n}" for n in range(250))
    for name in reversed(names):
        vault.timeline(name).save(None)
    assert [line.name for line in vault.timelines()] == names
    for line in vault.timelines():
        line.save(1)  # each is a handle that has seen its head


@pytest.mark.parametrize("name", ["", "a:b", "@x", "a\nb", "\ud800", "x" * 201, None, 3])
def test_a_timeline_with_a_wrong_name_is_misuse(vault: Vault, name: Any) -> None:
    with pytest.raises(Misuse):
        vault.timeline(name)


def test_a_timeline_shows_its_name(line: Timeline) -> None:
    assert line.name == "main"
    assert repr(line) == "<timeline 'main'>"


def test_refs_without_a_timeline(vault: Vault, line: Timeline) -> None:
    first = line.save(1, name="plan")
    assert vault.get(first.id) == first
    assert vault.get(first.id[:12]) == first
    assert vault.get("main:1") == first
    with pytest.raises(NotFound):
        vault.get("plan")
    with pytest.raises(Misuse):
        vault.get("@")
    assert line.get("plan") == line.get("@") == first


def test_a_closed_vault_is_misuse(vault: Vault, line: Timeline) -> None:
    line.save(1)
    vault.close()
    vault.close()
    for call in (line.load, lambda: line.save(2), lambda: len(line), vault.store.stats):
        with pytest.raises(Misuse, match="closed"):
            call()


def test_stats_count_what_was_saved(vault: Vault, line: Timeline) -> None:
    line.save({"messages": messages(100)})
    line.fork(name="other").save({})
    stats = vault.store.stats()
    assert (stats.timelines, stats.checkpoints) == (2, 2)
    assert stats.objects > 100
    assert stats.disk_bytes > 100 * 200


# expect


def test_expecting_a_checkpoint_that_is_the_head_saves(line: Timeline) -> None:
    first = line.save(1)
    second = line.save(2, expect=first)
    third = line.save(3, expect=second.id)
    assert [cp.seq for cp in (first, second, third)] == [1, 2, 3]


def test_expecting_a_checkpoint_that_is_not_the_head_is_a_conflict(vault: Vault) -> None:
    line = vault.timeline("main")
    with pytest.raises(Conflict, match="nothing yet"):
        line.save(1, expect="chk_" + "0" * 24)
    first = line.save(1)
    second = line.save(2)
    with pytest.raises(Conflict, match=f"is {second.id}, not {first.id}"):
        line.save(3, expect=first)
    assert len(line) == 2
