"""What a client saves and reads over HTTP is what was saved, to the last bit."""

import datetime
import math
import os
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import hardsave
from hardsave.client import RemoteVault
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from tests.integration.client.conftest import Both


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


VALUES = {
    "beyond 2^53": [2**53, 2**53 + 1, -(2**63), 2**64, 2**70],
    "ten thousand digits": 10**5000,
    "floats": [math.nan, math.inf, -math.inf, -0.0, 1.0, 1e308, 5e-324, 0.1],
    "bytes": [b"", b"\x00\xff" * 1_000, bytearray(b"x")],
    "tuples": (1, (2, [3, ()])),
    "sets": [{1, "1"}, frozenset({b"a"})],
    "keys": {1: "number", "1": "text", None: 0, (1, 2): "pair"},
    "keys that look like spellings": [{"$bytes": "AP8="}, {"$map": [[1, 2]]}, {"$ref": 1}],
    "half of a character": ["\ud800", "caf\udce9.txt", {"\udcff": "\\udcff"}],
    "texts": ["", "\x00", "\u202e", "日本", "😀", "a\r\nb", "\u2028"],
    "moments": [
        datetime.datetime(2026, 1, 31, 14, tzinfo=datetime.UTC),
        datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.datetime(2026, 1, 31, 14),  # noqa: DTZ001 # without a zone, as some agents have it
        datetime.date(2026, 1, 31),
        datetime.timedelta(-1, 2, 3),
    ],
    "others": [Decimal("1.10"), uuid.UUID(int=7), None, True, 1],
    "a hundred levels": nested(100),
    "a thousand levels": nested(1_000),
}


def same(one: Any, other: Any) -> bool:
    """Equal also to the codec, which tells 1 from True, a list from a tuple, and knows NaN."""
    codec = Codec(Types())
    return codec.encode(one) == codec.encode(other)


@pytest.mark.parametrize("what", VALUES)
def test_a_state_comes_back_as_it_was_whichever_side_has_saved_it(what: str, both: Both) -> None:
    state = {"value": VALUES[what]}
    plain = both.local.timeline("there").as_saved(state)
    both.remote.timeline("there").save(state)
    assert same(both.local.timeline("there").load(), plain)
    both.local.timeline("here").save(state)
    line = both.remote.timeline("here")
    head = line.head
    assert head is not None
    for found in (line.load(), head.state, {"value": head.read("value")}):
        assert same(found, plain)


def test_what_lies_beside_a_state_comes_back_as_it_was(both: Both) -> None:
    line = both.remote.timeline("main")
    given: dict[str, Any] = {
        "metadata": {"pair": (1, b"\x00"), "$bytes": 2**70},
        "notes": {"later": {1: math.inf}, "$map": "text"},
        "labels": {"session": "ü 1"},
    }
    saved = line.save(
        {"a": 1},
        name="first",
        status="waiting",
        kind="feature",
        description="What it is",
        title="A title",
        **given,
    )
    mine = both.local.get(saved.id)
    for found in (saved, line.get("first"), both.remote.get(saved.id), line.checkpoints()[0]):
        assert found == saved
        assert same(dict(found.metadata), given["metadata"])
        assert same(dict(found.notes), given["notes"])
        assert found.labels == given["labels"]
        for name in ("id", "timeline", "seq", "parent", "created_at", "name", "kind", "status"):
            assert getattr(found, name) == getattr(mine, name)
        assert (found.description, found.task, found.attempt) == ("What it is", None, None)
        assert found.summary == mine.summary
    assert line.title == "A title"


@pytest.mark.parametrize(
    "path",
    [
        ("messages", 0),
        ("messages", -1, "content"),
        ("messages", slice(-2, None)),
        ("messages", slice(1, 3)),
        ("messages", slice(None, -1)),
        ("messages", slice(None, None, 2)),
        ("messages", slice(0, 2), 1, "content"),
        ("messages", slice(7, 9)),
        ("messages", slice(2, 1)),
        ("pair", 1),
        ("pair", slice(1, None)),
        ("text", slice(0, 2)),
        ("keys", 1),
        ("keys", "1"),
        ("keys", b"k"),
        (),
    ],
    ids=str,
)
def test_a_path_leads_to_the_same_value_on_both_sides(path: tuple[Any, ...], both: Both) -> None:
    state = {
        "messages": [{"role": "user", "content": f"message {number}"} for number in range(5)],
        "pair": (1, [2]),
        "text": "abc",
        "keys": {1: "number", "1": "text", b"k": "bytes"},
    }
    both.local.timeline("main").save(state)
    mine, other = both.local.timeline("main").head, both.remote.timeline("main").head
    assert mine is not None
    assert other is not None
    assert same(other.read(*path), mine.read(*path))


