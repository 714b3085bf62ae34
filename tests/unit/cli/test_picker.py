"""The list to choose a moment from: keys in, the next state out."""

import pytest
from rich.text import Text

from hardsave.cli.picker.state import (
    AHEAD,
    Cancelled,
    Chosen,
    Level,
    Option,
    Picker,
    begun,
    press,
    with_options,
)


def row(text: str, level: Level = "step", *, under: str = "", has_files: bool = True) -> Option:
    id = "" if level == "session" else f"chk_{text}"
    return Option(
        text, id, level, Text(text), ":1", "2m", Text(), text.casefold(), has_files, under=under
    )


def steps(*texts: str, has_files: bool = True) -> list[Option]:
    return [row(text, has_files=has_files) for text in texts]


STORY = [
    row("fast", "session"),
    row("Make it fast", "prompt"),
    row("Bash(rm b.py)", under="Make it fast"),
    row("Edit(a.py)", under="Make it fast"),
    row("Fix it", "prompt"),
    row("Edit(b.py)", under="Fix it"),
    row("docs", "session"),
    row("Write docs", "prompt"),
    row("Edit(docs.md)", under="Write docs"),
]


def after(one: Picker, *keys: str) -> Picker | Chosen | Cancelled:
    for key in keys:
        found = press(one, key)
        if not isinstance(found, Picker):
            return found
        one = found
    return one


def picker_after(one: Picker, *keys: str) -> Picker:
    found = after(one, *keys)
    assert isinstance(found, Picker)
    return found


def listed(one: Picker) -> list[str]:
    return [option.text.plain for option in one.found]


def test_enter_chooses_the_first_and_down_the_next() -> None:
    one = begun(steps("alpha", "beta", "gamma"))
    assert after(one, "enter") == Chosen("chk_alpha", "all", "rewind")
    assert after(one, "down", "down", "up", "enter") == Chosen("chk_beta", "all", "rewind")


def test_the_newest_prompt_is_where_it_begins_and_its_steps_are_seen() -> None:
    one = begun(STORY)
    assert after(one, "enter") == Chosen("chk_Make it fast", "all", "rewind")
    assert listed(one) == [
        "fast",
        "Make it fast",
        "Bash(rm b.py)",
        "Edit(a.py)",
        "Fix it",
        "docs",
        "Write docs",
    ]


def test_prompts_are_opened_and_closed() -> None:
    one = begun(STORY)
    assert "Bash(rm b.py)" not in listed(picker_after(one, "left"))
    closed = picker_after(one, "down", "left")  # from one of its steps
    assert "Bash(rm b.py)" not in listed(closed)
    assert after(closed, "enter") == Chosen("chk_Make it fast", "all", "rewind")
    opened = picker_after(closed, "down", "right")
    assert "Edit(b.py)" in listed(opened)
    assert after(opened, "enter") == Chosen("chk_Fix it", "all", "rewind")


def test_the_cursor_passes_over_headings_and_the_ends_of_the_list_hold() -> None:
    one = begun(STORY)
    assert after(one, "up", "enter") == Chosen("chk_Make it fast", "all", "rewind")
    assert after(one, "end", "enter") == Chosen("chk_Write docs", "all", "rewind")
    assert after(one, "end", "up", "enter") == Chosen("chk_Fix it", "all", "rewind")
    assert after(one, "page down", "down", "enter") == Chosen("chk_Write docs", "all", "rewind")
    assert after(one, "end", "home", "enter") == Chosen("chk_Make it fast", "all", "rewind")


def test_typing_filters_by_all_words_in_any_case() -> None:
    one = begun(steps("Fix the parser", "fix tests", "parser plan"))
    assert after(one, *"PARS fix", "enter") == Chosen("chk_Fix the parser", "all", "rewind")


def test_a_filter_finds_steps_of_closed_prompts_and_keeps_the_heading_of_their_session() -> None:
    found = picker_after(begun(STORY), *"docs.md")
    assert listed(found) == ["docs", "Edit(docs.md)"]
    assert after(found, "enter") == Chosen("chk_Edit(docs.md)", "all", "rewind")


