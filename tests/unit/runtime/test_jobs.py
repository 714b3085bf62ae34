"""Jobs, with models in this process: how they stand, what resumes them, what ends them."""

import asyncio
import contextlib
import functools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

import hardsave
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.runtime.jobs import notices
from hardsave.runtime.jobs.worker import Worker
from hardsave.runtime.scripted import Call, Fault, Reply, ScriptedModel, Silence
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks.executor import Runner
from hardsave.tasks.task import Task
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.ledger import Jobs
from hardsave.vault.jobs.state import Job
from tests.unit.cli import jobs_project

START = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


class Overloaded(Exception):
    """What a model of these tests fails with."""


class Office:
    """A vault with a clock that is moved by hand, and an agent whose every step is told it."""

    def __init__(self) -> None:
        self.now = START
        micros = lambda: int(self.now.timestamp() * 1_000_000)  # noqa: E731 # the vault's clock
        self.vault = hardsave.Vault(MemoryStore(), clock=micros)
        self.jobs = Jobs(self.vault, now=lambda: self.now)
        self.turns: list[int] = []
        self.noted: list[str] = []
        self.breaks_at: set[int] = set()
        self.last = 3
        self.agent: Agent[None, Any] = Agent(FunctionModel(self._say, model_name="scripted"))
        self.agent.tool_plain(self.note)

    def note(self, text: str) -> str:
        """Write down."""
        self.noted.append(text)
        return "noted"

    def _say(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages) + 1
        self.turns.append(turn)
        if turn in self.breaks_at:
            self.breaks_at.remove(turn)
            raise Overloaded("the model is overloaded")
        if turn == self.last:
            return ModelResponse(parts=[TextPart("done")])
        args = {"text": f"turn {turn}"}
        return ModelResponse(parts=[ToolCallPart("note", args, tool_call_id=f"id-{turn}")])

    def add(self, **options: Any) -> Job:
        return self.jobs.add("fix", "Fix the bug", **options)

    def work(self, agents: Any = None, **options: Any) -> None:
        worker = Worker(self.vault, agents or {"default": self.agent}, **options)
        worker.run(until_idle=True, retry=AT_ONCE)

    def jump(self, **by: float) -> None:
        self.now += timedelta(**by)

    def failed(self, *turns: int, **options: Any) -> Job:
        """A job whose model fails at these turns."""
        self.breaks_at = set(turns)
        self.add(**options)
        self.work()
        return self.jobs.get("fix")


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    with made.vault:
        yield made


# How a job goes


def test_a_job_is_queued_and_run_and_then_closed(office: Office) -> None:
    added = office.add()
    assert (added.state, added.percent, added.checkpoint) == ("queued", 0, None)
    office.work()
    job = office.jobs.get("fix")
    assert (job.state, job.output, job.turns, job.percent) == ("succeeded", "done", 3, 100)
    assert not job.is_open
    assert not job.can_resume
    assert len(office.vault.timeline("fix")) > 3  # its history stays


def test_progress_grows_with_every_turn_and_ends_with_100(office: Office) -> None:
    seen: list[int] = []
    office.add(max_turns=4)
    office.vault.on("checkpoint_saved", lambda _: seen.append(office.jobs.get("fix").percent))
    office.work()
    seen.append(office.jobs.get("fix").percent)
    assert seen == sorted(seen)
    assert {0, 25, 50, 75, 100} <= {*seen}


def test_a_job_is_the_same_when_it_is_added_again_also_if_its_prompt_holds_a_secret() -> None:
    prompt = "the key is sk-ant-api03-" + "a1B2" * 24
    with hardsave.open("memory://", redact=True) as vault:
        jobs = Jobs(vault)
        assert "[redacted" in jobs.add("fix", prompt).spec.prompt
        assert jobs.add("fix", prompt).state == "queued"
        with pytest.raises(Conflict, match="something else"):
            jobs.add("fix", "the key is lost")


@pytest.mark.parametrize(
    "url",
    ["https://me:opensesame@example.com/", "https://example.com/?key=sk-ant-api03-" + "a1B2" * 24],
)
def test_a_callback_that_would_lose_its_secret_is_refused_and_nothing_is_queued(url: str) -> None:
    with hardsave.open("memory://", redact=True) as vault:
        jobs = Jobs(vault)
        with pytest.raises(Misuse, match=r"the callback of job 'fix' holds a secret.*\[redacted"):
            jobs.add("fix", "Fix the bug", callback=url)
        assert not vault.tasks.find()
        assert jobs.add("fix", "Fix the bug", callback="https://example.com/").state == "queued"
    with hardsave.open("memory://") as vault:
        assert vault.jobs.add("fix", "Fix the bug", callback=url).spec.callback == url


def test_a_job_that_fails_keeps_what_it_has_done(office: Office) -> None:
    job = office.failed(2)
    assert (job.state, job.turns, job.messages) == ("failed", 1, 2)
    assert job.error == "Overloaded: the model is overloaded"
    assert job.can_resume
    assert job.is_open
    assert office.noted == ["turn 1"]