@pytest.mark.parametrize(
    "path", [("nosuch",), ("messages", 9), ("text", "x"), ("messages", slice(0, 1), "x")], ids=str
)
def test_a_path_that_leads_nowhere_is_the_same_error_on_both_sides(
    path: tuple[Any, ...], both: Both
) -> None:
    both.local.timeline("main").save({"messages": [{"a": 1}], "text": "abc"})
    mine, other = both.local.timeline("main").head, both.remote.timeline("main").head
    assert mine is not None
    assert other is not None
    with pytest.raises(hardsave.HardsaveError) as here:
        mine.read(*path)
    with pytest.raises(type(here.value)):
        other.read(*path)


def test_files_are_the_same_on_both_sides(both: Both) -> None:
    large = bytes(range(256)) * (20 << 12)  # 20 MiB: more than one answer holds
    content = {"a.txt": b"one\n", "empty": b"", "deep/er/b.bin": large}
    for path, data in content.items():
        (both.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (both.workspace / path).write_bytes(data)
    (both.workspace / "link").symlink_to("a.txt")
    saved = both.remote.timeline("main").save({"a": 1}, workspace=str(both.workspace))
    mine, other = both.local.get(saved.id).files, saved.files
    assert mine is not None
    assert other is not None
    assert [*other.list()] == [*mine.list()]
    assert [*other.directory("deep", limit=1)] == [*mine.directory("deep", limit=1)]
    assert (other.id, other.workspace, other.host) == (mine.id, mine.workspace, mine.host)
    assert (other.git, other.not_captured, other.ignored) == (None, (), ())
    for path, data in content.items():
        assert other.read(path) == data
    size = len(large)
    parts = [(0, 5), (size - 3, 10), (size, 1), (size + 9, None), (7, 0), (1 << 22, 3)]
    for start, length in parts:
        assert other.read("deep/er/b.bin", start=start, length=length) == mine.read(
            "deep/er/b.bin", start=start, length=length
        )
    with pytest.raises(hardsave.NotFound):
        other.read("nosuch")


def test_files_whose_names_are_no_utf8_are_read_and_brought_back(both: Both) -> None:
    name, line = os.fsdecode(b"caf\xe9"), both.remote.timeline("main")
    (both.workspace / name).mkdir()
    for number in range(2):
        (both.workspace / name / "a").write_text(f"{number}")
        line.save({"n": number}, workspace=str(both.workspace))
    files = line.get(":1").files
    assert files is not None
    assert [each.path for each in files.list()] == [name, f"{name}/a"]
    assert files.read(f"{name}/a") == b"0"
    line.rewind(":1", what="files", paths=[f"{name}/a"])
    assert (both.workspace / name / "a").read_text() == "0"


def test_a_client_is_told_of_a_state_that_is_too_large(both: Both) -> None:
    with pytest.raises(hardsave.Misuse, match="bytes at most"):
        both.remote.timeline("main").save({"a": "x" * (33 << 20)})


def shown(vault: RemoteVault, path: Path) -> list[str]:
    return [each.timeline for each in vault.sessions(workspace=str(path))]


def test_timelines_are_found_by_text_prefix_status_and_directory(both: Both) -> None:
    (both.workspace / "a").write_text("a")
    for name, status in (("fix-parser", "running"), ("fix-lexer", "failed"), ("other", "running")):
        both.local.timeline(name).save({"a": name}, status=status, workspace=both.workspace)
    vault = both.remote
    assert {each.timeline for each in vault.sessions(prefix="fix-")} == {"fix-parser", "fix-lexer"}
    assert [each.timeline for each in vault.sessions(text="lex")] == ["fix-lexer"]
    assert [each.timeline for each in vault.sessions(status="failed")] == ["fix-lexer"]
    assert len(shown(vault, both.workspace)) == 3
    first = vault.sessions(limit=2)
    second = vault.sessions(limit=2, after=first.next)
    assert (len(first), len(second), second.next) == (2, 1, None)
