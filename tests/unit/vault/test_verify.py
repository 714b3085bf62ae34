"""Reading everything once: nothing wrong with a sound store, and damage is named."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

import hardsave
from hardsave.errors import Corrupt, NotFound
from hardsave.stores import packs as packs_module
from hardsave.stores.registry import open_store
from hardsave.stores.sqlite import SqliteStore, connection
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from hardsave.vault.verify import objects as verify_objects
from hardsave.vault.verify.verify import Verification
from tests.unit.stores import ruins
from tests.unit.stores.processes import eventually
from tests.unit.vault.stage import Watched, messages


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store of some size: two timelines, a fork, merged and single packs."""
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}") as vault:
        line = vault.timeline("main")
        for n in range(80):
            line.append({"messages": messages(2, size=2_000, start=2 * n), "turn": n})
        merge_all(vault)
        fork = line.fork("@~10", name="fork")
        fork.save({"messages": messages(30), "big": "x" * 5_000})
        vault.timeline("other").save({"a": 1})
    Path(f"{path}-backup").unlink()  # from which what is damaged here would be read
    return path


def merge_all(vault: Vault) -> None:
    """Merge and index now, not whenever the thread gets to it."""
    store = vault._context.store
    assert isinstance(store, SqliteStore)
    direct = store._connect()
    while store._merger.merge(direct, 0):
        pass
    direct.close()


@pytest.fixture
def vault(path: Path) -> Iterator[Vault]:
    with hardsave.open(f"sqlite:///{path}") as vault:
        yield vault


def change(path: Path, change: Callable[[apsw.Connection], Any]) -> None:
    """Damage a closed store in a way that its page checksums cannot notice."""
    direct = connection.connect(str(path), "power", create=False)
    direct.pragma("foreign_keys", 0)
    with direct:
        change(direct)
    direct.close()


def faults(path: Path) -> str:
    with hardsave.open(f"sqlite:///{path}") as vault:
        found = vault.store.verify()
        assert found.ok is (not found.faults)
        assert len(set(found.faults)) == len(found.faults)
        return "\n".join(found.faults)


# Sound


def test_nothing_is_wrong_with_a_sound_store(vault: Vault) -> None:
    found = vault.store.verify()
    assert found.ok
    assert found.faults == ()
    assert found.checkpoints == 82
    assert found.objects > 160


def test_nothing_is_wrong_with_an_empty_store() -> None:
    with hardsave.open("memory://") as vault:
        assert vault.store.verify() == Verification(0, 0, ())


def test_one_checkpoint_can_be_checked_alone(vault: Vault) -> None:
    found = vault.store.verify("other:1")
    assert (found.checkpoints, found.objects, found.ok) == (1, 1, True)
    whole = vault.store.verify()
    some = vault.store.verify("main:80")
    assert some.ok
    assert some.checkpoints == 1
    assert 160 < some.objects < whole.objects
    with pytest.raises(NotFound):
        vault.store.verify("main:81")


def test_a_store_that_has_saved_the_same_again_and_again_is_sound(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path / 'again.db'}") as vault:
        line = vault.timeline("main")
        for n in range(100):
            line.save({"on": n % 2 == 0})
        other = vault.timeline("other")
        for n in range(70):
            other.save({"on": n % 2 == 0})
        assert eventually(lambda: vault.store.verify().ok)
        assert vault.store.verify().faults == ()


def test_a_sound_store_is_read_in_the_order_in_which_it_lies_and_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hardsave.open(f"sqlite:///{path}") as vault:
        direct = connection.connect(str(path), "power", create=False)
        packs = direct.execute("SELECT count(*) FROM packs").get
        direct.close()
        unpacked = mock.Mock(wraps=packs_module.unpack)
        monkeypatch.setattr(packs_module, "unpack", unpacked)
        assert vault.store.verify().ok
        assert unpacked.call_count == packs


