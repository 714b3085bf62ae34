"""Values that JSON lacks, and names of files that are no UTF-8, over the wire and back."""

import datetime
import math
import os
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest

import hardsave
from hardsave import from_json, to_json
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient

NAME = b"caf\xe9.txt"  # no UTF-8


def deep(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


VALUES: dict[str, Any] = {
    "none": None,
    "nothing": [{}, [], "", b"", (), set(), frozenset(), 0, 0.0, -0.0, False],
    "beyond 64 bits": [1 << 70, -(1 << 70), (1 << 53) + 1, 1 << 63, -(1 << 63)],
    "many digits": 10**5_000,
    "no number": [math.nan, math.inf, -math.inf, 1e308, 5e-324],
    "bytes": [b"\x00\xff", bytes(range(256))],
    "tuples": ((1, [2, (3,)]), ()),
    "sets": [{1, "1", (2, 3)}, frozenset({b"\xff", None})],
    "keys that JSON lacks": {1: "a", "1": "b", None: 2, (1, 2): 3, 1.5: 4, b"x": 5},
    "keys that look like ours": [
        {"$bytes": "AP8="},
        {"$map": []},
        {"$ref": "#"},
        {"$int": 1, "x": 2},
    ],
    "half of a character": ["\ud800", "a\\b \udce9 é", {"\udfff": "\ud83d\ude00"}],
    "texts": ["\x00", "\u2028", "😀", "a\r\n\t", "é" * 1_000, "\ufeff", "\x7f"],
    "moments": [
        datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 2, 12, 0, 0, 1),  # noqa: DTZ001 # a naive one is a value, too
        datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.date(2026, 1, 2),
        datetime.time(1, 2),
        datetime.timedelta(-1, 2, 3),
    ],
    "decimals": [Decimal("1.50"), Decimal("-0"), Decimal("1E+999"), Decimal(10) ** -50],
    "ids": uuid.UUID(int=7),
    "nested": deep(100),
    "nested deeply": deep(1_500),
    "nested in dicts": {"a": {"a": {"a": deep(300)}}},
}


def same(one: Any, other: Any) -> bool:
    """Equal also to the codec, which tells 1 from True, a list from a tuple, and knows NaN."""
    codec = Codec(Types())
    return codec.encode(one) == codec.encode(other)


@pytest.fixture(scope="module")
def vault(site: Site) -> Iterator[hardsave.Vault]:
    with site.server.vault() as opened:
        yield opened


@pytest.fixture(scope="module")
def program(site: Site) -> Iterator[ApiClient]:
    with site.api() as client:
        yield client


