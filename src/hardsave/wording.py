"""What people are shown: counts, sizes, ages, texts of any origin made safe, and the hints of the
library as commands. Pure."""

import re
import unicodedata
from datetime import datetime

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_BIDI = {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F))}
_STEPS = (
    (60, 1, "second"),
    (3_600, 60, "minute"),
    (86_400, 3_600, "hour"),
    (7 * 86_400, 86_400, "day"),
    (30 * 86_400, 7 * 86_400, "week"),
    (365 * 86_400, 30 * 86_400, "month"),
)
_YEAR = 365 * 86_400
_PASSWORDS = (r"[^?]*", r"[^/?@]*\?.*")  # the second with a `?` in it, before any host
_SECRET_OPTIONS = ("password", "oauth_client_secret", "scram_client_key", "scram_server_key")


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 file`, `1,204 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """`512 bytes`, `1.4 MiB`."""
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number:,} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def without_password(url: str) -> str:
    """The URL of a store, to be told: with no secret in it. A password may have been written as it
    is, with any character in it: all up to the last `@` is taken for it."""
    for password in _PASSWORDS:
        url = re.sub(rf"(://[^/?@:]*):{password}@", r"\1:***@", url)
    return re.sub(rf"((?:{'|'.join(_SECRET_OPTIONS)})=)[^&]*", r"\1***", url)


def name_of_url(url: str) -> str:
    """The same to compare by: it does not tell whether there was a password, either."""
    url = re.sub(r"^postgres://", "postgresql://", url)
    url = re.sub(r"(://[^/?@:]*):\*\*\*@", r"\1@", without_password(url)).replace("://@", "://")
    return re.sub(r"(?<=[?&])[^=&]*=\*\*\*(&|$)", "", url).rstrip("?&")


def shown(text: str) -> str:
    """A text of any origin, such as an agent or a file name, safe to show on one line.

    Escape sequences would drive a terminal, bidirectional marks would reorder what people read,
    and half a surrogate cannot be printed at all: each is written out instead.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if _is_harmless(character) else _spelt(character) for character in text
    )


def passage(text: str) -> str:
    """The same for a text of several lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(shown(part) for part in line.split("\t")) for line in lines)


def line(text: str, limit: int | None = None) -> str:
    """The same on one line, cut where it is longer than `limit`."""
    flat = shown(" ".join(text[: 4 * limit if limit else None].split()))
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def _is_harmless(character: str) -> bool:
    category = unicodedata.category(character)
    return category not in ("Cc", "Cs", "Zl", "Zp") and character not in _BIDI


def _spelt(character: str) -> str:
    number = ord(character)
    if character in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[character]
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a file name that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def ago(then: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = int((now - then).total_seconds())
    if seconds < 0:
        return "in the future"
    if seconds < 1:
        return "now"
    for below, unit, word in _STEPS:
        if seconds < below:
            return _said(seconds // unit, word)
    return _said(seconds // _YEAR, "year")


def _said(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'} ago"


# What the library tells people who write Python, for people who type commands.
WORDS = {
    "or name a store elsewhere": "or name a store elsewhere with --store or HARDSAVE_STORE",
    "; list() lists what was": "; 'hardsave show REF --full' lists what was",
    "name a file that export_file made": "name a file that 'hardsave store export' made",
    "call hardsave.repair()": "run 'hardsave store repair'",
    "scope='mine'": "--mine",
    "scope='everyone'": "--everyone",
    "; see operations()": "; see 'hardsave undo --list'",
    "; see jobs.find()": "; 'hardsave jobs list --all' lists them",
    "; resume gives it more": "; 'hardsave jobs resume' gives it more",
    "or accept_changes=True to": "or --accept-changes to",
    "; give it in inputs": "; give it with --input KEY=TEXT",
    "; run verify": "; run 'hardsave store verify'",
    "; undo may bring it back": "; 'hardsave undo' may bring it back",
    "; delete the whole timeline": "; delete the whole timeline with 'hardsave timelines delete'",
    "; vault.timelines() lists them": "; 'hardsave timelines' lists them",
    "or rewind the state alone": "or rewind with --state",
    "leave tasks=True": "leave --tasks",
    "tasks.retry(id, unknown='retry') or 'skip' goes on": (
        "'hardsave tasks retry ID --unknown retry' or 'skip' goes on"
    ),
    "tasks.retry() lets it run again": "'hardsave tasks retry' lets it run again",
    "tasks.retry() starts it over": "'hardsave tasks retry' starts it over",
    "tasks.retry() gives it one": "'hardsave tasks retry' gives it one",
    "force=True runs it again": "--force runs it again",
    "force=True begins it now": "--force begins it now",
    "; see tasks.answer()": "; see 'hardsave tasks answer'",
    "; see tasks.find()": "; see 'hardsave tasks list'",
    "open the runner with take_over=True": "run 'hardsave tasks recover --take-over'",
    "rewind what='state' alone": "rewind with --state",
    "leave what='state'": "leave --state",
    "paths, scope, git and workspace are about files": (
        "--path, --mine, --everyone, --git and --into are about files"
    ),
    "with workspace=": "with --into DIR",
    "with paths=": "with --path",
    "'include' can ask for it": "'hardsave save --include' can ask for it",
    "or say that you are sure with sure=True": "or use the library with sure=True",
}


def in_our_words(message: str) -> str:
    """A message of the library, in words that can be typed at a command line."""
    for theirs, ours in WORDS.items():
        if theirs in message and ours not in message:
            message = message.replace(theirs, ours)
    return message
