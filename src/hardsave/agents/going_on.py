"""The conversation of a checkpoint, made ready for its agent to go on with: for all that takes a
timeline back, by a command or over HTTP."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hardsave import Checkpoint, Vault
from hardsave.agents import conversation, sessions, state

if TYPE_CHECKING:
    from hardsave.agents.conversation import Resumption


def conversation_of(
    vault: Vault,
    environment: Mapping[str, str],
    one: Checkpoint,
    timeline: str,
    *,
    origin: str = "rewound to",
    workspace: str | None = None,
    left: Checkpoint | None = None,
) -> "Resumption | None":
    """How to go on with the conversation of a checkpoint, on a timeline and in a workspace; None if
    it is of no agent CLI that is known. `left` is where its user has come from."""
    line = vault.timeline(one.timeline)
    found = conversation.resume(
        one.state,
        one.metadata,
        environment,
        conversation.Place(timeline, one.id, f"{origin} :{one.seq}", workspace),
        (each.metadata for each in line.ancestors(one.id)),
        one.created_at,
    )
    if left is None:
        return found
    found = found or conversation.begin(left.state, one.state, workspace)
    if found is None:
        return None
    _leave(environment, left, found)
    return found._replace(prompt=conversation.taken_back(left.state, one.state))


def _leave(environment: Mapping[str, str], left: Checkpoint, found: "Resumption") -> None:
    """The session that was left may be open, and its end must not move the head back there."""
    old = left.state["transcript"].get("session") if state.agent_of(left.state) else None
    if found.session is not None:
        sessions.come_back(environment, found.session)
    if isinstance(old, str) and old != found.session and sessions.left(environment, old) is None:
        sessions.leave(environment, old)
