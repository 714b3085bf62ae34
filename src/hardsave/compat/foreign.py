"""Values from elsewhere: each is what it should be, or `Misuse` that names it. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Any, get_args

from hardsave.errors import Misuse

_SHOWN = 60  # characters of a wrong value
_WORDS: Mapping[Any, str] = {
    Mapping: "a dict",
    dict: "a dict",
    list: "a list",
    str: "a text",
    bytes: "bytes",
    int: "a whole number",
    float: "a number",
    datetime: "a datetime",
    NoneType: "None",
}


def check(value: object, kind: type | UnionType, what: str) -> None:
    """True and False are no numbers here."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        wanted = " or ".join(_WORDS[each] for each in get_args(kind) or (kind,))
        raise Misuse(f"{what} is {wanted}, not {type(value).__name__}")


def moment(given: Any, what: str) -> datetime:
    """A time, or the text of one, in UTC; one without a zone is taken as local."""
    check(given, str | datetime, what)
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
        return found.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:  # the last from the system's own zone
        raise Misuse(f"{what} is no moment: {str(given)[:_SHOWN]!r}") from error


def bound(given: Any, what: str) -> datetime:
    """The same for one end of a span. The ends of time, which no zone can move, are taken as they
    are: a caller that asks with them means all."""
    check(given, datetime, what)
    try:
        return moment(given, what)
    except Misuse:
        end: datetime = given.replace(tzinfo=UTC)
        return end
