"""What was done, and what was said: the log of operations, and search."""

from hardsave.server.api import data, refs
from hardsave.server.api.shapes import FLAG, MOMENT, WHOLE, named, or_null, page_of
from hardsave.server.fields import PAGED, flag, text
from hardsave.server.route import Answer, Call, Route, Spec


def operations(call: Call) -> Answer:
    asked = call.asked
    found = call.vault.operations(asked["timeline"], limit=asked["limit"], after=asked["cursor"])
    return Answer(body=data.page(found, data.operation))


def search(call: Call) -> Answer:
    asked = call.asked
    found = call.vault.search(
        asked["text"],
        timeline=asked["timeline"],
        limit=asked["limit"],
        after=asked["cursor"],
        wait=asked["wait"],
    )
    reaches = None if found.reaches is None else found.reaches.isoformat()
    reach = {
        "is_complete": found.is_complete,
        "unsearched": found.unsearched,
        "reaches": reaches,
    }
    return Answer(body=data.page(found, data.hit, **reach))


ROUTES = (
    Route(
        "GET",
        "/api/v1/operations",
        operations,
        "read",
        spec=Spec(
            "What was done and can be undone, newest first",
            page_of(named("Operation")),
            (refs.TIMELINE, *PAGED),
        ),
    ),
    Route(
        "GET",
        "/api/v1/search",
        search,
        "read",
        lane="search",
        spec=Spec(
            "Texts of states, names and paths that have all words of a text",
            page_of(named("Hit"), is_complete=FLAG, unsearched=WHOLE, reaches=or_null(MOMENT)),
            (
                text("text", "Words, all of which are looked for.", needed=True, most=1_000),
                refs.TIMELINE,
                *PAGED,
                flag("wait", "Until all that was saved is searched."),
            ),
        ),
    ),
)
