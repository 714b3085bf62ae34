"""No secret reaches the disk when redaction is on; all of them do when it is off."""

import dataclasses
import random
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

import hardsave
from hardsave import aio
from hardsave.errors import Misuse
from hardsave.objects.redaction import Redaction
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.vault import Vault
from tests.unit.objects.planted import secrets, settings
from tests.unit.vault import secrets_scanner
from tests.unit.vault.stage import Watched, messages

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TOKEN = secrets()["github-token"]
STANDS = "[redacted:github-token]"


@dataclasses.dataclass
class Call:
    tool: str
    result: Any


def planted() -> list[str]:
    """Fifty secrets of different kinds, and eleven that only their setting gives away."""
    made = list(secrets(7).values())
    assert len(made) == 50
    return made + [secret for secret, _ in settings(7).values()]


def act(vault: Vault) -> None:
    """Save every one of them, each in another kind of place."""
    draw = random.Random(3)
    texts = list(secrets(7).values()) + [text for _, text in settings(7).values()]
    line = vault.timeline("main")
    state: dict[str, Any] = {"messages": messages(50), "turn": 0}
    for number, text in enumerate(texts):
        match number % 12:
            case 0:
                state["messages"].append({"role": "user", "content": f"use {text} please"})
            case 1:
                state["messages"][number]["content"] += f" {text}"
            case 2:
                state[f"key {text}"] = number
            case 3:
                line.save(state, metadata={"env": {"key": text}})
            case 4:
                line.save(state, metadata={text: 1})
            case 5:
                one_line = text.replace("\n", " ")[:150]
                line.save(state, name=f"with {one_line}", description=text)
            case 6:
                state["messages"].append(Call("shell", {"out": ("stdout", text)}))
            case 7:
                state["blob"] = f"PREFIX\n{text}\n".encode()
            case 8:
                state["set"] = {text, "harmless"}
            case 9:
                state["long"] = " ".join(draw.choices("abcdefgh", k=10_000)) + f" {text}"
            case 10:
                line.save(state, description=f"it was {text}")
            case _:
                state["messages"].insert(3, [[[{"deep": {text: [text]}}]]])
        state["turn"] = number
        line.save(state)
    grow(vault, texts)
    vault.timeline("other").save({f"{n} {text}": text for n, text in enumerate(texts * 5)})


def grow(vault: Vault, texts: list[str]) -> None:
    line = vault.timeline("grown")
    for number, text in enumerate(texts):
        line.append({"messages": [{"content": f"{number} {text}"}], text: number, "last": text})
    glued = [text * 2 for text in texts[:50]] + [f"{text} {text}" for text in texts[50:]]
    line.append({"messages": glued}, metadata={"all": texts})


def test_with_redaction_no_secret_is_anywhere_on_disk(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db", redact=True) as vault:
        act(vault)
        assert len(vault.search("redacted", limit=500)) > 60
        assert secrets_scanner.found(tmp_path, planted()) == set()  # while the WAL is there
        assert vault.store.verify().ok
    assert secrets_scanner.found(tmp_path, planted()) == set()


def test_without_it_the_same_scanner_finds_all_of_them(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        act(vault)
        vault.search("redacted")
        assert secrets_scanner.found(tmp_path, planted()) == set(planted())
    assert secrets_scanner.found(tmp_path, planted()) == set(planted())


@pytest.mark.parametrize(("size", "compressed"), [(300, 0), (300, 1), (3_000, 1), (30_000, 0)])
def test_the_scanner_finds_what_was_deleted(tmp_path: Path, size: int, compressed: int) -> None:
    connection, body = table(tmp_path, size)
    row = zstd.compress(body) if compressed else body
    connection.execute("INSERT INTO t VALUES (99, ?)", (row,))
    connection.execute("DELETE FROM t WHERE id = 99")
    connection.close()
    assert secrets_scanner.found(tmp_path, [TOKEN, "not there"]) == {TOKEN}


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_scanner_puts_pages_together_without_asking_the_database(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets_scanner, "values", lambda file: [])
    connection, body = table(tmp_path, 30_000)
    connection.pragma("journal_mode", mode)
    connection.execute("INSERT INTO t VALUES (99, ?)", (zstd.compress(body),))
    assert secrets_scanner.found(tmp_path, [TOKEN, "not there"]) == {TOKEN}
    connection.close()


def table(folder: Path, size: int) -> tuple[apsw.Connection, bytes]:
    """A database with noise in it, and something to put there that holds a secret."""
    noise = random.Random(1).randbytes(size // 2).hex().encode()
    connection = apsw.Connection(str(folder / "a.db"))
    connection.pragma("secure_delete", 0)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, noise) for n in range(20)])
    return connection, noise + TOKEN.encode() + noise[:100]


def test_what_comes_back_is_what_was_saved_but_for_the_secrets() -> None:
    with Vault(MemoryStore(), redact=True) as vault:
        line = vault.timeline("main")
        checkpoint = line.save(
            {"messages": [f"a {TOKEN} b"], TOKEN: 1},
            name=TOKEN,
            status=f"using {TOKEN}",
            description=TOKEN,
            metadata={"k": TOKEN, TOKEN: 2},
        )
        assert line.load() == {"messages": [f"a {STANDS} b"], STANDS: 1}
        assert (checkpoint.name, checkpoint.description) == (STANDS, STANDS)
        assert checkpoint.status == f"using {STANDS}"
        assert checkpoint.metadata == {"k": STANDS, STANDS: 2}
        line.append({"messages": [TOKEN], "x": {TOKEN}})
        assert line.load() == {"messages": [f"a {STANDS} b", STANDS], STANDS: 1, "x": {STANDS}}