def test_a_resumed_job_goes_on_under_a_new_id_with_the_data_of_the_first(office: Office) -> None:
    office.failed(2, about={"issue": 7})
    office.jump(hours=1)
    resumed = office.jobs.resume("fix")
    assert (resumed.id, resumed.lineage, resumed.state) == ("fix~2", "fix", "queued")
    data = office.vault.tasks.get("fix~2").metadata["job"]
    assert data["_resume"] == {"fromJobId": "fix", "resumedAt": "2026-01-01T01:00:00+00:00"}
    assert data["about"] == {"issue": 7}
    office.work()
    job = office.jobs.get("fix")
    assert (job.id, job.state, job.output) == ("fix~2", "succeeded", "done")
    assert office.turns == [1, 2, 2, 3]
    assert office.noted == ["turn 1", "turn 2"]
    assert office.vault.timeline("fix").load()["data"]["content"]["job"]["id"] == "fix~2"


def test_every_id_of_a_lineage_leads_to_the_job(office: Office) -> None:
    office.failed(2)
    office.breaks_at = {3}
    office.jobs.resume("fix")
    office.work()
    office.jobs.resume("fix~2")
    assert {office.jobs.get(id).id for id in ("fix", "fix~2", "fix~3")} == {"fix~3"}
    assert [job.id for job in office.jobs.find()] == ["fix~3"]
    office.work()
    assert office.jobs.get("fix").state == "succeeded"


def test_an_id_that_a_job_never_had_leads_to_no_job(office: Office) -> None:
    office.failed(2)
    office.jobs.resume("fix")
    for act in (office.jobs.get, office.jobs.resume, office.jobs.delete, office.jobs.approve):
        with pytest.raises(NotFound, match="fix~3"):
            act("fix~3")
    assert not office.jobs.can_resume("fix~77")
    office.work()
    office.vault.tasks.forget(keep_completed=0)
    assert {office.jobs.get(id).id for id in ("fix", "fix~2")} == {"fix~2"}
    with pytest.raises(NotFound):
        office.jobs.get("fix~3")


@pytest.mark.parametrize("state", ["queued", "succeeded", "missing", "nothing saved"])
def test_can_resume_and_resume_never_disagree(office: Office, state: str) -> None:
    if state != "missing":
        office.add(agent="nobody" if state == "nothing saved" else "default")
    if state in ("succeeded", "nothing saved"):
        office.work()
    before = office.vault.tasks.stats()
    assert not office.jobs.can_resume("fix")
    with pytest.raises((Conflict, NotFound)):
        office.jobs.resume("fix")
    assert office.vault.tasks.stats() == before


