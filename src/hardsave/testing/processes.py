"""Several processes on one store: they see each other's commits, and take each other's turns.

The processes are real ones, which import the file of the test class and open its store; see
`worker`. They are started once for a class.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.stores.base import Query, Store
from hardsave.testing.batches import Line, a_note, an_id, trace
from hardsave.testing.duties import a_task, add
from hardsave.testing.worker import a_claim

PATIENCE_SECONDS = 60.0  # a store that hangs fails the test instead of stopping the run


class Process:
    """One that was started, and what is said to it. `within`: a command that starts others."""

    def __init__(self, test: type, within: tuple[str, ...] = ()) -> None:
        module = sys.modules[test.__module__]
        path = os.path.abspath(str(module.__file__))
        worker = (sys.executable, "-m", "hardsave.testing.worker", path, test.__name__)
        self._process = subprocess.Popen(
            [*within, *worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            text=True,
            bufsize=1,
        )

    def tell(self, do: str, **about: Any) -> None:
        """Say what to do; `answer` is to be asked for later."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **about}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_SECONDS)
        assert ready, "a process does not answer"
        line = self._process.stdout.readline()
        assert line, f"a process has ended with {self._process.wait(PATIENCE_SECONDS)}"
        told = json.loads(line)
        assert "raised" not in told, told["raised"]
        return told["is"]

    def has_answered(self) -> bool:
        """Whether `answer` would not wait."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def ask(self, do: str, **about: Any) -> Any:
        self.tell(do, **about)
        return self.answer()

    def is_dying(self, do: str, **about: Any) -> None:
        """Say what to do, after which it is dead, and has told nothing."""
        self.tell(do, **about)
        assert self._process.wait(PATIENCE_SECONDS) == 9

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


class ProcessPool:
    """Worker processes of one test class. They go from test to test, each in its own folder."""

    def __init__(self, test: type, within: tuple[str, ...] = ()) -> None:
        self._test = test
        self._within = within
        self._all: list[Process] = []

    def at(self, folder: Path, count: int) -> list[Process]:
        """So many of them, which have opened the store in a folder."""
        while len(self._all) < count:
            self._all.append(Process(self._test, self._within))
        chosen = self._all[:count]
        for each in chosen:
            each.tell("open", folder=str(folder))
        for each in chosen:
            each.answer()
        return chosen

    def leave(self) -> None:
        """At the end of a test."""
        for each in self._all:
            each.tell("close")
        for each in self._all:
            each.answer()

    def lose(self, process: Process) -> None:
        """It has died."""
        self._all.remove(process)
        process.end()

    def end(self) -> None:
        for each in self._all:
            each.end()
        self._all.clear()


class Processes:
    """Needs `open_store`, and a store that `persists`."""

    persists = True

    def open_store(self, folder: Path) -> Store:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def started(cls, request: pytest.FixtureRequest) -> Iterator[ProcessPool]:
        assert request.cls is not None
        pool = ProcessPool(request.cls)
        yield pool
        pool.end()

    @pytest.fixture
    def pool(self, started: ProcessPool) -> Iterator[ProcessPool]:
        if not self.persists:
            pytest.skip("this store is one process's alone")
        yield started
        started.leave()

    # Several of them

    def test_processes_that_save_on_one_timeline_lose_nothing(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        workers = pool.at(tmp_path, 2)
        for at, each in enumerate(workers):
            each.tell("save", timeline="main", count=15, writer=f"w{at}")
        saved = [pair for each in workers for pair in each.answer()]
        rows = store.checkpoints(None, Query("main", limit=99))
        assert [row.seq for row in rows] == list(range(30, 0, -1))
        assert {(row.number, row.id.hex()) for row in rows} == {tuple(pair) for pair in saved}
        assert [row.parent for row in rows] == [*(row.id for row in rows[1:]), None]
        assert store.missing(None, [row.root for row in rows]) == set()
        assert list(store.verify()) == []
        store.close()

    def test_one_batch_from_many_processes_is_one_commit(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        workers = pool.at(tmp_path, 2)
        for turn in range(5):
            for each in workers:
                each.tell("note", label=f"note {turn}")
            answers = {*(each.answer() for each in workers), store.commit(a_note(f"note {turn}"))}
            assert len(answers) == 1, "of one batch"
        assert len(store.log(None, 0, 99)) == 5
        store.close()

    def test_of_many_processes_that_claim_a_task_one_gets_it(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        workers = pool.at(tmp_path, 2)
        for turn in range(5):
            add(store, a_task(f"t{turn}"))
            for at, each in enumerate(workers):
                each.tell("claim", task=f"t{turn}", who=f"w{at}")
            won = [f"w{at}" for at, each in enumerate(workers) if each.answer()]
            standing = store.task(None, f"t{turn}")
            assert standing is not None
            assert [an_id(who) for who in won] == [standing.owner]
        store.close()

    def test_a_turn_is_one_processs_until_it_leaves_or_dies(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        (other,) = pool.at(tmp_path, 1)
        assert other.ask("take", turn="clean")
        with store.once("clean") as refused, store.once("other") as ours:
            assert refused is None
            assert ours is not None
        other.ask("leave")
        with store.once("clean") as ours:
            assert ours is not None
            assert not other.ask("take", turn="clean")
        assert other.ask("take", turn="clean")
        other.is_dying("note_and_die", label="the last")
        pool.lose(other)
        with store.once("clean") as ours:
            assert ours is not None
        store.close()

    # A reply that is lost after the commit

    def test_a_save_whose_reply_was_lost_is_recognised_by_another_process(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        lost = Line(store, "lost", writer="w").next()
        self._dies(pool, tmp_path, "save_and_die", timeline="lost", writer="w")
        before = trace(store)
        assert [row.id for row in before.checkpoints] == [lost.event.id], "it was committed"
        Line(store, "another").save()
        line = Line(store, "lost", writer="later")
        line.standing = store.timeline(None, "lost")
        line.save()  # a caller that repeats it now repeats what lies behind the head
        before = trace(store)
        assert store.commit(lost) == before.checkpoints[-1].number
        assert trace(store) == before
        store.close()

    def test_an_entry_whose_reply_was_lost_is_recognised_by_another_process(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        self._dies(pool, tmp_path, "note_and_die", label="lost")
        before = trace(store)
        assert store.commit(a_note("lost")) == before.log[0].number
        assert trace(store) == before
        store.close()

    def test_a_claim_whose_reply_was_lost_is_recognised_by_another_process(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        store = self.open_store(tmp_path)
        add(store, a_task("t1"))
        claim = a_claim(store, "t1", "w")
        self._dies(pool, tmp_path, "claim_and_die", task="t1", who="w")
        standing, entries = store.task(None, "t1"), store.entries(None, "t1")
        assert standing is not None
        assert standing.owner == an_id("w")
        assert store.commit(claim) == entries[-1].number
        assert (store.task(None, "t1"), store.entries(None, "t1")) == (standing, entries)
        store.close()

    def _dies(self, pool: ProcessPool, folder: Path, do: str, **about: Any) -> None:
        (dying,) = pool.at(folder, 1)
        dying.is_dying(do, **about)
        pool.lose(dying)
