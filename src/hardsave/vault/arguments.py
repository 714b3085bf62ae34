"""What callers hand in, checked and made plain. Pure, and the errors name the argument."""

import os
import types
import typing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Union

from hardsave.errors import Misuse
from hardsave.objects.types import convert, is_one
from hardsave.page import place_of
from hardsave.timeline import names
from hardsave.timeline.refs import from_text

if TYPE_CHECKING:
    from hardsave.objects.redaction import Pattern, Redaction

Redact = Union[bool, tuple["Pattern", ...], "Redaction"]


def encoded(path: "str | bytes | os.PathLike[str]", what: str) -> bytes:
    """A path as the system wants it."""
    try:
        plain = os.fsencode(path)
    except (TypeError, UnicodeEncodeError) as error:
        raise Misuse(f"{what} {path!r} is no path: {error}") from error
    if b"\0" in plain:
        raise Misuse(f"{what} {path!r} is no path: there is a NUL in it")
    return plain


def several(paths: Any, what: str) -> tuple[str, ...]:
    """Paths or patterns. One alone would be taken for as many as it has letters."""
    if isinstance(paths, str | bytes):
        raise Misuse(f"{what} is a list; write [{paths!r}]")
    try:
        given = tuple(paths)
    except TypeError as error:
        raise Misuse(f"{what} is a list, not {type(paths).__name__}") from error
    for path in given:
        encoded(path, what)
    return given


def check_asked(**texts: Any) -> None:
    """What is looked for, by what it is."""
    for what, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise Misuse(f"{what} is text, not {type(text).__name__}")


def whole_id(id: Any, what: str = "expect is a checkpoint, a whole id or ANY_HEAD") -> bytes:
    if not isinstance(id, str) or not names.is_full_id(id):
        raise Misuse(f"{what}, not {id!r}")
    return from_text(id)


def shaped(state: Any, wanted: Any) -> Any:
    if isinstance(wanted, str | bytes | int | float | list | tuple | dict | set):
        raise Misuse(f"type is a class, or an annotation like list[Message], not {wanted!r}")
    try:
        shaped = convert(state, wanted)
    except RecursionError as error:
        raise Misuse(f"the state is nested too deep to become a {wanted!r}") from error
    plain = _class_of(wanted)
    if plain is not None and not is_one(shaped, plain):
        raise Misuse(
            f"the state is a {type(state).__name__} and does not become a {plain.__qualname__}; "
            "load it without a type to see it"
        )
    return shaped


def _class_of(wanted: Any) -> type | None:
    """The class that an annotation names, as `list[Message]` does; None if it names none."""
    plain = typing.get_origin(wanted) or wanted
    if not isinstance(plain, type) or plain in (typing.Annotated, types.UnionType):
        return None
    return plain


def check_limit(limit: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit < 1 << 62:
        raise Misuse(f"limit is a number from 1 on, and no astronomical one, not {limit!r}")


def place(after: Any, listing: str) -> str | None:
    """The place in a listing that a page ended at, by its `next`; None before the first page."""
    if after is None:
        return None
    found = place_of(listing, after)
    if found is None:
        raise not_a_cursor(after)
    return found


def cursor(after: Any, listing: str) -> int | None:
    """The same where places are numbers."""
    found = place(after, listing)
    if found is not None and (len(found) > 18 or not names.is_number(found)):
        raise not_a_cursor(after)
    return None if found is None else int(found)


def not_a_cursor(after: Any) -> Misuse:
    return Misuse(
        f"after is the `next` of an earlier page of this listing, not {after!r}; begin without it"
    )


def spoken(moment: int) -> str:
    """UTC microseconds, for a message."""
    return f"{datetime.fromtimestamp(moment / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def microseconds(moment: Any) -> int | None:
    """UTC microseconds; a naive time is taken as local."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise Misuse(f"since and until are datetimes, not {type(moment).__name__}")
    try:
        aware = moment.astimezone() if moment.tzinfo is None else moment
    except (ValueError, OverflowError):  # the ends of time have no local time
        aware = moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def check_cap(max_value_bytes: Any) -> None:
    if not isinstance(max_value_bytes, int) or max_value_bytes < 1:
        raise Misuse(f"max_value_bytes is a number from 1 on, not {max_value_bytes!r}")


def redaction_of(redact: Any) -> "Redaction | None":
    if redact is False:
        return None
    from hardsave.objects.redaction import Redaction  # few want any

    if isinstance(redact, Redaction):
        return redact
    if redact is not True and not isinstance(redact, tuple):
        raise Misuse(f"redact is True, a tuple of patterns or a Redaction, not {redact!r}")
    from hardsave.objects.secrets import built_in  # its patterns take a while to compile

    return built_in(*(redact if isinstance(redact, tuple) else ()))
