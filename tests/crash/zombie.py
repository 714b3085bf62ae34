"""A worker that is stopped before one of its writes, and another one that takes its job over.

A write has a name: what it is about. The first worker stops itself (SIGSTOP) right before the write
of a name; the other waits until that worker counts as dead, does all that is left to do, wakes the
first (SIGCONT), waits for its end, and compares what is stored and what receivers have heard.
"""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, EntryRecord
from hardsave.runtime.jobs import callback
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.base import Batch
from hardsave.stores.ledger import TaskQuery, every
from hardsave.stores.postgres import PostgresStore
from hardsave.vault.jobs.state import Job
from hardsave.vault.save import attached
from hardsave.workspace.restore.steps import Steps

LEASE = 1.0
PATIENCE = 60.0
AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)
CALLS = ("write", "delegate", "pay")  # a turn each


def agent_of(vault: hardsave.Vault) -> Callable[[Job], Agent[None, Any]]:
    """An agent whose tools write a file, a task and a note, and need an approval."""

    def made(job: Job) -> Agent[None, Any]:
        def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = sum(isinstance(message, ModelResponse) for message in messages)
            if turn < len(CALLS):
                call = ToolCallPart(CALLS[turn], {}, tool_call_id=f"id-{turn}")
                return ModelResponse(parts=[call])
            return ModelResponse(parts=[TextPart("done")])

        agent: Agent[None, Any] = Agent(FunctionModel(say))

        @agent.tool_plain
        def write() -> str:
            """Write a file."""
            Path(str(job.spec.workspace), "written").write_text(str(os.getpid()))
            return "written"

        @agent.tool_plain
        def delegate() -> str:
            """Write a task and a note."""
            vault.tasks.add(f"delegated-{os.getpid()}", f"Look after {os.getpid()}")
            head = vault.timeline(job.lineage).head
            assert head is not None
            vault.put_notes(head, {"by": os.getpid()})
            return "delegated"

        @agent.tool_plain(requires_approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        return agent

    return made


def add(url: str, folder: str, receiver: str, on_success: Any) -> None:
    with hardsave.Vault(PostgresStore(url)) as vault:
        vault.jobs.add(
            "fix", "Fix it", workspace=folder, retries=5, callback=receiver, on_success=on_success
        )


class Watched(PostgresStore):
    """Tells of each write that is an attempt's before it is made."""

    def __init__(self, url: str, before: Callable[[str], None]) -> None:
        super().__init__(url)
        self._before = before

    def commit(self, batch: Batch) -> int:
        event = batch.event
        if isinstance(event, CheckpointRecord):
            self._before(f"save: {event.description}")
        elif isinstance(event, EntryRecord) and event.task is not None:
            self._before(f"{event.kind} {event.task.partition('-')[0]}")
        elif event.kind in ("workspace", "purge", "rewind"):
            self._before(event.kind)
        return super().commit(batch)

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        """Held for no longer than the worker counts as alive: a purge waits for what is pinned."""
        super().put(user, objects, pin=pin, seconds=LEASE)


def points(url: str) -> list[str]:
    """The writes of a job that is done by one worker."""
    found: list[str] = []
    _watch_what_has_no_fence(found.append)
    _finish(Watched(url, found.append))
    return found


def _watch_what_has_no_fence(before: Callable[[str], None]) -> None:
    """Notes, and what receivers are told: these are looked after right before they are sent. And
    the files that an attempt begins with, of which some are there by then."""
    connect, put_notes, take = callback._to, attached.put_notes, Steps.take

    def taken(steps: Steps) -> Any:
        before("files")
        return take(steps)

    def connected(*given: Any) -> Any:
        made = connect(*given)
        before("post")
        return made

    def put(*given: Any, **options: Any) -> None:
        before("put notes")
        put_notes(*given, **options)

    vars(callback)["_to"] = connected
    vars(attached)["put_notes"] = put
    Steps.take = taken  # type: ignore[method-assign, assignment] # it does one job


def stop_before(url: str, folder: str, name: str, at: int) -> None:
    """Do the job; stop before the write of this name, the `at`th of them from 0."""
    seen: Counter[str] = Counter()

    def before(found: str) -> None:
        seen[found] += 1
        if found == name and seen[found] == at + 1:
            Path(folder, "stopping").write_text(str(os.getpid()))
            os.rename(Path(folder, "stopping"), Path(folder, "stopped"))
            # To this thread: one to the process may be taken by another, while this goes on.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    _watch_what_has_no_fence(before)
    _finish(Watched(url, before))


def take_over(url: str, folder: str) -> dict[str, Any]:
    """What is stored before and after the first worker wakes."""
    pid = int(_waited_for(lambda: _read(Path(folder, "stopped"))))
    _waited_for(lambda: _state(pid) == "T")
    store = PostgresStore(url)
    _finish(store)
    with hardsave.Vault(PostgresStore(url)) as vault:
        if vault.timeline("fix").head is None:  # purged: the name is free for another
            vault.timeline("fix").save({"by": "another job of this name"})
        before = _stored(vault)
        os.kill(pid, signal.SIGCONT)
        _waited_for(lambda: _state(pid) in ("Z", ""))
        return {"before": before, "after": _stored(vault)}


def _finish(store: PostgresStore) -> None:
    """Run all that there is, and answer what is asked."""
    with hardsave.Vault(store) as vault:
        worker = Worker(
            vault,
            {"default": agent_of(vault)},
            unknown="retry",
            allow_private_callbacks=True,
            callback_retry=AT_ONCE,
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and _is_at_work(vault):
            worker.run(until_idle=True, retry=AT_ONCE, lease_seconds=LEASE, grace_seconds=PATIENCE)
            # The other program was faster, or its purge was interrupted.
            with contextlib.suppress(hardsave.Conflict, hardsave.NotFound):
                if vault.jobs.get("fix").question is not None:
                    vault.jobs.approve("fix")


def _is_at_work(vault: hardsave.Vault) -> bool:
    tasks = [*vault.tasks.find(state="pending"), *vault.tasks.find(state="in_progress")]
    is_told = any(each.id.startswith("fix/notice") for each in vault.tasks.find())
    is_purged = any(each.id == "fix/purge" for each in vault.tasks.find(state="completed"))
    return not (is_told or is_purged) or any(not each.id.startswith("delegated") for each in tasks)


def _stored(vault: hardsave.Vault) -> dict[str, Any]:
    """All but what sessions say of themselves."""
    store = vault._context.store
    tasks = list(every(store, None, TaskQuery(100)))
    histories = {each.name: store.entries(None, each.name, limit=1_000) for each in tasks}
    checkpoints = store.saved(None, 0, 1_000)
    return {
        "checkpoints": [str(each) for each in checkpoints],
        "notes": str(store.notes(None, [each.id for each in checkpoints])),
        "log": [str(each) for each in store.log(None, 0, 1_000)],
        "tasks": [str(each) for each in tasks],
        "histories": {name: [str(each) for each in rows] for name, rows in histories.items()},
        "journals": [str(store.journal(None, each.name, each.generation)) for each in tasks],
        "timeline": str(store.timeline(None, "fix")),
        "workspaces": [str(each) for each in store.workspaces(None, ("", b"", b""), 100)],
        "states": {each.name: each.state for each in tasks},
    }


def _waited_for(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError("what was waited for has not come")
        time.sleep(0.02)
    return found


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
