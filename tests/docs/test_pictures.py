"""The pictures of a day are what commands show of it."""

import re

import pytest

from tests.docs.day import VIEWS, WIDTHS, Day, View
from tests.docs.picture import drawn, of_view, words_of


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return Day(tmp_path_factory.mktemp("home").resolve())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", VIEWS, ids=[view.name for view in VIEWS])
def test_a_picture_shows_what_the_command_shows(day: Day, view: View, width: int) -> None:
    found = words_of(drawn(day.seen(view, width), width))
    assert shape(found) == shape(words_of(of_view(view, width).read_text()))


def shape(said: str) -> list[str]:
    """Without the minutes that have passed since the day was made."""
    return re.sub(r"\b(29|3[0-9])(?=m| minutes)", "MINUTES", said).splitlines()


def test_only_minutes_may_differ() -> None:
    assert shape("30m  Edit") == shape("31m  Edit")
    assert shape("30m  Edit") != shape("30m  Bash")
