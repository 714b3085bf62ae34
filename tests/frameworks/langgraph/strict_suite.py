"""What a saver must keep, beyond what LangGraph's own suite looks at: each check takes a saver."""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    empty_checkpoint,
)
from langgraph.checkpoint.base.id import uuid6

Saver = BaseCheckpointSaver[Any]
_moments = itertools.count()


def a_config(thread: str, namespace: str = "", id: str | None = None) -> RunnableConfig:
    said: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": said | ({} if id is None else {"checkpoint_id": id})}


def a_checkpoint(values: dict[str, Any] | None = None) -> Checkpoint:
    values = values or {}
    versions: dict[str, Any] = {key: f"{next(_moments):08}.0" for key in values}
    made = {"id": str(uuid6()), "channel_values": values, "channel_versions": versions}
    return {**empty_checkpoint(), **made}  # type: ignore[typeddict-item] # the keys are right


def put(
    saver: Saver,
    config: RunnableConfig,
    values: dict[str, Any] | None = None,
    metadata: CheckpointMetadata | None = None,
) -> RunnableConfig:
    made = a_checkpoint(values)
    return saver.put(config, made, metadata or {}, made["channel_versions"])


def id_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


def writes_at(saver: Saver, config: RunnableConfig) -> list[tuple[str, str, Any]]:
    found = saver.get_tuple(config)
    assert found is not None
    [listed] = [one for one in saver.list(config) if one.checkpoint["id"] == id_of(config)]
    assert list(listed.pending_writes or []) == list(found.pending_writes or [])
    return list(found.pending_writes or [])


def writes_come_in_the_order_in_which_a_step_applies_them(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread))
    paths = {"t3": "~a, 1", "t1": "~b, 2", "t2": "~a, 0", "t0": ""}
    for task, path in paths.items():
        saver.put_writes(at, [("x", task + "0"), ("y", task + "1")], task, path)
    saver.put_writes(at, [("__error__", "e")], "t1", paths["t1"])
    expected = [
        ("t0", "x", "t00"),
        ("t0", "y", "t01"),
        ("t2", "x", "t20"),
        ("t2", "y", "t21"),
        ("t3", "x", "t30"),
        ("t3", "y", "t31"),
        ("t1", "__error__", "e"),
        ("t1", "x", "t10"),
        ("t1", "y", "t11"),
    ]
    assert writes_at(saver, at) == expected


def writes_of_one_task_are_in_the_order_of_their_indexes(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread))
    saver.put_writes(at, [(f"c{n}", n) for n in range(12)], "t")
    assert [value for _, _, value in writes_at(saver, at)] == list(range(12))


def versions_are_unique_texts_that_rise(saver: Saver, _: str) -> None:
    first = saver.get_next_version(None, None)
    assert isinstance(first, str)
    version, seen = first, [first]
    for _number in range(120):
        version = saver.get_next_version(version, None)
        seen.append(version)
    assert seen == sorted(seen)
    assert len({saver.get_next_version(first, None) for _number in range(50)}) == 50
    assert saver.get_next_version(3, None) > saver.get_next_version("00000002.ff", None)


def regular_writes_stay_as_they_came_first(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread))
    saver.put_writes(at, [("x", 1)], "t")
    saver.put_writes(at, [("x", 2), ("y", 3)], "t")
    assert writes_at(saver, at) == [("t", "x", 1), ("t", "y", 3)]


def special_writes_are_replaced(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread))
    for value in ("first", "second"):
        saver.put_writes(at, [("__interrupt__", value)], "t")
        saver.put_writes(at, [("__resume__", value)], "t")
    assert writes_at(saver, at) == [("t", "__resume__", "second"), ("t", "__interrupt__", "second")]


def special_writes_leave_regular_ones_alone(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread))
    saver.put_writes(at, [("x", 1), ("y", 2)], "t")
    saver.put_writes(at, [("__error__", "e")], "t")
    saver.put_writes(at, [("__interrupt__", "i")], "t")
    found = {channel for _, channel, _ in writes_at(saver, at)}
    assert found == {"x", "y", "__error__", "__interrupt__"}


def special_and_regular_writes_may_come_together(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread))
    saver.put_writes(at, [("x", 1), ("__resume__", "a")], "t")
    saver.put_writes(at, [("y", 2), ("z", 3)], "t")
    assert writes_at(saver, at) == [("t", "__resume__", "a"), ("t", "x", 1), ("t", "z", 3)]


