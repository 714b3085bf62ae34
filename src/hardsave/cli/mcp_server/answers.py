"""What a tool answers: the JSON of a command, without what says nothing, and of bounded size. Pure.

A model pays for each character, and clients cut long answers anywhere. So what is long is made
shorter here: texts and lists to the same most, ever fewer until all of it fits, and it is said.
"""

import json
from typing import Any

from hardsave import wording
from hardsave.errors import Misuse
from hardsave.values.text import loads

LONGEST = 20_000  # characters of an answer
_LONGEST_SAID = 2_000  # of what a command says besides
_MOST = ((8_000, 200), (2_000, 100), (600, 40), (200, 20), (100, 8), (40, 4))
# Of checkpoints and hits: what programs need to find their way, and models do not.
_LEFT_OUT = frozenset(
    {
        "attempt",
        "changed_by",
        "evidence",
        "files_id",
        "marks",
        "newest",
        "parent",
        "score",
        "seq",
        "task",
    }
)
# Saved by users and agents: their keys may have any name, and an empty value means something.
_OF_USERS = frozenset({"about", "data", "files", "messages", "metadata"})
_HOW_TO_GET_MORE = "ask for less: a smaller limit, fewer paths, one checkpoint, or stat"


def answer(printed: str, said: str) -> dict[str, Any]:
    """What a command has printed, as a tool answers it. `ValueError` if that is no JSON."""
    result = _brief(json.loads(printed))
    short = next((cut for cut in _ever_shorter(result) if _length(cut) <= LONGEST), None)
    found: dict[str, Any] = {"result": result if short is None else short}
    if short is None:  # too much of everything
        found = {"text": json.dumps(result, ensure_ascii=False)[:LONGEST]}
    if found.get("result") != result:
        found["cut"] = f"this was {_length(result):,} characters; {_HOW_TO_GET_MORE}"
    if said := said.strip():
        found["said"] = _cut_text(said, _LONGEST_SAID)
    return found


def error(printed: str, said: str, code: int) -> str:
    """The sentence of a command that has failed."""
    try:
        return wording.passage(str(loads(printed)["error"]["message"]))
    except (Misuse, KeyError, TypeError):
        told = said.strip() or printed.strip() or f"the command has ended with {code}"
        return told[-_LONGEST_SAID:]


def _brief(data: Any) -> Any:
    """Without what is empty, but for lists of hits, and for what users have saved."""
    if isinstance(data, list):
        return [_brief(each) for each in data]
    if not isinstance(data, dict):
        return data
    told = {
        key: value if key in _OF_USERS else _brief(value)
        for key, value in data.items()
        if key not in _LEFT_OUT
    }
    return {
        key: value
        for key, value in told.items()
        if key == "hits" or value not in (None, "", [], {})
    }


def _ever_shorter(data: Any) -> Any:
    yield data
    yield from (_cut(data, longest, most) for longest, most in _MOST)


def _cut(data: Any, longest: int, most: int) -> Any:
    if isinstance(data, str):
        return _cut_text(data, longest)
    if isinstance(data, list):
        left = len(data) - most
        shown = [_cut(each, longest, most) for each in data[:most]]
        return [*shown, f"… and {left:,} more"] if left > 0 else shown
    if isinstance(data, dict):
        left = len(data) - most
        found = {key[:longest]: _cut(data[key], longest, most) for key in [*data][:most]}
        return {**found, "…": f"{left:,} more"} if left > 0 else found
    return data


def _cut_text(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text):,} characters in all)"


def _length(data: Any) -> int:
    return len(json.dumps(data, ensure_ascii=False))
