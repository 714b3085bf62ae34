"""Headers that say what a caller expects, and what it has already."""

from typing import Any

import pytest

import hardsave
from hardsave import ANY_HEAD
from hardsave.errors import Conflict, Misuse
from hardsave.server.api import caching, conditions, contents
from hardsave.server.caller import Caller
from hardsave.server.errors import Refused
from hardsave.server.route import Answer, Call

HEAD = "chk_0123456789abcdef01234567"


def call(vault: Any = None, query: dict[str, str] | None = None, **headers: str) -> Call:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    caller = Caller("a", None, "act")
    none: Any = None  # which these do not look at
    return Call(vault, {}, query or {}, None, caller, "id-1", none, none, given)


@pytest.mark.parametrize("key", ["a", "x" * 200, "550e8400-e29b-41d4-a716-446655440000", "a b~!"])
def test_a_key_is_printable_ascii(key: str) -> None:
    assert conditions.key_of(call(idempotency_key=key)) == key


@pytest.mark.parametrize("key", ["", "x" * 201, "é", "a\tb", "a\x7f", "\xff"])
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(Misuse, match="Idempotency-Key is 1 to 200 printable"):
        conditions.key_of(call(idempotency_key=key))


def test_a_request_need_not_have_a_key() -> None:
    assert conditions.key_of(call()) is None


@pytest.mark.parametrize("given", ["*", " * "])
def test_a_star_expects_nothing(given: str) -> None:
    assert conditions.expected(call(if_match=given)) is None
    assert conditions.expected_head(call(if_match=given)) is ANY_HEAD
    conditions.check_given(call(if_match=given), "a plan")


def test_what_is_expected_stands_in_quotation_marks() -> None:
    assert conditions.expected(call(if_match=f'"{HEAD}"')) == HEAD
    assert conditions.expected_head(call(if_match=f' "{HEAD}" ')) == HEAD
    assert conditions.expected(call()) is None


@pytest.mark.parametrize("given", ["", '""', '"', HEAD, f'W/"{HEAD}"', '"a", "b"', '"a"b"'])
def test_what_may_be_read_in_two_ways_is_refused(given: str) -> None:
    with pytest.raises(Misuse, match="If-Match is a head in quotation marks"):
        conditions.expected(call(if_match=given))


def test_an_act_that_needs_an_expectation_asks_for_it() -> None:
    with pytest.raises(Refused, match="send If-Match: a plan") as caught:
        conditions.check_given(call(), "a plan")
    assert (caught.value.status, caught.value.code) == (428, "precondition_required")


def test_a_conflict_is_a_failed_precondition_only_where_one_was_given() -> None:
    def conflict(given: Call) -> None:
        with conditions.precondition(given):
            raise Conflict("another head")

    with pytest.raises(Refused, match="another head") as caught:
        conflict(call(if_match=f'"{HEAD}"'))
    assert (caught.value.status, caught.value.code) == (412, "precondition")
    for given in (call(), call(if_match="*")):
        with pytest.raises(Conflict):
            conflict(given)


def test_what_a_caller_has_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with hardsave.open("memory://") as vault:
        tag = caching.tag_of(call(vault, {"ref": HEAD}), HEAD)
        assert caching.tag_of(call(vault, {"ref": HEAD}), HEAD) == tag
        assert caching.tag_of(call(vault, {"ref": "@"}), HEAD) != tag
        assert caching.tag_of(call(vault, {"ref": HEAD}), HEAD[:-1] + "8") != tag
        with monkeypatch.context() as later:
            later.setattr(hardsave, "__version__", "99.0")
            assert caching.tag_of(call(vault, {"ref": HEAD}), HEAD) != tag
        with vault.as_user("bob", create=True) as bob:
            assert caching.tag_of(call(bob, {"ref": HEAD}), HEAD) != tag
    for given in (tag, f"W/{tag}", f'"other", {tag}'):
        same = caching.unchanged(call(if_none_match=given), tag)
        assert same is not None
        assert (same.status, same.body) == (304, b"")
        assert dict(same.headers) == {"ETag": tag, "Cache-Control": "private, no-cache"}
    for given in ("", '"other"', tag.strip('"'), "*"):
        assert caching.unchanged(call(if_none_match=given), tag) is None
    kept = caching.kept(Answer(headers=(("X", "y"),)), tag)
    assert [name for name, _ in kept.headers] == ["X", "ETag", "Cache-Control"]


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-4", (0, 5)),
        ("bytes=0-", (0, 10)),
        ("bytes=9-99", (9, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes= 2 - 3", (2, 4)),
    ],
)
def test_a_range_is_a_part_of_a_file(header: str, part: tuple[int, int]) -> None:
    assert contents._range(header, 10) == part


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=5-4", "bytes=-0", "bytes=99-100"])
def test_a_range_outside_of_a_file_is_told_its_size(header: str) -> None:
    with pytest.raises(Refused) as caught:
        contents._range(header, 10)
    assert caught.value.status == 416
    assert caught.value.headers == (("Content-Range", "bytes */10"),)


@pytest.mark.parametrize(
    "header", ["", "bytes", "bytes=-", "bytes=0-1,3-4", "items=0-1", "bytes=a-b"]
)
def test_what_is_no_range_is_refused(header: str) -> None:
    with pytest.raises(Misuse, match="a range is written as"):
        contents._range(header, 10)
