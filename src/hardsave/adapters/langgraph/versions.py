"""Versions of channels: texts that are unique, and sort as they were made."""

import secrets

DIGITS = 8


def next_version(current: str | int | float | None) -> str:
    """The version after `current`, which may be one of another saver: `00000007.ab12cd34`.

    What is behind the dot makes it unique: two branches of a thread may both write version 7 of a
    channel, and LangGraph compares versions to see what a node has not seen yet.
    """
    number = 0 if current is None else int(str(current).partition(".")[0])
    return f"{number + 1:0{DIGITS}}.{secrets.token_hex(4)}"
