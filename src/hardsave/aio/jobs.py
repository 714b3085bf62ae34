"""The awaited `vault.jobs`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hardsave.aio.pool import Pool
from hardsave.defaults import JOB_TURNS
from hardsave.page import Page
from hardsave.tasks.task import Task
from hardsave.vault.jobs import ledger as sync_jobs
from hardsave.vault.jobs.spec import DEFAULT_AGENT, OnSuccess
from hardsave.vault.jobs.state import Job, JobHealth, JobState

if TYPE_CHECKING:
    import os


class Jobs:
    """See `hardsave.Jobs`."""

    def __init__(self, sync: sync_jobs.Jobs, pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    @staticmethod
    def owns(task: Task) -> bool:
        return sync_jobs.Jobs.owns(task)

    async def add(
        self,
        id: str,
        prompt: str,
        *,
        agent: str = DEFAULT_AGENT,
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
        return await self._pool.run(
            self._sync.add,
            id,
            prompt,
            agent=agent,
            text=text,
            workspace=workspace,
            max_turns=max_turns,
            model=model,
            retries=retries,
            callback=callback,
            on_success=on_success,
            priority=priority,
            about=about,
            key=key,
        )

    async def get(self, id: str) -> Job:
        return await self._pool.run(self._sync.get, id)

    async def find(
        self, *, state: JobState | None = None, limit: int = 50, after: str | None = None
    ) -> Page[Job]:
        return await self._pool.run(self._sync.find, state=state, limit=limit, after=after)

    async def every(self) -> list[Job]:
        return await self._pool.run(self._sync.every)

    async def health(self) -> JobHealth:
        return await self._pool.run(self._sync.health)

    async def can_resume(self, id: str) -> bool:
        return await self._pool.run(self._sync.can_resume, id)

    async def resume(
        self,
        id: str,
        *,
        from_ref: str | None = None,
        max_turns: int | None = None,
        callback: str | None = None,
        keep_files: bool = False,
        key: str | None = None,
    ) -> Job:
        return await self._pool.run(
            self._sync.resume,
            id,
            from_ref=from_ref,
            max_turns=max_turns,
            callback=callback,
            keep_files=keep_files,
            key=key,
        )

    async def approve(
        self,
        id: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        question: str | None = None,
        key: str | None = None,
    ) -> Job:
        return await self._pool.run(
            self._sync.approve, id, arguments=arguments, question=question, key=key
        )

    async def deny(
        self,
        id: str,
        reason: str = "",
        *,
        question: str | None = None,
        key: str | None = None,
    ) -> Job:
        return await self._pool.run(self._sync.deny, id, reason, question=question, key=key)

    async def delete(self, id: str, *, key: str | None = None) -> Job:
        return await self._pool.run(self._sync.delete, id, key=key)

    async def clean(self) -> list[str]:
        return await self._pool.run(self._sync.clean)
