"""Secrets taken out of values before anything is hashed. Pure.

A rule is a pattern with a name. What it finds becomes `[redacted:NAME]`: always the same, so
that the same state still has the same address. Texts are looked at one by one; a secret that is
split over two list elements, encoded (base64, hex, compressed) or without any mark of its own is
not found.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from hardsave.errors import Misuse
from hardsave.record import Record

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")


class Rule(Record):
    """`pattern` finds a secret; its group `secret`, if one was found, is the part to replace.

    A text without any of the `keywords` (lower case) is not searched. Without keywords every
    text is, which makes saving slower.
    """

    name: str
    pattern: re.Pattern[str]
    keywords: tuple[str, ...] = ()


Pattern = Rule | re.Pattern[str] | str


class Cleaning(Protocol):
    """What a codec asks before it writes: what is to stand in the place of what."""

    def suspects(self, data: bytes) -> bool:
        """Whether an encoded value may hold what is to go. Quick, and never wrong with no."""

    def scalar(self, value: Any, /) -> Any:
        """What is written for a value that is no container."""

    def keys(self, keys: Sequence[Any], /) -> list[Any]:
        """What is written for the keys of one dict; no two become equal."""


class Redaction:
    """What to take out. `Redaction(patterns)` uses these alone; texts are regular expressions."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.rules = tuple(_rule(pattern) for pattern in patterns)
        if not self.rules:
            raise Misuse("a redaction has at least one pattern; pass redact=False for none")
        every = {word for rule in self.rules for word in rule.keywords}
        is_hinted = all(rule.keywords for rule in self.rules)
        self._hint = re.compile(_any_of(every)) if is_hinted else None
        # Encoded, only ASCII has its lower case told: other keywords are looked for in texts alone.
        is_hinted = is_hinted and all(word.isascii() for word in every)
        self._hint_in_bytes = re.compile(_any_of(every).encode()) if is_hinted else None

    def suspects(self, data: bytes) -> bool:
        """Whether an encoded value may hold a secret. Quick, and never wrong with no."""
        hint = self._hint_in_bytes
        return hint is None or hint.search(data.lower()) is not None

    def text(self, text: str, number: int = 1) -> str:
        """`text` without secrets; the same object if there are none."""
        lower = text.lower()
        if self._hint is not None and self._hint.search(lower) is None:
            return text
        for rule in self.rules:
            if not rule.keywords or any(word in lower for word in rule.keywords):
                text = _replaced(rule, text, number)
        return text

    def scalar(self, value: Any, number: int = 1) -> Any:
        """A text, or bytes that are one, without secrets; anything else as it is."""
        if type(value) is str:
            return self.text(value, number)
        if not isinstance(value, bytes | bytearray | memoryview):
            return value
        try:
            text = str(value, "utf-8")
        except UnicodeDecodeError:
            return value
        clean = self.text(text, number)
        return value if clean is text else clean.encode()

    def keys(self, keys: Sequence[Any]) -> list[Any]:
        """The keys of one dict without secrets. Those that would become equal are numbered."""
        clean = [self._key(key, 1) for key in keys]
        taken = {new for key, new in zip(keys, clean, strict=True) if new is key}
        counts: dict[Any, int] = {}
        for at, key in enumerate(keys):
            first = new = clean[at]
            if new is key:
                continue
            while new in taken:
                counts[first] = counts.get(first, 1) + 1
                new = self._key(key, counts[first])
            taken.add(new)
            clean[at] = new
        return clean

    def _key(self, key: Any, number: int) -> Any:
        if type(key) is not tuple:
            return self.scalar(str.__str__(key) if _is_text(key) else key, number)
        parts = tuple(self._key(part, number) for part in key)
        same = all(old is new for old, new in zip(key, parts, strict=True))
        return key if same else parts


def _is_text(key: Any) -> bool:
    """Whether a key is of a class that extends str, and is stored as what it extends."""
    import enum

    return isinstance(key, str) and type(key) is not str and not isinstance(key, enum.Enum)


def _replaced(rule: Rule, text: str, number: int) -> str:
    stands = f"[redacted:{rule.name}]" if number == 1 else f"[redacted:{rule.name}:{number}]"
    parts: list[str] = []
    done = 0
    for match in rule.pattern.finditer(text):
        start, end = _secret(rule, match)
        if end > max(start, done):  # what only looked ahead may be found twice
            parts += (text[done:start], stands)
            done = end
    return "".join((*parts, text[done:])) if parts else text


def _secret(rule: Rule, match: re.Match[str]) -> tuple[int, int]:
    """Where a secret stands: all that was found, if the group for it has no part in that."""
    if "secret" not in rule.pattern.groupindex or match.start("secret") < 0:
        return match.span()
    return match.span("secret")


def _any_of(words: Collection[str]) -> str:
    """A pattern for any of some words, letter by letter: three times as fast as one by one."""
    if "" in words:
        return ""
    after: dict[str, set[str]] = {}
    for word in sorted(words):
        after.setdefault(word[0], set()).add(word[1:])
    branches = [re.escape(letter) + _any_of(rest) for letter, rest in after.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _rule(pattern: Any) -> Rule:
    """A rule from what people pass: a rule, a regular expression, or the text of one."""
    if isinstance(pattern, str):
        try:
            pattern = re.compile(pattern)
        except re.error as error:
            raise Misuse(f"{pattern!r} is not a regular expression: {error}") from error
    if isinstance(pattern, re.Pattern):
        pattern = Rule("custom", pattern)
    if not isinstance(pattern, Rule) or not isinstance(pattern.pattern.pattern, str):
        raise Misuse(f"a pattern is a text, a compiled one or a Rule, not {pattern!r}")
    if not _NAME.fullmatch(pattern.name):
        raise Misuse(f"a rule is named by letters a-z, digits and '-', not {pattern.name!r}")
    if pattern.pattern.search(""):
        raise Misuse(f"the pattern of {pattern.name!r} finds a secret in an empty text")
    if not all(pattern.keywords):
        raise Misuse(f"a keyword of {pattern.name!r} is empty")
    return pattern.replace(keywords=tuple(word.lower() for word in pattern.keywords))
