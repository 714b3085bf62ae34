"""What a browser asks for, and the acts of a person: each form names the job as it was seen."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from hardsave import Job
from hardsave.errors import Misuse, NotFound
from hardsave.page import Page
from hardsave.server.page import render, views
from hardsave.server.page.render import Links
from hardsave.server.projects import PROJECT, updated_at
from hardsave.server.route import HTML, Answer, Call, Route
from hardsave.values import messages
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.ledger import page_of
from hardsave.vault.jobs.state import JobState

_JOBS = 50  # on one page
_LONGEST_REASON = 2_000


def top(call: Call) -> Answer:
    """The jobs of a project; where there are several, and none was chosen, the projects."""
    is_list = call.catalogue.is_all and call.project is None
    return _list_projects(call) if is_list else list_jobs(call)


def _list_projects(call: Call) -> Answer:
    seen = [each for each in call.catalogue.projects() if call.caller.sees(each.id)]
    return _page(call, "projects.html", projects=views.newest_first(seen, updated_at))


def list_jobs(call: Call) -> Answer:
    jobs, state, after = call.vault.jobs.every(), _state(call), call.query.get("after")
    health = states.health(jobs, datetime.now(UTC))
    asking = page_of(jobs, state="waiting", limit=_JOBS, after=None)
    found = page_of(jobs, state=state, limit=_JOBS, after=after)
    is_first = state is None and after is None
    return _page(
        call,
        "jobs.html",
        tabs=views.tabs(health, state),
        health=health,
        state=state,
        waiting=asking if is_first else Page[Job]([], None),
        jobs=[job for job in found if not is_first or job.state != "waiting"],
        following=found.next,
        is_first=after is None,
    )


def _state(call: Call) -> JobState | None:
    given = call.query.get("state")
    if given is not None and given not in views.STATES:
        raise Misuse(f"a state is one of {', '.join(views.STATES)}, not {given!r}")
    return given


def show_job(call: Call) -> Answer:
    job = call.vault.jobs.get(_id(call))
    items = _messages(call, job)
    roles, tools = messages.counted(items)
    head = None if job.checkpoint is None else call.vault.get(job.checkpoint)
    return _page(
        call,
        "job.html",
        job=job,
        head=head,
        roles=roles.most_common(),
        tools=tools.most_common(),
        passage=views.passage(items, _number(call, "messages")),
        full="full" in call.query,
    )


def show_message(call: Call) -> Answer:
    job = call.vault.jobs.get(_id(call))
    number, items = _number(call, "number"), _messages(call, job)
    if number is None or not 1 <= number <= len(items):
        raise NotFound(f"job {job.id!r} has {len(items)} messages, and none is number {number}")
    message = messages.read(items[number - 1])
    return _page(call, "message.html", job=job, numbered=views.Numbered(number, message))


def _messages(call: Call, job: Job) -> Sequence[Any]:
    head = call.vault.timeline(job.lineage).head
    found = None if head is None else messages.of(head.state)
    return [] if found is None else found[1]


def ask_delete(call: Call) -> Answer:
    return _page(call, "delete.html", job=call.vault.jobs.get(_id(call)))


# Acts: done once, on the job that the person saw, and answered with a page to look at


def resume(call: Call) -> Answer:
    return _act(call, "resumed", lambda job: call.vault.jobs.resume(job.id))


def approve(call: Call) -> Answer:
    return _act(
        call, "approved", lambda job: call.vault.jobs.approve(job.id, question=job.question)
    )


def deny(call: Call) -> Answer:
    reason = _field(call, "reason").strip()
    if len(reason) > _LONGEST_REASON:
        raise Misuse(f"a reason has {_LONGEST_REASON:,} characters at most, not {len(reason):,}")
    return _act(
        call, "denied", lambda job: call.vault.jobs.deny(job.id, reason, question=job.question)
    )


def delete(call: Call) -> Answer:
    return _act(call, "deleted", lambda job: call.vault.jobs.delete(job.id))


def _act(call: Call, done: str, act: Callable[[Job], Job]) -> Answer:
    job = call.vault.jobs.get(_field(call, "id"))
    if _field(call, "seen") != views.stamp(job):
        return _page(call, "moved_on.html", status=409, job=job, act=done)
    after = act(job)
    to_list = done == "deleted" or _field(call, "back") == "list"
    if done == "deleted" and after.checkpoint is None:
        done = "cancelled"
    links = _links(call)
    where = links("/", done=done) if to_list else links("/jobs", id=after.id, done=done)
    return Answer(303, "", HTML, (("Location", where),))


# Reading what was sent


def _id(call: Call) -> str:
    found = call.path.get("id") or call.query.get("id")
    if not found:
        raise Misuse("the address names no job; go back to the list and choose one")
    return found


def _field(call: Call, name: str) -> str:
    found = (call.body or {}).get(name, "")
    return found if isinstance(found, str) else ""


def _number(call: Call, name: str) -> int | None:
    given = call.query.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise Misuse(f"{name} is a number, not {given!r}")
    return int(given)


def _links(call: Call) -> Links:
    return Links(call.public.prefix, call.query.get(PROJECT))


def _page(call: Call, template: str, *, status: int = 200, **about: Any) -> Answer:
    caller = call.caller
    body = render.page(
        template,
        _links(call),
        **about,
        now=datetime.now(UTC),
        user=caller.user,
        form_token=caller.form_token,
        may_act=caller.may("act") and bool(caller.form_token),
        done=views.DONE.get(call.query.get("done", "")),
        views=views,
        project=call.project if call.catalogue.is_all else None,
    )
    return Answer(status, body, HTML)


def style(call: Call) -> Answer:
    return Answer(200, render.asset("style.css"), "text/css; charset=utf-8")


def icon(call: Call) -> Answer:
    return Answer(200, render.asset("icon.svg"), "image/svg+xml")


ROUTES = (
    Route("GET", "/old", top, scope="read", page=True, needs_project=False),
    Route("GET", "/jobs", show_job, scope="read", page=True),
    Route("GET", "/jobs/{id}", show_job, scope="read", page=True),
    Route("GET", "/message", show_message, scope="read", page=True),
    Route("GET", "/delete", ask_delete, scope="act", page=True),
    Route("POST", "/delete", delete, scope="act", page=True),
    Route("POST", "/resume", resume, scope="act", page=True),
    Route("POST", "/approve", approve, scope="act", page=True),
    Route("POST", "/deny", deny, scope="act", page=True),
    Route("GET", "/style.css", style, scope=None, page=True, needs_project=False),
    Route("GET", "/icon.svg", icon, scope=None, page=True, needs_project=False),
)
