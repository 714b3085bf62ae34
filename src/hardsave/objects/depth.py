"""JSON from other programs, read to a depth that does not depend on the caller.

`json` calls itself for every level, up to the depth that the interpreter allows; how much of that
is left depends on the caller. And a finalizer that the garbage collector calls down there fails as
well. So text that is nested deeper than anything we know of is refused before it is read.
"""

import json
from typing import Any

DEEPEST = 200


def loads(text: str | bytes) -> Any:
    """As `json.loads`; `ValueError` if it is nested too deep, or is no JSON."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    check(text)
    return json.loads(text)


def check(text: str) -> None:
    """`ValueError` if `loads` would find it nested too deep."""
    if text.count("[") + text.count("{") > DEEPEST and _is_too_deep(text):
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def _is_too_deep(text: str) -> bool:
    import re  # few texts have so many brackets

    depth = 0
    for found in re.finditer(r'"(?:[^"\\]+|\\.)*"?|[\[{]|[\]}]', text, re.DOTALL):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth > DEEPEST:
                return True
        elif mark in "]}":
            depth -= 1
    return False