def test_of_two_who_resume_one_wins(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.failed(2)
    stale = office.jobs._look("fix")
    office.jobs.resume("fix")
    with monkeypatch.context() as patch:
        patch.setattr(office.jobs, "_look", lambda id: stale)  # as the second one saw it
        with pytest.raises(Conflict, match="another process"):
            office.jobs.resume("fix")
    assert office.vault.tasks.stats().total == 2


def test_what_a_resume_gives_is_what_it_goes_on_from_also_if_others_go_on_meanwhile(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = office.failed(2)
    queue = office.jobs._queue

    def while_others_go_on(*given: Any) -> Task:
        queued = queue(*given)
        office.breaks_at = {3}
        office.work()
        Jobs(office.vault, now=lambda: office.now).resume("fix")
        return queued

    monkeypatch.setattr(office.jobs, "_queue", while_others_go_on)
    resumed = office.jobs.resume("fix")
    assert (resumed.id, resumed.turns, resumed.messages) == ("fix~2", before.turns, before.messages)
    assert resumed.updated_at == before.updated_at
    assert office.jobs.get("fix").id == "fix~3"


def test_a_resume_during_a_delete_leaves_nothing_that_would_begin_anew(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.failed(2)
    let_go = office.jobs._let_go

    def after_a_resume(*given: Any) -> None:
        assert Jobs(office.vault, now=lambda: office.now).resume("fix").state == "queued"
        let_go(*given)

    monkeypatch.setattr(office.jobs, "_let_go", after_a_resume)
    office.jobs.delete("fix")
    assert office.vault.tasks.get("fix~2").state == "failed"
    assert not office.jobs.can_resume("fix")


def test_a_delete_during_a_resume_leaves_nothing_that_would_begin_anew(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.failed(2)
    queue = office.jobs._queue

    def after_a_delete(*given: Any) -> Task:
        Jobs(office.vault, now=lambda: office.now).delete("fix")
        return queue(*given)

    monkeypatch.setattr(office.jobs, "_queue", after_a_delete)
    with pytest.raises(NotFound, match="deleted meanwhile"):
        office.jobs.resume("fix")
    assert office.vault.tasks.get("fix~2").state == "failed"


def test_a_job_that_was_taken_back_has_no_output(office: Office) -> None:
    office.add()
    office.work()
    office.vault.timeline("fix").rewind("fix:1", tasks=True)
    job = office.jobs.get("fix")
    assert (job.state, job.output, job.can_resume) == ("rolled_back", None, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [("turn", "x"), ("turn", None), ("messages", 5), ("messages", "x"), ("model", 5), ("error", [])]
    + [(key, None) for key in ("output", "data")]
    + [(key, ...) for key in ("status", "model", "error", "output", "data", "turn", "messages")],
)
def test_a_timeline_that_only_looks_like_a_job_hides_no_other(
    office: Office, key: str, value: Any
) -> None:
    office.failed(2)
    state = dict(office.vault.timeline("fix").load())
    odd = dict(state, data={"content": {"job": {"lineage": "odd", "prompt": "Do"}}})
    odd[key] = value
    office.vault.timeline("odd").save({k: v for k, v in odd.items() if v is not ...})
    assert [job.id for job in office.jobs.find()] == ["fix"]
    assert not office.jobs.can_resume("odd")
    with pytest.raises(NotFound):
        office.jobs.resume("odd")
    assert office.jobs.health().resumable == 1
    assert office.jobs.clean() == []


def test_a_fork_of_a_job_is_not_that_job(office: Office) -> None:
    office.failed(2)
    office.vault.timeline("fix").fork(name="trial")
    assert [job.id for job in office.jobs.find()] == ["fix"]
    assert not office.jobs.can_resume("trial")
    with pytest.raises(NotFound, match="no job 'trial'"):
        office.jobs.delete("trial")
    assert office.jobs.get("fix").can_resume


def test_a_job_goes_on_from_no_checkpoint_of_another(office: Office) -> None:
    office.failed(2)
    office.jobs.add("other", "Write a poem")
    office.work()
    head = office.vault.timeline("fix").head
    with pytest.raises(Misuse, match="'other:1' is no checkpoint of job 'fix'"):
        office.jobs.resume("fix", from_ref="other:1")
    assert office.vault.timeline("fix").head == head
    assert office.jobs.get("fix").state == "failed"


def test_of_two_who_resume_at_once_the_loser_moves_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.failed(2)
    head = office.vault.timeline("fix").head
    queue = office.jobs._queue

    def after_another(*given: Any) -> None:
        Jobs(office.vault, now=lambda: office.now).resume("fix")
        queue(*given)

    monkeypatch.setattr(office.jobs, "_queue", after_another)
    with pytest.raises(Conflict):
        office.jobs.resume("fix", from_ref="fix:1")
    assert office.vault.timeline("fix").head == head


def test_a_job_that_is_forgotten_while_all_are_looked_at_is_left_out(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.add()
    monkeypatch.setattr(office.jobs, "_lineages", lambda: iter(["fix", "purged"]))
    assert [job.id for job in office.jobs.every()] == ["fix"]
    assert office.jobs.health().total == 1


def test_turns_that_were_taken_back_may_be_used_again(office: Office) -> None:
    office.last = 5
    office.failed(4)
    first = next(
        each for each in office.vault.timeline("fix").checkpoints() if each.read("turn") == 1
    )
    assert office.jobs.resume("fix", from_ref=first.id, max_turns=3).turns == 1


def test_a_job_whose_task_is_gone_is_resumed_from_what_was_saved(office: Office) -> None:
    office.failed(2, about={"issue": 7})
    store = office.vault._context.store
    from hardsave.stores.base import Batch
    from hardsave.stores.ledger import Work

    event = office.vault.tasks._context.entry("forgotten", None, {})
    store.commit(Batch(None, event, work=Work(forget=["fix"])))
    job = office.jobs.get("fix")
    assert (job.state, job.text, job.turns) == ("forgotten", "Fix the bug", 1)
    assert job.can_resume
    assert [*office.jobs.find()] == [job]
    assert office.jobs.resume("fix").spec.about == {"issue": 7}
    office.work()
    assert office.jobs.get("fix").output == "done"
    assert office.noted == ["turn 1", "turn 2"]


def test_a_finished_job_whose_task_is_gone_is_still_finished(office: Office) -> None:
    office.add()
    office.work()
    office.vault.tasks.forget(keep_completed=0)
    job = office.jobs.get("fix")
    assert (job.state, job.output, job.can_resume) == ("succeeded", "done", False)


def test_an_old_task_of_a_resumed_job_does_nothing(office: Office) -> None:
    office.failed(2)
    office.jobs.resume("fix")
    office.vault.tasks.retry("fix")  # by somebody who knows of tasks only
    office.work()
    assert office.jobs.get("fix").state == "succeeded"
    assert office.vault.tasks.get("fix").error == "Misuse: job 'fix' goes on as 'fix~2'"
    assert office.noted == ["turn 1", "turn 2"]


# Turns


def test_a_job_that_runs_out_of_turns_is_kept_and_is_not_tried_again(office: Office) -> None:
    office.add(max_turns=2, retries=5)
    office.work()
    job = office.jobs.get("fix")
    assert (job.state, job.turns, job.attempts, job.percent) == ("failed", 2, 1, 99)
    assert job.error is not None
    assert "used its 2 turns" in job.error
    assert job.can_resume
    assert office.jobs.resume("fix").max_turns == 4
    office.work()
    assert office.jobs.get("fix").output == "done"
    assert office.turns == [1, 2, 3]


def test_a_resumption_may_be_given_turns(office: Office) -> None:
    office.add(max_turns=2)
    office.work()
    with pytest.raises(Misuse, match="2 turns are used already"):
        office.jobs.resume("fix", max_turns=2)
    assert office.jobs.resume("fix", max_turns=9).max_turns == 9


# Trying again by itself


def test_a_flaky_job_finishes_unaided(office: Office) -> None:
    job = office.failed(1, 2, 3, retries=3)
    assert (job.state, job.output, job.attempts, job.id) == ("succeeded", "done", 4, "fix")
    assert office.noted == ["turn 1", "turn 2"]


def test_a_hopeless_job_is_tried_as_often_as_it_may_be(office: Office) -> None:
    office.last = 99
    office.breaks_at = {1}

    def again(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise Overloaded("for ever")

    office.add(retries=2)
    office.work({"default": Agent(FunctionModel(again))})
    assert office.vault.tasks.get("fix").attempts == 3
    assert office.jobs.can_resume("fix")


# How long it is kept


def test_what_was_saved_is_kept_for_seven_days_from_the_last_save(office: Office) -> None:
    office.failed(2)
    office.jump(days=6)
    office.breaks_at = {3}
    office.jobs.resume("fix")
    office.work()
    office.jump(days=6)
    assert office.jobs.can_resume("fix")
    assert office.jobs.clean() == []
    office.jump(days=1, seconds=1)
    assert not office.jobs.can_resume("fix")
    with pytest.raises(NotFound, match="kept until 2026-01-14"):
        office.jobs.resume("fix")
    assert office.jobs.clean() == ["fix~2"]
    assert office.vault.timeline("fix").head is None
    assert office.jobs.clean() == []


def test_how_long_can_be_chosen(office: Office) -> None:
    office.failed(2)
    office.jump(hours=2)
    assert Jobs(office.vault, ttl=timedelta(hours=3), now=lambda: office.now).can_resume("fix")
    assert not Jobs(office.vault, ttl=timedelta(hours=1), now=lambda: office.now).can_resume("fix")
    with pytest.raises(Misuse):
        Jobs(office.vault, ttl=timedelta(0))


def test_a_deleted_job_cannot_be_resumed_and_is_deleted_once(office: Office) -> None:
    office.failed(2)
    assert office.jobs.delete("fix").id == "fix"
    assert not office.jobs.can_resume("fix")
    with pytest.raises(NotFound):
        office.jobs.delete("fix")
    office.vault.undo()
    assert office.jobs.can_resume("fix")


def test_a_queued_job_that_has_saved_nothing_is_taken_out_of_the_queue(office: Office) -> None:
    office.add()
    gone = office.jobs.delete("fix")
    assert (gone.state, gone.checkpoint) == ("queued", None)
    assert office.vault.tasks.get("fix").state == "failed"
    with pytest.raises(NotFound, match="nothing is saved"):
        office.jobs.delete("fix")
    office.work()
    assert office.vault.timeline("fix").head is None


def purges(office: Office) -> list[Task]:
    return [task for task in office.vault.tasks.find() if task.id.endswith("/purge")]


def test_jobs_come_in_pages(office: Office) -> None:
    for number in range(5):
        office.jobs.add(f"fix-{number}", "Fix")
    first = office.jobs.find(limit=2)
    second = office.jobs.find(limit=2, after=first.next)
    rest = office.jobs.find(limit=2, after=second.next)
    assert [job.id for page in (first, second, rest) for job in page] == [
        "fix-4",
        "fix-3",
        "fix-2",
        "fix-1",
        "fix-0",
    ]
    assert rest.next is None
    wrong: Any
    for wrong in ("yesterday fix", "2026-01-31T14:00 fix", first[0], b"2026 fix"):
        with pytest.raises(Misuse, match="after is the `next` of an earlier page"):
            office.jobs.find(after=wrong)


def test_the_jobs_of_a_vault_are_at_hand(office: Office) -> None:
    office.vault.jobs.add("fix", "Fix")
    assert [job.id for job in office.vault.jobs.find()] == ["fix"]
    assert office.vault.jobs.owns(office.vault.tasks.get("fix"))
    assert not office.vault.jobs.owns(office.vault.tasks.add("other"))


def test_a_job_that_the_ledger_has_forgotten_is_purged_all_the_same(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.add(on_success="purge")
    office.jobs.add("kept", "Keep this")
    with monkeypatch.context() as patch:
        patch.setattr(notices.Messenger, "_run", lambda self: None)  # as if killed before
        office.work()
    office.vault.tasks.forget(keep_completed=0)
    assert len(office.vault.timeline("fix")) > 0
    office.work()
    assert len(office.vault.timeline("fix")) == 0
    assert len(office.vault.timeline("kept")) > 0


def test_what_a_worker_reads_when_it_starts_does_not_grow_with_what_is_completed(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads() -> int:
        """How often a worker that finds nothing to do asks the store for what was saved."""
        store, asked = office.vault._context.store, Counter[str]()
        with monkeypatch.context() as patch:
            for name in ("read", "checkpoint", "timeline", "timelines"):
                counted = functools.partial(_counted, getattr(store, name), asked, name)
                patch.setattr(store, name, counted)
            office.work()
        return asked.total()

    office.add()
    office.work()
    few = reads()
    for number in range(20):
        office.jobs.add(f"more-{number}", "Do more")
    office.work()
    assert reads() == few


def _counted(function: Callable[..., Any], asked: Counter[str], name: str, *args: Any) -> Any:
    asked[name] += 1
    return function(*args)


def test_every_call_is_asked_about_whatever_its_id(office: Office) -> None:
    paid: list[int] = []
    ids = [["id", "other"], ["id", "other"]]

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn == len(ids):
            return ModelResponse(parts=[TextPart("done")])
        calls = [ToolCallPart("pay", {"n": 2 * turn + at}, id) for at, id in enumerate(ids[turn])]
        return ModelResponse(parts=calls)

    def pay(n: int) -> str:
        paid.append(n)
        return "paid"

    agent: Agent[None, Any] = Agent(FunctionModel(say))
    agent.tool_plain(requires_approval=True, sequential=True)(pay)
    office.add()
    asked: list[str | None] = []
    for _ in range(4):
        office.work({"default": agent})
        asked.append(office.jobs.get("fix").question)
        office.jobs.approve("fix")
    office.work({"default": agent})
    assert asked == [f'may it call pay({{"n": {n}}})?' for n in range(4)]
    assert (office.jobs.get("fix").state, paid) == ("succeeded", [0, 1, 2, 3])


def test_a_resumed_job_is_purged_once_and_nothing_waits_for_the_first(office: Office) -> None:
    office.failed(3, on_success="purge")
    (waiting,) = purges(office)
    assert (waiting.state, waiting.waits_for) == ("pending", "fix")
    office.jobs.resume("fix")
    office.work()
    assert office.vault.timeline("fix").head is None
    found = {task.id: (task.state, task.error) for task in purges(office)}
    assert found == {"fix/purge": ("failed", "cancelled"), "fix~2/purge": ("completed", None)}
    office.work()  # which does not take up what was cancelled
    assert {task.state for task in purges(office)} == {"failed", "completed"}


def test_a_job_that_is_let_go_leaves_no_purge_that_waits(office: Office) -> None:
    office.failed(3, on_success="purge")
    office.jobs.delete("fix")
    assert [(task.state, task.error) for task in purges(office)] == [("failed", "cancelled")]


# Going back


def test_a_job_is_resumed_from_an_earlier_checkpoint_with_its_files(
    office: Office, tmp_path: Path
) -> None:
    def note(text: str) -> str:
        """Write down."""
        with (tmp_path / "notes").open("a") as notes:
            notes.write(f"{text}\n")
        return "noted"

    agent: Agent[None, Any] = Agent(FunctionModel(office._say, model_name="scripted"))
    agent.tool_plain(note)
    office.last, office.breaks_at = 4, {4}
    office.add(workspace=tmp_path)
    office.work({"default": agent})
    line = office.vault.timeline("fix")
    first = next(
        cp
        for cp in line.checkpoints()
        if cp.description == "note returned" and cp.read("turn") == 1
    )
    (tmp_path / "notes").write_text("spoilt")
    office.jobs.resume("fix", from_ref=first.id)
    office.work({"default": agent})
    assert office.jobs.get("fix").output == "done"
    assert (tmp_path / "notes").read_text() == "turn 1\nturn 2\nturn 3\n"


def test_files_come_back_where_there_are_none(office: Office, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    office.failed(3, workspace=folder)
    (folder / "a.txt").unlink()
    folder.rmdir()
    office.jobs.resume("fix")
    office.work()
    assert (folder / "a.txt").read_text() == "one"


# A word first


def paying(office: Office) -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(FunctionModel(office._say, model_name="scripted"))
    agent.tool_plain(requires_approval=True)(office.note)
    return agent


def test_a_job_waits_for_a_word_and_goes_on_when_it_has_one(office: Office) -> None:
    agents = {"default": paying(office)}
    office.add()
    office.work(agents)
    job = office.jobs.get("fix")
    assert (job.state, job.question) == ("waiting", 'may it call note({"text": "turn 1"})?')
    assert office.noted == []
    assert not job.can_resume
    office.jump(days=30)
    assert office.jobs.clean() == []
    office.jobs.approve("fix")
    office.work(agents)
    assert office.noted == ["turn 1"]
    office.jobs.deny("fix", "that is enough")
    office.work(agents)
    assert office.jobs.get("fix").output == "done"
    assert office.noted == ["turn 1"]
    assert office.turns == [1, 2, 3]
    results = [
        part
        for message in office.vault.timeline("fix").load()["messages"]
        for part in message["parts"]
        if part["part_kind"] == "tool-return"
    ]
    assert [part["content"] for part in results] == ["noted", "that is enough"]
    with pytest.raises(Conflict, match="asked nothing"):
        office.jobs.approve("fix")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (True, True),
        ("yes", True),
        (" OK ", True),
        (False, False),
        ("no", False),
        ("", False),
        ("use the other one", "use the other one"),
        (None, False),
        (1, False),
        ({"a": 1}, False),
    ],
)
def test_only_a_clear_yes_is_one(answer: Any, verdict: Any) -> None:
    assert specs.verdict(answer) is verdict or specs.verdict(answer) == verdict


# In numbers


def test_health_counts_what_is_stale_and_what_is_near_its_limit(office: Office) -> None:
    office.last, office.breaks_at = 99, {10}
    office.jobs.add("near", "x", max_turns=10)
    office.work()
    office.breaks_at = {2}
    office.jobs.add("far", "x", max_turns=10)
    office.work()
    office.jobs.add("new", "x")
    assert office.jobs.health().as_dict() == {
        "total": 3,
        "queued": 1,
        "unserved": 1,
        "active": 0,
        "waiting": 0,
        "succeeded": 0,
        "failed": 2,
        "rolled_back": 0,
        "forgotten": 0,
        "resumable": 2,
        "stale": 0,
        "near_limit": 1,
        "failures": 2,
        "resumes_open": 0,
        "resumes_succeeded": 0,
        "resumes_failed": 0,
    }
    office.jump(minutes=61)
    assert office.jobs.health().stale == 2


def test_health_counts_resumptions_by_how_they_ended(office: Office) -> None:
    def resumes() -> tuple[int, int, int]:
        found = office.jobs.health()
        return found.resumes_open, found.resumes_succeeded, found.resumes_failed

    office.failed(1)
    assert office.jobs.health().resume_success_ratio is None
    office.jobs.resume("fix")
    assert resumes() == (1, 0, 0)
    office.breaks_at = {1}
    office.work()
    assert resumes() == (0, 0, 1)
    office.jobs.resume("fix")
    assert resumes() == (1, 0, 1)
    office.work()
    assert resumes() == (0, 1, 1)
    assert office.jobs.health().resume_success_ratio == 0.5
    assert office.jobs.health().failures == 2
    office.vault.tasks.forget(keep_completed=0)
    assert resumes() == (0, 1, 1)  # told by what was saved, without its tasks


def test_a_job_that_was_cancelled_is_neither_a_failure_nor_a_success(office: Office) -> None:
    office.failed(1)
    assert office.jobs.health().failures == 1
    office.jobs.resume("fix")
    office.jobs.delete("fix")
    found = office.jobs.health()
    assert (found.resumes_open, found.resumes_succeeded, found.resumes_failed) == (0, 0, 0)
    assert found.failures == 1  # of the run before
    office.jobs.add("other", "x")
    office.vault.tasks.cancel("other")
    assert office.jobs.health().failures == 1


# Beside other work


def test_a_worker_leaves_other_tasks_alone(office: Office) -> None:
    for number in range(20):
        office.vault.tasks.add(f"other-{number}", priority=9)
    office.add()
    office.work()
    assert office.jobs.get("fix").state == "succeeded"
    assert office.vault.tasks.stats().pending == 20
    ran: list[str] = []
    office.jobs.add("second", "x")
    with office.vault.tasks.runner("other") as runner:
        runner.run(
            lambda attempt: ran.append(attempt.id),
            until_idle=True,
            wants=lambda task: not Jobs.owns(task),
        )
    assert len(ran) == 20
    assert office.jobs.get("second").state == "queued"


def test_several_jobs_run_at_once(office: Office) -> None:
    for name in ("a", "b", "c"):
        office.jobs.add(name, "Fix")
    Worker(office.vault, {"default": office.agent}).run(concurrency=3, until_idle=True)
    assert {job.state for job in office.jobs.find()} == {"succeeded"}


def test_tools_that_take_long_keep_no_other_job_from_going_on(office: Office) -> None:
    """However few cores there are: by default a loop has a few threads more than these."""
    jobs = 40
    together = threading.Barrier(jobs, timeout=60)
    office.last = 2
    agent: Agent[None, Any] = Agent(office.agent.model)

    @agent.tool_plain
    async def note(text: str) -> str:
        await asyncio.to_thread(together.wait)
        return text

    for number in range(jobs):
        office.jobs.add(f"job-{number}", "wait for the others")
    Worker(office.vault, {"default": agent}).run(concurrency=jobs, until_idle=True)
    assert {job.state for job in office.jobs.find()} == {"succeeded"}


# What is wrong


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_turns": 0}, "max_turns"),
        ({"retries": -1}, "retries"),
        ({"on_success": "burn"}, "on_success"),
        ({"callback": "file:///etc/passwd"}, "a callback is an address"),
        ({"callback": "http://"}, "a callback is an address"),
        ({"callback": "http://host:port/"}, "a callback is an address"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_queued(
    office: Office, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(Misuse, match=message):
        office.add(**wrong)
    assert not office.jobs.find()


@pytest.mark.parametrize("id", ["fix~2", "a:b", "", "@x"])
def test_ids_that_would_mean_something_else_are_refused(office: Office, id: str) -> None:
    with pytest.raises(Misuse):
        office.jobs.add(id, "Fix")


def test_an_empty_prompt_is_refused(office: Office) -> None:
    with pytest.raises(Misuse, match="prompt"):
        office.jobs.add("fix", " ")


def test_adding_it_again_changes_nothing_and_another_prompt_is_a_conflict(office: Office) -> None:
    office.add()
    assert office.add().state == "queued"
    with pytest.raises(Conflict, match="something else"):
        office.jobs.add("fix", "Something else")
    office.vault.timeline("taken").save({"a": 1})
    with pytest.raises(Conflict, match="holds something else"):
        office.jobs.add("taken", "Fix")
    office.vault.tasks.add("task", "work")
    with pytest.raises(Conflict, match="is no job"):
        office.jobs.add("task", "Fix")
    with pytest.raises(NotFound):
        office.jobs.get("task")


LACKS = [({"agent": "coder"}, "agent 'coder'"), ({"model": "large"}, "model 'large'")]


@pytest.mark.parametrize(("options", "what"), LACKS)
def test_a_job_is_left_to_a_worker_that_has_its_agent_and_model(
    office: Office, caplog: pytest.LogCaptureFixture, options: dict[str, Any], what: str
) -> None:
    office.add(**options)
    office.jobs.add("other", "Do this")
    office.work()
    job = office.jobs.get("fix")
    assert (job.state, job.attempts) == ("queued", 0)
    assert caplog.text.count(f"job 'fix' wants {what}, which this worker was not given") == 1
    assert office.jobs.get("other").state == "succeeded"
    large = FunctionModel(office._say, model_name="large")
    office.work({"coder": office.agent, "default": office.agent}, models={"large": large})
    assert office.jobs.get("fix").state == "succeeded"


def test_a_job_says_which_worker_it_waits_for_and_that_none_runs(office: Office) -> None:
    job = office.add(agent="coder", model="large")
    assert job.is_unserved
    assert job.why_not == (
        "it waits for a worker that has agent 'coder' and model 'large', and none runs now"
    )
    assert office.jobs.health().unserved == 1


@contextlib.contextmanager
def _running(office: Office, agents: dict[str, Any]) -> Iterator[None]:
    """A worker in a thread, for as long as the block."""
    worker = Worker(office.vault, agents)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


def _until(is_so: Callable[[], bool]) -> None:
    """It comes to be so within a while that no machine is too slow for."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_says_that_none_of_the_workers_that_run_can_take_it(office: Office) -> None:
    office.add(agent="coder")
    with _running(office, {"one": office.agent}), _running(office, {"two": office.agent}):
        _until(lambda: "one, two" in str(office.jobs.get("fix").why_not))
        job = office.jobs.get("fix")
        assert job.is_unserved
        assert "agent 'coder', and none that runs now has" in str(job.why_not)
    assert "none runs now" in str(office.jobs.get("fix").why_not)


def test_a_queued_job_that_a_running_worker_can_take_waits_for_it_alone(office: Office) -> None:
    held, go = threading.Event(), threading.Event()

    def make(job: Job) -> Agent[None, Any]:
        held.set()
        go.wait()
        return office.agent

    office.jobs.add("first", "Do this")
    with _running(office, {"default": make}):
        held.wait()
        office.add()
        _until(lambda: not office.jobs.get("fix").is_unserved)
        assert office.jobs.get("fix").why_not == "it waits for a worker"
        assert office.jobs.health().unserved == 0
        go.set()
        _until(lambda: office.jobs.get("fix").state == "succeeded")


def test_an_agent_may_be_made_for_its_job(office: Office) -> None:
    made: list[str] = []

    def make(job: Job) -> Agent[None, Any]:
        made.append(job.id)
        return office.agent

    office.add()
    office.work({"default": make})
    assert made == ["fix"]


def test_what_is_no_agent_and_makes_none_is_refused(office: Office) -> None:
    async def answer(job: Job) -> str:
        return job.id

    office.add(retries=0)
    with pytest.raises(Misuse, match=r"agent .default. is of the class builtins\.int; give an"):
        office.work({"default": 5})
    assert office.jobs.get("fix").state == "queued"
    office.work({"default": answer})
    error = office.jobs.get("fix").error
    assert error is not None
    assert "agent 'default' was made of the class builtins.coroutine; give an Agent" in error


def test_a_job_goes_on_with_the_model_that_it_had(office: Office) -> None:
    other = FunctionModel(office._say, model_name="other")
    office.breaks_at = {2}
    office.add(model="other")
    office.work(models={"other": other})
    assert office.jobs.get("fix").model == "other"
    office.jobs.resume("fix")
    office.work(models={"other": other})
    assert office.jobs.get("fix").model == "other"


@pytest.mark.parametrize("retries", [0, 1])
def test_a_job_goes_on_with_its_model_whatever_that_calls_itself(
    office: Office, retries: int
) -> None:
    """As providers do, which answer with a date behind the name."""
    large = FunctionModel(office._say, model_name="large-2026-01-01")
    office.breaks_at = {2}
    office.add(model="large", retries=retries)
    office.work(models={"large": large})
    if not retries:
        office.jobs.resume("fix")
        office.work(models={"large": large})
    assert office.jobs.get("fix").state == "succeeded"
    messages = office.vault.timeline("fix").load()["messages"]
    names = {each["model_name"] for each in messages if each["kind"] == "response"}
    assert names == {"large-2026-01-01"}


def test_every_save_of_a_job_belongs_to_its_attempt_and_a_lost_one_saves_nothing(
    office: Office,
) -> None:
    office.failed(2, retries=1)
    saved = list(office.vault.timeline("fix").checkpoints())[::-1]
    assert {(cp.task, cp.attempt) for cp in saved} == {("fix", 1), ("fix", 2)}
    office.jobs.add("lost", "x")
    seen: list[int] = []

    def steal(checkpoint: hardsave.Checkpoint) -> None:
        if checkpoint.timeline == "lost" and checkpoint.description == "response 1":
            office.vault.tasks.cancel("lost")
            seen.append(len(office.vault.timeline("lost")))

    office.vault.on("checkpoint_saved", steal)
    office.work()
    assert seen == [len(office.vault.timeline("lost"))]
    assert office.vault.tasks.get("lost").error == "cancelled"


# A model that is no help, a ledger that cannot be written, a worker that has to stop


@pytest.mark.parametrize(
    ("step", "says"),
    [(Fault(200, "<html>busy</html>"), ""), (Fault(401), "401"), (Silence(), "")],
)
def test_a_model_that_answers_garbage_or_never_fails_the_job_and_loses_nothing(
    office: Office, step: Any, says: str
) -> None:
    call = Reply("", (Call("note", {"text": "hello"}),))
    with ScriptedModel([call, [step, Reply("done")]]) as model:
        nothing_kept = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0))
        client = AsyncOpenAI(
            base_url=model.openai_url, api_key="none", max_retries=0, http_client=nothing_kept
        )
        agent: Agent[None, Any] = Agent(
            OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
        )
        agent.tool_plain(office.note)
        office.add()
        office.work({"default": agent}, model_settings={"timeout": 0.5})
        job = office.jobs.get("fix")
        assert (job.state, job.turns) == ("failed", 1)
        assert job.error
        assert says in job.error
        office.jobs.resume("fix")
        office.work({"default": agent})
    assert office.jobs.get("fix").output == "done"
    assert office.noted == ["hello"]


def test_progress_that_cannot_be_written_stops_no_job(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*args: Any) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(hardsave.Attempt, "progress", full)
    office.add()
    office.work()
    assert office.jobs.get("fix").state == "succeeded"
    assert "the disk is full" in caplog.text


def test_a_worker_that_is_stopped_hands_its_job_back(office: Office) -> None:
    begun = threading.Event()

    async def hang(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return office._say(messages, info)
        begun.set()
        await asyncio.sleep(3600)
        raise AssertionError

    agent: Agent[None, Any] = Agent(FunctionModel(hang))
    agent.tool_plain(office.note)
    office.add()
    worker = Worker(office.vault, {"default": agent})
    thread = threading.Thread(target=worker.run, kwargs={"grace_seconds": 0.1})
    thread.start()
    assert begun.wait(60)
    worker.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert office.jobs.get("fix").state == "queued"
    assert office.vault.tasks.get("fix").attempts == 0
    office.work()
    assert office.jobs.get("fix").output == "done"
    assert office.noted == ["turn 1", "turn 2"]


def test_a_worker_that_is_stopped_while_it_begins_ends(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server is that is stopped while it looks for what the last one has left."""
    office.add()
    worker = Worker(office.vault, {"default": office.agent})
    enter = Runner.__enter__

    def stopped(runner: Runner) -> Runner:
        worker.stop()
        return enter(runner)

    monkeypatch.setattr(Runner, "__enter__", stopped)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert office.jobs.get("fix").state == "queued"
    monkeypatch.undo()
    worker.run(until_idle=True)
    assert office.jobs.get("fix").output == "done"


def test_a_worker_may_wait_for_ever_for_what_is_under_way(office: Office) -> None:
    office.add()
    Worker(office.vault, {"default": office.agent}).run(until_idle=True, grace_seconds=math.inf)
    assert office.jobs.get("fix").output == "done"


@pytest.mark.parametrize(
    "stored",
    [
        "fix",
        {"lineage": "x"},
        {"lineage": 1, "prompt": 2},
        {"lineage": "x", "prompt": ""},
        {"lineage": "x", "prompt": "y", "max_turns": "many"},
        {"lineage": "x", "prompt": "y", "_resume": {}},
        {"lineage": "x", "prompt": "y", "callback": 3},
        {"notice_of": "x"},
    ],
)
def test_a_task_that_only_looks_like_a_job_ends_no_worker(stored: Any) -> None:
    with hardsave.open("memory://") as vault:
        vault.tasks.add("odd", metadata={"job": stored})
        vault.jobs.add("fix", "Fix")
        agent: Agent[None, Any] = Agent(TestModel(custom_output_text="done"))
        Worker(vault, {"default": agent}).run(until_idle=True)
        assert [(job.id, job.state) for job in vault.jobs.find()] == [("fix", "succeeded")]


def test_a_job_is_approved_with_other_arguments() -> None:
    with hardsave.open("memory://") as vault:
        vault.jobs.add("asks", "Do it", agent="careful")
        careful = jobs_project.agent(careful=True)
        Worker(vault, {"careful": careful}).run(until_idle=True)
        vault.jobs.approve("asks", arguments={"text": "bye"})
        Worker(vault, {"careful": careful}).run(until_idle=True)
        assert vault.jobs.get("asks").state == "succeeded"
        head = vault.timeline("asks").head
        assert head is not None
        assert "noted bye" in str(list(head.state["messages"]))
