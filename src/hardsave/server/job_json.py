"""Jobs in the shapes and words of the documented routes. Pure.

A job *has a checkpoint* here if it is open: one that has succeeded is closed, and its history is
not offered any more. `canResume` is the very decision of `jobs.resume`.
"""

from collections.abc import Mapping
from typing import Any

from hardsave.vault.jobs.state import Job, JobState

STATUS: Mapping[JobState, str] = {
    "queued": "waiting",
    "active": "active",
    "waiting": "paused",  # for an answer: a queue's `waiting` is for a worker
    "succeeded": "completed",
    "failed": "failed",
    "rolled_back": "rolled_back",  # no queue has a word for it
    "forgotten": "unknown",
}
"""What a queue of jobs calls a state."""

NO_JOB = "unknown"


def listing(jobs: list[tuple[Job, int]]) -> dict[str, Any]:
    """All that are open, each with the number of its checkpoints."""
    return {
        "total": len(jobs),
        "checkpoints": [
            {**described(job, count), "jobStatus": STATUS[job.state]} for job, count in jobs
        ],
    }


def described(job: Job, count: int) -> dict[str, Any]:
    """What is saved of a job."""
    metadata = {
        "totalCheckpoints": count,
        "lastCheckpointAt": _moment(job),
        "canResume": job.can_resume,
    }
    return {"jobId": job.id, "metadata": metadata}


def resumable(id: str, job: Job | None) -> dict[str, Any]:
    """Whether a job can be resumed; None: there is no such job."""
    if job is None:
        return {"jobId": id, "canResume": False, "hasCheckpoint": False, "jobStatus": NO_JOB}
    return {
        "jobId": job.id,
        "canResume": job.can_resume,
        "hasCheckpoint": job.is_open,
        "jobStatus": STATUS[job.state],
    }


def resumed(job: Job) -> dict[str, Any]:
    """A job that was resumed just now, as `jobs.resume` gives it."""
    assert job.spec.resumed is not None
    return {
        "message": f"Job {job.spec.resumed.from_job} goes on as {job.id}",
        "originalJobId": job.spec.resumed.from_job,
        "newJobId": job.id,
        "resumedFrom": {
            "turns": job.turns,
            "messageCount": job.messages,
            "lastUpdated": _moment(job),
        },
    }


def deleted(job: Job) -> dict[str, Any]:
    """A job whose checkpoints were deleted just now."""
    return {"message": f"Checkpoint of job {job.id} deleted", "jobId": job.id}


def queued(job: Job) -> dict[str, Any]:
    """A job that was added just now."""
    return {
        "jobId": job.id,
        "status": STATUS[job.state],
        "message": f"Job {job.id} is queued for agent {job.spec.agent}",
    }


def _moment(job: Job) -> str | None:
    return None if job.updated_at is None else job.updated_at.isoformat(timespec="milliseconds")
