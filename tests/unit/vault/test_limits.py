"""Values that are too large, too deep, or nothing that can be kept: refused with their path."""

import collections
import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import hardsave
from hardsave.errors import HardsaveError, Misuse, Unstorable
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Watched, messages

MIB = 1 << 20


def nested(depth: int, kind: str = "list") -> Any:
    value: Any = "innermost"
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


def depth_of(value: Any) -> int:
    depth = 0
    while not isinstance(value, str):
        value = value[0] if isinstance(value, list) else value["a"]
        depth += 1
    return depth


# Depth


@pytest.mark.parametrize("kind", ["list", "dict"])
@pytest.mark.parametrize("depth", [30, 100, 1_000])
def test_a_deep_state_comes_back(line: Timeline, vault: Vault, depth: int, kind: str) -> None:
    line.save({"deep": nested(depth, kind)})
    assert depth_of(line.load()["deep"]) == depth
    line.append({"deeper": nested(depth, kind)})
    assert depth_of(line.load()["deeper"]) == depth
    line.save({"deep": nested(depth, kind), "turn": 2})
    assert depth_of(line.load()["deep"]) == depth
    assert vault.store.verify().ok


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_a_state_too_deep_is_refused_and_the_vault_works_afterwards(
    line: Timeline, vault: Vault, kind: str
) -> None:
    line.save({"turn": 1})
    for write in (line.save, line.append):
        with pytest.raises(Unstorable, match="deep") as caught:
            write({"deep": nested(12_000, kind)})
        assert caught.value.path.startswith("state.deep")
        assert len(str(caught.value)) < 1_000
    assert len(line) == 1
    line.save({"turn": 2})
    assert line.load() == {"turn": 2}
    assert vault.store.verify().ok


@pytest.mark.parametrize("way", ["save", pytest.param("append", marks=pytest.mark.torture)])
def test_a_state_that_contains_itself_is_refused(line: Timeline, way: str) -> None:
    state: dict[str, Any] = {"messages": []}
    state["messages"].append(state)
    with pytest.raises(Unstorable, match="contains itself"):
        line.save(state) if way == "save" else line.append(state)
    line.save({})


def test_deep_states_can_be_compared(line: Timeline, vault: Vault) -> None:
    old = line.save({"deep": nested(1_000)})
    other = nested(1_000)
    other.append("more")
    found = vault.diff(old, line.save({"deep": other}))
    assert found
    assert not vault.diff(old, line.save({"deep": nested(1_000)}))


