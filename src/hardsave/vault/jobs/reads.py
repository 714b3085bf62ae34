"""The half of `Jobs` that looks: a job is put together from its task and its newest checkpoint."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from hardsave.errors import Misuse, NotFound
from hardsave.page import Page, cursor_of, every
from hardsave.tasks import offers
from hardsave.tasks.ledger import Tasks, foresee, newest
from hardsave.tasks.reclaim import Foreseen
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
from hardsave.vault.jobs.spec import JobId
from hardsave.vault.jobs.state import Job, JobHealth, JobState, Saved
from hardsave.vault.line import Timeline

_PAGE = 500


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


class JobReads:
    """Looks at the jobs of one vault."""

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
        places = (self._places(JobId(name)) for name in self._lineages())
        known = [place for place in places if any(place)]  # the others were purged meanwhile
        jobs = [self._judged(*place, around) for place in known]
        return sorted(jobs, key=states.order, reverse=True)

    def health(self) -> JobHealth:
        """How many are in which state, which are stale, and which are about to run out of turns."""
        return states.health(self.every(), self._now())

    def can_resume(self, id: str) -> bool:
        """Whether `resume` would take it up; False also if there is no such job."""
        try:
            return self.get(id).can_resume
        except NotFound:
            return False

    # Putting together

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