def test_it_is_off_unless_it_is_asked_for() -> None:
    with Vault(MemoryStore()) as vault:
        vault.timeline("main").save({"key": TOKEN}, name=TOKEN)
        assert vault.timeline("main").load() == {"key": TOKEN}


def test_a_redacted_state_saved_again_has_the_same_address() -> None:
    with Vault(MemoryStore(), redact=True) as vault:
        line = vault.timeline("main")
        state = {"messages": [*messages(300), f"x {TOKEN}", *messages(300)], "keys": {TOKEN: 1}}
        first = line.save(state)
        again = vault.timeline("again").save(line.load())
        assert first._record.root == again._record.root


@pytest.mark.parametrize("count", [3, 40, 900])
def test_many_secret_keys_of_one_kind_stay_many(count: int) -> None:
    with Vault(MemoryStore(), redact=True) as vault:
        line = vault.timeline("main")
        state: dict[str, int] = {"np" + f"m_{number:036d}": number for number in range(count)}
        for _ in range(2):
            line.save({"tokens": state, "turn": 1})
            assert sorted(line.load()["tokens"].values()) == list(range(count))
            state.pop(next(iter(state)))
            state["last"] = 0
        vault.timeline("grown").append(dict(state))
        assert len(vault.timeline("grown").load()) == len(state)


def test_saves_after_edits_in_place_stay_clean_and_right() -> None:
    draw = random.Random(5)
    with Vault(MemoryStore(), redact=True) as vault:
        line = vault.timeline("main")
        state: dict[str, Any] = {"messages": messages(400), "table": {}}
        for turn in range(40):
            at = draw.randrange(len(state["messages"]))
            state["messages"][at]["content"] = f"{turn} {TOKEN}"
            state["table"][f"{turn} {TOKEN}"] = TOKEN
            if turn % 4 == 0:
                del state["messages"][draw.randrange(len(state["messages"]))]
            line.save(state)
            assert line.load() == cleaned(state)


def cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(TOKEN, STANDS)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


def test_only_what_changed_is_looked_at(store: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    look = Redaction.suspects

    def counting(self: Redaction, data: bytes) -> bool:
        looked.append(len(data))
        return look(self, data)

    with Vault(store, redact=True) as vault:
        line = vault.timeline("main")
        state: dict[str, Any] = {"messages": messages(5_000), "turn": 0}
        line.save(state)
        monkeypatch.setattr(Redaction, "suspects", counting)
        state["turn"] = 1
        state["messages"] += messages(2, start=5_000)
        line.save(state)
    assert 0 < sum(looked) < 100_000  # of more than a million bytes


def test_a_store_with_secrets_from_before_can_be_appended_to() -> None:
    store = MemoryStore()
    tokens = {secrets(seed)["npm-token"]: "v" * 100 for seed in range(40)}
    with_secrets = Vault(store).timeline("main")
    with_secrets.save({**tokens, "messages": [TOKEN]})
    line = Vault(store, redact=True).timeline("main")
    line.append({"messages": ["more"], "new": 1})
    found = line.load()
    assert len(found) == 42
    assert found["messages"][1:] == ["more"]
    assert line.load("main:1") == {**tokens, "messages": [TOKEN]}


def test_patterns_of_ones_own_come_on_top_and_a_redaction_stands_alone() -> None:
    text = f"employee 12 has {TOKEN}"
    cases: list[tuple[Any, str]] = [
        ((r"employee \d+",), f"[redacted:custom] has {STANDS}"),
        (Redaction([r"employee \d+"]), f"[redacted:custom] has {TOKEN}"),
    ]
    for redact, expected in cases:
        with hardsave.open("memory://", redact=redact) as vault:
            vault.timeline("main").save(text)
            assert vault.timeline("main").load() == expected


@pytest.mark.parametrize("redact", [None, 1, "x", ["x"], (), ("(",), (7,)])
def test_an_odd_setting_is_misuse_before_anything_is_opened(redact: Any, tmp_path: Path) -> None:
    if redact == ():
        hardsave.open("memory://", redact=redact).close()  # no pattern besides: as True
        return
    with pytest.raises(Misuse):
        hardsave.open(f"sqlite:///{tmp_path}/a.db", redact=redact)
    assert list(tmp_path.iterdir()) == []


def test_a_timeline_whose_name_looks_like_a_secret_can_be_forked_rewound_and_undone() -> None:
    with Vault(MemoryStore(), redact=True) as vault:
        line = vault.timeline(TOKEN)
        line.save(1)
        line.save(2)
        line.rewind("@~1")
        assert line.load() == 1
        line.undo()
        assert line.load() == 2
        assert line.fork("@", name=TOKEN + "x").load() == 2


def test_an_import_of_such_a_timeline_can_be_undone(tmp_path: Path) -> None:
    with hardsave.open("memory://") as vault:
        vault.timeline("key-12345").save({"a": 1})
        vault.export_file(tmp_path / "out.hardsave")
    with hardsave.open("memory://", redact=(r"key-\d+",)) as vault:
        vault.import_file(tmp_path / "out.hardsave")
        vault.undo()
        assert list(vault.timelines()) == []
        vault.redo()
        assert [line.name for line in vault.timelines()] == ["key-12345"]


def test_it_works_for_coroutines() -> None:
    import asyncio

    async def session() -> Any:
        async with aio.open("memory://", redact=True) as vault:
            line = await vault.timeline("main")
            await line.save(TOKEN)
            return await line.load()

    assert asyncio.run(session()) == STANDS
