"""Drawings where the terminal's encoding has none."""

import pytest

from hardsave.cli.render import glyphs


def test_what_is_drawn_becomes_letters_of_the_same_width_and_all_else_is_written_out() -> None:
    assert "├─╯ ● 漢…".encode("ascii", glyphs.SPELT) == b"|-' * \\u6f22."
    assert "é→漢".encode("latin-1", glyphs.SPELT) == b"\xe9>\\u6f22"
    assert "é→漢".encode("utf-8", glyphs.SPELT).decode() == "é→漢"


def test_a_line_that_was_measured_gets_no_longer() -> None:
    assert glyphs.in_place("→ é 漢字…", "latin-1") == "> é ??."
    assert glyphs.in_place("→ é 漢字…", "utf-8") == "→ é 漢字…"


def test_what_is_read_wrongly_is_no_drawing() -> None:
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", glyphs.SPELT)
