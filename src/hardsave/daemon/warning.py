"""What a person reads on the agent's own screen while hooks cannot save.

An agent that nobody saves looks exactly like one that is saved, until somebody wants to go back.
Both agents show their user what a hook answers as `systemMessage`, and keep it from the model. It
is said where a turn begins and where it ends, not after every tool.
"""

import json
from typing import Any

from hardsave.agents.events import Event

KEY = "systemMessage"
_SPOKEN_AT = ("UserPromptSubmit", "Stop")
_LONGEST = 500  # characters of a reason


def warning(event: Event, why: str, unsaved: int) -> bytes:
    """What a hook answers that could not save, as one line; nothing if it keeps quiet.

    `unsaved` counts the calls since the last one that was saved, this one among them.
    """
    if event.name not in _SPOKEN_AT or event.subagent is not None:
        return b""
    count = "the last step is" if unsaved <= 1 else f"the last {unsaved} steps are"
    reason = " ".join(why.split())
    short = reason if len(reason) <= _LONGEST else reason[:_LONGEST] + " […]"
    text = f"hardsave: {count} NOT saved. {short}. 'hardsave doctor' says more"
    return _answer({KEY: text})


def _answer(told: dict[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode(errors="replace")
