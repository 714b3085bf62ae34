"""AI Coder's manager: what it keeps and for how long, without the faults of the original."""

import asyncio
import copy
import gc
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

import hardsave
from hardsave.compat import ai_coder
from hardsave.compat.ai_coder import AgentCheckpoint, CheckpointManager, records
from hardsave.compat.ai_coder.history import LOST, answered, unanswered
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.registry import open_store
from hardsave.vault.jobs.spec import JobId
from tests.redis_server import beside, prefix_of, url_of

START = datetime(2026, 1, 1, tzinfo=UTC)

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Fix the bug"},
    {
        "role": "assistant",
        "reasoning_content": "They want it fixed. \u2028 Let me look.",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
            {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"n": 1.5, "x": None}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one\ntwo"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": [], "is_error": True},
        ],
    },
]


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[hardsave.Vault]:
    store = (
        MemoryStore()
        if request.param == "memory"
        else open_store(f"sqlite:///{tmp_path}/store.db", durability="process")
    )
    with hardsave.Vault(store) as opened:
        yield opened


@pytest.fixture
def manager(vault: hardsave.Vault, clock: Clock) -> CheckpointManager:
    return CheckpointManager(vault, now=clock)


def made(job_id: str = "123", turns: int = 1, **more: Any) -> AgentCheckpoint:
    return AgentCheckpoint(
        job_id=job_id,
        workspace_id="ws-1",
        task_description="Fix the bug",
        messages=copy.deepcopy(MESSAGES),
        turns=turns,
        max_turns=50,
        selected_model="deepseek-reasoner",
        workspace_config={"owner": "me", "repo": "it", "defaultBranch": "main"},
        **more,
    )


def save(manager: CheckpointManager, checkpoint: AgentCheckpoint) -> None:
    asyncio.run(manager.save_checkpoint(checkpoint))


def load(manager: CheckpointManager, job_id: str = "123") -> AgentCheckpoint | None:
    return asyncio.run(manager.load_checkpoint(job_id))


def has(manager: CheckpointManager, job_id: str = "123") -> bool:
    return asyncio.run(manager.has_checkpoint(job_id))


def active(manager: CheckpointManager) -> list[str]:
    return asyncio.run(manager.list_active_checkpoints())


# What is kept


def test_all_fields_come_back_with_time_and_version(manager: CheckpointManager) -> None:
    save(manager, made())
    found = load(manager)
    assert found == made(last_updated="2026-01-01T00:00:00.000+00:00")
    assert found is not None
    assert json.dumps(found.messages) == json.dumps(MESSAGES)
    assert found.to_dict().keys() == {
        "jobId",
        "workspaceId",
        "taskDescription",
        "messages",
        "turns",
        "maxTurns",
        "selectedModel",
        "workspaceConfig",
        "lastUpdated",
        "version",
    }
    assert AgentCheckpoint.from_dict(found.to_dict()) == found


