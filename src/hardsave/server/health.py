"""`/healthz`: the process answers. `/readyz`: it can use its store. They say nothing else."""

from hardsave.server.route import Answer, Call, Route


def healthz(call: Call) -> Answer:
    return Answer(body={"status": "ok"})


def readyz(call: Call) -> Answer:
    # With all projects there is none that the server as a whole would depend on.
    call.vault.store.check_usable()  # `Unavailable` and `Corrupt` are answered as such
    next(call.vault.timelines(), None)
    return Answer(body={"status": "ok"})


ROUTES = (
    Route("GET", "/healthz", healthz, scope=None, lane="loop", needs_project=False),
    Route("GET", "/readyz", readyz, scope=None),
)
