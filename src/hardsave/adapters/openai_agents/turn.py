"""A turn that is under way, and what becomes of it if its run has died. Pure, on plain data.

The SDK hands a turn to its session as a whole, once all its tools have ended. Until then the turn
is kept beside the conversation: the model's answer, which calls have begun, and what came out. If
the run dies, the next one finds it: the answer and the results join the conversation, and a call
without a result gets one that says so, because no model accepts a call that was never answered.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Item = Mapping[str, Any]

NEVER_RUN = "This call was not run: the program was stopped before it began."
UNKNOWN = (
    "The program was stopped while this call ran. Whether it took effect is unknown: look before "
    "calling it again."
)

_CALL, _OUTPUT = "function_call", "function_call_output"


def begun(run: str, response: Sequence[Item]) -> dict[str, Any]:
    """A turn whose model has answered."""
    return {"run": run, "response": list(response), "started": [], "outputs": {}}


def settled(turn: Mapping[str, Any] | None, given: Iterable[Item] = ()) -> list[Item]:
    """What a turn adds to the conversation once its run is over. `given` are items that come with
    it: what stands there is not added twice.

    A turn that called a tool of another kind than a function, and has no result of it, adds
    nothing: how such a call is answered depends on the provider of the model.
    """
    if turn is None:
        return []
    response: Sequence[Item] = turn["response"]
    there = {_key(item) for item in given}
    answered = {id for kind, id in there if kind != _CALL}
    calls = [item for item in response if item.get("call_id")]
    left = [call for call in calls if call["call_id"] not in answered]
    if any(call.get("type") != _CALL for call in left):
        return []
    made = [*response, *(_answer(turn, call["call_id"]) for call in left)]
    return [item for item in made if _key(item) not in there]


def rest(turn: Mapping[str, Any], given: Iterable[Item]) -> Mapping[str, Any] | None:
    """What is left of a turn when its own run hands over `given`: of a run that fails these are the
    calls that have results, and the others would be forgotten."""
    there = {item.get("call_id") for item in given}
    calls = [item for item in turn["response"] if item.get("call_id")]
    left = [call for call in calls if call["call_id"] not in there]
    if not left:
        return None
    return turn if len(left) == len(calls) else {**turn, "response": left}


def _answer(turn: Mapping[str, Any], call_id: str) -> Item:
    found: Item | None = turn["outputs"].get(call_id)
    if found is not None:
        return found
    told = UNKNOWN if call_id in turn["started"] else NEVER_RUN
    return {"type": _OUTPUT, "call_id": call_id, "output": told}


def _key(item: Item) -> tuple[str, Any]:
    """What makes an item the same one, told twice; items without an id are all different."""
    kind = str(item.get("type") or "message")
    return kind, item.get("call_id") or item.get("id") or id(item)
