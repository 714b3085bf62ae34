"""What people type into a search, as an expression of SQLite's FTS5. Pure.

Every word must be there. `"in quotes"` is a phrase, `word*` the beginning of a word. All else
is taken literally: nothing that a user types is a syntax error.

Scripts that put no spaces between words (Chinese, Japanese, Thai …) and emoji are indexed one
character at a time, and looked for as phrases: any part of a sentence is found.
"""

import re
import unicodedata
from functools import cache

from hardsave.errors import Misuse

TOKENIZER = "unicode61 remove_diacritics 2 categories 'L* N* Co So'"
APART = "\u200b"  # a zero-width space: parts tokens, and is not seen
_ALONE = (
    "(["
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2190-\u2bff"  # arrows, signs, dingbats
    "\u2e80-\u303f\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han, Kana, Bopomofo
    "\uac00-\ud7a3"  # Hangul
    "\U0001f000-\U0001faff\U00020000-\U0003ffff"  # emoji, rarer Han
    "])"
)
_TERM = re.compile(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')


@cache
def _alone() -> re.Pattern[str]:
    """Compiled by the first search: it takes milliseconds, and most processes never search."""
    return re.compile(_ALONE)


def readable(text: str) -> str:
    """`text` as SQLite can hold it, with what stands for itself set apart."""
    if text.isascii():
        return text.replace("\0", " ")
    whole = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return _alone().sub(rf"{APART}\1{APART}", unicodedata.normalize("NFC", whole))


def expression(text: object) -> str:
    """What FTS5 is asked for. A search for nothing is `Misuse`."""
    if not isinstance(text, str):
        raise Misuse(f"search takes a text, not {type(text).__name__}")
    terms = [_term(match) for match in _TERM.finditer(text)]
    found = [term for term in terms if term is not None]
    if not found:
        raise Misuse(f"there is no word in {text!r} to search for")
    return " AND ".join(found)


def _term(match: re.Match[str]) -> str | None:
    words = match["phrase"] if match["phrase"] is not None else match["word"]
    if not any(character.isalnum() or _alone().match(character) for character in words):
        return None
    prefix = "*" if match["phrase"] is None and words.endswith("*") else ""
    return f'"{readable(words)}"{prefix}'
