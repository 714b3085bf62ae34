"""docs/format.md says enough: a reader and a writer made from it alone agree with Hardsave.

Neither of the two imports anything of Hardsave; here only its front door is used.
"""

import ast
import dataclasses
import datetime
import decimal
import enum
import random
import re
import shutil
import sqlite3
import string
import struct
import subprocess
import sys
import time
import uuid
import zoneinfo
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from blake3 import blake3

import hardsave
from tests.docs.format_reader import StoreFile, opened, unpacked
from tests.docs.format_writer import address_of, encoded
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "format.md"


@dataclasses.dataclass
class Plan:
    """It is not registered: it comes back as its fields."""

    goal: str
    steps: list[str]


class Mood(enum.Enum):
    CALM = "calm"


class Saved(NamedTuple):
    """A store, and what was saved into it: states by (user, timeline, number)."""

    path: Path
    states: dict[tuple[str | None, str, int], Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    path = tmp_path_factory.mktemp("format") / "store.db"
    states: dict[tuple[str | None, str, int], Any] = {}
    with hardsave.open(f"sqlite:///{path}") as vault:
        main = vault.timeline("main")
        for number, state in enumerate(conversation(100), 1):
            main.save(state)
            states[None, "main", number] = state
        other = main.fork("main:40", name="another way")
        grown = states[None, "main", 40]
        for number in range(1, 31):
            new = {"messages": [f"try {number} " + "." * 40 * number], "turn": -number}
            other.append(new)
            grown = {**grown, "messages": grown["messages"] + new["messages"], "turn": -number}
            states[None, "another way", number] = grown
        short = vault.timeline("short")
        grown = {}
        for number, new in enumerate(short_steps(), 1):
            short.append(new)
            grown = {**grown, **new, "notes": grown.get("notes", []) + new["notes"]}
            states[None, "short", number] = grown
        odd = vault.timeline("odd")
        for number, state in enumerate(odd_states(), 1):
            odd.save(state)
            states[None, "odd", number] = state
        wait_for_merges(path)
    with hardsave.open(f"sqlite:///{path}", user="kim") as vault:
        vault.timeline("main").save("kim's own")
        states["kim", "main", 1] = "kim's own"
    return Saved(path, states)


def conversation(turns: int) -> Iterator[dict[str, Any]]:
    """Yield the states of an agent that talks, forgets its beginning and corrects itself."""
    draw = random.Random(7)
    messages: list[Any] = []
    for turn in range(turns):
        for role in ("user", "assistant"):
            words = "".join(draw.choices(string.ascii_letters + " ", k=draw.randrange(20, 900)))
            messages.append({"role": role, "content": words, "at": (turn, role)})
        if turn % 9 == 8:
            del messages[:3]
        if turn % 5 == 4:
            messages[len(messages) // 2]["content"] += " (corrected)"
        copies = [dict(message) for message in messages]
        yield {"messages": copies, "turn": turn, "plan": Plan("ship it", ["a", "b"] * turn)}


def short_steps() -> Iterator[dict[str, Any]]:
    """Yield what is appended to a state that becomes longer than 2,048 bytes, shorter, longer."""
    draw = random.Random(3)
    for number in range(40):
        pad = "p" * draw.choice([0, 100, 130, 1_100, 1_400, 1_700, 1_800, 1_900, 2_000])
        yield {"notes": ["n" * (number % 7) * 4], "pad": pad, "pair": ("x" * 20,) * (number % 9)}


def odd_states() -> Iterator[Any]:
    """Yield one state of every type and every shape."""
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    yield None
    yield {}
    yield {
        "numbers": [0, 127, 128, -32, -33, 1 << 63, -(1 << 63), 1 << 64, -(1 << 90), True, 1.5],
        "special": [float("nan"), -float("nan"), float("inf"), -0.0, 1.0],
        "texts": ["", "é" * 40, "x" * 300, "lone \ud800 surrogate", b"", b"\x00" * 300],
        "keys": {1: "int", (2, 3): "tuple", None: "none", "é": "text", "\udc00": "surrogate"},
        "sets": [{3, 1, 2, "x"}, frozenset({b"b", b"a"}), set(), (), (1, (2,))],
        "moments": [
            datetime.datetime(2026, 10, 25, 2, 30, 0, 7, berlin, fold=1),
            datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            datetime.datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001 # naive ones have a form too
            datetime.date(2026, 1, 2),
            datetime.time(23, 59, fold=1),
            datetime.time(12, tzinfo=berlin),
            datetime.timedelta(days=-1, microseconds=5),
        ],
        "others": [uuid.UUID(int=5), decimal.Decimal("1.50"), Mood.CALM, Plan("p", [])],
    }
    draw = random.Random(11)
    numbers = [draw.randrange(1 << 40) for _ in range(5_000)]
    yield numbers
    yield tuple(numbers)
    yield {"set": set(numbers[:800]), "frozen": frozenset(map(str, numbers[:600]))}
    yield {f"key {at}": "v" * draw.randrange(200) for at in range(2_500)}
    yield {number: {"at": number} for number in range(700)}
    yield ["same"] * 3_000
    # Encodings of 127 to 130 and of 2,047 to 2,050 bytes: around where values are split off.
    yield [*("x" * n for n in range(125, 129)), *(["x" * n] for n in range(2_043, 2_047))]
    yield Plan("long", ["step " + "s" * (at % 300) for at in range(400)])
    nested: Any = "x" * 3_000
    for depth in range(40):
        nested = [nested, f"{depth} " * 900]
    yield nested


def wait_for_merges(path: Path) -> None:
    """Small packs are merged beside the saves: give it a moment.

    Another process looks: two copies of SQLite in one process undo each other's locks.
    """
    look = (
        "import sqlite3, sys; file = sqlite3.connect(sys.argv[1], uri=True); "
        "print(*file.execute('SELECT max(indexed) = 0 OR (SELECT count(*) FROM packs "
        "WHERE id > max(indexed)) >= 32 FROM users').fetchone())"
    )
    command = [sys.executable, "-c", look, f"{path.as_uri()}?mode=ro"]
    deadline = time.monotonic() + 60
    while int(subprocess.check_output(command)):
        assert time.monotonic() < deadline, "packs were not merged"


def plain(value: Any) -> Any:
    """Return what comes back of a value when no class is registered."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Plan):
        return plain({"goal": value.goal, "steps": value.steps})
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


@pytest.fixture
def file(saved: Saved) -> Iterator[StoreFile]:
    file = StoreFile(saved.path)
    yield file
    file.close()


@pytest.mark.parametrize("is_compacted", [False, True])
def test_every_state_can_be_rebuilt_from_the_page_alone(
    saved: Saved, tmp_path: Path, is_compacted: bool
) -> None:
    path = saved.path
    if is_compacted:
        path = tmp_path / "compacted.db"
        shutil.copy(saved.path, path)
        with hardsave.open(f"sqlite:///{path}") as vault:
            vault.store.compact()
            vault.store.gc()
        with closing(StoreFile(path)) as packed:
            assert any(body[0] == 1 for (body,) in packed.rows("SELECT body FROM packs"))
    rebuilt = {}
    for user in (None, "kim"):
        file = StoreFile(path, user)
        for found in file.checkpoints():
            rebuilt[user, found.timeline, found.seq] = encoded(file.state(found.root))
        file.close()
    assert rebuilt == {place: encoded(plain(state)) for place, state in saved.states.items()}


def test_every_address_can_be_computed_from_the_page_alone(saved: Saved, file: StoreFile) -> None:
    roots = {(found.timeline, found.seq): found.root for found in file.checkpoints()}
    for (user, timeline, number), state in saved.states.items():
        if user is None:
            assert roots[timeline, number] == address_of(state), (timeline, number)


def test_the_states_reach_every_kind_of_object_and_a_merged_pack(file: StoreFile) -> None:
    kinds = set()
    for size, directory, body in file.rows("SELECT size, directory, body FROM packs"):
        for address, data in unpacked(size, directory, body).items():
            assert blake3(data).digest(length=20) == address
            kinds.add(opened(data)[0])
    assert kinds == {0x11, 0x12, 0x13, 0x14, 0x15}
    commits = file.rows("SELECT count(*) FROM checkpoints")[0][0]
    assert file.rows("SELECT count(*) FROM packs")[0][0] < commits - 30


def test_small_packs_are_raw_and_large_ones_compressed(file: StoreFile) -> None:
    packs = file.rows("SELECT size, length(body) FROM packs")
    assert all(length == size for size, length in packs if size < 2560)
    assert all(length <= size for size, length in packs)
    assert {length == size for size, length in packs} == {True, False}


def test_merged_packs_have_index_rows_and_recent_ones_have_none(saved: Saved) -> None:
    recent, older, rows = 0, 0, 0
    for user in (None, "kim"):
        file = StoreFile(saved.path, user)
        (rows,) = file.rows("SELECT count(*) FROM objects")[0]
        low, high = file.user << 40, (file.user + 1) << 40
        sql = "SELECT id, directory FROM packs WHERE id > ? AND id < ?"
        addresses = []
        for pack, directory in file.rows(sql, low, high):
            listed = [directory[at : at + 20] for at in range(0, len(directory) // 24 * 20, 20)]
            addresses += listed
            is_recent = pack in file.recent()
            recent, older = recent + is_recent, older + (0 if is_recent else len(listed))
            for address in listed:
                assert file.indexed(address) == ([] if is_recent else [pack])
        assert len(addresses) == len(set(addresses)), "an object was stored twice"
        file.close()
    assert recent > 1
    assert older == rows > 0


def test_keys_that_only_classes_tell_apart_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    twice: dict[Any, Any] = {Mood.CALM: 1, "calm": 2}
    large = {**twice, **dict.fromkeys(map(str, range(900)))}
    with hardsave.open(f"sqlite:///{path}") as vault:
        line = vault.timeline("t")
        for state in ({Mood.CALM, "calm"}, twice, large):
            line.save(state)
            with pytest.raises(hardsave.Misuse):
                line.load()
    file = StoreFile(path)
    for found in file.checkpoints():
        with pytest.raises(ValueError, match="are distinct"):
            file.state(found.root)
    file.close()


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_after_a_crash_only_a_reading_tool_leaves_the_checksums_whole(
    tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "store.db"
    url = f"sqlite:///{path}"
    crash = (
        "import hardsave, os, sys; vault = hardsave.open(sys.argv[1]); "
        "vault.timeline('t').save('precious'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", crash, url], check=False).returncode == 9
    assert path.with_name("store.db-wal").stat().st_size > 0
    tool = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True)
    assert tool.execute("SELECT count(*) FROM checkpoints").fetchall() == [(1,)]
    tool.close()
    if mode == "rw":
        with pytest.raises(hardsave.Corrupt):
            hardsave.open(url)
    else:
        with hardsave.open(url) as vault:
            assert vault.timeline("t").load() == "precious"


def test_packs_and_commits_are_numbered_as_the_page_says(file: StoreFile) -> None:
    assert file.rows("SELECT id, name FROM users ORDER BY id") == [(0, None), (1, "kim")]
    assert file.rows("SELECT id FROM packs WHERE id > 1 << 40") == [((1 << 40) + 1,)]
    numbers = file.rows("SELECT number FROM checkpoints UNION ALL SELECT number FROM log")
    assert sorted(numbers) == [(number,) for number in range(1, len(numbers) + 1)]


def test_a_fork_is_a_log_entry_and_a_timeline_with_an_origin(file: StoreFile) -> None:
    ((source,),) = file.rows(
        "SELECT c.id FROM checkpoints c JOIN timelines t ON t.id = c.timeline "
        "WHERE t.name = 'main' AND c.seq = 40 AND c.user = 0"
    )
    assert file.rows("SELECT origin FROM timelines WHERE name = 'another way'") == [(source,)]
    ((timeline, kind, data),) = file.rows("SELECT timeline, kind, data FROM log")
    assert (timeline, kind) == ("another way", "fork")
    ((moment,),) = file.rows("SELECT created_at FROM timelines WHERE name = 'another way'")
    after = [source, 0, moment, source, False]
    said = {"moves": [["another way", None, after]], "source": source, "from": "main"}
    assert data == encoded(said)


def test_the_tables_are_those_of_the_page(saved: Saved, tmp_path: Path) -> None:
    path = tmp_path / "with-files.db"
    shutil.copy(saved.path, path)
    (tmp_path / "work").mkdir()
    with hardsave.open(f"sqlite:///{path}") as vault:  # indexes come with the rows they are for
        vault.timeline("main").save_files(tmp_path / "work")
    file = StoreFile(path)
    sql, *_ = blocks(PAGE, "sql")  # then come the backup's, and PostgreSQL's
    page = sqlite3.connect(":memory:")
    page.executescript(sql)
    shown = {name: described(page.execute, name) for (name,) in page.execute(TABLES)}
    page.close()
    assert shown == {name: described(file.rows, name) for (name,) in file.rows(TABLES)}
    file.close()


TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"


def described(run: Any, table: str) -> tuple[Any, ...]:
    """Return columns, foreign keys and indexes of a table as SQLite understands them."""
    indexes = []
    for _, name, unique, _, partial in list(run(f"PRAGMA index_list({table})")):
        columns = tuple(row[2] for row in run(f"PRAGMA index_info({name})"))
        indexes.append((columns, unique, partial))
    return (
        [row[1:] for row in run(f"PRAGMA table_info({table})")],
        sorted(row[2:5] for row in run(f"PRAGMA foreign_key_list({table})")),
        sorted(indexes),
    )


def test_the_header_and_the_page_checksums_are_those_of_the_page(saved: Saved) -> None:
    data = saved.path.read_bytes()
    assert data[20] == 8
    assert struct.unpack_from(">I", data, 60) == (8,)
    assert data[68:72] == b"HSAV"
    (size,) = struct.unpack_from(">H", data, 16)
    for at in range(0, len(data), size):
        page = data[at : at + size]
        assert page[-8:] == page_checksum(page[:-8]), at // size + 1


def page_checksum(content: bytes) -> bytes:
    one = two = 0
    words = struct.unpack(f"<{len(content) // 4}I", content)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return struct.pack("<II", one, two)


def test_the_mark_holds_the_number_of_the_last_commit(saved: Saved, file: StoreFile) -> None:
    data = saved.path.with_name(saved.path.name + "-mark").read_bytes()
    assert len(data) == 30
    magic, version, relaxed, number = struct.unpack(">4sBBQ", data[:14])
    assert (magic, version, relaxed) == (b"HSMK", 1, 0)
    assert number == file.rows("SELECT max(number) FROM checkpoints")[0][0]
    assert data[22:] == blake3(data[:22]).digest(length=8)


def test_the_backup_is_as_the_page_says(saved: Saved, file: StoreFile) -> None:
    backup = saved.path.with_name(saved.path.name + "-backup")
    copy = sqlite3.connect(f"{backup.as_uri()}?mode=ro", uri=True)
    assert copy.execute("PRAGMA application_id").fetchone() == (0x48534142,)
    ((version,),) = file.rows("PRAGMA user_version")
    assert copy.execute("PRAGMA user_version").fetchone() == (65536 + version,)
    names = {row[0] for row in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    tables = {"users", "timelines", "checkpoints", "tombstones", "log", "packs"}
    tables |= {"tasks", "ledger", "labels", "notes", "workspaces"}
    assert names - {"sqlite_sequence"} == {*tables, "marks"}
    (shown,) = [block for block in blocks(PAGE, "sql") if "marks" in block]
    assert re.sub(r"--.*|[\s;]", "", shown) == re.sub(r"\s", "", _schema(copy, "marks"))
    ((number,),) = file.rows("SELECT max(number) FROM checkpoints")
    changes = file.rows("SELECT seq FROM sqlite_sequence WHERE name = 'changes'")
    assert copy.execute("SELECT * FROM marks").fetchall() == [(number, *(changes or [(0,)])[0])]
    for table in tables - {"users"}:
        sql = f"SELECT * FROM {table}"  # noqa: S608 # names of ours
        assert sorted(copy.execute(sql), key=repr) == sorted(file.rows(sql), key=repr)
    copy.close()


def _schema(file: sqlite3.Connection, table: str) -> str:
    sql = "SELECT sql FROM sqlite_schema WHERE name = ?"
    ((text,),) = file.execute(sql, (table,)).fetchall()
    return str(text)


def test_a_takeover_is_told_as_the_page_says(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}") as vault:
        vault.timeline("main").save({"a": 1})
    path.write_bytes(b"no database" * 100)
    hardsave.open(f"sqlite:///{path}").close()
    file = StoreFile(path)
    ((number, user, timeline, data),) = file.rows(
        "SELECT number, user, timeline, data FROM log WHERE kind = 'takeover'"
    )
    assert (number, user, timeline) == (2, 0, None)
    assert {b"wrong", b"source", b"notes", b"backup"} <= set(re.findall(rb"[a-z]+", data))
    assert b"lost" not in data
    ((seq,),) = file.rows("SELECT seq FROM sqlite_sequence WHERE name = 'changes'")
    assert seq == 1_000_000
    file.close()
    aside = [found for found in tmp_path.iterdir() if found.name.startswith("store.db.damaged-")]
    assert b"no database" * 100 in [found.read_bytes() for found in aside]


def test_the_reader_and_the_writer_use_nothing_of_hardsave() -> None:
    for name in ("format_reader.py", "format_writer.py", "export_reader.py"):
        tree = ast.parse(Path(__file__).with_name(name).read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert imports
        assert [ast.unparse(node) for node in imports if "hardsave" in ast.unparse(node)] == []


def test_the_numbers_of_the_page_are_the_numbers_of_the_writer() -> None:
    """The chunk rule's figures stand in both; changing one without the other is noticed."""
    text = PAGE.read_text()
    rule = text.partition("### Where a chunk ends")[2].partition("\n### ")[0]
    source = Path(__file__).with_name("format_writer.py").read_text()
    body = source.partition("def chunk_end")[2].partition("\ndef ")[0]
    in_source = {int(number) for number in re.findall(r"\b\d{2,}\b", body)}
    in_page = {int(number) for number in re.findall(r"\b\d{2,}\b", rule.replace(",", ""))}
    assert in_source <= in_page


def test_every_file_beside_a_store_is_on_the_page(tmp_path: Path) -> None:
    path, work = tmp_path / "store.db", tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("one")
    for user in (None, "ada"):
        with hardsave.open(f"sqlite:///{path}", user=user) as vault:
            workspace = vault.workspace(work)
            with workspace.watch():
                vault.timeline("main").save({"messages": ["hello"]}, workspace=workspace)
            vault.search("hello")
            vault.store.upkeep()
    told = set(re.findall(r"`(store\.db-[\w.-]+)(?:…|HASH)?`", PAGE.read_text()))
    made = {each.name for each in tmp_path.iterdir()} - {"store.db", "work"}
    assert {name for name in made if not any(name.startswith(each) for each in told)} == set()
    assert {"store.db-search", "store.db-upkeep", "store.db-mark"} <= made
    endings = {name.rpartition("-")[2] for name in made if name.startswith("store.db-files-")}
    assert {each for each in endings if f"`-{each}`" not in PAGE.read_text()} == set()
    assert "cookies" in endings
