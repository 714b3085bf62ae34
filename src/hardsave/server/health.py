"""`/healthz`: the process answers. `/readyz`: it can read its store. They say nothing else."""

from hardsave.server.route import Answer, Call, Route


def healthz(call: Call) -> Answer:
    return Answer(body={"status": "ok"})


def readyz(call: Call) -> Answer:
    next(call.vault.timelines(), None)  # `Unavailable` and `Corrupt` are answered as such
    return Answer(body={"status": "ok"})


ROUTES = (
    Route("GET", "/healthz", healthz, scope=None, lane="loop"),
    Route("GET", "/readyz", readyz, scope=None),
)
