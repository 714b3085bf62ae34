"""`Jobs`: adding jobs, looking at them, resuming them.

Contract. A job is known from two places, the ledger and its timeline, and each alone is enough
to look at it and to resume it. What `can_resume` says and what `resume` does are one decision
over the same look. Of two who resume the same job one wins, the other gets `Conflict`.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from hardsave.defaults import JOB_TURNS
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.logs import log
from hardsave.page import Page, cursor_of, every
from hardsave.tasks import offers
from hardsave.tasks.ledger import Tasks, foresee, newest, recover_by_itself
from hardsave.tasks.rescue import Foreseen
from hardsave.tasks.task import Task
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import check_limit
from hardsave.vault.checkpoint import Checkpoint, Ref
from hardsave.vault.jobs import capabilities
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.capabilities import Capabilities
from hardsave.vault.jobs.listing import (
    Listed,
    Place,
    has_tasks,
    lines_of_jobs,
    may_have_none,
    task_state,
)
from hardsave.vault.jobs.spec import JobId, JobResumption, JobSpec, OnSuccess
from hardsave.vault.jobs.state import Job, JobHealth, JobState, Saved
from hardsave.vault.line import Timeline

_PAGE = 500
_WORDS = ("prompt", "about")  # for people and models


def utc_now() -> datetime:
    return datetime.now(UTC)


class Holder(Listed, Protocol):
    """What jobs need of a vault."""

    @property
    def tasks(self) -> Tasks: ...
    def timeline(self, name: str) -> Timeline: ...
    def timelines(self) -> Iterator[Timeline]: ...
    def get(self, ref: Ref) -> Checkpoint: ...


class _Around(NamedTuple):
    """What a job's standing depends on beside its own two places."""

    workers: Sequence[Capabilities]  # that run now
    dead: Foreseen  # what becomes of the tasks of workers that have died


