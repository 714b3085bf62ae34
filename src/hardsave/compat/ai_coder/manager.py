"""Saving, loading and listing: each job's checkpoints are a timeline of a vault.

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
from hardsave.compat.ai_coder.records import VERSION, AgentCheckpoint, CheckpointMetadata
from hardsave.compat.names import fitting
from hardsave.timeline import names

TTL = timedelta(days=7)
_PREFIX = "ai-coder/"
_HANDLES = 64  # timelines kept at hand: each remembers all that it has saved last

_log = logging.getLogger(__name__)

Migrator = Callable[[dict[str, Any]], dict[str, Any]]
"""From a record of an older version, spelt as in `to_dict`, to one of the next."""


class CheckpointManager:
    """The checkpoints of all jobs in a vault: an open one, the URL of a store, or None for this
    project's own, which is opened when it is first needed."""

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
                self._own = hardsave.open(self._given)
            return self._own

    @property
    def _is_strict(self) -> bool:
        """As the vault says; one that could not be opened says nothing."""
        vault = self._given if isinstance(self._given, hardsave.Vault) else self._own
        return vault is not None and vault.strict

    def _line(self, job_id: str) -> hardsave.Timeline:
        name = _PREFIX + fitting(job_id, lambda text: names.check_timeline(_PREFIX + text))
        with self._mutex:
            line = self._lines.pop(name, None) or self._vault.timeline(name)
            self._lines[name] = line  # the last of all to be let go
            if len(self._lines) > _HANDLES:
                del self._lines[next(iter(self._lines))]
            return line

    def _save(self, checkpoint: AgentCheckpoint) -> None:
        moment = self._now().isoformat(timespec="milliseconds")
        whole = replace(checkpoint, last_updated=moment, version=VERSION).to_dict()
        try:
            AgentCheckpoint.from_dict(whole)  # what could not be loaded again is not saved
            self._line(checkpoint.job_id).save(
                whole,
                metadata={"turns": checkpoint.turns, "last_updated": moment},
                expect=hardsave.ANY_HEAD,
            )
        except Exception:
            self.save_failures += 1
            if self._is_strict:
                raise
            _log.exception("job %r: checkpoint not saved; the agent goes on", checkpoint.job_id)

    def _load(self, job_id: str) -> AgentCheckpoint | None:
        head = self._live(self._line(job_id))
        data = None if head is None else self._migrated(job_id, head.read())
        return None if data is None else AgentCheckpoint.from_dict(data)

    def _live(self, line: hardsave.Timeline) -> hardsave.Checkpoint | None:
        """Its latest checkpoint, if a manager has saved it and its time has not passed. Others
        may have saved anything under such a name."""
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
        line = self._line(job_id)
        if line.head is None:
            return False
        line.delete()
        with self._mutex:
            self._lines.pop(line.name, None)  # with all that it remembers of the last save
        return True

    def _metadata(self, job_id: str) -> CheckpointMetadata | None:
        found = self._load(job_id)
        if found is None:
            return None
        return CheckpointMetadata(len(self._line(job_id)), found.last_updated, can_resume=True)

    def _active(self) -> list[str]:
        lines = [line for line in self._vault.timelines() if line.name.startswith(_PREFIX)]
        live = [(line.name, head) for line in lines if (head := self._live(line)) is not None]
        read = [(name, head.created_at, self._job(head.read())) for name, head in live]
        found = [
            (at, job)
            for name, at, job in read
            if job is not None and self._line(job).name == name  # no fork
        ]
        return [job for _, job in sorted(found, reverse=True)]

    def _job(self, data: Any) -> str | None:
        """Whose it is, if it can be loaded."""
        try:
            known = self._migrated(str(data["jobId"]), data)
            return None if known is None else AgentCheckpoint.from_dict(known).job_id
        except (hardsave.Misuse, KeyError, TypeError, IndexError):
            return None

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
