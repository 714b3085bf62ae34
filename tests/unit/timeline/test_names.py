from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.defaults import MAX_DESCRIPTION
from hardsave.errors import Misuse
from hardsave.timeline import names, refs

LINES: list[Callable[[str], object]] = [
    names.check_timeline,
    names.check_checkpoint,
    names.check_status,
    names.check_user,
]
GOOD = ["main", "a", "plan ready", "é", "🙂", "a/b", "-", ".", "x" * 200, "chk_", "1", "None", "%"]
BAD = {
    "": "not empty",
    " ": "space around",
    " main": "space around",
    "main ": "space around",
    "main\u00a0": "space around",
    "main\n": "space around",
    "two\nlines": "one line",
    "carriage\rreturn": "one line",
    "tab\tbed": "one line",
    "bell\x07": "one line",
    "del\x7f": "one line",
    "next\x85line": "one line",
    "line\u2028separator": "one line",
    "paragraph\u2029separator": "one line",
    "nul\0": "NUL",
    "lone \ud800 surrogate": "surrogates",
    "x" * 201: "at most 200",
}


@pytest.mark.parametrize("check", LINES)
@pytest.mark.parametrize("name", GOOD)
def test_a_sensible_name_is_allowed(check: Callable[[str], object], name: str) -> None:
    assert check(name) == name


@pytest.mark.parametrize("check", LINES)
@pytest.mark.parametrize(("name", "why"), BAD.items())
def test_a_name_that_would_not_stay_in_one_line_is_refused(
    check: Callable[[str], object], name: str, why: str
) -> None:
    with pytest.raises(Misuse, match=why):
        check(name)


@pytest.mark.parametrize("check", LINES)
@pytest.mark.parametrize("name", [b"main", 3, ["main"]])
def test_a_name_is_text(check: Callable[[object], object], name: object) -> None:
    with pytest.raises(Misuse, match="is text, not"):
        check(name)


def test_only_a_user_may_be_none() -> None:
    assert names.check_user(None) is None
    for check in (names.check_timeline, names.check_checkpoint, names.check_status):
        with pytest.raises(Misuse):
            check(None)  # type: ignore[arg-type] # wrong on purpose


@pytest.mark.parametrize("name", ["a:1", "a:b", ":", "a:", ":1", "@", "@main", "@~1"])
def test_a_timelines_name_cannot_be_mistaken_in_a_ref(name: str) -> None:
    with pytest.raises(Misuse, match="a timeline's name"):
        names.check_timeline(name)


@pytest.mark.parametrize("name", ["main:1", ":1", "a b:42", "@", "@x", "@~2", "chk_" + "a" * 24])
def test_a_checkpoints_name_cannot_be_mistaken_for_another_ref(name: str) -> None:
    with pytest.raises(Misuse, match="ref of another kind"):
        names.check_checkpoint(name)


@pytest.mark.parametrize(
    "name", ["a:b", "a:1:b", ":", "a:", "chk_abc", "abc", "a@b", "CHK_" + "a" * 24]
)
def test_a_checkpoints_name_that_is_no_other_ref_is_allowed(name: str) -> None:
    assert names.check_checkpoint(name) == name


@pytest.mark.parametrize("kind", ["automatic", "manual", "feature", "session"])
def test_the_kinds(kind: str) -> None:
    assert names.check_kind(kind) == kind


@pytest.mark.parametrize("kind", ["", "Manual", "other", " manual", None, 3])
def test_no_other_kinds(kind: str) -> None:
    with pytest.raises(Misuse, match="automatic, manual, feature, session"):
        names.check_kind(kind)


def test_a_description_may_have_lines_but_no_bytes_that_cannot_be_stored() -> None:
    text = " two\nlines\tand more " * 1_000
    assert names.check_description(text) == text
    assert names.check_description("") == ""
    with pytest.raises(Misuse, match="use the state"):
        names.check_description("x" * (MAX_DESCRIPTION + 1))
    for wrong in ("nul\0", "\udfff", None, b"bytes"):
        with pytest.raises(Misuse, match="a description"):
            names.check_description(wrong)  # type: ignore[arg-type] # wrong on purpose


@given(st.text(max_size=250))
def test_every_text_is_taken_as_it_is_or_refused(text: str) -> None:
    for check in LINES:
        try:
            assert check(text) == text
        except Misuse as error:
            str(error).encode()  # the message itself can be printed


@given(st.text(min_size=1, max_size=30))
def test_a_name_that_is_allowed_is_found_as_a_name(text: str) -> None:
    try:
        names.check_checkpoint(text)
    except Misuse:
        return
    meant = refs.parse(text)
    assert isinstance(meant, refs.Named)
    assert meant.name == text


@given(st.text(min_size=1, max_size=30), st.integers(0, 10**9))
def test_a_timeline_that_is_allowed_is_found_by_number(text: str, number: int) -> None:
    try:
        names.check_timeline(text)
    except Misuse:
        return
    if not text.startswith("@"):
        assert refs.parse(f"{text}:{number}") == refs.Numbered(text, number)
