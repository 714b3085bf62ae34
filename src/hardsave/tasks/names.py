"""What may be the id of a task, the name of a step or of a session."""

from typing import Any

from hardsave.defaults import MAX_TASK_NAME
from hardsave.errors import Misuse


def check(what: str, name: Any) -> None:
    """A text of one line that every store can keep."""
    if not isinstance(name, str) or not name:
        raise Misuse(f"{what} is a text that is not empty, not {name!r}")
    if len(name) > MAX_TASK_NAME:
        raise Misuse(f"{what} has at most {MAX_TASK_NAME} characters, not {len(name)}")
    if not name.isprintable():
        raise Misuse(f"{what} {name!r} holds characters that cannot be printed")


def check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        raise Misuse(f"{what} is a text, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Misuse(f"{what} holds a lone surrogate: {error.reason}") from error
