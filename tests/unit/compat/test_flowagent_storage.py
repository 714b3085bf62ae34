"""One suite for every storage of agents' checkpoints: ours, and one as users write it."""

import asyncio
import copy
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.compat.flowagent import (
    Checkpoint,
    CheckpointManager,
    CheckpointStorage,
    InMemoryCheckpointStorage,
    SQLiteCheckpointStorage,
)
from hardsave.compat.flowagent.records import LIGHT
from hardsave.compat.flowagent.shelf import Owners
from hardsave.errors import Conflict, Misuse, NotFound

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class OwnStorage(CheckpointStorage):
    """As somebody would write it who has read the documentation and no further."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    async def save(self, checkpoint: Checkpoint) -> str:
        self.rows[checkpoint.id] = checkpoint.to_dict()
        return checkpoint.id

    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        data = self.rows.get(checkpoint_id)
        return Checkpoint.from_dict(data) if data else None

    async def list_by_user(self, user_id: str, limit: int, offset: int) -> list[Checkpoint]:
        found = [Checkpoint.from_dict(row) for row in self.rows.values()]
        mine = [one for one in found if one.user_id == user_id]
        mine.sort(key=lambda one: one.timestamp, reverse=True)
        return mine[offset : offset + limit]


Make = Callable[[int], CheckpointStorage]


@pytest.fixture(params=["memory", "sqlite", "own"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStorage:
    if request.param == "own":
        return OwnStorage()
    return _ours(request.param, tmp_path)(1_000)


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return _ours(request.param, tmp_path)


def _ours(kind: str, folder: Path) -> Make:
    if kind == "memory":
        return InMemoryCheckpointStorage
    return lambda limit: SQLiteCheckpointStorage(folder / "checkpoints.db", limit)


def checkpoint(n: int, user: str = "user_123", **about: Any) -> Checkpoint:
    about.setdefault("timestamp", NOW + timedelta(seconds=n))
    about.setdefault("status", "RUNNING")
    return Checkpoint(f"chk_{user}_{n}", "agent_1", "BookingAgent", user, **about)


def run(work: Awaitable[Any]) -> Any:
    async def session() -> Any:
        return await work

    return asyncio.run(session())


async def fill(storage: CheckpointStorage, count: int, user: str = "user_123") -> None:
    for n in range(1, count + 1):
        await storage.save(checkpoint(n, user))


def ids(found: list[Checkpoint]) -> list[str]:
    return [one.id for one in found]


WHOLE = checkpoint(
    1,
    collected_fields={"city": "Paris", "nights": 3, "dates": [NOW, None], "seen": {1, 2}},
    required_fields=[{"name": "city", "type": "str"}],
    context_summary="asked for a city",
    parent_checkpoint_id="chk_0",
    metadata={"by": "me"},
    execution_state={"step": 4},
    context={"tenant": "t"},
    message={"role": "user", "content": "hi"},
    result=2.5,
    message_history=[{"role": "user", "content": "hi"}],
    branch_label="try",
)


# Every storage


def test_a_checkpoint_comes_back_whole(storage: CheckpointStorage) -> None:
    async def session() -> Checkpoint | None:
        assert await storage.save(WHOLE) == WHOLE.id
        return await storage.load(WHOLE.id)

    assert run(session()) == WHOLE


def test_an_unknown_id_is_none(storage: CheckpointStorage) -> None:
    run(fill(storage, 1))
    assert run(storage.load("chk_nobody")) is None


def test_listing_is_newest_first_and_in_pages(storage: CheckpointStorage) -> None:
    async def session() -> None:
        for n in (3, 1, 5, 2, 4):
            await storage.save(checkpoint(n))
        first = ids(await storage.list_by_user("user_123", 2, 0))
        assert first == ["chk_user_123_5", "chk_user_123_4"]
        assert ids(await storage.list_by_user("user_123", 2, 4)) == ["chk_user_123_1"]
        assert await storage.list_by_user("user_123", 2, 5) == []
        assert await storage.list_by_user("user_123", 0, 0) == []

    run(session())


def test_nobody_lists_what_is_somebody_elses(storage: CheckpointStorage) -> None:
    async def session() -> None:
        await fill(storage, 2, "a")
        await fill(storage, 1, "b")
        assert ids(await storage.list_by_user("a", 50, 0)) == ["chk_a_2", "chk_a_1"]
        assert ids(await storage.list_by_user("b", 50, 0)) == ["chk_b_1"]
        assert await storage.list_by_user("c", 50, 0) == []
        found = await storage.load("chk_b_1")
        assert found is not None
        assert found.user_id == "b"

    run(session())


def test_saving_again_replaces(storage: CheckpointStorage) -> None:
    async def session() -> None:
        await fill(storage, 2)
        await storage.save(checkpoint(1, status="DONE"))
        found = await storage.load("chk_user_123_1")
        assert found is not None
        assert found.status == "DONE"
        listed = await storage.list_by_user("user_123", 50, 0)
        assert sorted(ids(listed)) == ["chk_user_123_1", "chk_user_123_2"]

    run(session())


def test_what_is_saved_is_a_copy(storage: CheckpointStorage) -> None:
    async def session() -> None:
        one = checkpoint(1, collected_fields={"list": [1]})
        await storage.save(one)
        one.collected_fields["list"].append(2)
        for _ in range(2):
            found = await storage.load(one.id)
            assert found is not None
            assert found.collected_fields == {"list": [1]}
            found.collected_fields["list"].append(3)

    run(session())


def test_a_light_listing_tells_checkpoints_apart_and_no_more(storage: CheckpointStorage) -> None:
    async def session() -> None:
        manager = CheckpointManager(storage=storage)
        await manager.save_checkpoint(WHOLE)
        (light,) = await manager.list_by_user("user_123")
        assert (light.id, light.status, light.timestamp) == (WHOLE.id, "RUNNING", WHOLE.timestamp)
        assert (light.agent_id, light.branch_label) == ("agent_1", "try")
        assert light == (await manager.list_by_user("user_123"))[0]
        assert await manager.list_by_user("user_123", limit=5, offset=0, full=True) == [WHOLE]

    run(session())


def test_what_a_light_listing_left_out_is_an_error_that_names_the_way(
    storage: CheckpointStorage,
) -> None:
    async def session() -> None:
        manager = CheckpointManager(storage=storage)
        await manager.save_checkpoint(WHOLE)
        for (light,) in (
            await manager.list_by_user("user_123"),
            await manager.list_by_agent("agent_1", user_id="user_123"),
            [copy.deepcopy((await manager.list_by_user("user_123"))[0])],
        ):
            left_out = [each.name for each in fields(light) if each.name not in LIGHT]
            assert len(left_out) == 9
            for name in left_out:
                with pytest.raises(Misuse, match=rf"^{name} of .*{light.id}.*full=True"):
                    getattr(light, name)
                with pytest.raises(Misuse, match="full=True"):
                    getattr(light, name, "else")
                with pytest.raises(Misuse, match="full=True"):
                    setattr(light, name, {})
            for touched in (Checkpoint.to_dict, Checkpoint.check, asdict):
                with pytest.raises(Misuse, match="full=True"):
                    touched(light)
            for one, other in ((light, WHOLE), (WHOLE, light)):
                with pytest.raises(Misuse, match=r"to compare it with a whole one.*full=True"):
                    assert one == other
            with pytest.raises(Misuse, match="full=True"):
                await manager.save_checkpoint(light)
            assert light.id in repr(light)
            assert "full=True" in repr(light)
            assert "collected_fields" not in repr(light)
            assert light.light() == light

    run(session())


# By agent


async def of_two_agents(storage: CheckpointStorage) -> CheckpointManager:
    """Each agent has two checkpoints of one user, and the first one of another user."""
    manager = CheckpointManager(storage=storage)
    for n, (user, agent) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("a", "y")]):
        await manager.save_checkpoint(replace(checkpoint(n, user), agent_id=agent))
    return manager


def test_an_agents_checkpoints_are_listed_newest_first_and_by_pages(
    storage: CheckpointStorage,
) -> None:
    async def session() -> None:
        manager = await of_two_agents(storage)
        found = await manager.list_by_agent("x", user_id="a")
        assert ids(found) == ["chk_a_3", "chk_a_0"]
        assert ids(await manager.list_by_agent("x", 1, 1, user_id="a")) == ["chk_a_0"]
        (whole,) = await manager.list_by_agent("x", limit=1, full=True, user_id="a")
        assert whole == await manager.load("chk_a_3")
        assert await manager.list_by_agent("unknown", user_id="a") == []

    run(session())


def test_an_agents_checkpoints_of_all_users_are_listed_and_cleared(make: Make) -> None:
    async def session() -> None:
        manager = await of_two_agents(make(100))
        assert ids(await manager.list_by_agent("x")) == ["chk_a_3", "chk_b_2", "chk_a_0"]
        assert ids(await manager.list_by_agent("x", 1, 1)) == ["chk_b_2"]
        assert await manager.clear_agent_history("x", user_id="a") == 2
        assert ids(await manager.list_by_agent("x")) == ["chk_b_2"]
        assert await manager.clear_agent_history("x") == 1
        assert await manager.clear_agent_history("x") == 0
        assert ids(await manager.list_by_user("a")) == ["chk_a_4", "chk_a_1"]

    run(session())


def test_with_a_user_no_other_users_checkpoint_is_given(storage: CheckpointStorage) -> None:
    async def session() -> None:
        manager = await of_two_agents(storage)
        assert await manager.load("chk_b_2", "a") is None
        assert await manager.get("chk_b_2", user_id="a") is None
        assert await manager.compare("chk_a_0", "chk_b_2", user_id="a") is None
        with pytest.raises(NotFound, match="no checkpoint 'chk_b_2'"):
            await manager.restore("chk_b_2", user_id="a")
        found = await manager.load("chk_b_2", "b")
        assert found is not None
        assert found.user_id == "b"
        assert await manager.load("chk_b_2") == found
        assert ids(await manager.list_by_agent("x", user_id="b")) == ["chk_b_2"]

    run(session())


# Ours


def test_a_file_in_a_repository_is_kept_out_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    Path("checkpoints.py").touch()
    storage = SQLiteCheckpointStorage(db_path="checkpoints.db")
    run(fill(storage, 2))
    status = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b"?? checkpoints.py\n"
    run(storage.close())


def test_at_the_limit_the_oldest_go(make: Make) -> None:
    async def session() -> None:
        storage = make(3)
        await fill(storage, 5)
        listed = ids(await storage.list_by_user("user_123", 50, 0))
        assert listed == ["chk_user_123_5", "chk_user_123_4", "chk_user_123_3"]
        assert await storage.load("chk_user_123_1") is None

    run(session())


def test_saving_the_same_again_and_again_pushes_nobody_out(make: Make) -> None:
    async def session() -> None:
        storage = make(2)
        await fill(storage, 2)
        for _ in range(5):
            await storage.save(checkpoint(2))
        assert len(await storage.list_by_user("user_123", 50, 0)) == 2

    run(session())


def test_many_agents_of_one_user_share_the_limit(make: Make) -> None:
    async def session() -> None:
        storage = make(3)
        for n in range(6):
            one = checkpoint(n)
            one.agent_id = f"agent_{n}"
            await storage.save(one)
        assert len(await storage.list_by_user("user_123", 50, 0)) == 3

    run(session())


def test_an_id_of_somebody_else_is_refused_and_nothing_changes(make: Make) -> None:
    async def session() -> None:
        storage = make(10)
        await fill(storage, 1, "a")
        stolen = checkpoint(1, "a")
        stolen.user_id = "b"
        with pytest.raises(Conflict, match="another user's"):
            await storage.save(stolen)
        assert await storage.list_by_user("b", 50, 0) == []
        found = await storage.load("chk_a_1")
        assert found is not None
        assert found.user_id == "a"

    run(session())


@pytest.mark.parametrize("odd", ["", "two\nlines", "~", "a:1", "x" * 3_000, "\ud800", "@", "\0"])
def test_any_text_is_an_id_a_user_and_a_status(make: Make, odd: str) -> None:
    async def session() -> None:
        storage = make(10)
        one = Checkpoint(odd, "agent", "Agent", odd, odd, timestamp=NOW)
        await storage.save(one)
        await storage.save(checkpoint(2))
        assert await storage.load(odd) == one
        assert await storage.list_by_user(odd, 50, 0) == [one]

    run(session())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_id", None),
        ("user_id", 5),
        ("id", None),
        ("status", 5),
        ("collected_fields", [1]),
        ("message_history", "hi"),
        ("parent_checkpoint_id", 5),
        ("version", True),
    ],
)
def test_what_is_no_checkpoint_is_refused_and_nothing_changes(
    make: Make, name: str, value: Any
) -> None:
    async def session() -> None:
        storage = make(10)
        await fill(storage, 1)
        odd = checkpoint(2)
        setattr(odd, name, value)
        with pytest.raises(Misuse, match=name):
            await storage.save(odd)
        assert ids(await storage.list_by_user("user_123", 50, 0)) == ["chk_user_123_1"]

    run(session())


ODD_CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("load", (None,)),
    ("list_by_user", (None, 50, 0)),
    ("list_light", (5, 50, 0)),
    ("list_by_user", ("a", "x", 0)),
    ("list_by_user", ("a", 50, -1)),
    ("list_light", ("a", -1, 0)),
    ("clear_user", (None,)),
    ("clear_before", ("yesterday",)),
    ("clear_before", (None,)),
    ("cleanup_old_checkpoints", ("x",)),
    ("cleanup_old_checkpoints", (None,)),
    ("cleanup_old_checkpoints", (float("nan"),)),
    ("clear_user_history", (None,)),
]


@pytest.mark.parametrize(("method", "arguments"), ODD_CALLS)
def test_a_call_that_cannot_be_meant_is_refused(
    make: Make, method: str, arguments: tuple[Any, ...]
) -> None:
    async def session() -> None:
        storage = make(10)
        await fill(storage, 1)
        called = storage if hasattr(storage, method) else CheckpointManager(storage)
        with pytest.raises(Misuse):
            await getattr(called, method)(*arguments)
        assert len(await storage.list_by_user("user_123", 50, 0)) == 1

    run(session())


@pytest.mark.parametrize("days", [10**9, float("inf")])
def test_nothing_is_older_than_time_itself(make: Make, days: float) -> None:
    async def session() -> None:
        storage = make(10)
        await fill(storage, 1)
        assert await CheckpointManager(storage).cleanup_old_checkpoints(days) == 0
        naive = (NOW + timedelta(days=2)).replace(tzinfo=None)  # taken as local
        assert await storage.clear_before(naive) == 1

    run(session())


def test_what_is_nested_deep_is_loaded_again(make: Make) -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"in": deep}

    async def session() -> None:
        storage = make(10)
        await storage.save(checkpoint(1, context=deep))
        found = await storage.load("chk_user_123_1")
        assert found is not None
        levels, inner = 0, found.context
        while inner:
            levels, inner = levels + 1, inner["in"]
        assert levels == 500

    run(session())


def test_clearing_a_user_counts_and_leaves_the_others(make: Make) -> None:
    async def session() -> None:
        storage = make(10)
        manager = CheckpointManager(storage)
        await fill(storage, 3, "a")
        await fill(storage, 2, "b")
        assert await manager.clear_user_history("a") == 3
        assert await manager.clear_user_history("a") == 0
        assert await manager.clear_user_history("nobody") == 0
        assert await manager.list_by_user("a") == []
        assert await manager.load("chk_a_1") is None
        assert len(await manager.list_by_user("b")) == 2
        await fill(storage, 1, "a")
        assert ids(await manager.list_by_user("a")) == ["chk_a_1"]

    run(session())


def test_cleaning_up_takes_what_is_older_by_its_own_time(make: Make) -> None:
    async def session() -> None:
        storage = make(10)
        manager = CheckpointManager(storage, clock=lambda: NOW)
        for user in ("a", "b"):
            for days in (10, 29, 31, 90):
                when = NOW - timedelta(days=days)
                await storage.save(checkpoint(days, user, timestamp=when))
        assert await manager.cleanup_old_checkpoints(max_age_days=30) == 4
        assert await manager.cleanup_old_checkpoints(max_age_days=30) == 0
        assert ids(await manager.list_by_user("a")) == ["chk_a_10", "chk_a_29"]
        assert await manager.load("chk_b_31") is None
        assert await manager.cleanup_old_checkpoints(0) == 4

    run(session())


def test_many_saves_at_once_lose_nothing(make: Make) -> None:
    async def session() -> None:
        storage = make(100)
        users = [f"user {n}" for n in range(4)]
        await asyncio.gather(
            *(storage.save(checkpoint(n, user)) for user in users for n in range(8))
        )
        for user in users:
            assert len(await storage.list_by_user(user, 50, 0)) == 8
            assert await storage.load(f"chk_{user}_7") is not None

    run(session())


def test_limits_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="max_checkpoints is at least 1"):
        InMemoryCheckpointStorage(max_checkpoints=0)
    with pytest.raises(Misuse, match="max_checkpoints is a whole number"):
        InMemoryCheckpointStorage(max_checkpoints="many")  # type: ignore[arg-type] # the test
    with pytest.raises(Misuse, match="max_checkpoints_per_user"):
        SQLiteCheckpointStorage(tmp_path / "a.db", max_checkpoints_per_user=0)


# The file


def test_a_file_keeps_them_over_a_restart_and_so_do_ids(tmp_path: Path) -> None:
    async def session() -> None:
        storage = SQLiteCheckpointStorage(db_path=str(tmp_path / "a.db"))
        await fill(storage, 3, "a")
        await storage.close()
        again = SQLiteCheckpointStorage(db_path=tmp_path / "a.db", max_checkpoints_per_user=2)
        found = await again.load("chk_a_1")
        assert found is not None
        assert found.user_id == "a"
        await again.save(checkpoint(4, "a"))
        assert ids(await again.list_by_user("a", 50, 0)) == ["chk_a_4", "chk_a_3"]
        await again.close()

    run(session())


def test_each_user_has_a_vault_and_other_timelines_in_it_are_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with hardsave.open(url, user="a") as vault:
        for n in range(5):
            vault.timeline("mine").save({"n": n})
    storage = SQLiteCheckpointStorage(tmp_path / "a.db", max_checkpoints_per_user=2)
    run(fill(storage, 4, "a"))
    run(storage.close())
    with hardsave.open(url, user="a") as vault:
        assert {line.name: len(line) for line in vault.timelines()} == {"flowagent": 2, "mine": 5}
        assert vault.store.verify().ok
    with hardsave.open(url) as vault:
        assert list(vault.timelines()) == []


def notes(path: Path) -> dict[str, str]:
    with hardsave.open(f"sqlite:///{path}", user="~flowagent") as vault:
        return {key: user for line in vault.timelines() for key, user in line.load().items()}


def test_who_owns_an_id_that_was_evicted_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Owners, "_line", lambda owners, _: owners._vault.timeline("owners"))
    storage = SQLiteCheckpointStorage(tmp_path / "a.db", max_checkpoints_per_user=2)
    run(fill(storage, 150, "a"))
    run(storage.close())
    assert {"chk_a_149", "chk_a_150"} <= notes(tmp_path / "a.db").keys()
    assert len(notes(tmp_path / "a.db")) <= 6, "what was evicted goes with the next notes"
    with hardsave.open(f"sqlite:///{tmp_path}/a.db", user="~flowagent") as vault:
        assert vault.store.stats().checkpoints < 80, "old lists are let go"


def test_a_save_past_the_limit_takes_hardly_more_than_two_commits(tmp_path: Path) -> None:
    storage = SQLiteCheckpointStorage(tmp_path / "a.db", max_checkpoints_per_user=40)
    run(fill(storage, 60))
    before = commits(storage)
    for n in range(61, 101):
        run(storage.save(checkpoint(n)))
    assert commits(storage) - before <= 2.25 * 40
    assert len(run(storage.list_by_user("user_123", 99, 0))) == 40
    run(storage.close())


def commits(storage: SQLiteCheckpointStorage) -> int:
    """The number of the last one."""
    users = (None, "user_123", "~flowagent")
    saved = [one.number for user in users for one in storage._store.saved(user, 0, 9_999)]
    return max(saved + [one.number for user in users for one in storage._store.log(user, 0, 999)])


def test_an_id_that_was_evicted_or_cleared_is_free_for_others(tmp_path: Path) -> None:
    storage = SQLiteCheckpointStorage(tmp_path / "a.db", max_checkpoints_per_user=2)
    run(fill(storage, 4, "a"))
    run(storage.clear_user("a"))
    for n in (1, 4):
        one = checkpoint(n, "a")
        one.user_id = "b"
        run(storage.save(one))
        assert run(storage.load(one.id)).user_id == "b"
    run(storage.close())


def test_a_note_that_is_taken_out_while_its_checkpoint_is_saved_again_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever removes it looked before the save, and writes after it."""
    monkeypatch.setattr(Owners, "_line", lambda owners, _: owners._vault.timeline("owners"))
    storage = SQLiteCheckpointStorage(tmp_path / "a.db", max_checkpoints_per_user=2)
    run(fill(storage, 4, "a"))
    left_over = Owners._left_over

    def slowly(owners: Owners, noted: dict[str, str], name: str) -> dict[str, str]:
        monkeypatch.setattr(Owners, "_left_over", left_over)
        dropped = left_over(owners, noted, name)
        assert "chk_a_2" in dropped
        run(storage.save(checkpoint(2, "a")))
        return dropped

    monkeypatch.setattr(Owners, "_left_over", slowly)
    run(storage.save(checkpoint(5, "a")))
    assert run(storage.load("chk_a_2")) is not None
    run(storage.close())


def test_in_memory_is_also_a_path(tmp_path: Path) -> None:
    storage = SQLiteCheckpointStorage(":memory:")
    run(fill(storage, 2))
    assert len(run(storage.list_by_user("user_123", 50, 0))) == 2
