"""What is done to whole threads: old ones let go, runs deleted, histories pruned, copies taken."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from hardsave.stores.registry import open_store
from tests.frameworks.langgraph.strict_suite import a_config, id_of, put, writes_at

HOUR = 3_600_000_000  # microseconds


class Clock:
    def __init__(self) -> None:
        self.now = time.time_ns() // 1_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def saver(tmp_path: Path, clock: Clock) -> Iterator[HardsaveSaver]:
    with hardsave.Vault(open_store(f"sqlite:///{tmp_path}/store.db"), clock=clock) as vault:
        yield HardsaveSaver(vault)


def ids(saver: HardsaveSaver, thread: str) -> list[str]:
    return [id_of(one.config) for one in saver.list(a_config(thread))]


def a_chain(saver: HardsaveSaver, thread: str, length: int, **metadata: Any) -> list[Any]:
    made = [a_config(thread)]
    for number in range(length):
        said: Any = {"step": number, **metadata}
        made.append(put(saver, made[-1], {"x": number}, said))
    return made[1:]


def test_a_thread_goes_when_nothing_was_put_for_so_long(saver: HardsaveSaver, clock: Clock) -> None:
    old = a_chain(saver, "old", 3)
    saver.put_writes(old[-1], [("x", 1)], "task")
    put(saver, a_config("old", "child:1"), {"y": 1})
    busy = a_chain(saver, "busy", 3)
    saver.vault.timeline("notes").save({"of": "the program's own"})
    clock.now += 2 * HOUR
    busy.append(put(saver, busy[-1], {"x": 3}))
    put(saver, a_config("short"), {"z": 1})
    clock.now += 2 * HOUR
    busy.append(put(saver, busy[-1], {"x": 4}))
    assert saver.expire(timedelta(hours=5)) == 0
    assert saver.expire(timedelta(hours=3)) == 1
    assert len(ids(saver, "short")) == 1
    assert saver.expire(timedelta(hours=1)) == 1
    assert ids(saver, "short") == []
    assert (saver.get_tuple(a_config("old")), ids(saver, "old")) == (None, [])
    assert ids(saver, "busy") == [id_of(each) for each in reversed(busy)]
    assert saver.vault.timeline("notes").head is not None
    again = put(saver, a_config("old"), {"x": 4})  # and it can begin anew
    assert ids(saver, "old") == [id_of(again)]


def test_an_expired_thread_comes_back_by_an_undo(saver: HardsaveSaver, clock: Clock) -> None:
    made = a_chain(saver, "t", 2)
    saver.put_writes(made[-1], [("x", 1)], "task")
    clock.now += 2 * HOUR
    assert saver.expire(timedelta(hours=1)) == 1
    saver.vault.undo()
    assert writes_at(saver, made[-1]) == [("task", "x", 1)]
    put(saver, made[-1], {"x": 2})
    assert len(ids(saver, "t")) == 3


def test_of_a_run_all_its_checkpoints_go_in_every_thread(saver: HardsaveSaver) -> None:
    runs = ["run-1", "run-2", "ünüsual " * 40]
    for thread in ("a", "b"):
        for run in runs:
            a_chain(saver, f"{thread}", 2, run_id=run)
    saver.delete_for_runs(["run-1", runs[2], "no run"])
    left = [one.metadata.get("run_id") for one in saver.list(None)]
    assert left == ["run-2"] * 4
    assert len(ids(saver, "a")) == 2


def test_a_pruned_thread_keeps_what_channels_of_deltas_need(saver: HardsaveSaver) -> None:
    counters: Any = {"counters_since_delta_snapshot": {"log": (1, 1)}}
    seed = put(saver, a_config("t"), {"log": ["seed"], "x": 0})
    chain = [seed, put(saver, seed, {"x": 1}, counters)]
    chain.append(put(saver, chain[-1], {"x": 2}, counters))
    for number, at in enumerate(chain):
        saver.put_writes(at, [("log", f"write {number}")], f"task {number}")
    older = put(saver, a_config("t", "child:1"), {"y": 0})
    newer = put(saver, older, {"y": 1})
    saver.prune(["t"])
    assert ids(saver, "t") == [id_of(each) for each in reversed(chain)]
    assert [id_of(one.config) for one in saver.list(a_config("t", "child:1"))] == [id_of(newer)]
    found = saver.get_delta_channel_history(config=chain[-1], channels=["log"])["log"]
    assert found["seed"] == ["seed"]
    assert [value for *_, value in found["writes"]] == ["write 0", "write 1"]
    put(saver, chain[-1], {"log": ["whole"], "x": 3})
    saver.prune(["t"])
    assert len(ids(saver, "t")) == 1


def test_a_copy_goes_on_where_its_source_was_taken_back_to(saver: HardsaveSaver) -> None:
    made = a_chain(saver, "t", 3)
    target = saver.checkpoint(made[1])
    assert target is not None
    saver.vault.timeline(saver.timeline("t")).rewind(target, what="state")
    saver.copy_thread("t", "copy")
    found = saver.get_tuple(a_config("copy"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": 1}
    assert ids(saver, "copy") == ids(saver, "t")
    put(saver, found.config, {"x": 9})
    assert len(ids(saver, "t")) == 3
