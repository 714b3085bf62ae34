"""`on_success="purge"`: what goes with a job that has succeeded, and what stays."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.errors import Conflict, NotFound, Unavailable
from hardsave.runtime.jobs import closing, notices
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores import registry
from hardsave.tasks.task import Task
from hardsave.vault.jobs.state import Job
from hardsave.vault.purge import REPLACEMENT, purge
from hardsave.vault.purge import job as job_purge
from tests import postgres_server
from tests.unit.runtime.listener import Listener, listening
from tests.unit.runtime.test_jobs import AT_ONCE, Office
from tests.unit.vault.secrets_scanner import found, frames

LATER = replace(AT_ONCE, first_seconds=3600, max_seconds=3600)


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    with made.vault:
        yield made


def purges(office: Office) -> list[Task]:
    return [task for task in office.vault.tasks.find() if task.id.endswith("/purge")]


def collects_not(*given: Any, **options: Any) -> Any:
    raise Unavailable("a capture is under way")


def interrupted(office: Office, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A job is done, and its purge ends where it calls this."""
    office.add(on_success="purge")
    with monkeypatch.context() as patch:
        patch.setattr(purge if name == "collected" else job_purge, name, collects_not)
        office.work(callback_retry=LATER)
    (task,) = purges(office)
    assert (task.state, task.attempts) == ("pending", 1)


# What is meant


def test_a_job_may_be_purged_when_it_has_succeeded(office: Office) -> None:
    office.add(on_success="purge")
    office.work()
    assert office.vault.timeline("fix").head is None
    assert len(office.vault.timeline("fix")) == 0
    job = office.jobs.get("fix")
    assert (job.state, job.output, job.text) == ("succeeded", None, REPLACEMENT)
    assert (job.attempts, job.turns, job.percent, job.can_resume) == (1, 0, 100, False)
    assert [task.result for task in purges(office)] == [{"dropped": 9}]
    assert [job.id for job in office.jobs.find()] == ["fix"]


