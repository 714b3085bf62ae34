"""Results of the library in the shapes of `/api/v1`. Pure: reads rows that are at hand, and of a
single checkpoint its files.

What lists show is read from rows alone. What needs an object for each checkpoint (where git stood,
what was not captured) is told of one checkpoint at a time.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from hardsave import (
    Checkpoint,
    Event,
    FileVersion,
    GraphNode,
    Hit,
    Job,
    Operation,
    Rewind,
    Session,
    Task,
)
from hardsave.objects.hashing import digest
from hardsave.page import Page
from hardsave.tasks.step_list import TakenStep
from hardsave.tasks.steps import UNKNOWN_ANSWERS, is_unknown_question
from hardsave.timeline.step_summary import StepSummary
from hardsave.values import text
from hardsave.values.messages import Message
from hardsave.values.spelling import to_json
from hardsave.vault import json_data
from hardsave.vault.files import File

T = TypeVar("T")


def page(found: Page[T], shown: Callable[[T], Any], **further: Any) -> dict[str, Any]:
    return {"items": [shown(each) for each in found], "next": found.next, **further}


def checkpoint(one: Checkpoint, *, is_brief: bool = False) -> dict[str, Any]:
    """A checkpoint as lists show it."""
    files = one.files
    summary = one.summary
    return {
        **json_data.row(one, is_brief=is_brief),
        "workspace": None if files is None else files.workspace,
        "host": None if files is None else files.host,
        "summary": None if summary is None else _summary(summary, is_brief=is_brief),
    }


def _summary(summary: StepSummary, *, is_brief: bool = False) -> dict[str, Any]:
    """A brief one names what was said only where no prompt or call tells more, and paths only where
    nothing does."""
    files = summary.files
    told = summary.as_dict()
    if is_brief:
        said = "" if summary.prompt or summary.call else summary.said
        has_words = bool(summary.prompt or summary.call or said)
        told |= {"said": said, "call_id": "", "paths": [] if has_words else list(summary.paths)}
    return {**told, "files": None if files is None else files.as_dict()}


def whole_checkpoint(one: Checkpoint) -> dict[str, Any]:
    """All that there is to say of one, but for its state and its files."""
    files = one.files
    return {
        **checkpoint(one),
        "labels": dict(one.labels),
        "notes": to_json(dict(one.notes)),
        "files_id": None if files is None else files.id,
        "git": json_data.git(one.git),
        "not_captured": json_data.left_out(one.not_captured),
        "ignored": [] if files is None else list(files.ignored),
    }


def session(one: Session[Checkpoint]) -> dict[str, Any]:
    head = None if one.head is None else checkpoint(one.head)
    newest = head if one.newest == one.head else one.newest and checkpoint(one.newest)
    summary = None if head is None else head["summary"]
    return {
        "timeline": one.timeline,
        "title": one.title,
        "created_at": one.created_at.isoformat(),
        "updated_at": one.updated_at.isoformat(),
        "status": one.status,
        "messages": None if summary is None else summary["messages"],  # decoded once
        "cost": one.cost,
        "checkpoints": one.checkpoints,
        "origin": one.origin,
        "is_deleted": one.is_deleted,
        "head": head,
        "newest": newest,
    }


def node(one: GraphNode[Checkpoint], *, is_brief: bool = False) -> dict[str, Any]:
    return {
        "checkpoint": checkpoint(one.checkpoint, is_brief=is_brief),
        "branches": [
            {"id": each.id, "timeline": each.timeline, "seq": each.seq} for each in one.branches
        ],
        "is_head": one.is_head,
        "is_current": one.is_current,
    }


CUT = 4_000
"""Characters of each text of a message that a list shows, if it is not asked for more."""


def message(number: int, one: Message, *, most: int | None) -> dict[str, Any]:
    """A message of any agent, and its number in the conversation, from 0; `most` is where its texts
    are cut, None: nowhere."""
    texts = [one.text, *one.results, *(call.arguments for call in one.calls)]
    return {
        "number": number,
        "role": one.role,
        "text": one.text[:most],
        "calls": [{"tool": each.tool, "arguments": each.arguments[:most]} for each in one.calls],
        "results": [each[:most] for each in one.results],
        "is_cut": most is not None and any(len(text) > most for text in texts),
    }


def file(one: File) -> dict[str, Any]:
    return {**one.as_dict(), "name": one.path.rpartition("/")[2]}


def version(one: FileVersion[Checkpoint]) -> dict[str, Any]:
    return {"checkpoint": checkpoint(one.checkpoint), "change": one.change, "size": one.size}


def operation(one: Operation) -> dict[str, Any]:
    about = {name: value for name, value in one.about.items() if name != "by"}
    return {**json_data.operation(one), "about": json_data.logged(about)}


def rewind(done: Rewind, *, dry_run: bool) -> dict[str, Any]:
    return {
        **json_data.rewind(done, dry_run=dry_run),
        "target": checkpoint(done.target),
        "before": None if done.before is None else checkpoint(done.before),
        "plan": done.plan,
        "messages_left": done.messages_left,
    }


def job(one: Job) -> dict[str, Any]:
    return {
        **json_data.job(one),
        "prompt": one.spec.prompt,
        "attempts": one.attempts,
        "can_delete": one.can_delete,
        "is_over": one.is_over,
        "is_open": one.is_open,
    }


def approval(task: Task, one: Job | None, *, is_brief: bool) -> dict[str, Any]:
    """A question that a person has to answer: of a job, or of a task of another program."""
    question = task.question or ""
    return {
        "kind": "task" if one is None else "job",
        "id": task.id,
        "timeline": None if one is None else one.lineage,
        "question": _cut(question) if is_brief else question,
        "question_digest": question_digest(question),
        "choices": list(UNKNOWN_ANSWERS) if is_unknown_question(question) else None,
        "task": brief(json_data.task(task), is_brief=is_brief),
    }


def question_digest(question: str) -> str:
    """What is told in the place of a question that was read: one may be of any length."""
    return f"question_{digest(question.encode()).hex()[:32]}"


_LONG = ("text", "prompt", "question", "error_message", "failure", "result", "output")
_NESTED = ("metadata", "about")


def brief(told: dict[str, Any], *, is_brief: bool) -> dict[str, Any]:
    """A task, a job or a happening, its long texts cut if it is to be brief. Another value that is
    long, such as a result, is the beginning of its JSON then."""
    if not is_brief:
        return told
    cut = {name: _cut(told[name]) for name in _LONG if name in told}
    for name in _NESTED:
        if isinstance(told.get(name), dict):
            cut[name] = {key: _cut(value) for key, value in told[name].items()}
    return {**told, **cut}


def _cut(value: Any) -> Any:
    """A value of JSON, or the beginning of one that is long."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(said) <= CUT else f"{said[: CUT - 1]}…"


