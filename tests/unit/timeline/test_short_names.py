import pytest

from hardsave.errors import Misuse
from hardsave.timeline.short_names import LONGEST, Titled, named, short_names, slug

SESSION = "claude-7d63e7b0-f288-46b6-abcd-2f90475a4877"
OTHER = "claude-7d63e7b0-0000-46b6-abcd-2f90475a4877"
THIRD = "codex-019c63e7-f288-46b6-abcd-2f90475a4877"


@pytest.mark.parametrize(
    ("title", "short"),
    [
        ("Fix the parser", "fix-parser"),
        ("Please fix src/parser.py, it crashes", "fix-src-parser"),
        ("What's wrong here?", "whats-wrong-here"),
        ("it is", "it-is"),
        ("", ""),
        ("?!", ""),
        ("Internationalisation of all", "internationalisation-all"),
        ("x" * 60, "x" * LONGEST),
        ("Prüfe die Größe", "prüfe-die-grösse"),
        ("修正 解析器", "修正-解析器"),
        ("修复解析器中的错误并添加测试和文档", "修复解析器中的错误并添加"),
        ("修复解析器中的错误并 添加测试和文档", "修复解析器中的错误并"),
    ],
)
def test_a_short_name_is_made_of_the_words_of_a_title_that_say_something(
    title: str, short: str
) -> None:
    assert slug(title) == short


def test_whole_words_are_kept_as_long_as_they_fit() -> None:
    assert slug("Internationalise configuration files") == "internationalise"
    assert len(slug("Refactor authentication middleware")) <= LONGEST


def test_a_name_that_a_user_chose_is_kept() -> None:
    assert short_names([Titled("session-1", "Fix the parser")]) == {"session-1": "session-1"}


def test_a_session_is_called_after_its_title_and_without_one_by_its_beginning() -> None:
    assert short_names([Titled(SESSION, "Fix the parser")]) == {SESSION: "fix-parser"}
    assert short_names([Titled(SESSION)]) == {SESSION: "claude-7d63e7b0"}
    assert short_names([Titled("claude-20260615-120007-c0ffee")]) == {
        "claude-20260615-120007-c0ffee": "claude-20260615"
    }


def test_equal_titles_are_numbered_in_the_order_in_which_they_were_made() -> None:
    made = [Titled(SESSION, "Fix it"), Titled(OTHER, "fix it!"), Titled(THIRD, "Fix it")]
    assert list(short_names(made).values()) == ["fix", "fix-2", "fix-3"]


def test_a_short_name_is_never_the_name_of_an_older_timeline() -> None:
    made = [Titled("main"), Titled("main-2"), Titled(SESSION, "main"), Titled(OTHER, "Main 2")]
    assert short_names(made) == {SESSION: "main-3", OTHER: "main-2-2"} | {
        name: name for name in ("main", "main-2")
    }


def test_a_session_keeps_its_short_name_when_a_timeline_of_that_name_is_made_later() -> None:
    made = [Titled(SESSION, "Fix it"), Titled("fix"), Titled("fix-2"), Titled(OTHER, "fix")]
    short = short_names(made)
    assert short == {SESSION: "fix", "fix": "fix-2", "fix-2": "fix-2-2", OTHER: "fix-3"}
    for name, printed in short.items():
        assert named(printed, short) == name


def test_the_name_of_a_timeline_means_it_again_once_the_older_session_is_gone() -> None:
    assert named("fix", {"fix": "fix-2"}) == "fix"


def test_names_and_short_names_are_typed_by_any_beginning_that_no_other_has() -> None:
    short = {SESSION: "fix-parser", OTHER: "fix-tests", "main": "main"}
    for typed in (SESSION, "fix-parser", "fix-p", "claude-7d63e7b0-f"):
        assert named(typed, short) == SESSION
    assert named("m", short) == "main"
    assert named("nosuch", short) is None
    with pytest.raises(Misuse, match="2 timelines begin with 'fix': 'fix-parser', 'fix-tests'"):
        named("fix", short)


def test_a_whole_name_wins_over_longer_ones_that_begin_so() -> None:
    short = {SESSION: "fix", OTHER: "fix-2", "fix-20": "fix-20"}
    assert named("fix", short) == SESSION
    assert named("fix-2", short) == OTHER