def test_a_deep_state_in_a_thread_with_a_small_stack(line: Timeline) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            line.save({"deep": nested(1_000)})
            assert depth_of(line.load()["deep"]) == 1_000
        except BaseException as error:  # noqa: BLE001 # handed to the test
            failures.append(error)

    before = threading.stack_size(1024 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert failures == []


# Size


@dataclasses.dataclass
class Note:
    text: Any


class Text(str):
    __slots__ = ()


@pytest.fixture
def capped() -> Timeline:
    return Vault(Watched(), max_value_bytes=MIB).timeline("main")


@pytest.mark.parametrize(
    "value",
    ["x" * MIB, b"x" * MIB, "é" * (MIB // 2), "🙂" * (MIB // 4), ["x" * MIB, "y" * MIB]],
    ids=["text", "bytes", "accents", "faces", "two"],
)
def test_a_value_of_just_the_cap_is_stored(capped: Timeline, value: Any) -> None:
    capped.save({"value": value})
    assert capped.load() == {"value": value}
    capped.append({"more": [value]})
    assert capped.load() == {"value": value, "more": [value]}


LARGE = "x" * (MIB + 1)


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"a": LARGE}, "state.a"),
        ({"a": LARGE.encode()}, "state.a"),
        ({"a": "é" * (MIB // 2) + "é"}, "state.a"),
        ({"a": [0, {"b": LARGE}]}, "state.a[1].b"),
        ({"odd key": [LARGE]}, "state['odd key'][0]"),
        ({"a": (0, LARGE)}, "state.a[1]"),
        ({"a": Note(LARGE)}, "state.a.text"),
        ({"a": collections.OrderedDict(b=LARGE)}, "state.a.b"),
        ({"a": bytearray(LARGE.encode())}, "state.a"),
        ({"a": memoryview(LARGE.encode())}, "state.a"),
        ({"a": Text(LARGE)}, "state.a"),
        ({"a": {LARGE}}, "state.a"),
        ({"a": {LARGE: 1}}, "state.a"),
        ({"messages": [*messages(500), LARGE]}, "state.messages[500]"),
    ],
    ids=[
        *("text", "bytes", "accents", "inside", "odd key", "tuple", "object", "mapping"),
        *("bytearray", "memoryview", "subclass", "set", "key", "long list"),
    ],
)
def test_a_larger_value_is_refused_with_its_path(
    capped: Timeline, state: dict[str, Any], path: str
) -> None:
    capped.save({"turn": 1})
    for write in (capped.save, capped.append):
        with pytest.raises(Unstorable, match="max_value_bytes") as caught:
            write(state)
        assert caught.value.path.startswith(path)
        assert len(str(caught.value)) < 1_000
    assert len(capped) == 1
    capped.save({"turn": 2})
    assert capped.load() == {"turn": 2}


def test_a_value_that_grows_too_large_between_saves_is_refused(capped: Timeline) -> None:
    state: dict[str, Any] = {"messages": messages(300)}
    capped.save(state)
    state["messages"][150]["content"] = LARGE
    with pytest.raises(Unstorable) as caught:
        capped.save(state)
    assert caught.value.path == "state.messages[150].content"
    state["messages"][150]["content"] = "small again"
    capped.save(state)
    assert capped.load() == state


@pytest.mark.parametrize("cap", [0, -1, "5", 1.5, None])
def test_a_cap_that_is_no_number_from_one_on_is_misuse(cap: Any) -> None:
    with pytest.raises(Misuse, match="max_value_bytes"):
        hardsave.open("memory://", max_value_bytes=cap)


# Values that cannot be kept


class Lazy(list[Any]):
    """A list that gets its items from somewhere when it is looked into, and cannot any more."""

    def __iter__(self) -> Iterator[Any]:
        raise LookupError("the connection is closed")


class Unread:
    """An object with a field that cannot be read."""

    __struct_fields__ = ("text",)

    @property
    def text(self) -> str:
        raise LookupError("the connection is closed")


@pytest.mark.parametrize(
    ("state", "path"),
    [
        (object(), "state"),
        ({"a": object()}, "state.a"),
        ({"messages": [{}, {}, {}, {"image": object()}]}, "state.messages[3].image"),
        ({"a": {"odd key": [lambda: None]}}, "state.a['odd key'][0]"),
        ({"a": Note(Note(print))}, "state.a.text.text"),
        ({"messages": [*messages(300), {"image": object()}]}, "state.messages[300].image"),
        ({"files": {f"{n}": "x" * 200 for n in range(300)} | {"bad": iter([])}}, "state.files.bad"),
        ({"messages": [{"calls": Lazy([1])}]}, "state.messages[0].calls"),
        ({"messages": [*messages(300), {"calls": Lazy([1])}]}, "state.messages[300].calls"),
        ({"a": [Unread()]}, "state.a[0]"),
        (Lazy([1]), "state"),
    ],
)
def test_a_value_that_cannot_be_kept_is_named(line: Timeline, state: Any, path: str) -> None:
    with pytest.raises(Unstorable) as caught:
        line.save(state)
    assert caught.value.path == path
    assert str(caught.value).startswith(path + ": ")
    if isinstance(state, dict):
        with pytest.raises(Unstorable) as caught:
            line.append(state)
        assert caught.value.path == path
    assert len(line) == 0


def test_a_failed_save_leaves_the_handle_usable(line: Timeline, vault: Vault) -> None:
    state: dict[str, Any] = {"messages": messages(300)}
    for n in range(5):
        line.save(state)
        state["messages"][n * 50]["image"] = object()
        state["messages"].append({"content": "new " * 50})
        for _ in range(2):
            with pytest.raises(Unstorable) as caught:
                line.save(state)
            assert caught.value.path == f"state.messages[{n * 50}].image"
        del state["messages"][n * 50]["image"]
    line.save(state)
    assert line.load() == state
    assert len(line) == 6
    assert vault.store.verify().ok


def test_a_large_value_that_cannot_be_looked_into_any_more_is_named(line: Timeline) -> None:
    before: list[Any] = [messages(200), *messages(300)]
    line.save(before)
    for at, now in enumerate(before[:2]):
        before[at] = Lazy(messages(200))
        with pytest.raises(Unstorable, match="it raised LookupError") as caught:
            line.save(before)
        assert caught.value.path == f"state[{at}]"
        before[at] = now
    line.save(before)
    assert line.load() == before


def test_everything_that_is_refused_is_an_error_of_our_own(line: Timeline) -> None:

    refused: list[Any] = [
        {1: {2: {3: ...}}},
        type,
        Unread(),
        {"a": NotImplemented},
        [range(3)],
        {"a": 1j},
    ]
    for state in refused:
        with pytest.raises(HardsaveError):
            line.save(state)
    assert len(line) == 0
