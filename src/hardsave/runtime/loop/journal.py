"""What is on record about the tool calls of one response, and what follows from it. Pure.

A call is known by the id that the model gave it. It was never begun, or it was begun and its
end is on record, or neither: then what it did is unknown, and the policy of its tool decides.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from hardsave.errors import Corrupt, Misuse
from hardsave.tasks.steps import POLICIES, UnknownPolicy
from hardsave.tuples import NamedTuple

State = Literal["approved", "denied", "began", "returned", "retry", "failed", "raised"]
"""How far a call came: a person has allowed or refused it; it began; it returned; it asked the
model to correct its call, or told it that this cannot be done; it broke."""

Decision = Literal["run", "replay", "tell", "skip", "refuse"]

Verdict = bool | str | Mapping[str, Any]
"""What a person says about a call: yes, no, no with a reason that the model is told, or yes with
these arguments in the place of the model's."""

METADATA_KEY = "hardsave_unknown"
DEFAULT_POLICY: UnknownPolicy = "ask"

_ENDED = ("returned", "retry", "failed")


class Noted(NamedTuple):
    """One call as it is on record."""

    tool: str
    state: State
    at: str
    """When it began or ended, in words."""
    value: Any = None
    """The result, or what was said instead of one; plain data."""
    args: Mapping[str, Any] | None = None
    """What a person has put in the place of the model's arguments."""


def to_plain(calls: Mapping[str, Noted]) -> dict[str, Any]:
    return {id: _plain(noted) for id, noted in calls.items()}


def _plain(noted: Noted) -> dict[str, Any]:
    found = noted._asdict()
    if noted.args is None:
        del found["args"]
    return found


def from_plain(stored: Any) -> dict[str, Noted]:
    try:
        found = {str(id): Noted(**noted) for id, noted in stored.items()}
    except (AttributeError, TypeError) as error:
        raise Corrupt(f"the record of tool calls is not one of ours: {error}") from error
    for id, noted in found.items():
        if noted.state not in get_args(State) or not _has_result(noted):
            raise Corrupt(f"the record of tool call {id!r} is not one of ours: {noted!r}")
    return found


def _has_result(noted: Noted) -> bool:
    """Whether it can be replayed, if it has returned."""
    return noted.state != "returned" or (
        isinstance(noted.value, Mapping) and "value" in noted.value
    )


def decide(noted: Noted | None, policy: UnknownPolicy) -> Decision:
    """What to do when a call is asked for."""
    if noted is None or noted.state == "approved":
        return "run"
    if noted.state in _ENDED:
        return "replay"
    return _UNKNOWN[policy]


_UNKNOWN: dict[UnknownPolicy, Decision] = {
    "retry": "run",
    "ask": "tell",
    "skip": "skip",
    "fail": "refuse",
}


def policy_for(
    tool: str,
    metadata: Mapping[str, Any] | None,
    chosen: UnknownPolicy | Mapping[str, UnknownPolicy] | None,
) -> UnknownPolicy:
    """The policy of a tool: what the caller chose for it, else what it says of itself."""
    if isinstance(chosen, Mapping):
        chosen = chosen.get(tool)
    policy = chosen or (metadata or {}).get(METADATA_KEY) or DEFAULT_POLICY
    if policy not in POLICIES:
        raise Misuse(f"{tool!r}: unknown is one of {', '.join(POLICIES)}, not {policy!r}")
    return policy


def verdict(noted: Noted | None, given: Verdict | None) -> Verdict | None:
    """Whether a call that needs approval may be made; None: that was not said yet.

    What was decided stands: a call that has begun was approved, also if it is denied later.
    """
    if noted is None:
        return given
    if noted.state == "denied":
        return str(noted.value)
    return True if noted.args is None else noted.args


def is_yes(verdict: Verdict) -> bool:
    return verdict is True or isinstance(verdict, Mapping)


def changed(args: Mapping[str, Any]) -> str:
    """What a model is told about a call that was made with other arguments than its own."""
    return (
        "The person who approved this call changed its arguments first. It was made with: "
        f"{json.dumps(args, ensure_ascii=False, default=str)}"
    )


def told(noted: Noted) -> str:
    """What a model is told about a call whose end is unknown."""
    if noted.state == "raised":
        return (
            f"This call of {noted.tool!r} broke at {noted.at}: {noted.value}. It may have had a "
            "part of its effects. It was not called again: look what it did before you do."
        )
    return (
        f"This call of {noted.tool!r} began at {noted.at}, and the process was stopped before its "
        "result was recorded. It may have had all of its effects, a part of them, or none. It "
        "was not called again: look what it did before you do."
    )


def lacks_secret(call: Mapping[str, Any]) -> bool:
    """Whether a call that was saved is not the one that the model asked for."""
    return "[redacted:" in json.dumps(call.get("args"))


def unmade(tool: str) -> str:
    """What a model is told about a call that lacks a secret: made without it, it would do something
    else than was asked for, as write the mark into a file."""
    return (
        f"This call of {tool!r} was not made: it holds a secret, which is not kept where this "
        "conversation is saved, and the process that knew it has ended. Let the secret be read "
        "where it lies, or call again if you know it."
    )


def skipped(noted: Noted) -> str:
    return f"This call of {noted.tool!r} was interrupted and is skipped; go on without its result."


def refused(id: str, noted: Noted) -> str:
    """Why a run cannot go on, for people."""
    return (
        f"call {id!r} of tool {noted.tool!r} began at {noted.at}, and its end is not on record; "
        f"look what it did, then run again with unknown={{{noted.tool!r}: 'retry'}}, 'ask' or "
        "'skip'"
    )
