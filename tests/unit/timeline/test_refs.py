import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import HardsaveError, Misuse
from hardsave.timeline.refs import Back, Named, Numbered, Whole, from_text, parse, to_text

ID = bytes(range(12))
DIGITS = ID.hex()


@pytest.mark.parametrize(
    ("ref", "meant"),
    [
        ("@", Back(0)),
        ("@~0", Back(0)),
        ("@~1", Back(1)),
        ("@~007", Back(7)),
        ("@~123456", Back(123456)),
        ("chk_" + DIGITS, Whole(ID)),
        ("main:3", Numbered("main", 3)),
        ("main:0", Numbered("main", 0)),
        (":7", Numbered("", 7)),
        ("main:0003", Numbered("main", 3)),
        ("a b:3", Numbered("a b", 3)),
        ("é:3", Numbered("é", 3)),
        ("chk_" + DIGITS + ":3", Numbered("chk_" + DIGITS, 3)),
        ("plan-ready", Named("plan-ready", None, None)),
        ("main:", Named("main:", None, None)),
        ("main:-3", Named("main:-3", None, None)),
        ("main:٣", Named("main:٣", None, None)),  # a digit, but not one of ours
        ("a:b:3", Named("a:b:3", None, None)),
        ("main@1", Named("main@1", None, None)),
        (" @", Named(" @", None, None)),
        ("chk_", Named("chk_", None, None)),
        ("ABC", Named("ABC", None, None)),
        ("chk_xyz", Named("chk_xyz", None, None)),
        ("abc", Named("abc", bytes.fromhex("abc" + "0" * 21), bytes.fromhex("abc" + "f" * 21))),
        ("chk_abc", Named("chk_abc", *parse("abc")[1:])),
        ("5", Named("5", b"\x50" + bytes(11), b"\x5f" + b"\xff" * 11)),
        (DIGITS, Named(DIGITS, ID, ID)),
        (DIGITS + "0", Named(DIGITS + "0", None, None)),
        ("chk_" + DIGITS[:-1], Named("chk_" + DIGITS[:-1], ID[:-1] + b"\0", ID[:-1] + b"\x0f")),
        ("chk_" + DIGITS + "\n", Named("chk_" + DIGITS + "\n", None, None)),
        ("\0", Named("\0", None, None)),
    ],
)
def test_what_a_ref_means(ref: str, meant: object) -> None:
    assert parse(ref) == meant
    assert type(parse(ref)) is type(meant)


@pytest.mark.parametrize(
    "ref", ["@@", "@1", "@~", "@~x", "@~-1", "@ ", "@~1 ", "@~1.5", "@main", "@\n"]
)
def test_a_malformed_ref_is_misuse(ref: str) -> None:
    with pytest.raises(Misuse) as caught:
        parse(ref)
    assert repr(ref) in str(caught.value)
    assert "'@~1'" in str(caught.value)


@pytest.mark.parametrize("ref", ["", None, 3, b"@", ["@"]])
def test_a_ref_is_a_text(ref: object) -> None:
    with pytest.raises(Misuse, match="a ref is a text"):
        parse(ref)


@pytest.mark.parametrize("ref", ["@~" + "9" * 5000, "main:" + "9" * 5000, "9" * 5000])
def test_a_number_too_long_for_python_is_no_reason_to_fall_over(ref: str) -> None:
    with contextlib.suppress(HardsaveError):
        parse(ref)


@given(st.text())
def test_every_text_means_something_or_is_misuse(ref: str) -> None:
    try:
        parse(ref)
    except Misuse:
        assert ref == "" or ref.startswith("@")


@given(st.binary(min_size=12, max_size=12))
def test_an_id_reads_the_same_both_ways(id: bytes) -> None:
    assert from_text(to_text(id)) == id
    assert parse(to_text(id)) == Whole(id)


@given(st.binary(min_size=12, max_size=12), st.integers(1, 23))
def test_every_beginning_of_an_id_encloses_it(id: bytes, length: int) -> None:
    meant = parse("chk_" + id.hex()[:length])
    assert isinstance(meant, Named)
    assert meant.low is not None
    assert meant.high is not None
    assert meant.low <= id <= meant.high
    assert meant.low.hex()[:length] == meant.high.hex()[:length] == id.hex()[:length]
