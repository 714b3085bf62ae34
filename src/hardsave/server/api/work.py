"""Tasks and jobs: lists, one of them, and what a person decides about them."""

import secrets
from typing import Any

from hardsave import Task
from hardsave.defaults import MAX_NAME, MAX_TASK_NAME
from hardsave.objects.hashing import digest
from hardsave.page import Page
from hardsave.server import directories, job_request
from hardsave.server.api import data
from hardsave.server.api.conditions import key_of_act, noting_repeats
from hardsave.server.api.shapes import TASK, also, listed, named, page_of, shape
from hardsave.server.fields import PAGED, Field, choice, flag, mapping, number, text, value
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.tasks import step_list
from hardsave.values.spelling import from_json
from hardsave.vault import json_data
from hardsave.vault.jobs.spec import check_url
from hardsave.vault.jobs.state import STATES as JOB_STATES

_TASK_STATES = ("pending", "in_progress", "completed", "failed", "rolled_back")
_LOOKED_AT = 1_000  # tasks that wait, for one page of approvals


# Tasks


def list_tasks(call: Call) -> Answer:
    asked = call.asked
    found = call.vault.tasks.find(
        state=asked["state"], newest_first=True, limit=asked["limit"], after=asked["cursor"]
    )
    return Answer(body=data.page(found, lambda each: _brief(call, json_data.task(each))))


def show_task(call: Call) -> Answer:
    one = call.vault.tasks.get(call.asked["id"])
    happened = call.vault.tasks.history(one.id)
    history = [_brief(call, json_data.happening(each)) for each in happened]
    steps = [data.step(each) for each in step_list.of_task(call.vault.tasks, one.id)]
    return Answer(body={**_brief(call, json_data.task(one)), "history": history, "steps": steps})


def _brief(call: Call, told: dict[str, Any]) -> dict[str, Any]:
    return data.brief(told, is_brief=call.asked["brief"])


def cancel_task(call: Call) -> Answer:
    with noting_repeats() as noted:
        done = call.vault.tasks.cancel(call.asked["id"], key=key_of_act(call))
    return noted.answered(Answer(body=json_data.task(done)))


def retry_task(call: Call) -> Answer:
    asked = call.asked
    with noting_repeats() as noted:
        done = call.vault.tasks.retry(
            asked["id"], unknown=asked["unknown"], force=asked["force"], key=key_of_act(call)
        )
    return noted.answered(Answer(body=json_data.task(done)))


def answer_task(call: Call) -> Answer:
    asked = call.asked
    with noting_repeats() as noted:
        done = call.vault.tasks.answer(
            asked["id"],
            from_json(asked["answer"]),
            question=_question(call),
            key=key_of_act(call),
        )
    return noted.answered(Answer(body=json_data.task(done)))


def _question(call: Call) -> str | None:
    """The question that was read. If it was told by its digest, and the task has never asked one
    with this digest, the digest stands for it: the answer is refused then."""
    asked: str | None = call.asked["question"]
    told: str | None = call.asked["question_digest"]
    if told is None:
        return asked
    happened = call.vault.tasks.history(call.asked["id"])
    every = (str(each.about["question"]) for each in happened if each.kind == "asked")
    return next((each for each in every if data.question_digest(each) == told), told)


def approvals(call: Call) -> Answer:
    """Reads so many tasks that wait at most: the page may be short, and `next` goes on."""
    asked, jobs = call.asked, call.vault.jobs
    looked: Page[Task] = call.vault.tasks.find(
        state="pending", newest_first=True, limit=_LOOKED_AT, after=asked["cursor"]
    )
    found = [
        data.approval(task, jobs.get(task.id) if jobs.owns(task) else None, is_brief=asked["brief"])
        for task in looked
        if task.question is not None
    ]
    return Answer(body={"items": found, "next": looked.next})


# Jobs


def list_jobs(call: Call) -> Answer:
    asked = call.asked
    found = call.vault.jobs.find(state=asked["state"], limit=asked["limit"], after=asked["cursor"])
    return Answer(body=data.page(found, lambda each: _brief(call, data.job(each))))


def show_job(call: Call) -> Answer:
    return Answer(body=_brief(call, data.job(call.vault.jobs.get(call.asked["id"]))))


def add_job(call: Call) -> Answer:
    asked = call.asked
    wanted = job_request.permitted(
        job_request.Submission(asked["prompt"], asked["agent"], asked["workspace"], None),
        directories.real(asked["workspace"]),
        call.allowed,
        tell=True,
    )
    with noting_repeats() as noted:
        job = call.vault.jobs.add(
            _job_id(call),
            wanted.task,
            agent=wanted.agent,
            workspace=wanted.workspace,
            max_turns=asked["max_turns"],
            retries=asked["retries"],
            callback=_callback(call),
            key=key_of_act(call),
        )
    return noted.answered(Answer(202, data.job(job)))


def _job_id(call: Call) -> str:
    """The one that was named; else one of its key, so that a repeated request finds its job."""
    key = key_of_act(call)
    if call.asked["id"] is not None:
        return str(call.asked["id"])
    return (
        f"job-{secrets.token_hex(8)}" if key is None else f"job-{digest(key.encode()).hex()[:16]}"
    )


def resume_job(call: Call) -> Answer:
    asked = call.asked
    with noting_repeats() as noted:
        done = call.vault.jobs.resume(
            asked["id"],
            from_ref=asked["from"],
            max_turns=asked["max_turns"],
            callback=_callback(call),
            keep_files=asked["keep_files"],
            key=key_of_act(call),
        )
    return noted.answered(Answer(body=data.job(done)))


