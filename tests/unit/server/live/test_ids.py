"""Ids of events: of one project and user, and of no other."""

import base64

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hardsave.server.live import ids

NAMES = st.none() | st.text(st.characters(), max_size=20)  # also lone surrogates
NUMBERS = st.integers(0, (1 << 62) - 1)


@given(NAMES, NAMES, NUMBERS)
def test_an_id_gives_its_number_back(project: str | None, user: str | None, number: int) -> None:
    id = ids.encode(project, user, number)
    assert ids.decode(project, user, id) == number
    assert id.isascii()
    assert id.replace("-", "").replace("_", "").isalnum()


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES), NUMBERS)
def test_an_id_of_another_project_or_user_is_recognised(
    one: tuple[str | None, str | None], other: tuple[str | None, str | None], number: int
) -> None:
    assume(one != other)
    assert ids.decode(*other, ids.encode(*one, number)) is None


@pytest.mark.parametrize(
    ("one", "other"), [(("a", "b"), ("ab", "")), (("a", None), ("a", "")), (("a", "b"), ("b", "a"))]
)
def test_where_a_project_ends_and_a_user_begins_counts(
    one: tuple[str, str | None], other: tuple[str, str | None]
) -> None:
    assert ids.decode(*other, ids.encode(*one, 1)) is None


@given(NUMBERS, st.integers(0, 17), st.characters())
def test_an_id_that_was_changed_is_the_same_number_or_none(
    number: int, at: int, character: str
) -> None:
    id = ids.encode("p", None, number)
    changed = id[:at] + character + id[at + 1 :]
    found = ids.decode("p", None, changed)
    assert found is None or ids.encode("p", None, found) == changed


@given(st.text(st.characters(), max_size=40))
def test_any_other_text_is_no_id(text: str) -> None:
    found = ids.decode("p", "u", text)
    assert found is None or ids.encode("p", "u", found) == text


def test_a_cut_or_padded_id_is_none() -> None:
    id = ids.encode("p", "u", 7)
    wrong = [id[:-1], id[:-4], f"{id}A", f"{id}==", f" {id}", f"{id}\n", "", id.upper()]
    assert [ids.decode("p", "u", each) for each in wrong] == [None] * len(wrong)


def test_a_number_that_no_store_has_is_none() -> None:
    raw = base64.urlsafe_b64decode(ids.encode("p", "u", 0) + "==")
    past = base64.urlsafe_b64encode(raw[:-8] + (1 << 62).to_bytes(8, "big")).rstrip(b"=").decode()
    assert ids.decode("p", "u", past) is None
