"""Saving, loading and listing: each job is a job of the vault, with a timeline of its own.

So `vault.jobs`, the command line and the server see what is saved here, and resume or delete it. A
resumption is queued under the next id of the job: from then on the old id has no checkpoint, and
the program that loads the new one goes on with it; its first save takes it out of the queue.

Contract. A save that fails does not stop the agent, unless the vault is `strict`: it is logged,
told as the vault's event `save_failed`, and counted. What was saved is kept for `ttl`, counted from
the last save. What another version has saved is neither loaded nor lost, unless a migrator knows
it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import hardsave
from hardsave.compat import foreign
from hardsave.compat.ai_coder import records
from hardsave.compat.ai_coder.own_store import open_own
from hardsave.compat.ai_coder.records import VERSION, AgentCheckpoint, CheckpointMetadata
from hardsave.compat.names import fitting, is_stand_in
from hardsave.tasks.withdrawal import withdraw
from hardsave.timeline import names
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.spec import JobId, JobSpec

TTL = timedelta(days=7)
_HANDLES = 64  # timelines kept at hand: each remembers all that it has saved last

_log = logging.getLogger(__name__)

Migrator = Callable[[dict[str, Any]], dict[str, Any]]
"""From a record of an older version, spelt as in `to_dict`, to one of the next."""


class CheckpointManager:
    """The checkpoints of all jobs in a vault: an open one, the URL of a store, or None for the
    server that `REDIS_URL` names, or without that this project's own store. It is opened when it is
    first needed."""

    def __init__(
        self,
        vault: hardsave.Vault | str | None = None,
        *,
        ttl: timedelta = TTL,
        migrators: Mapping[int, Migrator] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.save_failures = 0
        self._given = vault
        self._own: hardsave.Vault | None = None
        self._ttl = ttl
        self._migrators = dict(migrators or {})
        self._now = now
        self._mutex = threading.RLock()
        self._lines: dict[str, hardsave.Timeline] = {}  # who has saved need not compare all anew

    # As its users know it

    async def save_checkpoint(self, checkpoint: AgentCheckpoint) -> None:
        """Keep where a job stands."""
        await asyncio.to_thread(self._save, checkpoint)

    async def load_checkpoint(self, job_id: str) -> AgentCheckpoint | None:
        """The latest of a job; None if there is none, its time has passed, or it is of another
        version."""
        return await asyncio.to_thread(self._load, job_id)

    async def has_checkpoint(self, job_id: str) -> bool:
        """Whether `load_checkpoint` would give one."""
        return await self.load_checkpoint(job_id) is not None

    async def delete_checkpoint(self, job_id: str) -> bool:
        """Let go of it, as a job does that has succeeded; whether there was one. The vault's
        `undo` brings it back."""
        return await asyncio.to_thread(self._delete, job_id)

    async def get_checkpoint_metadata(self, job_id: str) -> CheckpointMetadata | None:
        return await asyncio.to_thread(self._metadata, job_id)

    async def list_active_checkpoints(self) -> list[str]:
        """The jobs that have one, those that were saved last first."""
        return await asyncio.to_thread(self._active)

    async def move_checkpoint(self, job_id: str, new_job_id: str) -> AgentCheckpoint | None:
        """Let another job go on with it; what it goes on with. The old one has none any more."""
        return await asyncio.to_thread(self._move, job_id, new_job_id)

    async def close(self) -> None:
        """Close the vault, if it is this manager's own."""
        with self._mutex:
            own, self._own = self._own, None
            self._lines.clear()
        if own is not None:
            await asyncio.to_thread(own.close)

    # The same, blocking

    @property
    def _vault(self) -> hardsave.Vault:
        if isinstance(self._given, hardsave.Vault):
            return self._given
        with self._mutex:
            if self._own is None:
                given = self._given
                self._own = open_own(self._ttl) if given is None else hardsave.open(given)
            return self._own

    @property
    def _is_strict(self) -> bool:
        """As the vault says; one that could not be opened says nothing."""
        vault = self._given if isinstance(self._given, hardsave.Vault) else self._own
        return vault is not None and vault.strict

    def _id(self, job_id: str) -> JobId:
        """The job's id in the vault; an id that no timeline can have gets one that fits."""
        foreign.check(job_id, str, "a job id")
        lineage, number = specs.parse(job_id)
        if is_stand_in(lineage) and self._vault.timeline(lineage).head is not None:
            return JobId(lineage, number)  # as the vault calls it
        return JobId(fitting(lineage, names.check_timeline), number)

    def _line(self, name: str) -> hardsave.Timeline:
        with self._mutex:
            line = self._lines.pop(name, None) or self._vault.timeline(name)
            self._lines[name] = line  # the last of all to be let go
            if len(self._lines) > _HANDLES:
                del self._lines[next(iter(self._lines))]
            return line

    def _job(self, lineage: str) -> hardsave.Job | None:
        """The job as the vault sees it now, under the last of its ids."""
        jobs = hardsave.Jobs(self._vault, ttl=self._ttl, now=self._now)
        try:
            return jobs.get(lineage)
        except hardsave.NotFound:
            return None

    def _save(self, checkpoint: AgentCheckpoint) -> None:
        try:
            self._saved(checkpoint)
        except Exception:
            self.save_failures += 1
            if self._is_strict:
                raise
            _log.exception("job %r: checkpoint not saved; the agent goes on", checkpoint.job_id)

    def _saved(self, checkpoint: AgentCheckpoint) -> None:
        moment = self._now().isoformat(timespec="milliseconds")
        whole = replace(checkpoint, last_updated=moment, version=VERSION)
        AgentCheckpoint.from_dict(whole.to_dict())  # what could not be loaded again is not saved
        id = self._id(checkpoint.job_id)
        line = self._line(id.lineage)
        before = self._before(id, line)
        line.save(
            records.to_state(whole, self._spec(whole, id, before), id),
            metadata={"turns": checkpoint.turns, "last_updated": moment},
            expect=hardsave.ANY_HEAD,
        )
        if before is not None and before.state == "queued":
            withdraw(self._vault.tasks, str(id))  # the program that saves has taken it up

    def _before(self, id: JobId, line: hardsave.Timeline) -> hardsave.Job | None:
        """The job as it stands before a save under this id; `Conflict` if that must not be."""
        job, head = self._job(id.lineage), line.head
        if head is None and job is not None and job.spec.agent == specs.OWN_PROGRAM:
            job = self._without_rows(job)
        if job is None and head is None:
            return None
        if job is None or job.spec.agent != specs.OWN_PROGRAM:
            raise hardsave.Conflict(
                f"timeline {id.lineage!r} holds something else; choose another id for the job"
            )
        if specs.parse(job.id).number > id.number:
            raise hardsave.Conflict(f"job {str(id)!r} goes on as {job.id!r}; load that one")
        return job

    def _without_rows(self, job: hardsave.Job | None) -> hardsave.Job | None:
        """A job that was deleted, without what the ledger still knows: its id may be used again.
        What an attempt holds stays."""
        while job is not None and withdraw(self._vault.tasks, job.id):
            job = self._job(job.lineage)
        return job

    def _spec(self, checkpoint: AgentCheckpoint, id: JobId, before: hardsave.Job | None) -> JobSpec:
        if before is None:
            return records.to_spec(checkpoint, id.lineage, None)
        spec = records.to_spec(checkpoint, id.lineage, before.spec)
        if before.id == str(id):
            return spec
        return records.resumed(spec, before.id, self._now().isoformat(timespec="seconds"))

    def _load(self, job_id: str) -> AgentCheckpoint | None:
        id = self._id(job_id)
        head = self._live(self._line(id.lineage))
        job = None if head is None else self._job(id.lineage)
        if head is None or job is None or job.id != str(id):
            return None
        queued = job.checkpoint if job.state == "queued" else None
        chosen = head if queued is None else self._vault.get(queued)  # it may be an earlier one
        data = self._migrated(job_id, records.from_state(chosen.read()))
        if data is None:
            return None
        found = replace(AgentCheckpoint.from_dict(data), job_id=job_id)
        return replace(found, max_turns=job.max_turns) if queued else found

    def _live(self, line: hardsave.Timeline) -> hardsave.Checkpoint | None:
        """Its latest checkpoint, if a manager has saved it and its time has not passed. Other
        programs may have saved anything under such a name."""
        head = line.head
        saved = None if head is None else head.metadata.get("last_updated")
        try:
            age = self._now() - foreign.moment(saved, "last_updated")
        except hardsave.Misuse:
            return None
        return head if age < self._ttl else None

    def _migrated(self, job_id: str, data: Any) -> dict[str, Any] | None:
        foreign.check(data, dict, f"what is saved of job {job_id!r}")
        while data.get("version") != VERSION:
            found = data.get("version")
            step = self._migrators.get(found) if isinstance(found, int) else None
            if step is None:
                _log.warning(
                    "job %r was saved as version %r, and this one knows %d; it is left as it is",
                    job_id,
                    found,
                    VERSION,
                )
                return None
            data = step(data)
            foreign.check(data, dict, f"what the migrator of version {found} gives")
            if data.get("version") == found:
                raise hardsave.Misuse(f"the migrator of version {found} gives that version again")
        return dict(data)

    def _delete(self, job_id: str) -> bool:
        id = self._id(job_id)
        line, job = self._line(id.lineage), self._job(id.lineage)
        if line.head is None or job is None or job.id != str(id):
            return False
        if job.state in ("queued", "waiting"):
            withdraw(self._vault.tasks, job.id)
        line.delete()
        with self._mutex:
            self._lines.pop(line.name, None)  # with all that it remembers of the last save
        return True

    def _metadata(self, job_id: str) -> CheckpointMetadata | None:
        found = self._load(job_id)
        job = None if found is None else self._job(self._id(job_id).lineage)
        if found is None or job is None:
            return None
        count = len(self._line(job.lineage))
        return CheckpointMetadata(count, found.last_updated, can_resume=job.can_resume)

    def _active(self) -> list[str]:
        lines = [(line.name, self._live(line)) for line in self._vault.timelines()]
        found = [
            (head.created_at, job)
            for name, head in lines
            if head is not None and (job := self._named(name, head)) is not None
        ]
        return [job for _, job in sorted(found, reverse=True)]

    def _named(self, name: str, head: hardsave.Checkpoint) -> str | None:
        """The id of the job whose timeline this is, if it can be loaded."""
        data = records.from_state(head.read())
        job = None if data is None else self._job(name)
        try:
            known = None if data is None else self._migrated(str(data.get("jobId")), data)
            if job is None or known is None:
                return None
            lineage = specs.parse(AgentCheckpoint.from_dict(known).job_id).lineage
        except hardsave.Misuse:
            return None
        return str(JobId(lineage, specs.parse(job.id).number))

    def _move(self, job_id: str, new_job_id: str) -> AgentCheckpoint | None:
        """Saved under the new id before it is let go under the old: a crash in between leaves
        two, never none."""
        found = self._load(job_id)
        if found is None or job_id == new_job_id:
            return found
        moved = replace(found, job_id=new_job_id)
        failures = self.save_failures
        self._save(moved)
        if self.save_failures == failures:
            self._delete(job_id)
        return self._load(new_job_id)


checkpoint_manager = CheckpointManager()
