"""`--json`: strict, and nothing of a value is lost on the way."""

import json
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import hardsave
from hardsave.values import text
from tests.unit.cli.conftest import Run

NAME = os.fsdecode(b"caf\xe9.txt")
VALUE: dict[str, Any] = {
    "nan": [math.inf, -math.inf],
    "large": [1 << 70, 10**5_000, 1 << 53],
    "bytes": b"\x00\xff",
    "keys": {1: "one", "1": "text", None: 0, (1, 2): b"x"},
    "half": "\ud800 \\ud800",
    "looks": {"$bytes": "AP8="},
    "kinds": [(1,), {2}, Decimal("1.50")],
}


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def strict(printed: str) -> Any:
    """As a reader that takes nothing but JSON: no NaN, no half of a character, no large number."""

    def whole(digits: str) -> int:
        assert abs(int(digits)) <= 1 << 53
        return int(digits)

    data = json.loads(printed, parse_constant=refuse, parse_int=whole)
    json.dumps(data, ensure_ascii=False).encode()
    return data


def test_a_state_is_printed_so_that_it_can_be_read_back(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("main").save(VALUE, workspace=".")
    for arguments in (("--json",), ()):
        printed = run("show", "main:1", "--state", *arguments).out
        strict(printed)
        assert text.loads(printed) == VALUE


def test_metadata_messages_and_results_are_printed_so_that_they_can_be_read_back(
    run: Run, project: Path
) -> None:
    with hardsave.open() as vault:
        state = {"messages": [{"role": "user", "content": "hi", "extra": VALUE}]}
        vault.timeline("main").save(state, metadata={"given": VALUE}, workspace=".")
        vault.tasks.add("one", metadata={"given": VALUE})
    printed = run("show", "main:1", "--json").out
    strict(printed)
    found = text.loads(printed)
    assert found["metadata"]["given"] == VALUE
    assert found["messages"][0]["extra"] == VALUE
    printed = run("tasks", "show", "one", "--json").out
    strict(printed)
    assert text.loads(printed)["metadata"]["given"] == VALUE


def test_a_file_name_that_is_no_text_can_be_read_back(run: Run, project: Path) -> None:
    (project / NAME).write_text("x\n")
    printed = run("status", "--json").out
    assert strict(printed)["files"]["added"] == ["a.txt", {"$text": "caf\\udce9.txt"}]
    assert os.fsencode(text.loads(printed)["files"]["added"][1]) == b"caf\xe9.txt"
    assert run("save").code == 0
    assert strict(run("show", "@", "--full", "--json").out)["files"]["added"][1] == {
        "$text": "caf\\udce9.txt"
    }
    failed = run("show", "@", "--file", NAME, "--json")
    assert failed.code != 0
    strict(failed.out)


def test_a_difference_tells_a_list_from_a_tuple(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("main")
        line.save({"pair": (1, 2), "other": 1}, workspace=".")
        line.save({"pair": [1, 2], "other": 1}, workspace=".")
    assert 'pair: {"$tuple": [1, 2]} → [1, 2]' in run("diff", "main:1", "main:2").out