def with_short_texts(value: Any) -> Any:
    """A value of JSON, the long texts in it cut."""
    if isinstance(value, dict):
        return {name: with_short_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [with_short_texts(each) for each in value]
    return _cut(value) if isinstance(value, str) else value


def step(one: TakenStep) -> dict[str, Any]:
    """A step of a task's journal; what it gave is shown as a text."""
    said = "" if one.value is None else text.shown(one.value)
    return {
        "path": one.path,
        "state": one.state,
        "started_at": None if one.started_at is None else one.started_at.isoformat(),
        "ended_at": None if one.ended_at is None else one.ended_at.isoformat(),
        "value": said[:CUT],
        "is_cut": len(said) > CUT,
    }


def hit(one: Hit[Checkpoint]) -> dict[str, Any]:
    return {
        "checkpoint": checkpoint(one.checkpoint),
        "timeline": one.timeline,
        "field": one.field,
        "path": one.path,
        "snippet": one.snippet,
        "marks": [list(mark) for mark in one.marks],
        "score": one.score,
        "newest": None if one.newest is None else checkpoint(one.newest),
        "change": one.change,
    }


def event(one: Event[Checkpoint]) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "timeline": one.timeline,
        "task": one.task,
        "created_at": one.created_at.isoformat(),
        "checkpoint": None if one.checkpoint is None else checkpoint(one.checkpoint),
        "data": None if one.data is None else json_data.logged(dict(one.data)),
    }


def plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record of numbers and texts."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else _listed(value)
        for name, value in record.items()
    }


def _listed(value: Any) -> Any:
    is_many = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return list(value) if is_many else value
