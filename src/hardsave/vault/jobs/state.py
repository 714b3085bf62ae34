"""How a job stands, out of its task and its newest checkpoint; either may be missing. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from hardsave.defaults import JOB_DAYS
from hardsave.record import Record
from hardsave.tasks.task import Task
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.jobs import capabilities
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.capabilities import Capabilities
from hardsave.vault.jobs.spec import JobId, JobSpec

TTL = timedelta(days=JOB_DAYS)
STALE = timedelta(hours=1)
NEAR_LIMIT = 0.9

JobState = Literal["queued", "active", "waiting", "succeeded", "failed", "rolled_back", "forgotten"]
"""`waiting` is for an answer; `forgotten` has no task any more, only what was saved."""
STATES: tuple[JobState, ...] = get_args(JobState)

_STATES: Mapping[str, JobState] = {
    "pending": "queued",
    "in_progress": "active",
    "completed": "succeeded",
    "failed": "failed",
    "rolled_back": "rolled_back",
}
_BUSY: Mapping[JobState, str] = {
    "active": "a worker is at work on it",
    "waiting": "it waits for an answer: approve or deny it",
    "succeeded": "it has succeeded",
}
_HELD = (
    "its worker has died, and 'recovery' is 'manual': 'hardsave tasks recover' puts it back to work"
)


class Saved(NamedTuple):
    """What the newest checkpoint of a job says."""

    spec: JobSpec
    id: JobId
    checkpoint: str
    at: datetime
    status: str
    turns: int
    messages: int
    model: str | None
    error: str | None
    output: Any


def saved(head: Checkpoint | None) -> Saved | None:
    """None if there is nothing, or it is not a job's. Reads no message."""
    if head is None:
        return None
    state = head.state
    if not isinstance(state, Mapping) or not _is_conversation(state):
        return None
    data = head.read("data")
    content = data.get("content") if isinstance(data, Mapping) else None
    found = specs.from_plain(content.get(specs.KEY) if isinstance(content, Mapping) else None)
    if found is None:
        return None
    return Saved(
        spec=found[0],
        id=found[1],
        checkpoint=head.id,
        at=head.created_at,
        status=state["status"],
        turns=state["turn"],
        messages=len(state["messages"]),
        model=state["model"],
        error=state["error"],
        output=head.read("output", "content"),
    )


def _is_conversation(state: Mapping[str, Any]) -> bool:
    """Whether it has what is told of a job: a timeline may hold any state, and one that only
    looks like a conversation must not keep the other jobs from being seen."""
    if not state.keys() >= _READ:
        return False
    messages, output = state["messages"], state["output"]
    return (
        isinstance(messages, Sequence)
        and not isinstance(messages, str | bytes)
        and isinstance(state["turn"], int)
        and isinstance(state["status"], str)
        and isinstance(state["model"], str | None)
        and isinstance(state["error"], str | None)
        and isinstance(output, Mapping)
        and "content" in output
    )


_READ = frozenset({"messages", "data", "turn", "status", "model", "error", "output"})


def queued(task: Task | None) -> tuple[JobSpec, JobId] | None:
    """What a task says about its job; None if it is none."""
    if task is None:
        return None
    found = specs.from_plain(task.metadata.get(specs.KEY))
    return None if found is None else (found[0], specs.parse(task.id))


TASKS = "tasks"


def lane(task: Task) -> str | None:
    """Where a task waits that a runner does not want, the same for all: jobs by what they need,
    all else in `TASKS`. None: what belongs to a job has a thread of its own that looks for it."""
    if specs.KEY not in task.metadata:
        return TASKS
    asked = queued(task)
    return None if asked is None else capabilities.lane(asked[0])


def latest_number(task: Task | None, found: Saved | None) -> int:
    """Of the ids that a job has had, the highest number; 0 if neither place knows a job."""
    asked = queued(task)
    return max(0 if asked is None else asked[1].number, 0 if found is None else found.id.number)