def _callback(call: Call) -> str | None:
    url: str | None = call.asked["callback"]
    if url is not None:
        check_url(url)
    return url


def approve_job(call: Call) -> Answer:
    asked = call.asked
    with noting_repeats() as noted:
        done = call.vault.jobs.approve(
            asked["id"],
            arguments=None if asked["arguments"] is None else from_json(asked["arguments"]),
            question=_question(call),
            key=key_of_act(call),
        )
    return noted.answered(Answer(body=data.job(done)))


def deny_job(call: Call) -> Answer:
    asked = call.asked
    with noting_repeats() as noted:
        done = call.vault.jobs.deny(
            asked["id"],
            asked["reason"] or "",
            question=_question(call),
            key=key_of_act(call),
        )
    return noted.answered(Answer(body=data.job(done)))


def delete_job(call: Call) -> Answer:
    with noting_repeats() as noted:
        gone = call.vault.jobs.delete(call.asked["id"], key=key_of_act(call))
    return noted.answered(Answer(body={"deleted": data.job(gone)}))


_ID = text("id", "The id.", needed=True, most=MAX_TASK_NAME)
_READ = (
    text(
        "question", "The question that was read: refused if another is asked by now.", most=100_000
    ),
    text("question_digest", "The same, told by the digest that it came with."),
)
_BRIEF = flag("brief", "Cut long texts, and tell long values by the beginning of their JSON.")
_KEY = ("Idempotency-Key",)
_CALLBACK = text("callback", "A URL that is told when the job is over.")
_TURNS = number("max_turns", "How many turns it has.", 1, 100_000)
_ADDED: tuple[Field, ...] = (
    text("id", "What it is called; refused if it is there with another prompt.", most=MAX_NAME),
    text("prompt", "What the agent is asked to do.", needed=True, most=500_000),
    text("agent", "One of 'hardsave serve --allow-agent'.", needed=True),
    text("workspace", "One of 'hardsave serve --allow-workspace'.", needed=True),
    _TURNS._replace(schema={**_TURNS.schema, "default": 50}, default=50),
    number("retries", "How often it is tried again by itself.", 0, 99, default=0),
    _CALLBACK,
)
_RESUMED: tuple[Field, ...] = (
    _ID,
    text("from", "An earlier checkpoint of it to go on from."),
    _TURNS,
    _CALLBACK,
    flag("keep_files", "Go on with the files as they lie there now."),
)
_RETRIED: tuple[Field, ...] = (
    _ID,
    choice("unknown", "What becomes of steps whose end is not known.", "retry", "skip"),
    flag("force", "Also one that is completed: it starts over."),
)


def _get(path: str, handler: Any, summary: str, answer: Any, *query: Field) -> Route:
    return Route("GET", f"/api/v1/{path}", handler, "read", spec=Spec(summary, answer, query))


def _post(
    path: str, handler: Any, summary: str, answer: Any, *body: Field, status: int = 200
) -> Route:
    spec = Spec(summary, answer, body=body, status=status, headers=_KEY)
    return Route("POST", f"/api/v1/{path}", handler, "act", spec=spec)


_TASK, _JOB = named("Task"), named("Job")

ROUTES = (
    _get(
        "tasks",
        list_tasks,
        "Tasks, newest first",
        page_of(_TASK),
        choice("state", "Only in this state.", *_TASK_STATES),
        _BRIEF,
        *PAGED,
    ),
    _get(
        "task",
        show_task,
        "One task, with all that happened to it, and the steps of its journal",
        also(TASK, history=listed(named("TaskEvent")), steps=listed(named("Step"))),
        _ID,
        _BRIEF,
    ),
    _post("tasks/cancel", cancel_task, "Let a task not run, or not any further", _TASK, _ID),
    _post("tasks/retry", retry_task, "Put a failed task back to work", _TASK, *_RETRIED),
    _post(
        "tasks/answer",
        answer_task,
        "Answer what a task has asked",
        _TASK,
        _ID,
        value("answer", "The answer, as hardsave.to_json spells it.", needed=True),
        *_READ,
    ),
    _get(
        "approvals",
        approvals,
        "What waits for a person",
        page_of(named("Approval")),
        _BRIEF,
        PAGED[1],
    ),
    _get(
        "jobs",
        list_jobs,
        "Jobs, newest first",
        page_of(_JOB),
        choice("state", "Only in this state.", *JOB_STATES),
        _BRIEF,
        *PAGED,
    ),
    _get("job", show_job, "One job, by any of its ids", _JOB, _ID, _BRIEF),
    _post("jobs", add_job, "Queue a job", _JOB, *_ADDED, status=202),
    _post("jobs/resume", resume_job, "Queue a job again, from its last save", _JOB, *_RESUMED),
    _post(
        "jobs/approve",
        approve_job,
        "Let a job make its call",
        _JOB,
        _ID,
        mapping("arguments", "Make it with these instead; the agent is told."),
        *_READ,
    ),
    _post(
        "jobs/deny",
        deny_job,
        "Let a job go on without its call",
        _JOB,
        _ID,
        text("reason", "Told the agent.", most=2_000),
        *_READ,
    ),
    Route(
        "DELETE",
        "/api/v1/job",
        delete_job,
        "act",
        spec=Spec(
            "Take a job out of the queue, and hide what it saved",
            shape(deleted=_JOB),
            (_ID,),
            headers=_KEY,
        ),
    ),
)
