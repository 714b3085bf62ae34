"""What a front end lists: sessions with their counts, the graph of a timeline, tasks and jobs."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave import Misuse, Vault, aio
from hardsave.page import every
from hardsave.stores.base import Store
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.sqlite import SqliteStore
from hardsave.vault.jobs import spec as specs


class Counting:
    """A store that counts how often each of its methods is called."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def counted(*given: Any, **named: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            return found(*given, **named)

        return counted

    @property
    def reads(self) -> int:
        return sum(self.calls.values())


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Counting:
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "runs.db")
    return Counting(made)


@pytest.fixture
def vault(store: Counting) -> Iterator[Vault]:
    with Vault(store) as opened:
        yield opened


# Sessions


def listed(vault: Vault, **query: Any) -> list[str]:
    pages = every(lambda after: vault.sessions(limit=2, after=after, **query))
    return [each.timeline for each in pages]


def test_sessions_come_with_counts_status_and_cost(vault: Vault) -> None:
    line = vault.timeline("fix/parser")
    line.append({"messages": [{"role": "user", "content": "Fix it"}]}, title="Fix it")
    line.append(
        {"messages": [{"role": "assistant", "content": "done"}]},
        status="done",
        metadata={"cost": 0.25},
    )
    vault.timeline("plain").save({}, metadata={"cost": True})
    plain, found = vault.sessions()
    assert (found.checkpoints, found.status, found.messages) == (2, "done", 2)
    assert (found.title, found.cost) == ("Fix it", 0.25)
    assert (plain.checkpoints, plain.status) == (1, "running")
    assert (plain.messages, plain.cost) == (None, None)
    vault.delete(line.get(":1").id)
    line.rewind("@", what="state")
    assert next(iter(vault.sessions(prefix="fix"))).checkpoints == 1
    fork = line.fork(name="try")
    assert vault.sessions(prefix="try")[0].checkpoints == 0
    assert (vault.sessions(prefix="try")[0].status, fork.head) == (None, line.head)


def test_sessions_are_narrowed_by_text_prefix_and_status(vault: Vault) -> None:
    for number in range(5):
        name = f"{'fix' if number % 2 else 'docs'}/{number}"
        status = "done" if number > 2 else "running"
        vault.timeline(name).save({}, title=f"Title {number}", status=status)
    assert listed(vault) == ["docs/4", "fix/3", "docs/2", "fix/1", "docs/0"]
    assert listed(vault, prefix="docs/") == ["docs/4", "docs/2", "docs/0"]
    assert listed(vault, status="done") == ["docs/4", "fix/3"]
    assert listed(vault, text="TITLE 3") == listed(vault, text="x/3") == ["fix/3"]
    assert listed(vault, prefix="docs/", status="running", text="title") == ["docs/2", "docs/0"]
    assert listed(vault, text="%") == []
    wrong: Any
    for wrong in ({"text": 3}, {"prefix": b"x"}, {"status": 1}):
        with pytest.raises(Misuse):
            vault.sessions(**wrong)


def test_a_page_of_sessions_is_one_read_however_long_it_is(vault: Vault, store: Counting) -> None:
    for number in range(30):
        vault.timeline(f"line {number}").save({})
    store.calls.clear()
    assert len(vault.sessions(limit=30)) == 30
    assert store.calls == {"recent_timelines": 1}


# The graph


def test_the_graph_says_where_it_forks_and_where_the_head_stands(vault: Vault) -> None:
    line = vault.timeline("main")
    for turn in range(1, 5):
        line.save({"turn": turn})
    fork = line.fork(":2", name="other")
    fork.save({"turn": "other"})
    line.rewind(":2")
    line.save({"turn": 5})
    nodes = {node.checkpoint.seq: node for node in line.graph()}
    assert list(nodes) == [5, 4, 3, 2, 1]
    assert [seq for seq, node in nodes.items() if node.is_current] == [5, 2, 1]
    assert [seq for seq, node in nodes.items() if node.is_head] == [5]
    away = {seq: [each.timeline for each in node.branches] for seq, node in nodes.items()}
    assert away == {5: [], 4: [], 3: [], 2: ["other", "main"], 1: []}
    (own,) = fork.graph()
    assert (own.is_head, own.checkpoint.parent) == (True, line.get(":2").id)


