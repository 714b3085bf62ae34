"""`POST /webhook`: queues a job, with an agent and a workspace of the server's own list.

Nothing in the body chooses a path, a model or code: it is compared with the list, and what is
stored is the list's own spelling.
"""

import secrets

from hardsave.server import directories, job_json, job_request
from hardsave.server.route import Answer, Call, Route


def submit(call: Call) -> Answer:
    asked = job_request.submission(call.body)
    wanted = job_request.permitted(
        asked,
        directories.real(asked.workspace),
        call.allowed,
        tell=call.caller.name != "loopback",
    )
    job = call.vault.jobs.add(
        f"job-{secrets.token_hex(8)}",
        wanted.task,
        agent=wanted.agent,
        workspace=wanted.workspace,
        callback=wanted.callback,
    )
    return Answer(202, job_json.queued(job))


ROUTES = (Route("POST", "/webhook", submit, "act", documented=True),)
