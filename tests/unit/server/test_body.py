import json

import pytest

from hardsave.server.body import read_form, read_json
from hardsave.server.errors import Refused


def test_an_object_is_read_as_it_is() -> None:
    value = {"task": "Fix é 𝄞", "n": -(1 << 63), "f": 1.5, "deep": [[{}]], "none": None}
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"{} {}",
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 10_000 + b"}",
        b'{"a": 9223372036854775808}',
        b'{"a": 1, "a": 2}',
        b'{"b": {"a": 1, "a": 2}}',
        b'{"a": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"a": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":' * 101 + b"1" + b"}" * 101,
        b'{"a": "\n"}',
        '{"a": 1}'.encode("utf-16"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_json(data)
    assert (caught.value.status, caught.value.code) == (400, "malformed")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "data", [b"a=1&a=2", b"a=%FF", b"\xff", b"&".join(b"a%d=1" % each for each in range(200))]
)
def test_a_form_that_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_form(data)


def test_the_fields_of_a_form_are_texts() -> None:
    assert read_form(b"a=1&b=x+y%26&c=") == {"a": "1", "b": "x y&", "c": ""}
