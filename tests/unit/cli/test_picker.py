import pytest
from rich.text import Text

from hardsave.cli.picker import state
from hardsave.cli.picker.state import Cancelled, Chosen, Option, Picker, Size, frame, press


def options(*texts: str, has_files: bool = True) -> tuple[Option, ...]:
    return tuple(Option(f"chk_{text}", Text(text), text, has_files) for text in texts)


def started(*texts: str, has_files: bool = True) -> Picker:
    return Picker("rewind main to", options(*texts, has_files=has_files))


def after(one: Picker, *keys: str) -> Picker | Chosen | Cancelled:
    for key in keys:
        found = press(one, key)
        if not isinstance(found, Picker):
            return found
        one = found
    return one


def screen(one: Picker, width: int = 60, height: int = 12) -> list[str]:
    return [line.plain for line in frame(one, [Text("a preview")], Size(width, height))]


def test_enter_chooses_the_first_and_down_the_next() -> None:
    one = started("alpha", "beta", "gamma")
    assert after(one, "enter") == Chosen("chk_alpha", "all")
    assert after(one, "down", "down", "up", "enter") == Chosen("chk_beta", "all")


def test_the_ends_of_the_list_hold() -> None:
    one = started("alpha", "beta", "gamma")
    assert after(one, "up", "enter") == Chosen("chk_alpha", "all")
    assert after(one, "page down", "down", "enter") == Chosen("chk_gamma", "all")
    assert after(one, "end", "home", "enter") == Chosen("chk_alpha", "all")


def test_typing_filters_by_all_words_in_any_case() -> None:
    one = started("Fix the parser", "fix tests", "parser plan")
    assert after(one, *"PARS fix", "enter") == Chosen("chk_Fix the parser", "all")


def test_typing_begins_at_the_top_again() -> None:
    one = started("alpha", "beta", "gamma")
    assert after(one, "down", "down", "a", "enter") == Chosen("chk_alpha", "all")


def test_letters_can_be_taken_back() -> None:
    one = started("alpha", "beta")
    assert after(one, *"bx", "backspace", "enter") == Chosen("chk_beta", "all")
    assert after(one, *"bx", "clear", "enter") == Chosen("chk_alpha", "all")


def test_a_list_that_is_not_all_says_so_and_where_the_rest_is() -> None:
    one = started("alpha", "beta")
    assert "older" not in "".join(screen(one) + screen(one._replace(query="x")))
    more = one._replace(has_more=True)
    assert screen(more, width=80)[0].endswith("2 of 2; 'hardsave log' has older ones")
    assert "'hardsave search' looks at older ones" in screen(more._replace(query="x"))[1]


def test_where_nothing_matches_enter_does_nothing() -> None:
    one = started("alpha")
    found = after(one, *"xyz", "enter", "down")
    assert isinstance(found, Picker)
    assert any("nothing matches" in line for line in screen(found))


def test_tab_goes_through_what_is_taken_back() -> None:
    one = started("alpha")
    assert after(one, "tab", "enter") == Chosen("chk_alpha", "state")
    assert after(one, "tab", "tab", "enter") == Chosen("chk_alpha", "files")
    assert after(one, "tab", "tab", "tab", "enter") == Chosen("chk_alpha", "all")
    assert after(one, "back tab", "enter") == Chosen("chk_alpha", "files")


def test_what_has_no_files_gives_its_state_and_says_so() -> None:
    one = started("alpha", has_files=False)
    assert after(one, "enter") == Chosen("chk_alpha", "state")
    assert "it has no files" in screen(one)[-1]


@pytest.mark.parametrize("key", ["escape", "interrupt"])
def test_one_can_leave(key: str) -> None:
    assert after(started("alpha"), key) == Cancelled()


@pytest.mark.parametrize("height", [4, 5, 8, 24, 100])
def test_a_frame_is_as_high_as_the_terminal_and_shows_where_one_is(height: int) -> None:
    one = started(*(f"option {number}" for number in range(50)))
    for keys in ([], ["page down"], ["end"]):
        found = after(one, *keys)
        assert isinstance(found, Picker)
        lines = screen(found, height=height)
        assert len(lines) == height
        assert sum(line.startswith("> ") for line in lines) == 1
        assert "Enter choose" in lines[-1]


def test_the_preview_stands_below_the_list() -> None:
    lines = screen(started("alpha", "beta"))
    assert lines.index("a preview") > lines.index("  beta")


def test_every_choice_has_words() -> None:
    assert state.SAID.keys() == {*state.WHATS}