def test_what_verify_keeps_in_mind_does_not_grow_with_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verify_objects, "WINDOW", 50)
    monkeypatch.setattr(verify_objects, "ASKED_AT_ONCE", 20)
    asked: list[int] = []
    store = Watched()
    with Vault(store) as vault:
        for number in range(3):
            vault.timeline(f"line {number}").save({"messages": messages(600, start=number)})
        missing = store.missing

        def counted(user: str | None, hashes: Any) -> Any:
            asked.append(len(hashes))
            return missing(user, hashes)

        store.missing = counted  # type: ignore[method-assign] # to see how many at once
        found = vault.store.verify()
        assert found.ok
        assert found.objects == len(store.objects)
        assert max(asked) <= 1_000 + 20, "one part of a scan, and what waits before it"


# Damage


@pytest.mark.parametrize("window", [verify_objects.WINDOW, 3])
def test_every_object_that_is_lost_or_changed_is_noticed(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_objects, "WINDOW", window)
    monkeypatch.setattr(verify_objects, "ASKED_AT_ONCE", window)
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        for n in range(12):
            line.append({"messages": messages(2, start=2 * n), "turn": n})
        assert vault.store.verify().ok
        for address, data in list(store.objects.items()):
            del store.objects[address]
            found = vault.store.verify()
            assert any(address.hex() in fault for fault in found.faults)
            store.objects[address] = data[:-1] + bytes([data[-1] ^ 1])
            found = vault.store.verify()
            assert any(address.hex() in fault for fault in found.faults)
            store.objects[address] = data
        assert vault.store.verify().ok


def test_a_damaged_object_that_no_checkpoint_leads_to_is_no_fault() -> None:
    store = Watched()
    with Vault(store) as vault:
        vault.timeline("main").save({"turn": 1})
        store.objects[bytes(20)] = b"stray"
        assert vault.store.verify().faults == ()


def a_root(direct: apsw.Connection, timeline: str, seq: int) -> bytes:
    found = direct.execute(
        "SELECT root FROM checkpoints WHERE seq = ? AND timeline = "
        "(SELECT id FROM timelines WHERE name = ?)",
        (seq, timeline),
    ).get
    assert isinstance(found, bytes)
    return found


def test_an_altered_pack_is_named(path: Path) -> None:
    def alter(direct: apsw.Connection) -> None:
        direct.execute("UPDATE packs SET body = zeroblob(length(body))")

    change(path, alter)
    text = faults(path)
    assert "(main:80)" in text
    assert "(other:1)" in text


def test_a_single_altered_pack_is_named_and_hides_no_other(path: Path) -> None:
    change(
        path,
        lambda direct: direct.execute(
            "UPDATE packs SET body = zeroblob(length(body)) WHERE id = (SELECT max(id) FROM packs)"
        ),
    )
    with hardsave.open(f"sqlite:///{path}") as vault:
        found = vault.store.verify()
        assert len(found.faults) == 1
        assert "(other:1)" in found.faults[0]
        assert found.checkpoints == 82
        assert not vault.store.verify("other:1").ok
        assert vault.store.verify("main:80").ok
        assert vault.timeline("main").load()["turn"] == 79
        with pytest.raises(Corrupt):
            vault.timeline("other").load()


def test_an_object_that_does_not_match_its_hash_is_named(path: Path) -> None:
    from hardsave.stores import packs

    named: list[str] = []

    def swap(direct: apsw.Connection) -> None:
        root = a_root(direct, "other", 1)
        named.append(root.hex())
        rows: list[Any] = direct.execute("SELECT id, directory, body, size FROM packs").fetchall()
        for id, directory, body, size in rows:
            objects = packs.unpack(directory, body, size)
            if root in objects:
                data = bytearray(objects[root])
                data[-1] ^= 1
                objects[root] = bytes(data)
                (made,) = packs.pack(objects.items(), target=None)
                direct.execute("UPDATE packs SET body = ? WHERE id = ?", (made.body, id))

    change(path, swap)
    text = faults(path)
    assert f"object {named[0]} does not match its hash" in text
    assert "(other:1)" in text


def test_a_missing_pack_is_named(path: Path) -> None:
    change(
        path,
        lambda direct: direct.execute("DELETE FROM packs WHERE id = (SELECT max(id) FROM packs)"),
    )
    text = faults(path)
    assert "(other:1)" in text


