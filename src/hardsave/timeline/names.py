"""What may be called what. Pure checks, made before anything is written."""

from functools import lru_cache

from hardsave.defaults import MAX_DESCRIPTION, MAX_LABEL_VALUE, MAX_NAME, MAX_NOTE_KEY
from hardsave.errors import Misuse

KINDS = ("automatic", "manual", "feature", "session")
_ID_BEGINS, _ID_DIGITS = "chk_", 24


def check_timeline(name: str) -> str:
    _check_line(name, "a timeline's name", MAX_NAME)
    if ":" in name:
        raise Misuse(f"a timeline's name has no ':' ({name!r}); it separates name and number")
    if name.startswith("@"):
        raise Misuse(f"a timeline's name does not begin with '@' ({name!r})")
    return name


def check_checkpoint(name: str) -> str:
    """A checkpoint's name must not read as another kind of ref."""
    _check_line(name, "a checkpoint's name", MAX_NAME)
    if name.startswith("@") or is_full_id(name) or numbered(name) is not None:
        raise Misuse(f"{name!r} reads as a ref of another kind; choose another name")
    return name


def is_full_id(text: str) -> bool:
    """Whether it is a whole id of a checkpoint."""
    begin, digits = text[: len(_ID_BEGINS)], text[len(_ID_BEGINS) :]
    return begin == _ID_BEGINS and len(digits) == _ID_DIGITS and are_hex(digits)


def id_digits(text: str) -> str | None:
    """The digits of an id, or of its beginning, with or without what it begins with."""
    digits = text.removeprefix(_ID_BEGINS)
    return digits if 1 <= len(digits) <= _ID_DIGITS and are_hex(digits) else None


def are_hex(text: str) -> bool:
    return not text.strip("0123456789abcdef")


def numbered(text: str) -> tuple[str, str] | None:
    """The timeline and the number of `TIMELINE:N`."""
    timeline, colon, number = text.partition(":")
    return (timeline, number) if colon and is_number(number) else None


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise Misuse(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    return kind


def check_status(status: str) -> str:
    _check_text(status, "a status")
    _check_status_line(status)
    return status


@lru_cache(64)  # the same few texts, save after save
def _check_status_line(status: str) -> None:
    _check_line(status, "a status", MAX_NAME)


def check_description(text: str) -> str:
    _check_text(text, "a description")
    if len(text) > MAX_DESCRIPTION:
        raise Misuse(f"a description has at most {MAX_DESCRIPTION} characters; use the state")
    return text


def check_label(key: str) -> str:
    _check_line(key, "the key of a label", MAX_NAME)
    return key


def check_note(key: str) -> str:
    _check_text(key, "the key of a note")
    if not 1 <= len(key) <= MAX_NOTE_KEY:
        raise Misuse(f"the key of a note has 1 to {MAX_NOTE_KEY} characters ({key[:80]!r})")
    return key


def check_label_value(value: str) -> str:
    _check_text(value, "a label")
    if len(value) > MAX_LABEL_VALUE:
        raise Misuse(
            f"a label has at most {MAX_LABEL_VALUE} characters, not {len(value)}; take a digest"
        )
    return value


def check_user(user: str | None) -> str | None:
    if user is not None:
        _check_line(user, "a user", MAX_NAME)
    return user


def _check_line(text: str, what: str, limit: int) -> None:
    _check_text(text, what)
    if not text or text != text.strip():
        raise Misuse(f"{what} is not empty and has no space around it ({text!r})")
    if not text.isprintable() and _has_controls(text):
        raise Misuse(f"{what} is one line without control characters ({text!r})")
    if len(text) > limit:
        raise Misuse(f"{what} has at most {limit} characters, not {len(text)}")


def _has_controls(text: str) -> bool:
    from unicodedata import category  # most texts can be printed

    return any(category(character) in ("Cc", "Zl", "Zp") for character in text)


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise Misuse(f"{what} is text, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Misuse(f"{what} cannot hold lone surrogates ({text!r})") from error
    if "\x00" in text:
        raise Misuse(f"{what} cannot hold a NUL character ({text!r})")