def writes_may_come_before_their_checkpoint(saver: Saver, thread: str) -> None:
    made = a_checkpoint({"x": 1})
    at = a_config(thread, id=made["id"])
    saver.put_writes(at, [("x", 1)], "t")
    saver.put_writes(at, [("x", 2)], "t")
    saver.put_writes(at, [("__error__", "a")], "t")
    saver.put_writes(at, [("__error__", "b")], "t")
    saver.put(a_config(thread), made, {}, made["channel_versions"])
    assert writes_at(saver, at) == [("t", "__error__", "b"), ("t", "x", 1)]


def metadata_has_what_the_config_says(saver: Saver, thread: str) -> None:
    config = a_config(thread)
    config["configurable"] |= {"user": "ada", "number": 7, "__private": 1, "langgraph_step": 9}
    config["metadata"] = {"tenant": "x", "nul": "a\0b", "step": 99}
    at = put(saver, config, metadata={"source": "loop", "step": 3, "parents": {"": "p"}})
    found = saver.get_tuple(at)
    assert found is not None
    assert dict(found.metadata) == {
        "source": "loop",
        "step": 3,
        "parents": {"": "p"},
        "user": "ada",
        "number": 7,
        "tenant": "x",
        "nul": "ab",
    }


def metadata_of_any_key_is_kept_and_filtered_by(saver: Saver, thread: str) -> None:
    metadata: Any = {"source": "loop", "step": 1, "deep": {"a": [1, {"b": None}]}, "none": None}
    at = put(saver, a_config(thread), metadata=metadata)
    put(saver, at, metadata={"source": "update"})
    here = a_config(thread)
    assert [one.metadata for one in saver.list(here, filter={"deep": metadata["deep"]})] == [
        metadata
    ]
    assert len(list(saver.list(here, filter={"none": None}))) == 2  # as without the key
    assert len(list(saver.list(here, filter={"source": "loop", "step": 2}))) == 0


def a_list_is_newest_first_bounded_and_of_one_or_all_namespaces(saver: Saver, thread: str) -> None:
    root = [put(saver, a_config(thread)) for _ in range(3)]
    child = put(saver, a_config(thread, "child:1"))
    later = put(saver, a_config(thread))
    ids = [id_of(each) for each in [later, *reversed(root)]]
    assert [one.checkpoint["id"] for one in saver.list(a_config(thread))] == ids
    everywhere: RunnableConfig = {"configurable": {"thread_id": thread}}
    assert {id_of(one.config) for one in saver.list(everywhere)} == {*ids, id_of(child)}
    assert [id_of(one.config) for one in saver.list(a_config(thread), limit=2)] == ids[:2]
    assert list(saver.list(a_config(thread), limit=0)) == []
    before = a_config("another thread", id=id_of(child))  # an id is a moment, wherever it lies
    assert [id_of(one.config) for one in saver.list(a_config(thread), before=before)] == ids[1:]
    assert [id_of(one.config) for one in saver.list(root[1])] == [id_of(root[1])]


def an_id_that_is_put_again_has_the_newer_contents_and_its_writes(
    saver: Saver, thread: str
) -> None:
    made = a_checkpoint({"x": 1})
    at = saver.put(a_config(thread), made, {"step": 1}, made["channel_versions"])
    saver.put_writes(at, [("x", 1)], "t")
    child = put(saver, at)
    newer = {**made, "channel_values": {"x": 2}, "channel_versions": {"x": "00009999.0"}}
    saver.put(a_config(thread), newer, {"step": 2}, newer["channel_versions"])  # type: ignore[arg-type]
    found = saver.get_tuple(at)
    assert found is not None
    assert (found.checkpoint["channel_values"], found.metadata) == ({"x": 2}, {"step": 2})
    assert writes_at(saver, at) == [("t", "x", 1)]
    again = saver.get_tuple(child)
    assert again is not None
    assert again.parent_config == found.config


def values_come_back_as_they_were(saver: Saver, thread: str) -> None:
    values: dict[str, Any] = {
        "messages": [
            HumanMessage("hi", id="1", name="ada"),
            AIMessage(
                [{"type": "text", "text": "x"}],
                tool_calls=[{"name": "t", "args": {"a": [1]}, "id": "c"}],
                response_metadata={"model": "m"},
            ),
        ],
        "none": None,
        "user": {"lc": "AIMessage", "content": {"lc": 1, "type": "constructor"}},
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "set": {1, "a"},
        "keys": {1: "a", ("b", 2): "c"},
        "bytes": b"\0\xff",
        "text": "a\0b",
        "empty": [{}, [], ""],
        "__checkpoint__": 1,
        "__checkpoint__'": 2,
    }
    put(saver, a_config(thread), copy.deepcopy(values))
    found = saver.get_tuple(a_config(thread))
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    found.checkpoint["channel_values"]["messages"].clear()  # is the caller's own
    again = saver.get_tuple(a_config(thread))
    assert again is not None
    assert again.checkpoint["channel_values"] == values


