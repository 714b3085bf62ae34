"""`POST /webhook`: queues a job, with an agent and a workspace of the server's own list.

Nothing in the body chooses a path, a model or code: it is compared with the list, and what is
stored is the list's own spelling.
"""

import os
import secrets

from hardsave.server import job_json, job_request
from hardsave.server.route import Answer, Call, Route


def submit(call: Call) -> Answer:
    asked = job_request.submission(call.body)
    wanted = job_request.permitted(
        asked, _real(asked.workspace), call.allowed, tell=call.caller.name != "loopback"
    )
    job = call.vault.jobs.add(
        f"job-{secrets.token_hex(8)}",
        wanted.task,
        agent=wanted.agent,
        workspace=wanted.workspace,
        callback=wanted.callback,
    )
    return Answer(202, job_json.queued(job))


def _real(path: str) -> str | None:
    """Where a path leads, through `..` and links; None for one that depends on the directory of the
    server, or that no file can have."""
    try:
        return os.path.realpath(path) if os.path.isabs(path) else None
    except (OSError, ValueError):
        return None


ROUTES = (Route("POST", "/webhook", submit, "act", documented=True),)
