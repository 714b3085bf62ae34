"""What a search has found, a row a hit."""

import pytest
from rich.text import Text

from hardsave.cli.render import hits

LONG = "a long sentence that goes on and on before the needle comes, and goes on behind it"


def snippet(text: str, word: str, room: int) -> Text:
    at = text.index(word)
    return hits.snippet(text, [(at, at + len(word))], room)


@pytest.mark.parametrize("room", [20, 30, 60])
def test_what_was_found_is_seen_where_there_is_little_room(room: int) -> None:
    shown = snippet(LONG, "needle", room)
    assert shown.plain.startswith("…")
    assert "needle" in shown.plain[:room]
    assert [shown.plain[span.start : span.end] for span in shown.spans] == ["needle"]


def test_a_text_that_fits_is_shown_from_its_beginning() -> None:
    assert snippet(LONG, "needle", 200).plain == LONG


def test_a_snippet_is_one_line_without_escapes() -> None:
    assert snippet("one\n\x1b[1m two", "two", 80).plain == "one \\x1b[1m two"