def what_a_checkpoint_says_of_itself_is_kept(saver: Saver, thread: str) -> None:
    made = a_checkpoint({"a": 1, "b": 2})
    made["versions_seen"] = {"node": {"a": "00000001.0"}, "__input__": {}}
    made["updated_channels"] = ["b", "a"]
    saver.put(a_config(thread), made, {}, made["channel_versions"])
    found = saver.get_tuple(a_config(thread))
    assert found is not None
    assert found.checkpoint == made


def a_channel_that_is_gone_does_not_come_back(saver: Saver, thread: str) -> None:
    at = put(saver, a_config(thread), {"a": 1, "b": 2})
    put(saver, at, {"a": 1})
    found = saver.get_tuple(a_config(thread))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": 1}


def a_deleted_thread_does_not_come_back_with_its_ids(saver: Saver, thread: str) -> None:
    made = a_checkpoint({"x": 1})
    at = saver.put(a_config(thread), made, {}, made["channel_versions"])
    saver.put_writes(at, [("x", "old")], "t")
    saver.put_writes(a_config(thread, id=str(uuid6())), [("x", "early")], "t")
    saver.delete_thread(thread)
    assert (saver.get_tuple(at), list(saver.list(a_config(thread)))) == (None, [])
    saver.put(a_config(thread), made, {}, made["channel_versions"])
    assert writes_at(saver, at) == []


def a_copy_is_apart_from_its_source(saver: Saver, thread: str) -> None:
    first = put(saver, a_config(thread), {"x": [1]}, {"step": 1})
    saver.put_writes(first, [("x", 1)], "t", "path")
    put(saver, first, {"x": [2]})
    put(saver, a_config(thread, "child:1"), {"y": 1})
    target = thread + "-copy"
    saver.copy_thread(thread, target)
    copied = a_config(target, id=id_of(first))
    assert writes_at(saver, copied) == [("t", "x", 1)]
    saver.put_writes(copied, [("y", 2)], "t2")
    put(saver, copied, {"x": [3]})
    assert writes_at(saver, first) == [("t", "x", 1)]
    assert len(list(saver.list(a_config(thread)))) == 2
    saver.delete_thread(thread)
    assert len(list(saver.list(a_config(target)))) == 3
    assert saver.get_tuple(a_config(target, "child:1")) is not None


def the_history_of_a_channel_is_its_writes_on_the_path(saver: Saver, thread: str) -> None:
    one = put(saver, a_config(thread), {"d": "seed"})
    saver.put_writes(one, [("d", "b2"), ("other", 0)], "z", "~a, 1")
    saver.put_writes(one, [("d", "b1")], "y", "~a, 0")
    two = put(saver, one, {"e": 1})
    saver.put_writes(two, [("d", "c")], "t")
    aside = put(saver, one, {"e": 2})
    saver.put_writes(aside, [("d", "not on the path")], "t")
    three = put(saver, two, {"e": 3})
    saver.put_writes(three, [("d", "pending")], "t")
    found = saver.get_delta_channel_history(config=three, channels=["d", "none"])
    assert found["d"]["seed"] == "seed"
    assert [value for _, _, value in found["d"]["writes"]] == ["b1", "b2", "c"]
    assert found["none"] == {"writes": []}


def ids_are_of_their_thread_and_namespace(saver: Saver, thread: str) -> None:
    made = a_checkpoint({"x": 1})
    places = [
        a_config(thread),
        a_config(thread, "a"),
        a_config(thread + "2"),
        a_config(thread, "A"),
    ]
    for number, where in enumerate(places):
        saver.put(where, made, {"step": number}, made["channel_versions"])
    for number, where in enumerate(places):
        found = saver.get_tuple(where)
        assert found is not None
        assert found.metadata["step"] == number


def _checks(found: Sequence[Any]) -> Iterator[Callable[[Saver, str], None]]:
    helpers = {a_config, a_checkpoint, put, id_of, writes_at}
    yield from (
        each
        for each in found
        if getattr(each, "__module__", "") == __name__
        and callable(each)
        and each not in helpers
        and not each.__name__.startswith("_")
    )


CHECKS = list(_checks(list(globals().values())))


def failures(make: Callable[[], Saver]) -> list[str]:
    """The checks that a saver fails, each with a saver and a thread of its own."""
    found = []
    for check in CHECKS:
        try:
            check(make(), f"thread-{uuid4()}")
        except (AssertionError, NotImplementedError, KeyError, TypeError):
            found.append(check.__name__)
    return found