def holding(value: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x", "extra": value}], "value": value}


def check_read(program: ApiClient, vault: hardsave.Vault, timeline: str, value: Any) -> None:
    """What is read over the wire is what the library reads, and what was saved."""
    one = vault.timeline(timeline).get()
    assert same(vault.timeline(timeline).load(one), holding(value))
    state = program.get(f"/api/v1/state?ref={one.id}")["value"]
    assert same(from_json(state), vault.timeline(timeline).load(one))
    asked = quote('["value"]')
    part = program.get(f"/api/v1/state?ref={one.id}&path={asked}")["value"]
    assert same(from_json(part), value)
    (message,) = program.get(f"/api/v1/messages?ref={one.id}&full=true")["items"]
    assert same(from_json(message["value"]), holding(value)["messages"][0])
    told = program.get(f"/api/v1/checkpoint?ref={one.id}")
    for name, own in (("metadata", one.metadata), ("notes", one.notes)):
        assert same(from_json(told[name]), {"v": value})
        assert same(from_json(told[name]), dict(own))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_was_saved_over_the_wire_is_read_as_it_was(
    program: ApiClient, vault: hardsave.Vault, name: str
) -> None:
    value, timeline = VALUES[name], f"wired {name}"
    body = {
        "timeline": timeline,
        "state": to_json(holding(value)),
        "metadata": {"v": to_json(value)},
        "notes": {"v": to_json(value)},
    }
    headers = {"Idempotency-Key": f"value {name}"}
    saved = program.send("POST", "/api/v1/checkpoints", body, headers)
    assert saved.status == 201, saved
    check_read(program, vault, timeline, value)
    again = program.send("POST", "/api/v1/checkpoints", body, headers)
    assert (again.status, again.is_replayed) == (201, True), again


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_was_saved_by_the_library_is_read_over_the_wire(
    program: ApiClient, vault: hardsave.Vault, name: str
) -> None:
    value, timeline = VALUES[name], f"kept {name}"
    vault.timeline(timeline).save(holding(value), metadata={"v": value}, notes={"v": value})
    check_read(program, vault, timeline, value)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_is_added_to_a_state_over_the_wire_is_there(
    program: ApiClient, vault: hardsave.Vault, name: str
) -> None:
    timeline = f"added {name}"
    for _ in range(2):
        body = {"timeline": timeline, "delta": to_json({"items": [VALUES[name]]})}
        assert program.send("POST", "/api/v1/checkpoints", body).status == 201
    assert same(vault.timeline(timeline).load(), {"items": [VALUES[name]] * 2})


@pytest.mark.parametrize("name", VALUES)
def test_results_and_answers_of_tasks_come_over_the_wire_as_they_are(
    program: ApiClient, vault: hardsave.Vault, name: str
) -> None:
    id, value = f"task {name}", VALUES[name]
    vault.tasks.add(id, metadata={"v": value})
    with vault.tasks.attempt(id) as attempt:
        attempt.ask("which?")
    body = {"id": id, "answer": to_json(value), "question": "which?"}
    assert program.send("POST", "/api/v1/tasks/answer", body).status == 200
    with vault.tasks.attempt(id) as attempt:
        answer = attempt.ask("which?")
        assert same(answer, value)
        attempt.complete(answer)
    told = program.get(f"/api/v1/task?id={quote(id)}")
    assert same(from_json(told["result"]), value)
    assert same(from_json(told["metadata"]), {"v": value})


@pytest.mark.parametrize(
    "value",
    [
        {"$bytes": "?"},
        {"$int": "x"},
        {"$stored": "wQ=="},
        {"$datetime": "yesterday"},
        {"$set": [[]]},
        {"$map": [[1, 2], [1, 3]]},
    ],
)
def test_what_is_no_value_is_refused(program: ApiClient, site: Site, value: Any) -> None:
    before = site.told()
    for body in (
        {"timeline": "refused", "state": value},
        {"timeline": "refused", "delta": {"a": [value]}},
        {"timeline": "refused", "state": 1, "metadata": {"v": value}},
        {"timeline": "refused", "state": 1, "notes": {"v": value}},
    ):
        got = program.send("POST", "/api/v1/checkpoints", body)
        assert (got.status, got.data["code"]) == (400, "misuse"), got
    assert site.told() == before


def test_files_whose_names_are_no_utf8_are_listed_read_compared_and_brought_back(
    site: Site, program: ApiClient, vault: hardsave.Vault
) -> None:
    place, name = site.server.folder / "names", os.fsdecode(NAME)
    (place / name).mkdir(parents=True)
    line = vault.timeline("names")
    for number in range(2):
        for path in (place / f"{name}" / "a", place / f"b-{name}"):
            path.write_text(f"{number}")
        line.save(number, workspace=place)
    one, two = line.get(":1").id, line.get(":2").id
    listed = program.get(f"/api/v1/files?ref={one}")["items"]
    assert [from_json(each["path"]) for each in listed] == [f"b-{name}", name]
    asked = quote(NAME, safe="")  # its bytes
    inside = program.get(f"/api/v1/files?ref={one}&path={asked}")["items"]
    assert [from_json(each["path"]) for each in inside] == [f"{name}/a"]
    assert program.send("GET", f"/api/v1/file?ref={one}&path=b-{asked}").content == b"0"
    changed = program.get(f"/api/v1/diff?from={one}&to={two}")["files"]["changed"]
    assert [from_json(each) for each in changed] == [f"b-{name}", f"{name}/a"]
    patch = program.get(f"/api/v1/diff/file?from={one}&to={two}&path=b-{asked}")
    assert from_json(patch["path"]) == f"b-{name}"
    assert "+1" in patch["unified"]
    body = {"timeline": "names", "ref": one, "what": "files", "paths": [to_json(f"b-{name}")]}
    back = program.send("POST", "/api/v1/rewind", body, {"If-Match": "*"})
    assert back.status == 200, back
    assert [from_json(each) for each in back.data["files"]["changed"]] == [f"b-{name}"]
    assert (place / f"b-{name}").read_text() == "0"
    assert (place / name / "a").read_text() == "1"


@pytest.mark.parametrize("field", ["timeline", "ref", "cursor"])
def test_only_paths_may_be_no_utf8(program: ApiClient, field: str) -> None:
    query = {"ref": "@", "timeline": "names", field: "%E9"}
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    got = program.send("GET", f"/api/v1/files?{asked}")
    assert got.status == 400
    assert got.data["detail"] == f"{field} is no UTF-8"
