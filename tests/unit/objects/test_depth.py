"""JSON from elsewhere: how deep it is read does not depend on who reads it."""

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hardsave.objects.depth import DEEPEST, loads


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def called_from(depth: int, call: Callable[[], Any]) -> Any:
    return called_from(depth - 1, call) if depth else call()


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, None, "x"]},
        ["[" * 1_000, "\\" * 301 + '"{' * 500],
        [[]] * 1_000,
        json.loads(nested(DEEPEST)),
    ],
)
def test_what_is_not_too_deep_is_read_whatever_its_texts_hold(value: Any) -> None:
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value).encode("utf-16")) == value


@pytest.mark.parametrize(
    "text",
    [
        nested(DEEPEST + 1),
        nested(100_000),
        '{"a":' * 300 + "1" + "}" * 300,
        '["' + "[" * 300 + '",' + nested(DEEPEST) + "]",
        "[" * 300 + '"not closed',
        b"\xff\xfe[",
        "nonsense",
    ],
)
def test_what_is_too_deep_or_none_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"levels deep|Expecting value|can't decode"):
        loads(text)


@pytest.mark.parametrize(
    "depth", [280, *(pytest.param(each, marks=pytest.mark.torture) for each in (0, 600))]
)
def test_who_reads_it_does_not_matter_nor_what_is_collected_meanwhile(
    monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    class Late:
        """It is collected in the middle of the reading, and needs some room to end."""

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            called_from(30, int)

    failed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)

    def read() -> int:
        try:
            return len(loads(nested(DEEPEST)))
        except ValueError:
            return -1

    for _ in range(5):
        gc.collect()
        for _ in range(3):
            Late()
        assert called_from(depth, read) == 1
        with pytest.raises(ValueError, match=r"levels deep"):
            called_from(depth, lambda: loads(nested(100_000)))
    gc.collect()
    assert failed == []