@pytest.mark.parametrize(
    ("timeline", "seq", "said"),
    [
        ("main", 40, "timeline 'main': numbers 40 to 40 missing"),
        ("main", 1, "timeline 'main': numbers 1 to 1 missing"),
        ("main", 80, "timeline 'main': numbers 80 to 80 missing"),
        ("other", 1, "timeline 'other': its head"),
        ("fork", 1, "timeline 'fork': its head"),
        ("main", 70, "(fork:1): its parent"),
    ],
)
def test_a_missing_checkpoint_is_named(path: Path, timeline: str, seq: int, said: str) -> None:
    change(
        path,
        lambda direct: direct.execute(
            "DELETE FROM checkpoints WHERE seq = ? AND timeline = "
            "(SELECT id FROM timelines WHERE name = ?)",
            (seq, timeline),
        ),
    )
    if (timeline, seq) == ("other", 1):  # the last commit of all: the mark notices first
        with pytest.raises(Corrupt, match="acknowledged"):
            faults(path)
        Path(f"{path}-mark").unlink()
    assert said in faults(path)


@pytest.mark.parametrize("column", ["root", "snapshot"])
def test_an_address_that_is_a_number_is_reported_not_raised(path: Path, column: str) -> None:
    direct = connection.connect(str(path), "power", create=False)
    direct.execute(f"UPDATE checkpoints SET {column} = 5 WHERE seq = 2")  # noqa: S608 # a test
    direct.close()
    with hardsave.open(f"sqlite:///{path}") as vault:
        faults = vault.store.verify().faults
        assert any("main:2): the address of its state" in fault for fault in faults)
        assert not vault.store.verify("main:2").ok
        assert vault.store.verify("main:3").ok
        assert any("main:2) has lost something" in fault for fault in vault.store.repair().faults)


def test_a_missing_timeline_is_noticed(path: Path) -> None:
    """Its checkpoints are still there, and nobody would find them."""
    change(path, lambda direct: direct.execute("DELETE FROM timelines WHERE name = 'main'"))
    assert faults(path) != ""


def test_a_checkpoint_whose_timeline_is_missing_is_not_found(path: Path) -> None:
    with hardsave.open(f"sqlite:///{path}") as vault:
        orphan = vault.timeline("main").get("main:70").id
    change(path, lambda direct: direct.execute("DELETE FROM timelines WHERE name = 'main'"))
    with hardsave.open(f"sqlite:///{path}") as vault, pytest.raises(NotFound):
        vault.timeline("other").get(orphan)


def test_a_missing_index_row_is_named(path: Path) -> None:
    named: list[int] = []

    def drop(direct: apsw.Connection) -> None:
        prefix = direct.execute("SELECT prefix FROM objects ORDER BY pack LIMIT 1").get
        named.append(prefix)
        direct.execute("DELETE FROM objects WHERE prefix = ?", (prefix,))

    change(path, drop)
    text = faults(path)
    wanted = (named[0] << 1).to_bytes(8, "big").hex()[:15]
    assert f"object {wanted}" in text


def test_an_index_row_that_leads_nowhere_is_named(path: Path) -> None:
    change(
        path,
        lambda direct: direct.executemany(
            "INSERT INTO objects (user, prefix, pack) VALUES (0, ?, 1)",
            [(n,) for n in range(2_000)],
        ),
    )
    assert "index" in faults(path)


def test_a_damaged_index_of_sqlites_own_is_noticed(path: Path) -> None:
    def damage(direct: apsw.Connection) -> None:
        direct.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        direct.pragma("writable_schema", 1)
        direct.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, '(user, id)', '(user, seq)') "
            "WHERE name = 'checkpoints_by_id'"
        )

    change(path, damage)
    try:
        text = faults(path)
    except hardsave.HardsaveError as error:
        text = str(error)
    assert text


def test_an_object_missing_in_memory_is_named(line: Timeline) -> None:
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        line.save({"messages": messages(100)})
        victim = next(address for address in store.objects if len(store.objects[address]) > 200)
        del store.objects[victim]
        found = vault.store.verify()
        assert not found.ok
        assert any(victim.hex() in fault for fault in found.faults)
        with pytest.raises(Corrupt):
            line.load()


