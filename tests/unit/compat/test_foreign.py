"""Whatever comes from elsewhere: errors of our own tree, and what was taken in comes back."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardsave
from hardsave.compat import ai_coder, breakpilot, code_agent, flowagent, foreign, skill
from hardsave.compat.code_agent.mirror import Mirror
from hardsave.errors import HardsaveError, Misuse, Unavailable

NOW = datetime(2026, 3, 1, tzinfo=UTC)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**30), 2**63, float("inf"), float("nan"), 0.5]),
    st.text(max_size=8),
    st.sampled_from(["s:1", "s:" + "9" * 30, "pending", "0001-01-01", "9999-12-31T23:59-12:00"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)

CHECKPOINT = {"id": "s:1", "name": "a", "timestamp": "2024-05-01T12:00:00+02:00"}
CHECKPOINT_DATA: dict[str, Any] = {**CHECKPOINT, "data": {"n": [1]}, "metadata": {"by": "me"}}
AGENT = flowagent.Checkpoint("c", "a", "A", "u", "RUNNING", {"city": "Paris"}).to_dict()
JOB = ai_coder.AgentCheckpoint("j", "w", "t", [{"role": "user", "content": "hi"}], 1, 5).to_dict()
TASK = {"task_id": "a", "task_text": "A", "state": "failed", "attempts": 2, "metadata": {}}
FILE: dict[str, Any] = {
    "version": "1.0",
    "server_state": {},
    "tasks": [TASK],
    "current_task": None,
    "session_id": "s",
    "last_update": "2024-01-01T00:00:00",
}


@st.composite
def mutated(draw: st.DrawFn, good: Any) -> Any:
    """A good document in which some values are others, are gone, or are there twice."""
    value = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        if not places:
            break
        parent, key = draw(st.sampled_from(places))
        what = draw(st.sampled_from(["other", "gone", "twice"]))
        if what == "other":
            parent[key] = draw(VALUES)
        elif what == "gone":
            del parent[key]
        elif isinstance(parent, list):
            parent.append(parent[key])
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(value, dict | list):
        return
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        yield from _places(value[key])


def is_taken(call: Callable[[], object]) -> bool:
    """Whether it is; what is refused is refused in our own words."""
    try:
        call()
    except HardsaveError:
        return False
    return True


@given(st.one_of(VALUES, mutated([CHECKPOINT_DATA] * 2)))
@settings(max_examples=300)
def test_breakpilot_imports_all_of_a_document_or_nothing(document: Any) -> None:
    manager = breakpilot.CheckpointManager("s")
    if not is_taken(lambda: manager.import_checkpoints(json.dumps(document))):
        assert len(manager) == 0
        return
    first = {one["id"]: one["data"] for one in reversed(document)}
    assert json.dumps([one.data for one in manager]) == json.dumps([first[x.id] for x in manager])
    assert {one.id for one in manager} == set(first)
    text = manager.export()
    again = breakpilot.CheckpointManager("s")
    assert again.import_checkpoints(text) == len(manager)
    assert again.export() == text
    known = {one.id for one in manager}
    assert manager.create("next", {}).id not in known
    manager.get_summary()


@given(st.text(alphabet='[]{}":,0123456789eE+-. \\untrfalsx', max_size=40) | st.binary(max_size=20))
@settings(max_examples=200)
def test_breakpilot_takes_any_text_for_what_it_is(text: str | bytes) -> None:
    manager = breakpilot.CheckpointManager("s")
    is_taken(lambda: manager.import_checkpoints(text))  # type: ignore[arg-type] # bytes, too


@given(st.one_of(VALUES, mutated(AGENT)))
@settings(max_examples=150)
def test_flowagent_saves_what_it_can_load_in_both_storages_alike(document: Any) -> None:
    try:
        record = flowagent.Checkpoint.from_dict(document)
    except HardsaveError:
        return

    async def saved(storage: flowagent.CheckpointStorage) -> flowagent.Checkpoint | None:
        try:
            id = await storage.save(record)
        except HardsaveError:
            return None
        found = await storage.load(id)
        assert found is not None
        assert repr(found) == repr(record)  # nan is not equal to itself
        listed = await storage.list_by_user(record.user_id, 10, 0)
        assert [one.id for one in listed] == [id]
        assert len(await storage.list_light(record.user_id, 10, 0)) == 1
        assert repr(flowagent.Checkpoint.from_dict(found.to_dict())) == repr(found)
        return found

    files = flowagent.SQLiteCheckpointStorage(":memory:")
    one = asyncio.run(saved(flowagent.InMemoryCheckpointStorage()))
    assert repr(one) == repr(asyncio.run(saved(files)))


@given(st.one_of(VALUES, mutated(JOB)))
@settings(max_examples=150)
def test_ai_coder_loads_what_it_has_saved_and_leaves_the_rest_alone(document: Any) -> None:
    with hardsave.open("memory://") as vault:
        manager = ai_coder.CheckpointManager(vault, now=lambda: NOW)
        about = {"last_updated": NOW.isoformat()}
        asyncio.run(manager.save_checkpoint(ai_coder.AgentCheckpoint.from_dict(JOB)))
        stored = vault.timeline("j").load()
        stored["data"]["content"]["ai_coder"] = document
        is_taken(lambda: vault.timeline("j").save(stored, metadata=about))
        is_taken(lambda: vault.timeline("k").save(document, metadata=about))
        for id in ("j", "k"):
            is_taken(lambda id=id: asyncio.run(manager.load_checkpoint(id)))  # type: ignore[misc] # bound now
        asyncio.run(manager.list_active_checkpoints())
        try:
            record = ai_coder.AgentCheckpoint.from_dict(document)
        except Misuse:
            return
        is_taken(record.ready_messages)
        asyncio.run(manager.save_checkpoint(record))
        if manager.save_failures == 0:
            assert asyncio.run(manager.load_checkpoint(record.job_id)) is not None
            assert record.job_id in asyncio.run(manager.list_active_checkpoints())


@given(st.one_of(VALUES, mutated(FILE)))
@settings(max_examples=100)
def test_code_agent_takes_all_of_a_file_or_nothing(document: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, ".codeagent_checkpoint.json")
        path.write_text(json.dumps(document))
        taken: list[dict[str, Any]] = []
        if not is_taken(lambda: taken.append(Mirror(path).found() or {})):
            assert not path.exists()  # set aside
            return
        store = f"sqlite:///{folder}/store.db"
        manager = code_agent.CheckpointManager(folder, store=store)
        ids = {task["task_id"] for task in taken[0]["tasks"]}
        assert manager.get_statistics()["total_tasks"] == len(ids)
        assert Mirror(path).found() is not None
        manager.close()


@given(st.one_of(VALUES, mutated([{"id": "f", "status": "done"}, {"name": "g"}])))
def test_skill_makes_of_any_list_what_it_can(document: Any) -> None:
    skill.records.features(document)


# What a value may be


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (None, str, "it is a text, not NoneType"),
        (True, int, "it is a whole number, not bool"),
        (5, str | None, "it is a text or None, not int"),
        ([], dict, "it is a dict, not list"),
    ],
)
def test_what_is_wrong_is_said(value: object, kind: Any, said: str) -> None:
    with pytest.raises(Misuse, match=said):
        foreign.check(value, kind, "it")


def test_a_file_that_is_none_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".codeagent_checkpoint.json")
    with pytest.raises(Unavailable, match="not a file"):
        Mirror(tmp_path / ".codeagent_checkpoint.json").found()
    manager = code_agent.CheckpointManager(
        tmp_path, "other.json", store=f"sqlite:///{tmp_path}/store.db"
    )
    manager.close()
