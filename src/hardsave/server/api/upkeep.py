"""The store as a whole: what may go, and what makes it go. Long calls: one at a time."""

from datetime import timedelta
from typing import Any

from hardsave import Policy, RetentionChoice, RetentionPlan
from hardsave.errors import Misuse
from hardsave.objects.hashing import digest
from hardsave.server.api import data, refs
from hardsave.server.api.conditions import check_given, expected
from hardsave.server.api.shapes import (
    ANY,
    FLAG,
    ID,
    TEXT,
    WHOLE,
    listed,
    shape,
)
from hardsave.server.errors import Refused
from hardsave.server.fields import Field, number, text
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.timeline.refs import to_text

_SHOWN = 1_000  # of what would go


# What may go


def show_retention(call: Call) -> Answer:
    plan = _plan(call)
    return Answer(body=_told(plan), headers=(("ETag", f'"{_digest(plan)}"'),))


def retain(call: Call) -> Answer:
    check_given(call, "the plan of GET /api/v1/retention in quotation marks")
    plan = _plan(call)
    if expected(call) not in (None, _digest(plan)):
        raise Refused(
            412, "precondition", "another plan holds by now; look at it: GET /api/v1/retention"
        )
    return Answer(body=data.plain(call.vault.retention.apply(plan).as_dict()))


def _plan(call: Call) -> RetentionPlan:
    """By the settings of the project, or by what the caller says instead."""
    asked = call.asked
    given = [asked[name] for name in ("max_age_days", "max_per_timeline", "max_store_mb")]
    if all(each is None for each in given):
        return call.vault.retention.plan()
    days, per_timeline, mb = given
    return call.vault.retention.plan(
        Policy(
            max_age=None if days is None else timedelta(days=days),
            max_per_timeline=per_timeline,
            max_store_bytes=None if mb is None else mb * 1_000_000,
        )
    )


def _digest(plan: RetentionPlan) -> str:
    """Of what goes: the same for as long as the same would go."""
    ids = b"".join(choice.row.id for choice in plan.drops)
    return f"plan_{digest(ids).hex()[:32]}"


def _told(plan: RetentionPlan) -> dict[str, Any]:
    return {
        "plan": _digest(plan),
        "drops": len(plan.drops),
        "considered": plan.considered,
        "freed_bytes": plan.freed_bytes,
        "over_bytes": plan.over_bytes,
        "rules": {str(rule): count for rule, count in plan.totals.items()},
        "items": [_choice(each) for each in plan.drops[:_SHOWN]],
    }


def _choice(one: RetentionChoice) -> dict[str, Any]:
    row = one.row
    return {"id": to_text(row.id), "timeline": row.timeline, "seq": row.seq, "rule": one.rule}


# What makes it go


def verify(call: Call) -> Answer:
    asked = call.asked
    ref = None if asked["ref"] is None else refs.find(call.vault, asked["ref"], asked["timeline"])
    found = call.vault.store.verify(ref)
    return Answer(body={**data.plain(found.as_dict()), "ok": found.ok})


def collect(call: Call) -> Answer:
    return Answer(body=data.plain(call.vault.store.gc().as_dict()))


def purge(call: Call) -> Answer:
    given = {name: call.asked[name] for name in ("ref", "timeline", "text")}
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) != 1:
        raise Misuse("send one of ref, timeline and text; a ref is chk_… or TIMELINE:N")
    return Answer(body=data.plain(call.vault.store.purge(**chosen).as_dict()))


_POLICY: tuple[Field, ...] = (
    number("max_age_days", "What has no name and is older goes.", 1, 36_500),
    number("max_per_timeline", "How many a timeline keeps.", 1, 1_000_000_000),
    number("max_store_mb", "How large the store may be.", 1, 1 << 40),
)
_COUNTS = {"type": "object", "additionalProperties": WHOLE}
_RETENTION = shape(
    plan=TEXT,
    drops=WHOLE,
    considered=WHOLE,
    freed_bytes=WHOLE,
    over_bytes=WHOLE,
    rules=_COUNTS,
    items=listed(shape(id=ID, timeline=TEXT, seq=WHOLE, rule=TEXT)),
)
_VERIFIED = shape(ok=FLAG, checkpoints=WHOLE, objects=WHOLE, faults=listed(TEXT))
_RETAINED = shape(dropped=WHOLE, spared=WHOLE, forgotten=WHOLE)
_COLLECTED = shape(objects=WHOLE, object_bytes=WHOLE, freed_bytes=WHOLE, left=listed(ANY))
_PURGED = shape(dropped=WHOLE, rewritten=WHOLE, objects=WHOLE, tasks=WHOLE, left=listed(TEXT))

ROUTES = (
    Route(
        "GET",
        "/api/v1/retention",
        show_retention,
        "read",
        lane="upkeep",
        spec=Spec("What retention would let go, and its plan", _RETENTION, _POLICY),
    ),
    Route(
        "POST",
        "/api/v1/retain",
        retain,
        "admin",
        lane="upkeep",
        spec=Spec(
            "Let go what a plan shows; it cannot be undone",
            _RETAINED,
            body=_POLICY,
            headers=("If-Match",),
        ),
    ),
    Route(
        "POST",
        "/api/v1/verify",
        verify,
        "read",
        lane="upkeep",
        spec=Spec(
            "Read and check one checkpoint, or everything",
            _VERIFIED,
            body=(refs.REF, refs.TIMELINE),
        ),
    ),
    Route(
        "POST",
        "/api/v1/gc",
        collect,
        "admin",
        lane="upkeep",
        spec=Spec("Remove what no checkpoint leads to", _COLLECTED, body=()),
    ),
    Route(
        "POST",
        "/api/v1/purge",
        purge,
        "admin",
        lane="upkeep",
        spec=Spec(
            "Remove a checkpoint, a timeline or a text for good; it cannot be undone",
            _PURGED,
            body=(refs.REF, refs.TIMELINE, text("text", "A secret, say.", most=100_000)),
        ),
    ),
)
