"""`Jobs`: adding jobs, looking at them, resuming them.

Contract. A job is known from two places, the ledger and its timeline, and each alone is enough
to look at it and to resume it. What `can_resume` says and what `resume` does are one decision
over the same look. Of two who resume the same job one wins, the other gets `Conflict`.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hardsave.defaults import JOB_TURNS
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.logs import log
from hardsave.page import Page
from hardsave.tasks.ledger import Tasks, recover_by_itself
from hardsave.tasks.task import Task
from hardsave.vault.arguments import check_limit
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.reads import JobReads, order
from hardsave.vault.jobs.spec import JobId, JobResumption, JobSpec, OnSuccess
from hardsave.vault.jobs.state import Job, JobState, Saved

_PAGE = 500
_WORDS = ("prompt", "about")  # for people and models


class Jobs(JobReads):
    """The jobs of one vault: `vault.jobs`. What is saved of a job that is not finished is kept for
    `ttl`, counted from the last save; `Jobs(vault, ttl=…)` keeps it for another time."""

    # Adding

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

    # Going on

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
    return [job for job in jobs if order(job) < (not when, at, id)]