def test_the_latest_is_loaded_and_the_others_are_history(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    for turn in (1, 2, 3):
        save(manager, made(turns=turn))
    found = load(manager)
    assert found is not None
    assert found.turns == 3
    assert [cp.read("turn") for cp in vault.timeline("123").checkpoints()] == [3, 2, 1]


def test_what_is_not_there_is_none(manager: CheckpointManager) -> None:
    assert load(manager) is None
    assert not has(manager)
    assert asyncio.run(manager.get_checkpoint_metadata("123")) is None
    assert not asyncio.run(manager.delete_checkpoint("123"))
    assert active(manager) == []


def test_metadata_and_the_list_of_active_ones(manager: CheckpointManager) -> None:
    save(manager, made("a"))
    save(manager, made("a", turns=2))
    save(manager, made("b"))
    metadata = asyncio.run(manager.get_checkpoint_metadata("a"))
    assert metadata is not None
    assert metadata.to_dict() == {
        "totalCheckpoints": 2,
        "lastCheckpointAt": "2026-01-01T00:00:00.000+00:00",
        "canResume": True,
    }
    assert sorted(active(manager)) == ["a", "b"]
    assert asyncio.run(manager.delete_checkpoint("a"))
    assert active(manager) == ["b"]
    assert not has(manager, "a")
    assert not asyncio.run(manager.delete_checkpoint("a"))


@pytest.mark.parametrize("job_id", ["a:b", "@x", " space ", "ä" * 300, "~x", "a/b"])
def test_a_job_may_be_called_anything(manager: CheckpointManager, job_id: str) -> None:
    save(manager, made(job_id))
    found = load(manager, job_id)
    assert found is not None
    assert found.job_id == job_id
    assert active(manager) == [job_id]


# How long


def test_what_others_save_beside_them_is_no_checkpoint(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    save(manager, made())
    vault.timeline("notes").save({"by": "hand"})
    vault.timeline("123").fork(name="trial")
    assert active(manager) == ["123"]
    assert load(manager, "notes") is None
    vault.jobs.add("queued", "Do something else")
    save(manager, made("notes"))
    save(manager, made("queued"))
    assert manager.save_failures == 2  # they would hide what is there
    assert vault.jobs.get("queued").state == "queued"
    assert vault.timeline("notes").load() == {"by": "hand"}


def test_it_is_kept_for_seven_days_from_the_last_save(
    manager: CheckpointManager, clock: Clock
) -> None:
    save(manager, made())
    clock.now += timedelta(days=6)
    save(manager, made(turns=2))
    clock.now += timedelta(days=6, hours=23)
    assert has(manager)
    clock.now += timedelta(hours=1)
    assert load(manager) is None
    assert active(manager) == []


def test_how_long_can_be_chosen(vault: hardsave.Vault, clock: Clock) -> None:
    manager = CheckpointManager(vault, ttl=timedelta(minutes=5), now=clock)
    save(manager, made())
    clock.now += timedelta(minutes=5)
    assert not has(manager)


# Other versions


def foreign(vault: hardsave.Vault, version: int) -> None:
    """As another version has saved it."""
    record = made(last_updated=START.isoformat(), version=version)
    state = records.to_state(record, records.to_spec(record, "123", None), JobId("123"))
    vault.timeline("123").save(state, metadata={"last_updated": START.isoformat()})


def test_another_version_is_refused_with_a_warning_and_kept(
    manager: CheckpointManager, vault: hardsave.Vault, caplog: pytest.LogCaptureFixture
) -> None:
    foreign(vault, 9)
    with caplog.at_level(logging.WARNING):
        assert load(manager) is None
    assert "version 9" in caplog.text
    assert not has(manager)  # the original says that it has one, and loads none
    assert active(manager) == []
    assert vault.timeline("123").load()["data"]["content"]["ai_coder"]["version"] == 9


def test_a_migrator_brings_an_older_version_up(vault: hardsave.Vault, clock: Clock) -> None:
    foreign(vault, 0)

    def migrate(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "version": 1, "turns": data["turns"] + 100}

    found = load(CheckpointManager(vault, migrators={0: migrate}, now=clock))
    assert found is not None
    assert found.turns == 101
    stuck = CheckpointManager(vault, migrators={0: lambda data: data}, now=clock)
    with pytest.raises(hardsave.Misuse, match="gives that version again"):
        load(stuck)


# What goes wrong


def test_a_save_that_fails_does_not_stop_the_agent_and_is_reported(
    manager: CheckpointManager, vault: hardsave.Vault, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []
    vault.on("save_failed", told.append)
    save(manager, made())
    wrong = made(turns=2)
    wrong.messages.append({"role": "user", "content": object()})
    save(manager, wrong)
    assert manager.save_failures == 1
    assert len(told) == 1
    assert "the agent goes on" in caplog.text
    found = load(manager)
    assert found is not None
    assert found.turns == 1


def test_in_a_strict_vault_a_save_that_fails_raises() -> None:
    with hardsave.open("memory://", strict=True) as vault:
        manager = CheckpointManager(vault)
        wrong = made()
        wrong.messages.append({"role": "user", "content": object()})
        with pytest.raises(hardsave.Misuse):
            save(manager, wrong)
        assert manager.save_failures == 1


def test_a_save_that_fails_as_nobody_foresaw_does_not_stop_the_agent_either(
    manager: CheckpointManager, vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(hardsave.Timeline, "save", no_memory)
    save(manager, made())
    assert manager.save_failures == 1


def test_what_is_no_checkpoint_is_refused() -> None:
    with pytest.raises(hardsave.Misuse, match="has no 'colour'"):
        AgentCheckpoint.from_dict({**made().to_dict(), "colour": "red"})
    with pytest.raises(hardsave.Misuse, match="not a whole checkpoint"):
        AgentCheckpoint.from_dict({"jobId": "1"})


# Going on under another id


def test_a_checkpoint_moves_to_the_job_that_goes_on(manager: CheckpointManager) -> None:
    save(manager, made("old", turns=7))
    moved = asyncio.run(manager.move_checkpoint("old", "new"))
    assert moved is not None
    assert (moved.job_id, moved.turns) == ("new", 7)
    assert active(manager) == ["new"]
    assert load(manager, "old") is None
    assert asyncio.run(manager.move_checkpoint("old", "newer")) is None


def test_a_move_that_cannot_be_saved_leaves_the_old_one(
    manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(manager, made("old"))

    def full(*args: Any, **kwargs: Any) -> None:
        raise hardsave.Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(hardsave.Timeline, "save", full)
        assert asyncio.run(manager.move_checkpoint("old", "new")) is None
    assert active(manager) == ["old"]


# As jobs of the vault


def test_its_jobs_are_jobs_of_the_vault(manager: CheckpointManager, vault: hardsave.Vault) -> None:
    save(manager, made(turns=3))
    (job,) = vault.jobs.find()
    assert (job.id, job.state, job.can_resume, job.text) == (
        "123",
        "forgotten",
        True,
        "Fix the bug",
    )
    assert (job.turns, job.max_turns, job.percent, job.messages) == (3, 50, 6, 3)
    assert (job.model, job.spec.works_in) == ("deepseek-reasoner", "me/it")
    assert job.updated_at == vault.timeline("123").get().created_at


def test_a_resumed_job_has_its_checkpoint_under_the_new_id_alone(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    save(manager, made(turns=7))
    resumed = vault.jobs.resume("123", callback="https://example.org/told")
    assert (resumed.id, resumed.state, resumed.turns) == ("123~2", "queued", 7)
    stored = vault.tasks.get("123~2").metadata["job"]
    assert stored["_resume"]["fromJobId"] == "123"
    assert load(manager, "123") is None
    found = load(manager, "123~2")
    assert found is not None
    assert (found.job_id, found.turns, found.messages) == ("123~2", 7, MESSAGES)
    assert active(manager) == ["123~2"]
    metadata = asyncio.run(manager.get_checkpoint_metadata("123~2"))
    assert metadata is not None
    assert metadata.can_resume is vault.jobs.can_resume("123~2") is False  # it is queued
    found.turns = 8
    save(manager, found)
    job = vault.jobs.get("123~2")
    assert (job.id, job.state, job.turns, job.can_resume) == ("123~2", "forgotten", 8, True)
    assert job.spec.resumed is not None
    assert (job.spec.resumed.from_job, job.spec.callback) == ("123", "https://example.org/told")
    assert vault.jobs.resume("123").id == "123~3"


def test_a_program_that_still_saves_under_the_old_id_does_not_overwrite_the_new_one(
    manager: CheckpointManager, vault: hardsave.Vault, caplog: pytest.LogCaptureFixture
) -> None:
    save(manager, made(turns=7))
    vault.jobs.resume("123")
    save(manager, made(turns=99))
    assert manager.save_failures == 1
    assert "goes on as '123~2'" in caplog.text
    found = load(manager, "123~2")
    assert found is not None
    assert found.turns == 7


def test_a_resumption_from_an_earlier_checkpoint_loads_that_one(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    for turn in (1, 2, 3):
        save(manager, made(turns=turn))
    vault.jobs.resume("123", from_ref="@~2")
    found = load(manager, "123~2")
    assert found is not None
    assert found.turns == 1


def test_a_job_that_has_used_its_turns_is_resumed_with_as_many_again(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    save(manager, made(turns=50))
    vault.jobs.resume("123")
    found = load(manager, "123~2")
    assert found is not None
    assert (found.turns, found.max_turns) == (50, 100)


@pytest.mark.parametrize("by_vault", [True, False])
@pytest.mark.parametrize("is_queued", [True, False])
def test_what_one_side_deletes_is_gone_on_the_other(
    manager: CheckpointManager, vault: hardsave.Vault, by_vault: bool, is_queued: bool
) -> None:
    save(manager, made())
    id = vault.jobs.resume("123").id if is_queued else "123"
    if by_vault:
        vault.jobs.delete(id)
    else:
        assert asyncio.run(manager.delete_checkpoint(id))
    assert not has(manager, id)
    assert not asyncio.run(manager.delete_checkpoint(id))
    assert not vault.jobs.can_resume(id)
    assert [job for job in vault.jobs.find() if job.is_open] == []
    assert list(vault.tasks.find(state="pending")) == []  # a worker would begin at the beginning
    save(manager, made(turns=5))  # the id may be used again
    found = load(manager)
    assert found is not None
    assert (found.turns, manager.save_failures) == (5, 0)


def test_a_worker_leaves_its_jobs_to_the_program_that_saves_them(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    agent: Agent[None, Any] = Agent(TestModel())
    save(manager, made())
    vault.jobs.resume("123")
    Worker(vault, {"default": agent}).run(until_idle=True)
    job = vault.jobs.get("123")
    assert (job.state, job.is_unserved, job.turns) == ("queued", False, 1)
    assert "waits for its own program" in str(job.why_not)
    Worker(vault, {"ai-coder": agent}).run(until_idle=True)  # not even one that has such an agent
    job = vault.jobs.get("123")
    assert (job.state, job.turns, job.can_resume) == ("failed", 1, True)
    assert "something else than a conversation" in str(job.error)


def test_an_id_that_no_timeline_can_have_is_resumed_too(
    manager: CheckpointManager, vault: hardsave.Vault
) -> None:
    save(manager, made("a:b", turns=4))
    (job,) = vault.jobs.find()
    resumed = vault.jobs.resume(job.id)
    assert active(manager) == ["a:b~2"]
    for id in ("a:b~2", resumed.id):
        found = load(manager, id)
        assert found is not None
        assert (found.job_id, found.turns) == (id, 4)
    assert load(manager, "a:b") is None


# Calls without results


def test_a_sound_history_is_ready_as_it_is() -> None:
    assert made().ready_messages() == MESSAGES
    assert made().unanswered == []


def test_calls_that_were_not_answered_are_before_a_model_is_asked(
    manager: CheckpointManager,
) -> None:
    stopped = made()
    del stopped.messages[2]
    save(manager, stopped)
    found = load(manager)
    assert found is not None
    assert found.messages == MESSAGES[:2]  # what was saved is what comes back
    assert found.unanswered == ["toolu_1", "toolu_2"]
    assert unanswered(found.ready_messages()) == []
    last = found.ready_messages()[-1]
    assert last["role"] == "user"
    assert [block["content"] for block in last["content"]] == [LOST, LOST]


def test_one_missing_result_of_several_joins_the_others() -> None:
    some = copy.deepcopy(MESSAGES)
    gone = some[2]["content"].pop(0)
    ready = answered(some)
    assert gone["tool_use_id"] == ready[2]["content"][0]["tool_use_id"] == "toolu_1"
    assert len(ready) == 3
    assert unanswered(ready) == []


def test_a_word_of_the_user_after_an_open_call_comes_after_its_result() -> None:
    some = [*MESSAGES[:2], {"role": "user", "content": "Go on"}]
    ready = answered(some)
    assert [block["type"] for block in ready[2]["content"]] == [
        "tool_result",
        "tool_result",
        "text",
    ]


def test_the_form_of_openai_is_known_too() -> None:
    calls = [{"id": "c1", "function": {}}, {"id": "c2", "function": {}}]
    some: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "assistant", "content": "on", "tool_calls": [{"id": "c3", "function": {}}]},
    ]
    ready = answered(some)
    assert unanswered(some) == ["c1", "c3"]
    assert unanswered(ready) == []
    assert [message["role"] for message in ready] == [
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize(
    "message",
    [
        "a text",
        None,
        {"role": "assistant", "content": 5},
        {"role": "assistant", "content": [{"type": "tool_use"}]},
        {"role": "assistant", "tool_calls": [{"function": {}}]},
        {"role": "assistant", "tool_calls": "c1"},
    ],
)
def test_what_is_no_message_is_named(message: Any) -> None:
    some = AgentCheckpoint("j", "w", "t", [{"role": "user", "content": "hi"}, message], 0, 5)
    with pytest.raises(hardsave.Misuse, match="message 1"):
        some.ready_messages()
    with pytest.raises(hardsave.Misuse, match="message 1"):
        some.unanswered  # noqa: B018 # it is a property
    with pytest.raises(hardsave.Misuse, match="a dict"):
        AgentCheckpoint.from_dict([])  # type: ignore[arg-type] # on purpose


# The one of the module


def test_the_manager_of_the_module_opens_the_projects_store_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", str(tmp_path / "store.db"))
    assert not (tmp_path / "store.db").exists()
    try:
        save(ai_coder.checkpoint_manager, made("mine"))
        assert active(ai_coder.checkpoint_manager) == ["mine"]
        assert (tmp_path / "store.db").exists()
    finally:
        asyncio.run(ai_coder.checkpoint_manager.close())


def test_a_manager_of_many_jobs_does_not_keep_all_of_them_in_mind() -> None:
    def kept() -> int:
        gc.collect()
        return sum(isinstance(each, hardsave.Timeline) for each in gc.get_objects())

    with hardsave.open("memory://") as vault:
        manager = CheckpointManager(vault)
        before = kept()
        for number in range(110):
            save(manager, made(f"job-{number}", number))
        assert kept() - before < 100
        save(manager, made("job-0", 7))
        found = load(manager, "job-0")
        assert found is not None
        assert (found.turns, manager.save_failures) == (7, 0)


# Where jobs are kept


def test_without_a_vault_jobs_are_kept_where_the_original_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url, home = url_of(tmp_path), tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", url)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.delenv("HARDSAVE_STORE", raising=False)
    caplog.set_level(logging.INFO)
    manager = CheckpointManager(ttl=timedelta(seconds=500))
    asyncio.run(manager.save_checkpoint(made("job-1")))
    with hardsave.open(url) as vault:
        assert [line.name for line in vault.timelines()] == ["job-1"]
    assert asyncio.run(manager.has_checkpoint("job-1"))
    (log,) = beside(tmp_path).scan_iter(f"{prefix_of(tmp_path)}:*:log")
    assert 400 < beside(tmp_path).ttl(log) <= 500
    asyncio.run(manager.close())
    assert "nothing is written but caches" in caplog.text
    assert "a failover loses" in caplog.text
    assert not [path for path in home.rglob("*") if path.is_file() and path.suffix == ".db"]
    assert {path.name for path in home.iterdir()} <= {"hardsave"}


def test_a_store_that_is_named_for_us_comes_before_the_original_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://no.such.host.example:1/0")
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{tmp_path}/named.db")
    manager = CheckpointManager()
    asyncio.run(manager.save_checkpoint(made("job-1")))
    assert (tmp_path / "named.db").exists()
    asyncio.run(manager.close())
