"""Bodies that no program should send, by a seeded generator."""

import json
import random
from collections.abc import Iterator

JSON = "application/json"
GOOD = {
    "task": "Fix it",
    "agent": "default",
    "workspace": "/",
    "callback": {"url": "https://receiver.example/done"},
}
WRONG: tuple[object, ...] = (
    None,
    0,
    1.5,
    True,
    [],
    [1],
    {},
    {"a": 1},
    "",
    "\u0000",
    "x" * 300_000,
    [[[]]],
)
TYPES = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/jsonp",
    "text/json",
    "",
)

Sent = tuple[dict[str, str], bytes]


def bodies(choice: random.Random, count: int) -> Iterator[Sent]:
    """So many, of every kind in turn."""
    kinds = (
        _truncated,
        _nested,
        _numbers,
        _surrogates,
        _wrong_types,
        _wrong_media_type,
        _twice,
        _no_utf8,
        _no_object,
        _unknown_names,
    )
    for number in range(count):
        yield kinds[number % len(kinds)](choice)


def _sent(body: bytes | str) -> Sent:
    return {"content-type": JSON}, body.encode() if isinstance(body, str) else body


def _truncated(choice: random.Random) -> Sent:
    text = json.dumps(GOOD)
    return _sent(text[: choice.randrange(1, len(text))])


def _nested(choice: random.Random) -> Sent:
    depth = choice.choice((101, 1_000, 100_000))
    opening, closing = choice.choice((("[", "]"), ('{"a":', "}")))
    inside = "1" if closing == "}" else ""
    whole = f'{{"task": {opening * depth}{inside}{closing * depth}}}'
    return _sent(choice.choice((whole, opening * depth)))


def _numbers(choice: random.Random) -> Sent:
    number = choice.choice(
        ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000, "1" + "0" * 100_000, "01", "+1")
    )
    return _sent(f'{{"task": {number}}}')


def _surrogates(choice: random.Random) -> Sent:
    half = choice.choice(("\\ud800", "\\udfff", "a\\udc00b", "\\ud800\\u0041"))
    name, value = choice.choice(((half, "x"), ("task", half)))
    return _sent(f'{{"{name}": "{value}"}}')


def _wrong_types(choice: random.Random) -> Sent:
    field = choice.choice(tuple(GOOD))
    body = {**GOOD, field: choice.choice(WRONG)}
    return _sent(json.dumps(body))


def _wrong_media_type(choice: random.Random) -> Sent:
    return {"content-type": choice.choice(TYPES)}, json.dumps(GOOD).encode()


def _twice(choice: random.Random) -> Sent:
    field = choice.choice(tuple(GOOD))
    return _sent(f'{{"{field}": "a", "{field}": "b"}}')


def _no_utf8(choice: random.Random) -> Sent:
    garbage = bytes(choice.randrange(128, 256) for _ in range(choice.randrange(1, 50)))
    return _sent(choice.choice((garbage + b"\xff", b'{"task": "\xff' + garbage + b'"}')))


def _no_object(choice: random.Random) -> Sent:
    return _sent(choice.choice(("[]", "1", '"x"', "null", "true", "[{}]", "{} {}", " ", "{}x")))


def _unknown_names(choice: random.Random) -> Sent:
    return _sent(json.dumps({f"x{choice.randrange(1_000)}": 1}))
