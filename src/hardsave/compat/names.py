"""Names that other systems allow and ours do not: any text gets one that fits."""

import re
from collections.abc import Callable

from blake3 import blake3

from hardsave.errors import Misuse

STAND_IN = "~"


def fitting(text: str, check: Callable[[str], object]) -> str:
    """`text` itself if it passes `check`, else a stand-in that is the same each time.

    What begins like a stand-in gets one too, so a stand-in never means something else. The
    caller keeps the text where it must come back.
    """
    check_text(text)
    try:
        check(text)
    except Misuse:
        return _stand_in(text)
    return _stand_in(text) if text.startswith(STAND_IN) else text


def is_stand_in(text: str) -> bool:
    """Whether it looks like what `fitting` gives in the place of another text."""
    return re.fullmatch(f"{STAND_IN}[0-9a-f]{{32}}", text) is not None


def _stand_in(text: str) -> str:
    return STAND_IN + blake3(text.encode("utf-8", "surrogatepass")).hexdigest(length=16)


def check_text(text: object) -> None:
    """Refuse an id or a name that is no text."""
    if not isinstance(text, str):
        raise Misuse(f"an id or a name is text, not {text!r}")