def test_typing_begins_at_the_top_again() -> None:
    one = begun(steps("alpha", "beta", "gamma"))
    assert after(one, "down", "down", "a", "enter") == Chosen("chk_alpha", "all", "rewind")


def test_letters_can_be_taken_back() -> None:
    one = begun(steps("alpha", "beta"))
    assert after(one, *"bx", "backspace", "enter") == Chosen("chk_beta", "all", "rewind")
    assert after(one, *"bx", "clear", "enter") == Chosen("chk_alpha", "all", "rewind")


def test_where_nothing_matches_keys_do_nothing() -> None:
    found = picker_after(begun(STORY), *"xyz", "enter", "down", "left", "right", "diff", "fork")
    assert found.current is None
    assert not found.shows_diff


def test_tab_goes_through_what_is_taken_back() -> None:
    one = begun(steps("alpha"))
    assert after(one, "tab", "enter") == Chosen("chk_alpha", "state", "rewind")
    assert after(one, "tab", "tab", "enter") == Chosen("chk_alpha", "files", "rewind")
    assert after(one, "tab", "tab", "tab", "enter") == Chosen("chk_alpha", "all", "rewind")
    assert after(one, "back tab", "enter") == Chosen("chk_alpha", "files", "rewind")


def test_what_has_no_files_gives_its_state() -> None:
    one = begun(steps("alpha", has_files=False))
    assert after(one, "enter") == Chosen("chk_alpha", "state", "rewind")


@pytest.mark.parametrize(
    ("key", "action"), [("enter", "rewind"), ("fork", "fork"), ("go on", "go on")]
)
def test_each_action_has_a_key(key: str, action: str) -> None:
    for keys in ([], ["diff"]):
        found = after(begun(steps("alpha")), *keys, key)
        assert isinstance(found, Chosen)
        assert found.action == action


@pytest.mark.parametrize("key", ["escape", "interrupt"])
def test_one_can_leave(key: str) -> None:
    assert after(begun(steps("alpha")), key) == Cancelled()


def test_a_diff_is_scrolled_and_left_again_to_where_one_was() -> None:
    one = begun(steps("alpha", "beta"))
    seen = picker_after(one, "down", "diff")
    assert seen.shows_diff
    seen = seen._replace(diff=[Text(str(number)) for number in range(30)])
    assert [picker_after(seen, *keys).top for keys in (["up"], ["down"], [" "], ["end"])] == [
        0,
        1,
        10,
        29,
    ]
    for key in ("escape", "q", "diff"):
        back = picker_after(seen, "down", key)
        assert not back.shows_diff
        assert after(back, "enter") == Chosen("chk_beta", "all", "rewind")


def test_a_diff_is_that_of_the_current_row() -> None:
    one = begun(steps("alpha", "beta"))._replace(diff=[Text("of alpha")])
    for keys in (["down"], ["tab"], ["b"]):
        assert picker_after(one, *keys).diff is None


def test_what_was_read_later_moves_no_cursor() -> None:
    one = picker_after(begun(STORY[:4], is_whole=False), "down", "down")
    found = with_options(one, [*steps("new"), *STORY], is_whole=True)
    assert after(found, "enter") == Chosen("chk_Edit(a.py)", "all", "rewind")
    found = with_options(picker_after(one, *"docs"), STORY, is_whole=True)
    assert listed(found) == ["docs", "Write docs", "Edit(docs.md)"]


def test_older_moments_are_read_for_a_filter_and_near_the_end_of_the_list() -> None:
    one = begun(steps(*map(str, range(AHEAD + 5))), is_whole=False)
    assert not one.wants_more
    assert picker_after(one, *["down"] * 5).wants_more
    assert picker_after(one, "1").wants_more
    assert not picker_after(one._replace(is_whole=True), "1").wants_more


def test_a_slash_that_is_typed_first_begins_the_filter() -> None:
    found = picker_after(begun(STORY), "/", "d", "o", "c", "/")
    assert found.query == "doc/"
    assert picker_after(begun(STORY), "/").found == begun(STORY).found
