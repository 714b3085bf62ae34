"""The way back into an agent's conversation, for whoever has rewound to a checkpoint.

An agent's transcript is its own: going back means another one beside it, cut at the checkpoint's
mark, from which the agent goes on. What cannot be done is said in `why`, and nothing is written.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain, tee
from typing import Any

from hardsave.agents import spec as agents
from hardsave.agents.resumption import Resumption
from hardsave.agents.spec import Agent


def resume(
    state: Any,
    metadata: Mapping[str, Any],
    environment: Mapping[str, str],
    timeline: str,
    earlier: Iterable[Mapping[str, Any]] = (),
    saved_at: datetime | None = None,
) -> Resumption | None:
    """Write what an agent needs to go on from a checkpoint; None if it is no agent's that we know.
    `earlier` is what the checkpoints before it say of themselves, newest first.

    A conversation is as the last hook of its session has left it. Checkpoints that others have
    made since, of files alone, have it too: it is not from the same moment. If no hook calls us,
    it was read along with the files, and the checkpoint names the session. So it was when a tool of
    a subagent had ended, whose work is one call of the session that was under way then: what came
    of that call in the end tells of more than the files have. And so it is when its user says
    something while a tool is at work.
    """
    agent = _agent(state)
    if agent is None:
        return None
    from hardsave.agents import rewinding

    is_hook, is_aside = "hook" in metadata, "subagent" in metadata
    is_read_along = not is_hook and "session" in metadata
    is_prompt = metadata.get("hook") == "UserPromptSubmit" and not is_aside
    near, far = tee(chain([metadata], earlier))
    has_talked = _has_talked([metadata] if state.get("lines") else far)
    is_in_its_midst = is_aside and not agent.has_transcripts_of_subagents
    return rewinding.resume(
        agent,
        state,
        environment,
        timeline,
        before=_ended(near),
        saved_at=saved_at,
        is_past=not is_hook or is_aside,
        is_prompt=is_prompt,
        has_talked=has_talked,
        is_seen=is_read_along or is_prompt or is_in_its_midst,
    )


def whole(state: Any, environment: Mapping[str, str]) -> Resumption | None:
    """How to go on with the conversation of a state as its agent has it by now, uncut; None if it
    is no agent's that we know, or gone."""
    agent = _agent(state)
    if agent is None:
        return None
    from hardsave.agents import rewinding  # loads what only this needs

    return rewinding.whole(agent, state, environment)


def _ended(told: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The calls that hooks have told of, one by one, up to this checkpoint. Until the last call of
    an answer has ended, nothing else happens in a session, but that its user says more; what others
    save counts for nothing."""
    found, session = set[str](), None
    for metadata in told:
        if "hook" not in metadata or "subagent" in metadata:
            continue
        session = session or metadata.get("session")
        is_one = metadata["hook"] in ("PostToolUse", "UserPromptSubmit")
        if not is_one or metadata.get("session") != session:
            break
        found.add(str(metadata.get("tool_use_id")))
    return frozenset(found)


def _has_talked(told: Iterable[Mapping[str, Any]]) -> bool:
    """Whether hooks have told of an answer in the session of the first. If nothing is written, all
    its hooks are asked: an agent may be told to write nothing down, and has talked all the same."""
    session = None
    for metadata in told:
        session = session or metadata.get("session")
        if metadata.get("session", session) != session:
            return False
        if metadata.get("hook") in ("PostToolUse", "PostToolBatch", "Stop"):
            return True
    return False


def is_record(state: Any, key: object) -> bool:
    """Whether a part of a state is an agent's own record, of which the messages tell people all."""
    return key in ("transcript", "lines") and _agent(state) is not None


def _agent(state: Any) -> Agent | None:
    found = state.get("transcript") if isinstance(state, Mapping) else None
    return agents.named(found.get("agent")) if isinstance(found, Mapping) else None