def test_the_pages_of_a_graph_make_up_the_whole(vault: Vault) -> None:
    line = vault.timeline("main")
    for turn in range(1, 30):
        line.save({"turn": turn})
        if turn % 7 == 0:
            line.rewind("@~3")
        if turn % 5 == 0:
            line.fork(name=f"fork {turn}").save({})
    vault.delete(line.get(":3").id)
    whole = list(line.graph())
    assert len(whole) == 28
    current = {each.id for each in line.ancestors()} | {line.get().id}
    assert {node.checkpoint.id for node in whole if node.is_current} == current
    for limit in (1, 3, 28):
        pages = list(every(lambda after: line.graph(limit=limit, after=after)))  # noqa: B023
        assert pages == whole
    assert line.graph(limit=28).next is None
    assert not vault.timeline("new").graph()


def test_the_path_of_the_head_may_lead_over_another_timeline(vault: Vault) -> None:
    line, other = vault.timeline("main"), vault.timeline("other")
    line.save({"turn": 1})
    line.save({"turn": 2})
    away = other.save({"turn": 3}, parent=line.get(":1").id)
    line.save({"turn": 4}, parent=away.id)
    for limit in (1, 10):
        nodes = every(lambda after: line.graph(limit=limit, after=after))  # noqa: B023
        assert [node.checkpoint.seq for node in nodes if node.is_current] == [3, 1]


def test_a_page_of_the_graph_is_a_few_queries(vault: Vault, store: Counting) -> None:
    line = vault.timeline("main")
    for turn in range(300):
        line.save({"turn": turn})
    first = line.graph(limit=10)
    for limit in (10, 200):
        store.calls.clear()
        assert len(line.graph(limit=limit, after=first.next)) == limit
        assert store.reads == 4, store.calls


@pytest.mark.parametrize("wrong", ["3", "3:zz", "x:", 4, ""])
def test_a_cursor_that_is_none_of_a_graph_is_refused(vault: Vault, wrong: Any) -> None:
    line = vault.timeline("main")
    for turn in range(3):
        line.save({"turn": turn})
    of_another = line.checkpoints(limit=1).next
    for after in (wrong, of_another):
        with pytest.raises(Misuse, match="begin without it"):
            line.graph(after=after)


# Tasks


def test_tasks_come_newest_first_with_a_cursor_that_outlives_its_task(vault: Vault) -> None:
    for number in range(6):
        vault.tasks.add(f"t{number}")
    with vault.tasks.attempt("t4"):
        pass
    first = vault.tasks.find(newest_first=True, limit=2)
    assert [task.id for task in first] == ["t5", "t4"]
    vault.tasks.forget(keep_completed=0)
    vault.tasks.add("t6")
    rest = vault.tasks.find(newest_first=True, after=first.next)
    assert [task.id for task in rest] == ["t3", "t2", "t1", "t0"]
    pending = vault.tasks.find(newest_first=True, state="pending", limit=2)
    assert [task.id for task in pending] == ["t6", "t5"]
    with pytest.raises(Misuse, match="begin without it"):
        vault.tasks.find(after=first.next)


# Jobs


def saved_job(vault: Vault, name: str, *, status: str = "running") -> None:
    """A job that has saved one turn, as a worker does."""
    task = vault.tasks.get(name)
    spec, id = specs.from_plain(task.metadata[specs.KEY]) or (None, None)
    assert spec is not None
    assert id is not None
    with vault.tasks.attempt(name):
        state = {
            "messages": [],
            "data": {"content": {specs.KEY: specs.to_plain(spec, id)}},
            "turn": 1,
            "status": status,
            "model": None,
            "error": None,
            "output": {"content": None},
        }
        vault.timeline(name).save(state)


