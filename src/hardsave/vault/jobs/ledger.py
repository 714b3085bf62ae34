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
from hardsave.objects.records import LogRecord
from hardsave.page import Page
from hardsave.stores import requests
from hardsave.stores.ledger import Work
from hardsave.stores.requests import MadeMeanwhile, Request
from hardsave.tasks import acts, adding
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.ledger import Tasks, desk_of, recover_by_itself
from hardsave.tasks.states import is_cancelled
from hardsave.tasks.task import Task, view
from hardsave.vault import operations
from hardsave.vault.arguments import check_limit
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.reads import JobReads
from hardsave.vault.jobs.spec import JobId, JobResumption, JobSpec, OnSuccess
from hardsave.vault.jobs.state import Job, JobState, Saved
from hardsave.vault.line import Timeline, checkpoint_at, delete_with_tasks
from hardsave.vault.operations import Entry

_WORDS = ("prompt", "about")  # for people and models


class Jobs(JobReads):
    """The jobs of one vault: `vault.jobs`. What is saved of a job that is not finished is kept for
    `ttl`, counted from the last save; `Jobs(vault, ttl=…)` keeps it for another time."""

    @property
    def _context(self) -> LedgerContext:
        return desk_of(self._vault.tasks)

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
        key: str | None = None,
    ) -> Job:
        """Queue a job, unless it is there already; one that is comes back as it stands.

        `agent` is a name that a worker knows; until one that does runs, it stays queued. After a
        failure or a crash it is tried again by itself `retries` times, for as long as it has
        turns; after that `resume` takes it up. On a store that machines share, three crashes of its
        workers are no failure of it: it goes on even without `retries`. On success its history
        stays, or is purged with its prompt and its result: then it is known by its id alone.
        `callback` is told when it is over, until it has answered. For the `key` see `resume`:
        without one, a job of this id that was asked the same is the same request.
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
        said = specs.to_plain(spec, JobId(id))
        request = requests.request(self._context, key, "add job", said, text, priority)
        job, _ = requests.once(
            self._context,
            request,
            lambda: self._added(spec, text or prompt, priority, request),
            lambda made: self.get(requests.told(made)["task"]),
        )
        return job

    def _added(self, spec: JobSpec, text: str, priority: int, request: Request) -> Job:
        id = spec.lineage
        known = self._known(id, spec)
        if known is not None:
            return known
        line = self._vault.timeline(id)
        if line.head is not None and not _has_files_alone(line):
            raise Conflict(f"timeline {id!r} holds something else; choose another id for the job")
        self._save_files(spec, line)
        try:
            self._queue(spec, JobId(id), text, priority, request)
        except MadeMeanwhile:
            raise
        except Conflict:
            known = self._known(id, spec)  # perhaps the same request was made just now
            if known is None:
                raise
        return known or self.get(id)

    def _save_files(self, spec: JobSpec, line: Timeline) -> None:
        """Save the directory of a job that another host may run, so that its files are there. If
        the job is not queued then, the next try saves them again."""
        where = spec.workspace
        if where is not None and self._context.store.is_shared and os.path.isdir(where):
            line.save_files(where, description="the files that the job begins with")

    def _known(self, id: str, spec: JobSpec) -> Job | None:
        """A job that is there already, as it stands; `Conflict` if it was asked something else."""
        task, found = self._places(JobId(id))
        if task is None and found is None:
            return None
        asked = states.queued(task)
        known = asked[0] if asked is not None else found and found.spec
        if known is None:
            raise Conflict(f"task {id!r} is no job; choose another id")
        if specs.is_purged(known):  # its id is all that is left to know the request by
            return self._judged(task, found)
        if known.prompt not in (spec.prompt, self._vault.timeline(id).as_saved(spec.prompt)):
            raise Conflict(f"job {id!r} was asked something else; choose another id")
        return self._judged(task, found)

    def _queue(
        self, spec: JobSpec, id: JobId, text: str, priority: int, request: Request | None = None
    ) -> Task:
        self._check_kept(spec, id)
        record = adding.new(
            self._context,
            id=str(id),
            text=text,
            key=f"{specs.KEY}:{id}",
            max_attempts=specs.most_attempts(spec, is_shared=self._context.store.is_shared),
            priority=priority,
            not_before=None,
            after=(),
            metadata={specs.KEY: specs.to_plain(spec, id)},
        )
        try:
            return view(acts.add(self._context, record, request), self._context.codec, is_new=True)
        except MadeMeanwhile:
            raise
        except Conflict as error:
            raise Conflict(
                f"another process has just queued job {str(id)!r}; look at it again"
            ) from error

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
        key: str | None = None,
    ) -> Job:
        """Queue a job again that has failed, was killed, or has used its turns: it goes on where it
        was, under the next id of its lineage.

        Its worker first has the files of its last save in its directory, and saves what lies there
        before; `keep_files` lets it go on with the files as they are. With `from_ref`, its worker
        takes conversation and files back to an earlier checkpoint first. A job that has used all
        its turns gets as many again, unless `max_turns` says otherwise. What comes back is what it
        goes on from, also if a worker has taken it up meanwhile.

        A `key` names a request that may be made twice: the second time nothing is queued, and the
        job that was comes back as it stands, also if it has ended or was resumed again.
        """
        if keep_files and self._context.store.is_shared:
            raise Misuse(
                f"job {id!r} has no directory of its own to keep the files of: hosts share this "
                f"store, and each attempt begins with the files of the last save. Save yours on "
                f"timeline {specs.parse(id).lineage!r}, then resume it without keep_files"
            )
        asked = (id, from_ref, max_turns, callback, keep_files)
        request = requests.request(self._context, key, "resume job", *asked)
        job, _ = requests.once(
            self._context, request, lambda: self._resumed(request, *asked), self._resumed_before
        )
        return job

    def _resumed(
        self,
        request: Request,
        id: str,
        from_ref: str | None,
        max_turns: int | None,
        callback: str | None,
        keep_files: bool,  # as `resume` was given it
    ) -> Job:
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
        queued = self._queue(spec, specs.parse(job.id).next, job.text, 0, request)
        if self._saved(job.lineage) is None:
            self._cancel_queued(queued)
            raise _deleted_meanwhile(job.id)
        log(__name__).info(
            "job %r is resumed as %r, from turn %d of %d", job.id, queued.id, used, spec.max_turns
        )
        return self._judged(queued, found if target is None else target)

    def _resumed_before(self, made: LogRecord) -> Job:
        """The job that was queued under the same key, as it stands. If the process that did it was
        killed before it could see that the job was deleted meanwhile, that is seen to now."""
        id = specs.parse(requests.told(made)["task"])
        is_deleted = self._saved(id.lineage) is None
        if is_deleted:
            acts.cancel_unbegun(self._context, str(id), made.number)
        own, latest = self._task(id), self.get(str(id))
        if own and is_deleted and own.attempts == 0 and is_cancelled(own.state, own.error):
            raise _deleted_meanwhile(str(id))
        if own is None or own.id == latest.id:
            return latest
        went_on = f"it was resumed as {latest.id!r}"
        return self._judged(own, None).replace(why_not=went_on)

    def _target(self, job: Job, ref: str) -> Saved:
        """A checkpoint of a job to go on from."""
        found = states.saved(self._vault.timeline(job.lineage).get(ref))
        if found is None or found.spec.lineage != job.lineage:
            raise Misuse(f"{ref!r} is no checkpoint of job {job.lineage!r}; choose one of its own")
        return found

    def approve(
        self,
        id: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        question: str | None = None,
        key: str | None = None,
    ) -> Job:
        """Let the call be made that a job has asked about; with `arguments`, with these in the
        place of the agent's own, which is told so. `question` is what was read: `Conflict` if the
        job asks something else by now. For the `key` see `resume`: it answers one question, and
        none that the job asks later."""
        request = requests.request(self._context, key, "approve job", id, question, arguments)
        answer = True if arguments is None else {specs.ARGUMENTS: dict(arguments)}
        return self._answered(id, answer, question, request)

    def deny(
        self,
        id: str,
        reason: str = "",
        *,
        question: str | None = None,
        key: str | None = None,
    ) -> Job:
        """Let it not be made; the agent is told the reason, and goes on."""
        request = requests.request(self._context, key, "deny job", id, reason, question)
        return self._answered(id, reason or False, question, request)

    def _answered(self, id: str, answer: Any, question: str | None, request: Request) -> Job:
        def act() -> Job:
            job = self.get(id)
            if job.question is None:
                raise Conflict(f"job {job.id!r} ({job.state}) has asked nothing")
            acts.answer(self._context, job.id, answer, question or job.question, request)
            return self.get(job.lineage)

        job, _ = requests.once(self._context, request, act, lambda _: self.get(id))
        return job

    # Letting go

    def delete(self, id: str, *, key: str | None = None) -> Job:
        """Take a job out of the queue, and let what was saved of it go, so that it cannot be
        resumed; as it was. `undo` of the vault brings back what was saved. For the `key` see
        `resume`: it deletes nothing that comes later under the same id."""
        request = requests.request(self._context, key, "delete job", id)
        job, _ = requests.once(
            self._context, request, lambda: self._deleted(id, request), self._deleted_before
        )
        return job

    def _deleted(self, id: str, request: Request) -> Job:
        self._recover()
        job = self.get(id)
        if job.state == "active":
            raise _at_work(job.id)
        if job.can_delete and self._saved(job.lineage) is not None:
            self._let_go(job, request)
        elif not job.is_over:
            acts.cancel(self._context, job.id, request)
        else:
            raise NotFound(f"nothing is saved of job {job.id!r}")
        # Of a delete and a resume at once, each writes before it looks: one of them sees the other,
        # and no job begins anew that was to go on.
        self._cancel_queued(self._task(specs.parse(job.id).next))
        return job

    def _deleted_before(self, made: LogRecord) -> Job:
        """A job that was deleted under the same key, as far as it can be told. If the process that
        did it was killed before it could see that the job was resumed meanwhile, that is seen to
        now. What was queued, begun or put back to work since stays."""
        entry = operations.read(made)
        id = specs.parse(entry.effects.about["task"])
        if self._saved(id.lineage) is None:
            acts.cancel_unbegun(self._context, str(id.next), made.number)
        task, found = self._task(id), self._was_saved(entry)
        if task is None and found is None:
            raise NotFound(f"job {str(id)!r} was deleted, and nothing is left of it")
        return self._judged(task, found)

    def _was_saved(self, deleted: Entry) -> Saved | None:
        """What was saved of a job when it was deleted, if that is there still."""
        for move in deleted.effects.moves:
            if move.expect is not None and move.expect.head is not None:
                line = self._vault.timeline(move.become.name)
                with contextlib.suppress(NotFound):  # it is dropped just now
                    return states.saved(checkpoint_at(line, move.expect.head))
        return None

    def _cancel_queued(self, resumed: Task | None) -> None:
        if resumed is not None and resumed.state == "pending":
            with contextlib.suppress(Conflict):  # the other has cancelled it
                self._vault.tasks.cancel(resumed.id)

    def clean(self) -> list[str]:
        """Delete what was saved of jobs whose time has passed; their ids."""
        gone: list[str] = []
        for job in filter(self._is_late, self.every()):
            with contextlib.suppress(Conflict):  # it was put back to work meanwhile
                self._let_go(job, Request(self._context.new_id()))
                gone.append(job.id)
        return gone

    def _let_go(self, job: Job, request: Request) -> None:
        """What was saved of a job goes, and in the same commit its task, if that waits, and the
        purge that would have followed on its success."""

        def work() -> Work:
            task = self._task(specs.parse(job.id))
            if task is not None and task.state == "in_progress":
                raise _at_work(job.id)
            if task is not None and task.state == "pending" and job.is_over:
                raise Conflict(f"job {job.id!r} was put back to work meanwhile; look at it again")
            return acts.cancelling(self._context, (job.id, specs.purge_id(job.id)))

        line = self._vault.timeline(job.lineage)
        done = delete_with_tasks(line, request, {"task": job.id}, work)
        self._context.told(done.entries, done)

    def _is_late(self, job: Job) -> bool:
        is_left = job.is_over and job.state != "succeeded"
        return is_left and job.checkpoint is None and job.expires_at is not None

    def _recover(self) -> None:
        """Write down which workers have died, before something is written that depends on it. On
        another machine than theirs this cannot be told."""
        with contextlib.suppress(Unavailable):
            recover_by_itself(self._vault.tasks)


def _has_files_alone(line: Timeline) -> bool:
    """Whether nothing but files was saved on it, as for a job that was about to be queued."""
    head = line.head
    return head is not None and head.files is not None and line.load() is None


def _at_work(id: str) -> Conflict:
    return Conflict(f"job {id!r} is being worked on; cancel its task first")


def _deleted_meanwhile(id: str) -> NotFound:
    return NotFound(f"job {id!r} cannot be resumed: it was deleted meanwhile")


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
