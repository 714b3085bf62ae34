"""Calls that a person has to allow first: what is asked, and what follows from the answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolResults, ToolApproved, ToolDenied

from hardsave.errors import HardsaveError
from hardsave.record import Record
from hardsave.runtime.loop.journal import Verdict

DENIED = "This call was not approved."


class PendingCall(Record):
    """A call that waits for a word."""

    id: str
    tool: str
    args: Any

    def __str__(self) -> str:
        given = self.args if isinstance(self.args, str) else json.dumps(self.args)
        return f"{self.tool}({given})"


class ApprovalNeeded(HardsaveError):
    """The run pauses: all that was done is saved, and `approvals=` lets it go on, at any time and
    in any process."""

    def __init__(self, calls: Sequence[PendingCall], turn: int) -> None:
        named = ", ".join(str(call) for call in calls)
        super().__init__(
            f"approval is needed: {named}; run again with approvals={{call.id: True}}, or False, "
            "the reason why not, or other arguments to make it with"
        )
        self.calls = tuple(calls)
        self.turn = turn
        """The response that asks for them: ids may come again in later ones."""


def pending(call: ToolCallPart) -> PendingCall:
    return PendingCall(call.tool_call_id, call.tool_name, call.args_as_dict())


def results(verdicts: dict[str, Verdict]) -> DeferredToolResults:
    """As Pydantic AI is told."""
    return DeferredToolResults(approvals={id: _result(verdict) for id, verdict in verdicts.items()})


def _result(verdict: Verdict) -> bool | ToolApproved | ToolDenied:
    if isinstance(verdict, Mapping):
        return ToolApproved(override_args=dict(verdict))
    return True if verdict is True else ToolDenied(reason(verdict))


def reason(verdict: Verdict) -> str:
    return verdict if isinstance(verdict, str) and verdict else DENIED