class Jobs:
    """The jobs of one vault: `vault.jobs`. What is saved of a job that is not finished is kept for
    `ttl`, counted from the last save; `Jobs(vault, ttl=…)` keeps it for another time."""

    def __init__(
        self,
        vault: Holder,
        *,
        ttl: timedelta = states.TTL,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        if ttl <= timedelta(0):
            raise Misuse(f"ttl is longer than nothing, not {ttl}")
        self._vault = vault
        self._ttl = ttl
        self._now = now

    @staticmethod
    def owns(task: Task) -> bool:
        """Whether a task is a worker's, a job or the notice of one: for runners that do other
        work."""
        return specs.KEY in task.metadata

    # Adding and looking

    def add(
        self,
        id: str,
        prompt: str,
        *,
        agent: str = specs.DEFAULT_AGENT,
        text: str | None = None,
        workspace: "str | os.PathLike[str] | None" = None,
        max_turns: int = JOB_TURNS,
        model: str | None = None,
        retries: int = 0,
        callback: str | None = None,
        on_success: OnSuccess = "archive",
        priority: int = 0,
        about: Mapping[str, Any] | None = None,
    ) -> Job:
        """Queue a job, unless it is there already; one that is comes back as it stands.

        `agent` is a name that a worker knows; until one that does runs, it stays queued. After a
        failure or a crash it is tried again by itself `retries` times, for as long as it has
        turns; after that `resume` takes it up. On success its history stays, or is purged.
        `callback` is told when it is over, until it has answered.
        """
        if specs.parse(id).number != 1:
            raise Misuse(f"{id!r} reads as a job that was resumed; choose an id without '~N'")
        self._vault.timeline(id)  # its name has to fit, too
        spec = JobSpec(
            lineage=id,
            prompt=prompt,
            agent=agent,
            workspace=None if workspace is None else os.path.abspath(workspace),
            max_turns=max_turns,
            turns_given=max_turns,
            model=model,
            retries=retries,
            callback=callback,
            on_success=on_success,
            about=dict(about or {}),
        )
        task, found = self._places(JobId(id))
        if task is not None or found is not None:
            return self._known(id, spec, task, found)
        if self._vault.timeline(id).head is not None:
            raise Conflict(f"timeline {id!r} holds something else; choose another id for the job")
        self._queue(spec, JobId(id), text or prompt, priority)
        return self.get(id)

    def _known(self, id: str, spec: JobSpec, task: Task | None, found: Saved | None) -> Job:
        asked = states.queued(task)
        known = asked[0] if asked is not None else found and found.spec
        if known is None:
            raise Conflict(f"task {id!r} is no job; choose another id")
        if known.prompt not in (spec.prompt, self._vault.timeline(id).as_saved(spec.prompt)):
            raise Conflict(f"job {id!r} was asked something else; choose another id")
        return self._judged(task, found)

    def _queue(self, spec: JobSpec, id: JobId, text: str, priority: int) -> Task:
        self._check_kept(spec, id)
        task = self._vault.tasks.add(
            str(id),
            text,
            key=f"{specs.KEY}:{id}",
            max_attempts=1 + spec.retries,
            priority=priority,
            metadata={specs.KEY: specs.to_plain(spec, id)},
        )
        if not task.is_new or task.id != str(id):
            raise Conflict(f"another process has just queued job {str(id)!r}; look at it again")
        return task

    def _check_kept(self, spec: JobSpec, id: JobId) -> None:
        """Without a secret a prompt is still one; an address, a path or a name leads nowhere."""
        asked = specs.to_plain(spec, id)
        kept = self._vault.timeline(spec.lineage).as_saved(asked)
        lost = [name for name in asked if name not in _WORDS and kept[name] != asked[name]]
        if lost:
            raise Misuse(
                f"the {lost[0]} of job {str(id)!r} holds a secret, which this vault does not keep: "
                f"{kept[lost[0]]!r}; give one without it"
            )

    def get(self, id: str) -> Job:
        """A job by any of the ids that it has had, as it stands now. If its worker has died, as it
        stands once that is written down; a look writes nothing."""
        return self._judged(*self._look(id))

    def _look(self, id: str) -> tuple[Task | None, Saved | None]:
        """Both places of a job, at least one of which knows it, under this id or a later one."""
        task, found = self._places(specs.parse(id))
        if specs.parse(id).number > states.latest_number(task, found):
            raise NotFound(f"there is no job {id!r}; see jobs.find()")
        return task, found

    def find(
        self, *, state: JobState | None = None, limit: int = 50, after: str | None = None
    ) -> Page[Job]:
        """A page of jobs, the newest first: by when each was queued last, and after these the ones
        of which no task is left. `after` is the `next` of the page before. Reads what the page
        shows, and writes nothing."""
        check_limit(limit)
        if state is not None and state not in states.STATES:
            raise Misuse(f"a state is one of {', '.join(states.STATES)}, not {state!r}")
        listing = f"jobs {self._vault.user!r} {state}"
        found: list[tuple[str, Job]] = []
        for place, job in self._newest(state, Place(after, listing)):
            if state not in (None, job.state):
                continue
            if len(found) == limit:
                return Page([one for _, one in found], cursor_of(listing, found[-1][0]))
            found.append((place, job))
        return Page([one for _, one in found], None)

    def _newest(self, state: JobState | None, after: Place) -> Iterator[tuple[str, Job]]:
        """Jobs with their places, those after a place."""
        around = self._around()
        if after.task is not None and has_tasks(state):
            of_tasks = task_state(state, may_have_died=bool(around.dead.become))
            for place, task in newest(self._vault.tasks, of_tasks, after.task):
                asked = states.queued(task)
                latest, found = (None, None) if asked is None else self._places(asked[1])
                if latest is not None and latest.id == task.id:
                    yield f"t{place}", self._judged(latest, found, around)
        if may_have_none(state):
            for cursor, name in lines_of_jobs(self._vault, after.session):
                latest, found = self._places(JobId(name))
                if latest is None and found is not None:
                    yield f"s{cursor}", self._judged(None, found, around)

    def every(self) -> list[Job]:
        """All jobs, those that moved last first."""
        around = self._around()
        jobs = [self._judged(*self._places(JobId(name)), around) for name in self._lineages()]
        return sorted(jobs, key=states.order, reverse=True)

    def health(self) -> JobHealth:
        """How many are in which state, which are stale, and which are about to run out of turns."""
        return states.health(self.every(), self._now())

    # Going on

    def can_resume(self, id: str) -> bool:
        """Whether `resume` would take it up; False also if there is no such job."""
        try:
            return self.get(id).can_resume
        except NotFound:
            return False

    def resume(
        self,
        id: str,
        *,
        from_ref: str | None = None,
        max_turns: int | None = None,
        callback: str | None = None,
        keep_files: bool = False,
    ) -> Job:
        """Queue a job again that has failed, was killed, or has used its turns: it goes on where it
        was, under the next id of its lineage.

        Its worker first has the files of its last save in its directory, and saves what lies there
        before; `keep_files` lets it go on with the files as they are. With `from_ref`, its worker
        takes conversation and files back to an earlier checkpoint first. A job that has used all
        its turns gets as many again, unless `max_turns` says otherwise. What comes back is what it
        goes on from, also if a worker has taken it up meanwhile.
        """
        self._recover()
        task, found = self._look(id)
        job = self._judged(task, found)
        if job.why_not is not None:
            wrong = NotFound if job.state in ("failed", "rolled_back", "forgotten") else Conflict
            raise wrong(f"job {job.id!r} cannot be resumed: {job.why_not}")
        target = None if from_ref is None else self._target(job, from_ref)
        used = job.turns if target is None else target.turns
        spec = replace(
            job.spec,
            max_turns=specs.more_turns(job.spec, used, max_turns),
            callback=job.spec.callback if callback is None else callback,
            resumed=JobResumption(from_job=job.id, at=self._now().isoformat(timespec="seconds")),
            restore_from=None if target is None else target.checkpoint,
            keep_files=keep_files,
        )
        queued = self._queue(spec, specs.parse(job.id).next, job.text, 0)
        if self._saved(job.lineage) is None:
            self._cancel_queued(queued)
            raise NotFound(f"job {job.id!r} cannot be resumed: it was deleted meanwhile")
        log(__name__).info(
            "job %r is resumed as %r, from turn %d of %d", job.id, queued.id, used, spec.max_turns
        )
        return self._judged(queued, found if target is None else target)

    def _target(self, job: Job, ref: str) -> Saved:
        """A checkpoint of a job to go on from."""
        found = states.saved(self._vault.timeline(job.lineage).get(ref))
        if found is None or found.spec.lineage != job.lineage:
            raise Misuse(f"{ref!r} is no checkpoint of job {job.lineage!r}; choose one of its own")
        return found

    def approve(self, id: str, *, question: str | None = None) -> Job:
        """Let the call be made that a job has asked about. `question` is what was read: `Conflict`
        if the job asks something else by now."""
        return self._answered(id, True, question)

    def deny(self, id: str, reason: str = "", *, question: str | None = None) -> Job:
        """Let it not be made; the agent is told the reason, and goes on."""
        return self._answered(id, reason or False, question)

    def _answered(self, id: str, answer: Any, question: str | None) -> Job:
        job = self.get(id)
        if job.question is None:
            raise Conflict(f"job {job.id!r} ({job.state}) has asked nothing")
        self._vault.tasks.answer(job.id, answer, question=question or job.question)
        return self.get(job.lineage)

    # Letting go

    def delete(self, id: str) -> Job:
        """Take a job out of the queue, and let what was saved of it go, so that it cannot be
        resumed; as it was. `undo` of the vault brings back what was saved."""
        self._recover()
        job = self.get(id)
        if job.state == "active":
            raise Conflict(f"job {job.id!r} is being worked on; cancel its task first")
        if not job.can_delete:
            raise NotFound(f"nothing is saved of job {job.id!r}")
        if not job.is_over:
            self._vault.tasks.cancel(job.id)
        if job.checkpoint is not None:
            self._let_go(job)
        # Of a delete and a resume at once, each writes before it looks: one of them sees the other,
        # and no job begins anew that was to go on.
        self._cancel_queued(self._task(specs.parse(job.id).next))
        return job

    def _cancel_queued(self, resumed: Task | None) -> None:
        if resumed is not None and resumed.state == "pending":
            with contextlib.suppress(Conflict):  # the other has cancelled it
                self._vault.tasks.cancel(resumed.id)

    def clean(self) -> list[str]:
        """Delete what was saved of jobs whose time has passed; their ids."""
        late = [job for job in self.every() if self._is_late(job)]
        for job in late:
            self._let_go(job)
        return [job.id for job in late]

    def _let_go(self, job: Job) -> None:
        self._vault.timeline(job.lineage).delete()
        cancel_purge(self._vault.tasks, job.id)

    def _is_late(self, job: Job) -> bool:
        is_left = job.is_over and job.state != "succeeded"
        return is_left and job.checkpoint is None and job.expires_at is not None

    # Reading

    def _judged(self, task: Task | None, found: Saved | None, around: _Around | None = None) -> Job:
        if around is None and task is not None and task.state in ("pending", "in_progress"):
            around = self._around()
        if around is None:
            return states.judged(task, found, self._now(), self._ttl)
        if task is not None and task.state == "in_progress":
            task = around.dead.become.get(task.id, task)
        is_held = task is not None and task.id in around.dead.held
        workers = around.workers
        return states.judged(task, found, self._now(), self._ttl, workers, is_held=is_held)

    def _around(self) -> _Around:
        dead = foresee(self._vault.tasks)
        offered = offers.offered(self._vault.tasks, without=dead.owners)
        return _Around(capabilities.offered_by_workers(offered), dead)

    def _places(self, id: JobId) -> tuple[Task | None, Saved | None]:
        """The latest task of a lineage, and its newest checkpoint."""
        found = self._saved(id.lineage)
        at = JobId(id.lineage) if found is None else found.id
        task = self._task(at)
        while (following := self._task(at.next)) is not None:
            task, at = following, at.next
        return task, self._taken_back(task, found)

    def _taken_back(self, task: Task | None, found: Saved | None) -> Saved | None:
        """What a resumption goes on from: until it has begun, what it was asked to go back to."""
        asked = states.queued(task)
        if asked is None or asked[0].restore_from is None:
            return found
        if found is not None and found.id == asked[1]:
            return found
        try:
            return states.saved(self._vault.get(asked[0].restore_from))
        except NotFound:
            return found  # dropped since; its worker will say so

    def _saved(self, lineage: str) -> Saved | None:
        """What the timeline of a job says. A fork, or one that was taken to a checkpoint of
        another job, tells of that one, and is no job."""
        found = states.saved(self._vault.timeline(lineage).head)
        return found if found is not None and found.spec.lineage == lineage else None

    def _task(self, id: JobId) -> Task | None:
        try:
            return self._vault.tasks.get(str(id))
        except NotFound:
            return None

    def _lineages(self) -> Iterator[str]:
        """Every job that one of the two places knows, once."""
        known: set[str] = set()
        for task in every(lambda after: self._vault.tasks.find(limit=_PAGE, after=after)):
            if (asked := states.queued(task)) is not None:
                known.add(asked[1].lineage)
        for line in self._vault.timelines():
            if line.name not in known and self._saved(line.name) is not None:
                known.add(line.name)
        yield from sorted(known)

    def _recover(self) -> None:
        """Write down which workers have died, before something is written that depends on it. On
        another machine than theirs this cannot be told."""
        with contextlib.suppress(Unavailable):
            recover_by_itself(self._vault.tasks)


def cancel_purge(tasks: Tasks, id: str) -> None:
    """Cancel the purge that would have followed on the success of a job, if it has not begun."""
    with contextlib.suppress(NotFound, Conflict):
        if tasks.get(specs.purge_id(id)).state == "pending":
            tasks.cancel(specs.purge_id(id))


# Pages: the cursor is where its last job stood, so that one that moves meanwhile moves no page


def page_of(jobs: list[Job], *, state: JobState | None, limit: int, after: str | None) -> Page[Job]:
    """A page of what `every` gave."""
    check_limit(limit)
    rest = jobs if after is None else _behind(jobs, after)
    chosen = [job for job in rest if state in (None, job.state)]
    return Page(chosen[:limit], _cursor(chosen[limit - 1]) if len(chosen) > limit else None)


def _cursor(last: Job) -> str:
    when = "" if last.updated_at is None else last.updated_at.isoformat()
    return f"{when} {last.id}"


def _behind(jobs: list[Job], cursor: Any) -> list[Job]:
    """Those that come after a cursor; `jobs` are in order."""
    at, is_one = None, isinstance(cursor, str)
    when, _, id = str(cursor).partition(" ")
    try:
        at = datetime.fromisoformat(when) if when else None
    except ValueError:
        is_one = False
    if not is_one or (at is not None and at.tzinfo is None):
        raise Misuse(f"after is the `next` of an earlier page, not {cursor!r}")
    return [job for job in jobs if states.order(job) < (not when, at, id)]
