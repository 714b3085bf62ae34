"""The way back into an agent's conversation, for whoever has rewound to a checkpoint.

An agent's transcript is its own: going back means another one beside it, cut at the checkpoint's
mark, from which the agent goes on. What cannot be done is said in `why`, and nothing is written.
"""

from collections.abc import Mapping
from typing import Any

from hardsave.adapters import agents
from hardsave.adapters.agents import Agent
from hardsave.adapters.resumption import Resumption


def resume(
    state: Any, metadata: Mapping[str, Any], environment: Mapping[str, str], timeline: str
) -> Resumption | None:
    """Write what an agent needs to go on from a checkpoint; None if it is no agent's that we know.

    A conversation is as the last hook of its session has left it. Checkpoints that others have
    made since, of files alone, have it too: it is not from the same moment. If no hook calls us,
    it was read along with the files, and the checkpoint names the session. So it was when a tool of
    a subagent had ended, whose work is one call of the session that was under way then: what came
    of that call in the end tells of more than the files have.
    """
    agent = _agent(state)
    if agent is None:
        return None
    from hardsave.adapters import rewinding

    is_hook, is_aside = "hook" in metadata, "subagent" in metadata
    is_read_along = not is_hook and "session" in metadata
    is_seen = is_read_along or (is_aside and not agent.has_transcripts_of_subagents)
    is_prompt = metadata.get("hook") == "UserPromptSubmit"
    return rewinding.resume(
        agent,
        state,
        environment,
        timeline,
        is_past=not is_hook or is_aside,
        is_prompt=is_prompt,
        is_seen=is_seen,
    )


def is_record(state: Any, key: object) -> bool:
    """Whether a part of a state is an agent's own record, of which the messages tell people all."""
    return key in ("transcript", "lines") and _agent(state) is not None


def _agent(state: Any) -> Agent | None:
    found = state.get("transcript") if isinstance(state, Mapping) else None
    return agents.named(found.get("agent")) if isinstance(found, Mapping) else None