class Job(Record):
    """A job, as of when it was looked at."""

    id: str
    lineage: str
    """Its first id, and the name of its timeline."""
    state: JobState
    text: str
    spec: JobSpec
    attempts: int
    turns: int
    """How many it has used; 0 also if it has succeeded and what it saved is gone."""
    max_turns: int
    messages: int
    model: str | None
    checkpoint: str | None
    """What a resume goes on from; None if there is nothing to go on from."""
    updated_at: datetime | None
    expires_at: datetime | None
    error: str | None
    question: str | None
    output: Any
    why_not: str | None
    """Why it cannot be resumed; None if it can."""
    is_unserved: bool = False
    """Whether it is queued, and no worker that runs now can take it: `why_not` says what is
    missing."""

    @property
    def can_resume(self) -> bool:
        return self.why_not is None

    @property
    def is_open(self) -> bool:
        """Whether something was saved that is still of use: neither done nor out of date."""
        return self.checkpoint is not None and self.state != "succeeded"

    @property
    def can_go_on(self) -> bool:
        """Whether something may still become of it, by itself or by a resume."""
        return self.can_resume or not self.is_over

    @property
    def can_delete(self) -> bool:
        """Whether there is something to take out of the queue, or something saved to let go; not
        while a worker is at work on it."""
        is_there = self.checkpoint is not None or not self.is_over
        return is_there and self.state != "active"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it by itself: it has succeeded or failed, or no task is
        left that a worker could take."""
        return self.state not in ("queued", "active", "waiting")

    @property
    def percent(self) -> int:
        """How much of its turns it has used; 100 only when it has succeeded."""
        if self.state == "succeeded":
            return 100
        return min(99, 100 * self.turns // self.max_turns)


def judged(
    task: Task | None,
    found: Saved | None,
    now: datetime,
    ttl: timedelta,
    workers: Collection[Capabilities] = (),
    *,
    is_held: bool = False,
) -> Job:
    """Put a job together. At least one of the two is there. `workers` are those that run now;
    `is_held`: its worker has died, and its task waits for an order to be put back to work."""
    asked = queued(task)
    if asked is None:
        assert found is not None
        asked = found.spec, found.id
    spec, id = asked
    state = _state(task, found)
    expires = None if found is None else found.at + ttl
    is_over = state in ("failed", "rolled_back", "forgotten")
    is_late = expires is not None and is_over and now >= expires
    usable = None if found is None or is_late else found.checkpoint
    turns = 0  # a task that is completed says that all of its progress is done
    if found is not None:
        turns = found.turns
    elif task is not None and task.state != "completed":
        turns = task.progress.done
    return Job(
        id=str(id),
        lineage=spec.lineage,
        state=state,
        text=spec.prompt if task is None else task.text,
        spec=spec,
        attempts=0 if task is None else task.attempts,
        turns=min(turns, spec.max_turns),
        max_turns=spec.max_turns,
        messages=0 if found is None else found.messages,
        model=spec.model if found is None or found.model is None else found.model,
        checkpoint=usable,
        updated_at=None if found is None else found.at,
        expires_at=expires,
        error=_error(task, found),
        question=None if task is None else task.question,
        output=_output(task, found),
        why_not=(
            capabilities.waits(spec, workers)
            if state == "queued"
            else _why_not(state, found, expires if is_late else None, is_held=is_held)
        ),
        is_unserved=state == "queued" and capabilities.is_unserved(spec, workers),
    )


def _state(task: Task | None, found: Saved | None) -> JobState:
    if task is not None:
        return "waiting" if task.question is not None else _STATES[task.state]
    return "succeeded" if found is not None and found.status == "completed" else "forgotten"


def _error(task: Task | None, found: Saved | None) -> str | None:
    if task is not None:
        return task.error
    return None if found is None else found.error


def _output(task: Task | None, found: Saved | None) -> Any:
    if task is not None:
        return task.result if task.state == "completed" else None
    return found.output if found is not None and found.status == "completed" else None


def _why_not(
    state: JobState, found: Saved | None, expired: datetime | None, *, is_held: bool
) -> str | None:
    if state == "active" and is_held:
        return _HELD
    if state in _BUSY:
        return _BUSY[state]
    if found is None:
        return "nothing was saved of it; a retry of its task begins it again"
    if expired is not None:
        return f"what was saved of it was kept until {expired:%Y-%m-%d %H:%M} UTC"
    return None


class JobHealth(Record):
    """Jobs in numbers, for monitoring."""

    total: int
    queued: int
    unserved: int
    """Of those that are queued: no worker that runs now can take them."""
    active: int
    waiting: int
    succeeded: int
    failed: int
    rolled_back: int
    forgotten: int
    resumable: int
    stale: int
    """Open, and nothing was saved for an hour."""
    near_limit: int
    """Open, with nine of ten turns used."""
    failures: int
    """Runs that ended without success. A job that was resumed twice has had two at least; one that
    was cancelled last has not failed."""
    resumes_open: int
    """Resumptions that have not ended."""
    resumes_succeeded: int
    resumes_failed: int

    @property
    def resume_success_ratio(self) -> float | None:
        """Of the resumptions that have ended, how many succeeded; None if none has ended."""
        ended = self.resumes_succeeded + self.resumes_failed
        return self.resumes_succeeded / ended if ended else None


def order(job: Job) -> tuple[bool, datetime | None, str]:
    """What lists of jobs are sorted by: those that moved last come last."""
    return (job.updated_at is None, job.updated_at, job.id)


def is_stale(job: Job, now: datetime) -> bool:
    """Whether nothing was saved of it for an hour."""
    return job.updated_at is not None and now - job.updated_at > STALE


def health(jobs: Iterable[Job], now: datetime) -> JobHealth:
    every = list(jobs)
    states = Counter(job.state for job in every)
    opened = [job for job in every if job.is_open and job.state != "waiting"]
    resumed = [job for job in every if _resumptions(job)]
    last = Counter(_outcome(job) for job in resumed)
    earlier = sum(map(_resumptions, resumed)) - len(resumed)
    return JobHealth(
        total=len(every),
        queued=states["queued"],
        unserved=sum(job.is_unserved for job in every),
        active=states["active"],
        waiting=states["waiting"],
        succeeded=states["succeeded"],
        failed=states["failed"],
        rolled_back=states["rolled_back"],
        forgotten=states["forgotten"],
        resumable=sum(job.can_resume for job in every),
        stale=sum(is_stale(job, now) for job in opened),
        near_limit=sum(job.turns >= NEAR_LIMIT * job.max_turns for job in opened),
        failures=sum(map(_resumptions, every)) + sum(_outcome(job) == "failed" for job in every),
        resumes_open=last["open"],
        resumes_succeeded=last["succeeded"],
        resumes_failed=last["failed"] + earlier,
    )


def _resumptions(job: Job) -> int:
    """How often it was resumed. Its id says so, also when the tasks of earlier runs are gone."""
    return specs.parse(job.id).number - 1


def _outcome(job: Job) -> Literal["open", "succeeded", "failed", "cancelled"]:
    """Of its latest run. An earlier one has failed, or the job could not have been resumed."""
    if job.state in ("queued", "active", "waiting"):
        return "open"
    if job.state == "failed" and job.error == "cancelled":
        return "cancelled"
    return "succeeded" if job.state == "succeeded" else "failed"