def test_jobs_come_newest_first_and_those_without_a_task_after_them(vault: Vault) -> None:
    for number in range(4):
        vault.jobs.add(f"job-{number}", "Fix")
    vault.timeline("no job").save({})
    for name in ("job-1", "job-2"):
        saved_job(vault, name, status="completed")
    whole = ["job-3", "job-2", "job-1", "job-0"]
    assert [job.id for job in vault.jobs.find()] == whole
    assert [job.id for job in vault.jobs.find(state="succeeded")] == ["job-2", "job-1"]
    assert [job.id for job in vault.jobs.find(state="queued")] == ["job-3", "job-0"]
    first = vault.jobs.find(limit=2)
    vault.tasks.forget(keep_completed=0)
    assert [job.id for job in vault.jobs.find(after=first.next)] == ["job-0", "job-2", "job-1"]
    for limit in (1, 2, 3):
        pages = every(lambda after: vault.jobs.find(limit=limit, after=after))  # noqa: B023
        assert [job.id for job in pages] == ["job-3", "job-0", "job-2", "job-1"]
    assert [job.id for job in vault.jobs.find(state="succeeded")] == ["job-2", "job-1"]
    assert not vault.jobs.find(state="forgotten")


def test_a_page_of_jobs_reads_what_it_shows(vault: Vault, store: Counting) -> None:
    for number in range(60):
        vault.jobs.add(f"job-{number}", "Fix")
    store.calls.clear()
    assert len(vault.jobs.find(limit=5)) == 5
    few = store.reads
    assert few < 60
    first = vault.jobs.find(limit=5)
    store.calls.clear()
    assert len(vault.jobs.find(limit=5, after=first.next)) == 5
    assert store.reads <= few + 5


def test_a_look_at_jobs_whose_worker_has_died_tells_it_and_writes_nothing(
    vault: Vault, store: Counting
) -> None:
    vault.jobs.add("again", "Fix", retries=1)
    vault.jobs.add("spent", "Fix")
    for name in ("again", "spent"):
        vault.tasks.claim(name)
    assert {job.state for job in vault.jobs.find()} == {"active"}
    vault.tasks.close()  # as if its process had died: the lease is gone, the tasks are as before
    store.calls.clear()
    found = {job.id: job.state for job in vault.jobs.find()}
    assert found == {"again": "queued", "spent": "failed"}
    assert [job.id for job in vault.jobs.find(state="failed")] == ["spent"]
    assert [job.id for job in vault.jobs.find(state="queued")] == ["again"]
    assert not vault.jobs.find(state="active")
    assert vault.jobs.get("spent").state == "failed"
    assert (vault.jobs.health().failed, vault.jobs.health().active) == (1, 0)
    assert "commit" not in store.calls
    assert {task.state for task in vault.tasks.find()} == {"in_progress"}
    vault.jobs.delete("again")
    assert {task.id: task.state for task in vault.tasks.find()} == {
        "again": "failed",
        "spent": "failed",
    }


def test_a_look_commits_nothing(vault: Vault, store: Counting) -> None:
    vault.jobs.add("job", "Fix")
    vault.tasks.claim("job")
    store.calls.clear()
    for look in (vault.jobs.find, vault.jobs.every, vault.jobs.health, vault.tasks.find):
        look()
    vault.jobs.get("job")
    vault.jobs.can_resume("job")
    assert not store.calls.keys() & {"commit", "hold", "put", "let_go"}


def test_coroutines_ask_the_same() -> None:
    async def scene() -> None:
        async with aio.open("memory://") as vault:
            line = await vault.timeline("main")
            for turn in range(3):
                await line.save({"turn": turn}, status="done", title="Title")
            await line.rewind("@~1")
            page = await line.graph(limit=2)
            assert [node.is_current for node in page] == [False, True]
            assert isinstance(page[0].checkpoint, aio.Checkpoint)
            assert [n.checkpoint.seq for n in await line.graph(after=page.next)] == [1]
            (session,) = await vault.sessions(text="tit", status="done", prefix="m")
            assert (session.checkpoints, session.status) == (3, "done")
            assert len(await vault.operations(limit=1)) == 1
            await vault.tasks.add("t")
            assert [t.id for t in await vault.tasks.find(newest_first=True)] == ["t"]
            told = [event async for event in _first(vault, 6)]
            assert [event.task for event in told if event.kind == "task_added"] == ["t"]

    async def _first(vault: aio.Vault, count: int) -> Any:
        following = vault.follow(0)
        for _ in range(count - 1):
            yield await anext(following)

    asyncio.run(scene())
