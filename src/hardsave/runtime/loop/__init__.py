"""Agents of Pydantic AI that survive: `run`, `run_sync`, and how a tool says what it is.

Needs the extra `agents`: `pip install 'hardsave[agents]'`.
"""

try:
    import pydantic_ai as _needed  # noqa: F401 # a clear word if it is missing
except ImportError as error:
    raise ImportError(
        "hardsave.runtime.loop runs agents of Pydantic AI, which is not installed: "
        "pip install 'hardsave[agents]'"
    ) from error

from hardsave.runtime.loop.approvals import ApprovalNeeded, PendingCall
from hardsave.runtime.loop.journal import METADATA_KEY, Verdict
from hardsave.runtime.loop.repair import repaired
from hardsave.runtime.loop.run import Outcome, run, run_sync
from hardsave.tasks.steps import UnknownPolicy

__all__ = [
    "ApprovalNeeded",
    "Outcome",
    "PendingCall",
    "UnknownPolicy",
    "Verdict",
    "if_unknown",
    "repaired",
    "run",
    "run_sync",
]


def if_unknown(policy: UnknownPolicy) -> dict[str, UnknownPolicy]:
    """Metadata of a tool: what becomes of a call that was under way when the process died.

    @agent.tool_plain(metadata=loop.if_unknown("retry"))  # it only reads: safe to repeat
    """
    return {METADATA_KEY: policy}
