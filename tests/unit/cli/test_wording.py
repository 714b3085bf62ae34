import os

import pytest

from hardsave import wording


def test_counts_have_their_plural() -> None:
    assert wording.count(1, "file") == "1 file"
    assert wording.count(1204, "file") == "1,204 files"


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes_have_their_unit(number: int, said: str) -> None:
    assert wording.size(number) == said


def test_an_escape_sequence_is_written_out_and_not_sent_to_the_terminal() -> None:
    assert wording.shown("\x1b]52;c;AAAA\x07") == "\\x1b]52;c;AAAA\\x07"
    assert wording.shown("\x9b31m") == "\\x9b31m"


def test_marks_that_reorder_text_are_written_out() -> None:
    assert wording.shown("a\u202eb") == "a\\u202eb"
    assert wording.shown("a\u061cb") == "a\\u061cb"


def test_a_file_name_that_is_no_text_can_be_printed() -> None:
    name = os.fsdecode(b"caf\xe9")
    assert wording.shown(name) == "caf\\xe9"
    wording.shown(name).encode()


def test_letters_of_any_script_stay() -> None:
    assert wording.shown("Größe 日本 🎉") == "Größe 日本 🎉"


def test_a_line_end_in_a_name_does_not_end_the_line() -> None:
    assert wording.shown("a\nb\tc\u2028d") == "a\\nb\\tc\\u2028d"


def test_a_passage_keeps_its_lines_and_nothing_else_that_acts() -> None:
    assert wording.passage("a\r\nb\tc\x1bd\r") == "a\nb\tc\\x1bd\\r"


def test_one_line_is_cut_where_it_is_too_long() -> None:
    assert wording.line("a\n  b\tc") == "a b c"
    assert wording.line("abcdefgh", 5) == "abcd…"
    assert wording.line("x" * 10_000_000, 5) == "xxxx…"
