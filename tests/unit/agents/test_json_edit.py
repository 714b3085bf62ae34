"""A JSON text whose value changes: what stays the same keeps its bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.agents.json_edit import edited

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", 'b"\\', "ü{"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
LAYOUTS = st.sampled_from([None, 2, 4, "\t"])


def laid_out(value: Any, indent: Any, *, tight: bool, newline: str) -> str:
    separators = (",", ":") if tight else None
    return json.dumps(value, indent=indent, separators=separators).replace("\n", newline)


@given(OBJECTS, OBJECTS, LAYOUTS, st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_it_has_the_new_value_with_any_old_one(
    old: dict[str, Any], new: dict[str, Any], indent: Any, tight: bool, newline: str
) -> None:
    text = laid_out(old, indent, tight=tight, newline=newline)
    after = edited(text, new)
    assert json.dumps(json.loads(after), sort_keys=True) == json.dumps(new, sort_keys=True)
    assert edited(after, new) == after
    assert newline == "\n" or after.count("\n") == after.count("\r\n")


@given(OBJECTS, OBJECTS, LAYOUTS, st.booleans())
def test_what_is_added_goes_without_a_trace(
    old: dict[str, Any], more: dict[str, Any], indent: Any, tight: bool
) -> None:
    text = laid_out(old, indent, tight=tight, newline="\n")
    grown = {**old, **{f"new-{key}": value for key, value in more.items()}}
    assert edited(edited(text, grown), old) == text


@given(OBJECTS, VALUES, LAYOUTS)
def test_members_that_stay_keep_their_bytes(old: dict[str, Any], value: Any, indent: Any) -> None:
    text = laid_out({"kept": [1.50, {"x": []}], **old}, indent, tight=False, newline="\n")
    text = text.replace("1.5", "1.500e0")
    kept = text[: text.index("]", text.index("[]") + 2) + 1]
    after = edited(text, {"kept": [1.5, {"x": []}], "a": value})
    assert after.startswith(kept)


@pytest.mark.parametrize(
    ("text", "value", "after"),
    [
        ("", {}, ""),
        (" \n", {"a": 1}, '{\n  "a": 1\n}\n'),
        ("{}", {"a": [1]}, '{"a": [1]}'),
        ("{\n}\n", {"a": [1]}, '{\n  "a": [\n    1\n  ]\n}\n'),
        ('{"a":1}', {"a": True}, '{"a":true}'),
        ('{"a": [1, 2, 3]}', {"a": [1, 3]}, '{"a": [1, 3]}'),
        ('{"a": [1, 2, 3]}', {"a": [3]}, '{"a": [3]}'),
        ('{"a": [1, 2]}', {"a": [1, 2, {"b": 3}]}, '{"a": [1, 2, {"b": 3}]}'),
        ('{"a": [\n  1\n]}', {"a": [1, [2]]}, '{"a": [\n  1,\n  [\n    2\n  ]\n]}'),
        ('{"a": 1, "b": 2, "c": 3}', {"b": 2}, '{"b": 2}'),
        ('{"a": 1, "b": 2}', {}, "{}"),
        ('{"\\u0061": 1e400, "b": 2}', {"a": float("inf"), "b": 3}, '{"\\u0061": 1e400, "b": 3}'),
    ],
)
def test_it_is_set_as_what_stands_around_it(text: str, value: Any, after: str) -> None:
    assert edited(text, value) == after
