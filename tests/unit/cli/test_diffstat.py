"""How much of each file has changed, drawn in any width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hardsave.cli.render import diffstat
from hardsave.cli.render.changed_files import FileStat

STATS = [
    FileStat("~", "src/parser.py", 7, 3),
    FileStat("+", "notes.md", 1, 0),
    FileStat("-", "logo.png", note="Bin 1,234 → 0 bytes"),
]


def drawn(stats: list[FileStat], width: int | None) -> list[str]:
    return [text.plain for text in diffstat.rows(stats, width)]


def test_a_row_has_the_path_the_number_of_lines_and_a_sign_for_each() -> None:
    assert drawn(STATS, 80) == [
        "~ src/parser.py | 10 +++++++---",
        "+ notes.md      |  1 +",
        "- logo.png      | Bin 1,234 → 0 bytes",
    ]


def test_the_sum_is_as_git_says_it() -> None:
    assert diffstat.total(STATS).plain == "3 files changed, 8 insertions(+), 3 deletions(-)"
    assert diffstat.total(STATS[1:2]).plain == "1 file changed, 1 insertion(+)"
    assert diffstat.total(STATS[2:]).plain == "1 file changed"


def test_a_long_path_keeps_its_end_and_a_pipe_gets_all_of_it() -> None:
    stats = [FileStat("~", "a/" * 40 + "parser.py", 300, 100)]
    (row,) = drawn(stats, 80)
    assert row.startswith("~ …/")
    assert "/parser.py | 400 +" in row
    assert stats[0].path in drawn(stats, None)[0]


def test_a_wide_terminal_is_used() -> None:
    stats = [FileStat("~", "a.py", 300, 100)]
    assert [len(drawn(stats, width)[0]) for width in (80, 200)] == [80, 200]


@given(
    st.lists(
        st.builds(
            FileStat,
            st.sampled_from("+~-"),
            st.text("aé/漢", min_size=1, max_size=90),
            st.integers(0, 10**7),
            st.integers(0, 10**7),
            st.sampled_from(("", "binary", "too long to compare")),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(40, 250),
)
def test_no_row_is_wider_than_the_terminal(stats: list[FileStat], width: int) -> None:
    assert all(cell_len(row) <= width for row in drawn(stats, width))


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(2, 60))
def test_what_has_changed_at_all_is_seen(added: int, removed: int, width: int) -> None:
    plus, minus = diffstat.bars(added, removed, added + removed, width)
    assert (plus > 0, minus > 0) == (added > 0, removed > 0)
    assert plus + minus <= width


@pytest.mark.parametrize(
    ("path", "width", "expected"),
    [("src/a.py", 8, "src/a.py"), ("src/deep/a.py", 9, "…/a.py"), ("abcdefghij", 4, "…hij")],
)
def test_a_path_is_cut_at_its_beginning(path: str, width: int, expected: str) -> None:
    assert diffstat.shortened(path, width) == expected