def test_appending_to_a_damaged_state_ends_with_an_error() -> None:
    """What it grows on cannot be stored again: there is no use in repeating."""
    store = Watched()
    with Vault(store) as vault:
        vault.timeline("main").save({"messages": messages(100)})
        for address, data in list(store.objects.items()):
            if data[0] in (0x13, 0x14):  # leaves and nodes
                del store.objects[address]
        attempts = 0
        commit = store.commit

        def counted(batch: Any) -> int:
            nonlocal attempts
            attempts += 1
            assert attempts < 100, "it goes on for ever"
            return commit(batch)

        store.commit = counted  # type: ignore[method-assign] # to end a loop
        with pytest.raises(hardsave.HardsaveError):
            _append_often(vault)


def _append_often(vault: Vault) -> None:
    for n in range(50):
        vault.timeline("main").append({"messages": messages(1, start=n)})


def test_saving_over_a_damaged_state_stores_it_again() -> None:
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        state = {"messages": messages(100)}
        line.save(state)
        for address in list(store.objects)[::3]:
            del store.objects[address]
        state["messages"] += messages(1, start=100)
        line.save(state)
        assert vault.store.verify("main:2").ok
        assert line.load() == state


# While others are at work


def meanwhile(store: Watched, do: Callable[[], object]) -> None:
    """Let something happen once, between the last page of the walk and what follows it."""
    saved = store.saved

    def then(user: str | None, after: int, limit: int) -> Any:
        rows = saved(user, after, limit)
        if not rows:
            store.saved = saved  # type: ignore[method-assign] # once
            do()
        return rows

    store.saved = then  # type: ignore[method-assign] # to be there between two looks


def test_what_is_saved_while_it_looks_is_not_missing() -> None:
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        line.save({"turn": 1})
        meanwhile(store, lambda: [line.save({"turn": 2}), vault.timeline("new").save({"a": 1})])
        assert vault.store.verify() == Verification(1, 1, ())
        assert vault.store.verify().checkpoints == 3


def test_a_number_that_is_missing_is_named_although_others_save() -> None:
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        lost = [line.save({"turn": turn}) for turn in range(4)][3]
        del store._tenant(None).checkpoints[bytes.fromhex(lost.id.removeprefix("chk_"))]
        meanwhile(store, lambda: line.save({"turn": 5}, expect=hardsave.ANY_HEAD))
        found = " ".join(vault.store.verify().faults)
        assert "numbers 4 to 4 missing" in found


def test_what_is_dropped_while_it_looks_is_not_missing() -> None:
    """Read as a row, and gone with its objects before they are looked at."""
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        line.save({"messages": messages(100), "old": True})
        line.save({"turn": 2})
        read = store.read

        def dropping(user: str | None, hashes: Any) -> Any:
            store.read = read  # type: ignore[method-assign] # once
            vault.retention.apply(vault.retention.plan(hardsave.Policy(max_per_timeline=1)))
            vault.store.gc()
            return read(user, hashes)

        store.read = dropping  # type: ignore[method-assign] # to drop it just then
        found = vault.store.verify()
        assert len(line) == 1
        assert found.ok, found


def test_damage_to_a_page_of_any_table_is_reported_not_raised(path: Path) -> None:
    whole = path.read_bytes()
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT name, pagetype, min(pageno) FROM dbstat GROUP BY name, pagetype"
    pages: list[Any] = reader.execute(sql).fetchall()
    reader.close()
    reported = set()
    for name, kind, page in pages:
        path.write_bytes(whole)
        Path(f"{path}-suspect").unlink(missing_ok=True)  # of the one before
        ruins.flip(path, (page * 4096 - 100) * 8)
        with contextlib.suppress(Corrupt):  # what opening itself has to read
            store = open_store(f"sqlite:///{path}", durability="process")
            with contextlib.closing(store):
                assert store.verify(), (name, kind)
            reported.add((name, kind))
    assert {("packs", "leaf"), ("packs", "overflow"), ("objects", "leaf")} <= reported
