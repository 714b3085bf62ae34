"""The jobs of a server: queueing them, looking at them, resuming them, answering what they ask."""

import os
from typing import TYPE_CHECKING, Any

from hardsave.client import reading
from hardsave.client.calls import Calls, given
from hardsave.client.records import RemoteHealth
from hardsave.defaults import JOB_TURNS
from hardsave.errors import Misuse
from hardsave.page import Page, every
from hardsave.values.spelling import from_json
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.spec import JobResumption, JobSpec

if TYPE_CHECKING:
    from hardsave.vault.jobs.state import Job, JobHealth, JobState

_PAGE = 500


class RemoteJobs:
    """The jobs of one user, with the names of `Jobs`: `vault.jobs`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def find(
        self, *, state: "JobState | None" = None, limit: int = 50, after: str | None = None
    ) -> "Page[Job]":
        """A page of jobs, the newest first. `after` is the `next` of the page before."""
        told = self._calls.read("/jobs", state=state, limit=limit, cursor=after)
        return reading.page(told, job)

    def every(self) -> "list[Job]":
        """All jobs, those that moved last first."""
        from hardsave.vault.jobs.state import order

        found = every(lambda after: self.find(limit=_PAGE, after=after))
        return sorted(found, key=order, reverse=True)

    def get(self, id: str) -> "Job":
        """A job by any of the ids that it has had, as it stands now."""
        return job(self._calls.read("/job", id=id))

    def health(self) -> "JobHealth":
        """How many are in which state, which are stale, and which are about to run out of turns."""
        return reading.record(RemoteHealth, self._calls.read("/health")).jobs

    def add(
        self,
        id: str,
        prompt: str,
        *,
        workspace: str | os.PathLike[str],
        agent: str = specs.DEFAULT_AGENT,
        max_turns: int = JOB_TURNS,
        retries: int = 0,
        callback: str | None = None,
        key: str | None = None,
    ) -> "Job":
        """Queue a job, unless it is there already; one that is comes back as it stands. The agent
        and the workspace, a directory of the server's host, are those that `hardsave serve` was
        told to allow."""
        body = given(
            id=id,
            prompt=prompt,
            agent=agent,
            workspace=os.fspath(workspace),
            max_turns=max_turns,
            retries=retries,
            callback=callback,
        )
        return job(self._calls.act("/jobs", body, key=key))

    def resume(
        self,
        id: str,
        *,
        from_ref: str | None = None,
        max_turns: int | None = None,
        callback: str | None = None,
        keep_files: bool = False,
        key: str | None = None,
    ) -> "Job":
        """Queue a job again that has failed, was killed, or has used its turns: it goes on where it
        was, under the next id of its lineage; with `from_ref`, from an earlier checkpoint."""
        body = given(id=id, max_turns=max_turns, callback=callback, keep_files=keep_files)
        if from_ref is not None:
            body["from"] = from_ref
        return job(self._calls.act("/jobs/resume", body, key=key))

    def approve(self, id: str, *, question: str | None = None, key: str | None = None) -> "Job":
        """Let the call be made that a job has asked about. `question` is what was read: `Conflict`
        if the job asks something else by now."""
        return job(self._calls.act("/jobs/approve", given(id=id, question=question), key=key))

    def deny(
        self, id: str, reason: str = "", *, question: str | None = None, key: str | None = None
    ) -> "Job":
        """Let it not be made; the agent is told the reason, and goes on."""
        body = given(id=id, reason=reason, question=question)
        return job(self._calls.act("/jobs/deny", body, key=key))

    def delete(self, id: str, *, key: str | None = None) -> "Job":
        """Take a job out of the queue, and let what was saved of it go; as it was. `undo` of the
        vault brings back what was saved."""
        return job(self._calls.act("/job", key=key, method="DELETE", id=id)["deleted"])


def job(told: Any) -> "Job":
    """A job out of an answer. What no server tells of its spec (callback, retries) is as if it had
    not been given."""
    from hardsave.vault.jobs.state import Job  # with what a store needs

    if not isinstance(told, dict):
        raise reading.Unreadable("a job that is no object")
    try:
        spec = _spec(told)
    except (Misuse, KeyError) as error:
        raise reading.Unreadable(f"a job that is none: {error}") from error
    return reading.record(Job, told, spec=spec, error=told.get("failure"))


def _spec(told: dict[str, Any]) -> JobSpec:
    resumed = told.get("resumed_from")
    return JobSpec(
        lineage=told["lineage"],
        prompt=told["prompt"],
        agent=told["agent"],
        workspace=told.get("workspace"),
        max_turns=told["max_turns"],
        model=told.get("model"),
        about=from_json(told.get("about") or {}),
        resumed=None if resumed is None else JobResumption(from_job=resumed, at=""),
    )
