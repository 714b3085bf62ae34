"""`GET /api/v1`: which server this is, and as whom it sees the caller."""

import hardsave
from hardsave.server.api.shapes import TEXT, WHOLE, or_null, shape
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.stores.host.identity import host_id


def show(call: Call) -> Answer:
    caller = call.caller
    return Answer(
        body={
            "version": hardsave.__version__,
            "api": 1,
            "host": host_id(),
            "user": caller.user,
            "caller": caller.name,
            "scope": caller.scope,
            "form_token": caller.form_token or None,
        }
    )


_ABOUT = shape(
    version=TEXT,
    api=WHOLE,
    host=TEXT,
    user=or_null(TEXT),
    caller=TEXT,
    scope=TEXT,
    form_token=or_null(TEXT),
)

ROUTES = (
    Route("GET", "/api/v1", show, "read", spec=Spec("This server, and who the caller is", _ABOUT)),
)