def test_what_is_saved_while_a_purge_is_tried_again_stays(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(office, monkeypatch, "collected")
    line = office.vault.timeline("fix")
    assert line.head is None
    line.save({"by": "another program"})
    office.jump(days=1)
    office.work()
    (task,) = purges(office)
    assert (task.state, task.result) == ("completed", {"dropped": 0})
    assert line.load() == {"by": "another program"}


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_saved_between_the_end_of_a_job_and_its_purge_stays(
    office: Office, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    office.add(on_success="purge")
    with monkeypatch.context() as patch:
        patch.setattr(notices.Messenger, "_run", lambda self: None)  # as if killed before
        office.work()
    line = office.vault.timeline("fix")
    saved = len(line)
    line.save({"by": "another program"})
    if not is_known:
        office.vault.tasks.forget(keep_completed=0)
    office.work()
    assert [task.result for task in purges(office)] == [{"dropped": saved}]
    assert [each.state["by"] for each in line.checkpoints()] == ["another program"]
    assert line.load() == {"by": "another program"}
    assert [each.name for each in office.vault.timelines()] == ["fix"]
    assert office.jobs.get("fix").state == "succeeded"


def test_a_purge_that_was_interrupted_anywhere_is_finished_by_the_next(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(office, monkeypatch, "_leave")  # its tasks are forgotten by then
    with pytest.raises(NotFound):
        office.jobs.get("fix")
    office.jump(days=1)
    office.work()
    job = office.jobs.get("fix")
    assert (job.state, job.text, job.attempts) == ("succeeded", REPLACEMENT, 1)


def test_a_purge_that_fails_is_tried_again(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collected, failures = purge.collected, [Unavailable("an export is under way")] * 2

    def first_not(*given: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return collected(*given, **options)

    monkeypatch.setattr(purge, "collected", first_not)
    office.add(on_success="purge")
    office.work(callback_retry=AT_ONCE)
    assert office.vault.timeline("fix").head is None
    assert [(task.state, task.attempts) for task in purges(office)] == [("completed", 3)]
    assert "an export is under way; it is tried again" in caplog.text
    assert [job.id for job in office.jobs.find()] == ["fix"]


def test_a_purge_that_could_not_be_is_tried_by_the_next_worker(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.add(on_success="purge")
    with monkeypatch.context() as patch:
        patch.setattr(job_purge, "purge_job", lambda *_: 1 / 0)
        office.work(callback_retry=AT_ONCE)
    (task,) = purges(office)
    assert (task.state, task.attempts) == ("failed", closing.TRIES)
    office.work()
    assert office.vault.timeline("fix").head is None
    assert [each.state for each in purges(office)] == ["completed"]


def test_what_has_come_into_the_place_of_a_purged_job_stays(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.add(on_success="purge")
    with monkeypatch.context() as patch:
        patch.setattr(job_purge, "purge_job", collects_not)
        office.work(callback_retry=LATER)
    office.vault.timeline("fix").delete()  # and then the worker died
    office.vault.tasks.forget(keep_completed=0)
    office.failed(3, on_success="purge")
    office.jump(days=1)
    office.work()
    (task,) = purges(office)
    assert (task.state, task.result) == ("completed", {"kept": closing.ANOTHERS})
    assert office.jobs.get("fix").can_resume


def test_a_job_that_is_not_over_is_not_purged_with_its_timeline(office: Office) -> None:
    office.failed(3, on_success="purge")
    office.jobs.resume("fix")
    for id in ("fix", "fix~2"):
        assert office.vault.tasks.get(id).text != REPLACEMENT
    with pytest.raises(Conflict, match=r"task 'fix~2' of job 'fix' is pending; cancel it"):
        office.vault.store.purge(timeline="fix")
    office.vault.tasks.cancel("fix~2")
    office.vault.tasks.add("after", after=["fix~2"])
    with pytest.raises(Conflict, match="task 'after' waits for job 'fix~2'"):
        office.vault.store.purge(timeline="fix")
    assert office.jobs.get("fix").checkpoint is not None
    office.vault.tasks.cancel("after")
    office.vault.store.purge(timeline="fix")
    assert [task.id for task in office.vault.tasks.find()] == ["after"]
    office.add()  # another job may have its id
    office.work()
    assert office.jobs.get("fix").state == "succeeded"


def test_a_job_that_is_put_back_to_work_is_not_purged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.add(on_success="purge")
    dropped = job_purge._dropped

    def first_retried(*given: Any) -> int:
        monkeypatch.setattr(job_purge, "_dropped", dropped)
        office.vault.tasks.retry("fix", force=True)
        return dropped(*given)

    monkeypatch.setattr(job_purge, "_dropped", first_retried)
    office.work(callback_retry=LATER)
    assert office.jobs.get("fix").state == "queued"
    assert len(office.vault.timeline("fix")) == 9
    office.jump(days=1)
    office.work()
    assert office.jobs.get("fix").text == REPLACEMENT
    assert len(office.vault.timeline("fix")) == 0


# What is left of it


def test_a_purged_job_is_known_by_its_id_and_begins_no_more(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    office.add(on_success="purge")
    office.work()
    assert office.add(on_success="purge").state == "succeeded"
    turns = len(office.turns)
    office.vault.tasks.retry("fix", force=True)
    office.work()
    assert len(office.turns) == turns
    assert "was purged, its prompt too" in str(office.jobs.get("fix").error)


def test_all_that_a_job_was_resumed_from_goes_with_it(office: Office) -> None:
    office.failed(3, on_success="purge")
    office.vault.tasks.add("beside", "Something else")
    office.jobs.resume("fix")
    office.work()
    tasks = {task.id: task for task in office.vault.tasks.find()}
    assert {tasks[id].text for id in ("fix", "fix~2")} == {REPLACEMENT}
    assert (tasks["fix"].state, tasks["fix"].error) == ("failed", REPLACEMENT)
    assert tasks["beside"].text == "Something else"
    assert office.jobs.get("fix").id == office.jobs.get("fix~2").id == "fix~2"


def test_a_job_is_purged_when_its_callback_was_told(office: Office) -> None:
    with listening() as receiver:
        receiver.status = 503
        office.add(on_success="purge", callback=receiver.url)
        office.work(allow_private_callbacks=True, callback_retry=LATER)
        assert office.vault.timeline("fix").head is None
        assert office.jobs.get("fix").output == "done"
        receiver.status = 200
        office.jump(days=1)
        office.work(allow_private_callbacks=True, callback_retry=AT_ONCE)
        assert [told["message"] for _, _, told in receiver.got] == ["done", "done"]
    assert office.jobs.get("fix").output is None
    assert [task.id for task in office.vault.tasks.find()] == ["fix/purge", "fix"]


def test_a_worker_that_wakes_does_not_tell_of_a_job_that_is_purged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped after it had read the end, and before it wrote what is to be told of it."""
    with listening() as receiver:
        write = notices.Notices._write_notice
        stopped: list[Any] = []

        def also_later(self: notices.Notices, *given: Any) -> bool:
            stopped.append(functools.partial(write, self, *given))
            return write(self, *given)

        monkeypatch.setattr(notices.Notices, "_write_notice", also_later)
        office.add(on_success="purge", callback=receiver.url)
        office.work(allow_private_callbacks=True)
        assert [each() for each in stopped] == [False] * len(stopped) != []
        office.work(allow_private_callbacks=True)
        assert len(receiver.got) == 1
    assert [task.id for task in office.vault.tasks.find()] == ["fix/purge", "fix"]


# Nothing of it is left

PARTS = (
    *(
        "prompt",
        "text",
        "about",
        "argument",
        "returned",
        "file",
        "name",
        "note",
        "failure",
        "question",
    ),
    *("reason", "approved", "answer"),
)
CANARIES = {part: f"canary-{part}-{number * 7919}-sings" for number, part in enumerate(PARTS)}


class Breaks(Exception):
    """What the model of these jobs fails with."""


def agent_of(vault: hardsave.Vault) -> Any:
    failures = [Breaks(CANARIES["failure"])]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write", {"text": CANARIES["argument"]}),
        ("pay", {"to": CANARIES["question"]}),
        ("pay", {"to": CANARIES["question"]}),
    ]

    def made(job: Job) -> Agent[None, Any]:
        def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = sum(isinstance(message, ModelResponse) for message in messages)
            if turn == 1 and failures:
                raise failures.pop()
            if turn == len(calls):
                return ModelResponse(parts=[TextPart(CANARIES["answer"])])
            name, arguments = calls[turn]
            return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=f"id-{turn}")])

        agent: Agent[None, Any] = Agent(FunctionModel(say))

        @agent.tool_plain
        def write(text: str) -> str:
            """Write a file and a note."""
            for name in (CANARIES["name"], "written"):
                Path(str(job.spec.workspace), name).write_text(CANARIES["file"])
            head = vault.timeline(job.lineage).head
            assert head is not None
            vault.put_notes(head, {"note": CANARIES["note"]})
            return CANARIES["returned"]

        @agent.tool_plain(requires_approval=True)
        def pay(to: str) -> str:
            """Pay."""
            return f"paid {to}"

        return agent

    return made


def ran(vault: hardsave.Vault, folder: Path, receiver: Listener, on_success: Any) -> None:
    """A job that fails, is resumed, asks twice and is told of, and whose texts were searched."""
    work = functools.partial(_worked, vault, agent_of(vault))
    vault.jobs.add(
        "fix",
        CANARIES["prompt"],
        text=CANARIES["text"],
        about={"for": CANARIES["about"]},
        workspace=folder,
        callback=receiver.url,
        on_success=on_success,
    )
    vault.timeline("beside").save({"of": "another"})
    work()
    assert vault.jobs.get("fix").error is not None
    for name in folder.iterdir():
        name.unlink()  # they are brought back
    vault.jobs.resume("fix")
    work()
    assert next(each.timeline for each in vault.search(CANARIES["argument"], wait=True)) == "fix"
    vault.jobs.approve("fix", arguments={"to": CANARIES["approved"]})
    work()
    vault.jobs.deny("fix", CANARIES["reason"])
    work()
    assert vault.jobs.get("fix").state == "succeeded"
    assert [told["status"] for _, _, told in receiver.got] == ["failed", "completed"]
    assert CANARIES["answer"] in str(receiver.got)


def _worked(vault: hardsave.Vault, agent: Any) -> None:
    worker = Worker(vault, {"default": agent}, allow_private_callbacks=True)
    worker.run(until_idle=True, retry=AT_ONCE)


def told(vault: hardsave.Vault) -> str:
    """What callers are told of jobs and tasks."""
    tasks = vault.tasks.find()
    histories = [vault.tasks.history(task.id) for task in tasks]
    return repr([vault.jobs.every(), vault.jobs.find(), tasks, histories, vault.operations()])


WAYS = ("archive", "purge", "by hand")
ALL = [(url, on_success) for url in ("sqlite", "postgresql") for on_success in WAYS]


@pytest.mark.parametrize(("kind", "on_success"), ALL)
def test_nothing_that_a_purged_job_was_told_or_said_is_in_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, on_success: str
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    files = tmp_path / "files"
    files.mkdir()
    url = f"sqlite:///{tmp_path}/home/store.db"
    if kind == "postgresql":
        url = postgres_server.url_of(tmp_path)
    (tmp_path / "home").mkdir()
    with listening() as receiver, hardsave.Vault(registry.open_store(url)) as vault:
        ran(vault, files, receiver, "purge" if on_success == "purge" else "archive")
        if on_success == "by hand":
            assert vault.store.purge(timeline="fix").tasks == 4  # it was resumed, and told of twice
            assert not vault.jobs.find()
        answers = told(vault)
        rows = rows_of(tmp_path) if kind == "postgresql" else b""
    left = found(tmp_path / "home", CANARIES.values())
    left |= {canary for canary in CANARIES.values() if canary.encode() in rows}
    if on_success == "archive":
        assert left == {*CANARIES.values()}
    else:
        assert left == set()
        assert [each for each in CANARIES.values() if each in answers] == []


def rows_of(folder: Path) -> bytes:
    """Every value of every table, decompressed where it is a frame."""
    schema, values = postgres_server.schema_of(folder), []
    with postgres_server.beside(folder) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", [schema]
        ).fetchall()
        for (table,) in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'.encode()):  # noqa: S608 # its own
                for value in row:
                    data = value if isinstance(value, bytes) else repr(value).encode()
                    values += [data, *frames(data)]
    assert len(tables) > 10
    return b"\0".join(values)
