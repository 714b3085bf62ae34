"""Results of the library as plain data, for `values.text.dumps`. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hardsave.objects.records import ID_BYTES
from hardsave.timeline.refs import to_text
from hardsave.values.spelling import to_json
from hardsave.wording import in_our_words

if TYPE_CHECKING:
    from hardsave.tasks.recovery import RecoveryReport
    from hardsave.tasks.stats import TaskEvent
    from hardsave.tasks.task import Task
    from hardsave.timeline.diff import FileDiff
    from hardsave.vault.checkpoint import Checkpoint
    from hardsave.vault.files import GitState, LeftOut
    from hardsave.vault.jobs.state import Job
    from hardsave.vault.restore.git_position import GitChanges
    from hardsave.vault.restore.not_saved import Checkout
    from hardsave.vault.restore.plan import FileChanges
    from hardsave.vault.restore.rewind import Rewind
    from hardsave.vault.restore.undo import Operation


def row(one: "Checkpoint", *, is_brief: bool = False) -> dict[str, Any]:
    """What the row of a checkpoint says of it: no object is read for it. A brief one has no
    metadata."""
    return {
        "id": one.id,
        "ref": f"{one.timeline}:{one.seq}",
        "timeline": one.timeline,
        "seq": one.seq,
        "parent": one.parent,
        "created_at": one.created_at.isoformat(),
        "name": one.name,
        "kind": one.kind,
        "status": one.status,
        "description": one.description,
        "metadata": {} if is_brief else to_json(one.metadata),
        "task": one.task,
        "attempt": one.attempt,
    }


def checkpoint(one: "Checkpoint") -> dict[str, Any]:
    files = one.files
    return {
        **row(one),
        "files_id": None if files is None else files.id,
        "workspace": None if files is None else files.workspace,
        "git": git(one.git),
        "not_captured": left_out(one.not_captured),
        "by": one.by,
    }


def git(state: "GitState | None") -> dict[str, Any] | None:
    return None if state is None else state.as_dict()


def left_out(paths: "Sequence[LeftOut]") -> list[dict[str, str]]:
    return [each.as_dict() for each in paths]


def files(found: "FileDiff") -> dict[str, list[str]]:
    return {key: list(paths) for key, paths in found.as_dict().items()}


def counts(found: Mapping[str, int] | None) -> dict[str, int] | None:
    """How many files were added, changed and removed; of a first snapshot how many there are."""
    if found is None:
        return None
    words = (("+", "added"), ("~", "changed"), ("-", "removed"), ("", "first"))
    return {word: found.get(sign, 0) for sign, word in words}


def operation(one: "Operation") -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind,
        "timeline": one.timeline,
        "created_at": one.created_at.isoformat(),
        "number": one.number,
        "is_undone": one.is_undone,
        "about": logged(one.about),
        "by": one.by,
    }


def rewind(done: "Rewind", *, dry_run: bool) -> dict[str, Any]:
    return {
        "timeline": done.timeline,
        "target": checkpoint(done.target),
        "before": None if done.before is None else checkpoint(done.before),
        "moved": done.moved,
        "dry_run": dry_run,
        "files": None if done.files is None else file_changes(done.files),
        "tasks": [each.as_dict() for each in done.tasks],
    }


def task(one: "Task") -> dict[str, Any]:
    return {
        "id": one.id,
        "text": one.text,
        "state": one.state,
        "attempts": one.attempts,
        "max_attempts": one.max_attempts,
        "generation": one.generation,
        "priority": one.priority,
        "progress": one.progress.as_dict(),
        "created_at": one.created_at.isoformat(),
        "started_at": _moment(one.started_at),
        "ended_at": _moment(one.ended_at),
        "not_before": _moment(one.not_before),
        "after": list(one.after),
        "waits_for": one.waits_for,
        "question": one.question,
        "error_message": _in_our_words(one.error),  # `error` is what a command says when it fails
        "result": to_json(one.result),
        "metadata": to_json(one.metadata),
        "place": one.place,
    }


def job(one: "Job") -> dict[str, Any]:
    spec = one.spec
    return {
        "id": one.id,
        "lineage": one.lineage,
        "state": one.state,
        "turns": one.turns,
        "max_turns": one.max_turns,
        "percent": one.percent,
        "messages": one.messages,
        "model": one.model,
        "agent": spec.agent,
        "text": one.text,
        "workspace": spec.works_in,
        "updated_at": _moment(one.updated_at),
        "expires_at": _moment(one.expires_at),
        "can_resume": one.can_resume,
        "why_not": _in_our_words(one.why_not),
        "is_unserved": one.is_unserved,
        "checkpoint": one.checkpoint,
        "failure": _in_our_words(one.error),
        "question": one.question,
        "output": to_json(one.output),
        "resumed_from": None if spec.resumed is None else spec.resumed.from_job,
        "about": to_json(spec.about),
    }


def happening(one: "TaskEvent") -> dict[str, Any]:
    about = to_json(one.about)
    if isinstance(about, dict) and isinstance(about.get("error"), str):
        about["error"] = in_our_words(about["error"])
    return {
        "number": one.number,
        "kind": one.kind,
        "at": one.at.isoformat(),
        "generation": one.generation,
        "epoch": one.epoch,
        "about": about,
        "by": one.by,
    }


def recovery(found: "RecoveryReport", *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "was_clean": found.was_clean,
        "dead": [
            {"session": each.session, "since": each.since.isoformat(), "why": each.why}
            for each in found.dead
        ],
        "interrupted": [task(each) for each in found.interrupted],
        "outlived": [
            {"task": task(each.task), "pids": list(each.survivors.pids)} for each in found.outlived
        ],
        "last_session": found.last_session,
        "last_start": _moment(found.last_start),
        "last_stop": _moment(found.last_stop),
        "iterations": found.iterations,
        "incomplete_count": found.incomplete_count,
        "failed_count": found.failed_count,
        "incomplete": [task(each) for each in found.incomplete],
        "failed": [task(each) for each in found.failed],
    }


def _in_our_words(text: str | None) -> str | None:
    return None if text is None else in_our_words(text)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def file_changes(found: "FileChanges") -> dict[str, Any]:
    return {
        "workspace": found.workspace,
        "created": list(found.created),
        "changed": list(found.changed),
        "removed": list(found.removed),
        "kept": [each.as_dict() for each in found.kept],
        "missing": [each.as_dict() for each in found.missing],
        "is_complete": found.is_complete,
        "bytes": found.bytes,
        "git": None if found.git is None else _git_changes(found.git),
        "not_saved": [each.as_dict() for each in found.not_saved],
        "checkout": None if found.checkout is None else _checkout(found.checkout),
    }


def _checkout(found: "Checkout") -> dict[str, Any]:
    return {"then": git(found.then), "now": git(found.now), "can_return": found.can_return}


def _git_changes(found: "GitChanges") -> dict[str, Any]:
    return {
        "before": git(found.before),
        "after": git(found.after),
        "left_behind": [
            {**each.as_dict(), "parents": list(each.parents)} for each in found.left_behind
        ],
        "is_all": found.is_all,
    }


def logged(value: Any) -> Any:
    """What the log says of an operation, with its ids as people type them: what it keeps as bytes
    is an id, if it has the length of one."""
    if isinstance(value, bytes) and len(value) == ID_BYTES:
        return to_text(value)
    if isinstance(value, list):
        return [logged(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: logged(item) for key, item in value.items()}
    return to_json(value)
