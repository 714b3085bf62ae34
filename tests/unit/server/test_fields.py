import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Misuse
from hardsave.server.api.table import ROUTES
from hardsave.server.body import read_value
from hardsave.server.fields import (
    LIMIT,
    PAGED,
    Field,
    choice,
    flag,
    mapping,
    number,
    objection,
    path,
    paths,
    read_body,
    read_query,
    text,
    value,
)

FIELDS = (
    text("name", "A name.", needed=True, most=5),
    number("count", "How many.", -1, 9, default=3),
    flag("all", "All."),
    choice("kind", "Which.", "a", "b"),
    mapping("labels", "Labels.", of_texts=True),
    paths("paths", "Paths.", most=2),
    path("path", "A path."),
    value("state", "A state."),
)
NAMED = {"name": "x"}


def query(**given: str) -> dict[str, Any]:
    return read_query(FIELDS, given, read_value)


def test_what_is_left_out_has_its_default() -> None:
    others: dict[str, Any] = {"count": 3, "all": False, "kind": None, "labels": None}
    others |= {"paths": None, "path": None, "state": ...}
    assert query(name="x") == {"name": "x", **others}
    assert read_body(FIELDS, NAMED) == {"name": "x", **others}


def test_texts_of_a_query_become_what_their_fields_are() -> None:
    found = query(name="7", count="-1", all="true", kind="b", labels='{"a": "b"}', paths='["p"]')
    del found["state"], found["path"]
    assert found == {
        "name": "7",
        "count": -1,
        "all": True,
        "kind": "b",
        "labels": {"a": "b"},
        "paths": ["p"],
    }


@pytest.mark.parametrize(
    ("name", "sent", "words"),
    [
        ("count", "10", "count is from -1 to 9, not 10"),
        ("count", "-2", "count is from -1 to 9, not -2"),
        ("count", "", "count is a whole number"),
        ("count", "1.0", "count is a whole number"),
        ("count", "01", "count is a whole number"),
        ("count", "+1", "count is a whole number"),
        ("count", " 1", "count is a whole number"),
        ("count", "1_0", "count is a whole number"),
        ("count", "٣", "count is a whole number"),
        ("count", "9" * 5_000, "count is a whole number"),
        ("all", "True", "all is true or false"),
        ("all", "1", "all is true or false"),
        ("all", "", "all is true or false"),
        ("kind", "c", "kind is one of a, b"),
        ("kind", "", "kind is one of a, b"),
        ("name", "", "name is empty"),
        ("name", "123456", "name has 5 characters at most"),
        ("labels", "[]", "labels is an object"),
        ("labels", '{"a": 1}', "labels has 'a', which is a text"),
        ("labels", "{", "labels cannot be read"),
        ("labels", '{"a": "1", "a": "2"}', "labels cannot be read: a name is there twice"),
        ("paths", "[]", "paths has 1 to 2 items, not 0"),
        ("paths", '["a", "b", "c"]', "paths has 1 to 2 items, not 3"),
        ("paths", '["a", ""]', "paths has an item that is empty"),
        ("paths", '["a", null]', "paths has an item that is a text, not null"),
        ("paths", '[{"$text": "a", "b": "c"}]', "paths has an item that is a text, not"),
        ("name", "\udce9", "name is no UTF-8"),
        ("kind", "\udce9", "kind is one of a, b"),
        ("nosuch", "1", "'nosuch' is not a parameter of this; there are: all, count,"),
    ],
)
def test_what_cannot_be_meant_is_named(name: str, sent: str, words: str) -> None:
    with pytest.raises(Exception, match=words) as caught:
        query(**{**NAMED, name: sent})
    assert type(caught.value).__name__ in ("Misuse", "Refused")


def test_a_path_may_be_no_utf8() -> None:
    assert query(name="x", path="caf\udce9")["path"] == "caf\udce9"
    spelt = [{"$text": "caf\\udce9"}]
    assert read_body(FIELDS, {**NAMED, "paths": spelt})["paths"] == spelt


def test_what_is_needed_is_asked_for_with_what_it_is_about() -> None:
    with pytest.raises(Misuse, match=r"name is missing: A name\."):
        query()
    with pytest.raises(Misuse, match=r"name is missing: A name\."):
        read_body(FIELDS, {})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"count": True}, "count is a whole number, not true"),
        ({"count": 1.5}, "count is a whole number, not 1.5"),
        ({"count": "1"}, 'count is a whole number, not "1"'),
        ({"count": None}, "count is a whole number, not null"),
        ({"all": 1}, "all is true or false, not 1"),
        ({"all": None}, "all is true or false, not null"),
        ({"name": None}, "name is a text, not null"),
        ({"name": ["x"]}, "name is a text, not "),
        ({"labels": {"a": None}}, "labels has 'a', which is a text"),
        ({"x": 1}, "'x' is not a field of this"),
    ],
)
def test_a_field_of_a_body_is_of_its_kind(body: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        read_body(FIELDS, {**NAMED, **body})


@pytest.mark.parametrize("state", [None, False, 0, "", [], {}, {"$bytes": "AP8="}])
def test_a_value_may_be_anything_and_none_is_not_the_same_as_left_out(state: Any) -> None:
    assert read_body(FIELDS, {**NAMED, "state": state})["state"] == state


def test_pages_have_fifty_items_unless_a_caller_says_otherwise() -> None:
    assert read_query(PAGED, {}, read_value) == {"limit": 50, "cursor": None}
    for wrong in ("0", "1001", "-1"):
        with pytest.raises(Misuse, match="limit is from 1 to 1000"):
            read_query((LIMIT,), {"limit": wrong}, read_value)


# The schemas that the document shows mean what is checked


def every_field() -> list[Field]:
    found = [
        field
        for route in ROUTES
        if route.spec is not None
        for field in (*route.spec.query, *(route.spec.body or ()))
    ]
    return list({json.dumps(each.schema, sort_keys=True): each for each in found}.values())


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 60), 1 << 60)
    | st.integers(-2, 2)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number % 1 != 0)
    | st.text()
    | st.sampled_from(["", "x" * 300, "x" * 5_000])
)
values = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@st.composite
def near(draw: st.DrawFn) -> tuple[Field, Any]:
    """A field, and a value that may or may not be one of it."""
    field = draw(st.sampled_from([*FIELDS, *every_field()]))
    schema = field.schema
    edges = [
        schema[name] + by for name in ("minimum", "maximum") if name in schema for by in (-1, 0, 1)
    ]
    texts = ["x" * max(0, schema["maxLength"] + by) for by in (0, 1) if "maxLength" in schema]
    fitting = [*edges, *texts, *schema.get("enum", ())]
    return field, draw(st.sampled_from(fitting) | values if fitting else values)


@given(near())
def test_what_is_checked_is_what_the_document_says(found: tuple[Field, Any]) -> None:
    field, sent = found
    schema = jsonschema_rs.Draft202012Validator(dict(field.schema))
    assert (objection(field.schema, sent) == "") == schema.is_valid(sent)
