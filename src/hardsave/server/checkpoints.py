"""The five routes over the checkpoints of jobs, in their documented shapes.

Contract. Each route looks at a job once, with the call that also acts: `can-resume` reads the
decision that `jobs.resume` makes, and no route decides for itself. What another process changes
in between ends in a documented error, never in half of an action.
"""

from hardsave.errors import NotFound
from hardsave.server import job_json
from hardsave.server.job_request import resume_callback
from hardsave.server.route import Answer, Call, Route
from hardsave.vault.jobs.state import Job


def list_open(call: Call) -> Answer:
    found = [job for job in call.vault.jobs.every() if job.is_open]
    return Answer(body=job_json.listing([(job, _count(call, job)) for job in found]))


def show(call: Call) -> Answer:
    job = _open_job(call)
    return Answer(body=job_json.described(job, _count(call, job)))


def can_resume(call: Call) -> Answer:
    id = call.path["id"]
    try:
        job = call.vault.jobs.get(id)
    except NotFound:
        return Answer(body=job_json.resumable(id, None))
    return Answer(body=job_json.resumable(id, job))


def resume(call: Call) -> Answer:
    callback = resume_callback(call.body)
    return Answer(body=job_json.resumed(call.vault.jobs.resume(call.path["id"], callback=callback)))


def delete(call: Call) -> Answer:
    return Answer(body=job_json.deleted(call.vault.jobs.delete(_open_job(call).id)))


def _open_job(call: Call) -> Job:
    """The job, if something is saved of it that is still of use."""
    job = call.vault.jobs.get(call.path["id"])
    if not job.is_open:
        raise NotFound(f"job {job.id!r} ({job_json.STATUS[job.state]}) has no checkpoint")
    return job


def _count(call: Call, job: Job) -> int:
    return len(call.vault.timeline(job.lineage))


ROUTES = (
    Route("GET", "/checkpoints", list_open, "read", documented=True),
    Route("GET", "/checkpoints/{id}", show, "read", documented=True),
    Route("GET", "/checkpoints/{id}/can-resume", can_resume, "read", documented=True),
    Route("POST", "/checkpoints/{id}/resume", resume, "act", documented=True),
    Route("DELETE", "/checkpoints/{id}", delete, "act", documented=True),
)
