from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Misuse, NotFound, Unavailable
from hardsave.stores import on_disk, registry
from hardsave.stores.base import Changes
from hardsave.stores.postgres import PostgresStore, collection, schema
from hardsave.stores.postgres.address import address_of
from hardsave.stores.postgres.server_settings import (
    ServerSettings,
    failover,
    faults,
    refusal,
    survives,
)
from hardsave.testing.batches import (
    Line,
    a_parent,
    an_entry,
    an_object,
    but,
    operate,
    refs_of,
)
from hardsave.testing.duties import a_task, add
from hardsave.testing.threads import at_once
from tests.postgres_server import beside, url_of

SOUND = ServerSettings(True, True, "on", "")


# Addresses


def test_a_password_is_shown_nowhere() -> None:
    for url in (
        "postgresql://ada:s3cret@db.example:5432/agents?schema=team",
        "postgresql://ada@db.example/agents?password=s3cret",
        "postgres://ada:s3c%2Fret:s3cret@db.example/agents",
        "postgresql://ada:s3c#ret@db.example/agents",
        "postgresql://ada@db.example/agents?password=s3c+ret",
        "postgresql://db.example/agents?oauth_client_secret=s3cret",
    ):
        address = address_of(url)
        assert url.count("+") == address.conninfo.count("+")
        assert "s3c" in address.conninfo
        for shown in (address.shown, repr(address), registry.shown(url)):
            assert "s3c" not in shown
            assert "db.example" in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a:s3cret@[x/y",
        "postgresql://a:s3cret@h/d?no=1",
        "postgresql://a:s3cret/s3cret@h/d",
        "postgresql://a:12/s3cret@h/d",
        "postgresql://a:s3cret?s3cret@h/d",
        "postgresql://a:s3cret@s3cret@h/d",
    ],
)
def test_a_url_that_cannot_be_read_is_misuse_without_its_password(url: str) -> None:
    with pytest.raises(Misuse) as caught:
        PostgresStore(url)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in registry.shown(url)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["", "A", "a-b", 'a"; DROP', "x" * 64])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(Misuse, match="schema"):
        address_of(f"postgresql://h/d?schema={name}")


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    url = f"postgresql://ada:s3cret@/agents?host={tmp_path}"
    with pytest.raises(Unavailable) as caught:
        hardsave.open(url)
    assert "s3cret" not in str(caught.value)
    assert "ada@" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_store_is_opened_by_its_url(tmp_path: Path) -> None:
    with hardsave.open(url_of(tmp_path)) as vault:
        vault.timeline("main").save({"a": 1})
    with hardsave.open(url_of(tmp_path), read_only=True) as vault:
        head = vault.timeline("main").head
        assert head is not None
        assert head.state == {"a": 1}


def test_reading_only_makes_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        PostgresStore(url_of(tmp_path), read_only=True)
    PostgresStore(url_of(tmp_path)).close()
    store = PostgresStore(url_of(tmp_path), read_only=True)
    with hardsave.deadline(0.2), pytest.raises(Unavailable):
        Line(store).save()
    assert store.local("x") is None
    store.close()


def test_what_only_files_have_is_not_claimed(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    assert not isinstance(store, on_disk.OnDisk)
    assert on_disk.path_of(store) is None
    store.close()
    with pytest.raises(Misuse, match="restore a backup of the server") as caught:
        registry.repair_store("postgresql://ada:s3cret@h/d")
    assert "s3cret" not in str(caught.value)


# What a commit survives


def test_settings_that_lose_commits_are_named() -> None:
    assert faults(SOUND) == []
    assert survives(SOUND) == "power"
    for settings, name in (
        (SOUND._replace(fsync=False), "fsync"),
        (SOUND._replace(full_page_writes=False), "full_page_writes"),
        (SOUND._replace(synchronous_commit="off"), "synchronous_commit"),
    ):
        (fault,) = faults(settings)
        assert name in fault
        assert survives(settings) == "process"
        told = refusal("power", settings)
        assert told is not None
        assert fault in told
        assert refusal("process", settings) is None


def test_a_failover_loses_nothing_only_if_a_commit_waits_for_a_replica() -> None:
    assert "had not reached" in failover(SOUND)
    waiting = SOUND._replace(synchronous_standby_names="*")
    assert failover(waiting).startswith("nothing")
    assert "had not reached" in failover(waiting._replace(synchronous_commit="local"))


def test_a_store_says_what_its_server_keeps(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    assert store.durability() == "power"
    store.close()
    quick = PostgresStore(url_of(tmp_path), durability="process")
    assert quick.durability() == "process"
    quick.close()


# Migrations


def test_many_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    stores = at_once([lambda: PostgresStore(url)] * 5)
    assert len({store.moment().clock for store in stores}) == 1
    for store in stores:
        store.close()


def test_a_store_from_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    PostgresStore(url_of(tmp_path)).close()
    with beside(tmp_path) as another:
        another.execute("UPDATE store SET version = %s", (schema.VERSION + 1,))
    for read_only in (False, True):
        with pytest.raises(Misuse, match="newer Hardsave"):
            PostgresStore(url_of(tmp_path), read_only=read_only)
    with beside(tmp_path) as another:
        found = another.execute("SELECT version FROM store").fetchone()
    assert found == (schema.VERSION + 1,)


def test_a_migration_adds_to_a_store_that_others_have_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = PostgresStore(url_of(tmp_path))
    line = Line(old)
    line.save()
    read = schema._read
    added = b"ALTER TABLE checkpoints ADD COLUMN colour text NOT NULL DEFAULT 'blue'"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("more.sql",)))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setattr(schema, "_read", lambda name: added if name == "more.sql" else read(name))
    new = PostgresStore(url_of(tmp_path))
    line.save()
    assert new.saved(None, 0, 9) == old.saved(None, 0, 9) == line.saved
    for store in (old, new):
        store.close()


def test_a_store_that_was_replaced_is_not_used_by_those_that_have_it_open(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    Line(store, user="ada").save()
    with beside(tmp_path) as another:
        another.execute("UPDATE store SET id = '\\x00'")
        with pytest.raises(Unavailable, match="replaced"):
            store.check_usable()
        another.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    with pytest.raises(Unavailable, match="replaced"):
        store.timeline("ada", "main")
    store.close()


# Texts


def test_a_text_with_nul_is_kept_where_it_may_be_long_and_refused_elsewhere(
    tmp_path: Path,
) -> None:
    store = PostgresStore(url_of(tmp_path))
    line = Line(store)
    saved = line.save(description="a\0b")
    assert store.checkpoint(None, saved.id) == saved
    task = add(store, a_task("t1", text="do\0it", error="it\0broke"))
    assert (task.text, task.error) == ("do\0it", "it\0broke")
    with pytest.raises(Misuse, match="NUL"):
        line.save(status="a\0b")
    store.close()


# Verify and collect


def test_verify_finds_what_does_not_match(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    line = Line(store)
    line.save()
    line.save()
    assert store.verify() == []
    for broken, found in (
        ("UPDATE timelines SET saved = 7", "another count of checkpoints"),
        ("UPDATE timelines SET head = '\\x00'", "has a head"),
        ("UPDATE heads SET number = 1 WHERE number > 1", "above that of the last commit"),
        ("UPDATE heads SET objects = 9 WHERE number > 1", "keeps another count"),
        ("UPDATE packs SET size = size + 1 WHERE id = 1", "not as long as its directory"),
        ("DELETE FROM packs WHERE id = 1", "lies in a pack that does not exist"),
        ("UPDATE objects SET pack = 2 WHERE pack = 1", "not listed by the pack"),
        ("DELETE FROM timelines", "timeline that does not exist"),
    ):
        with beside(tmp_path) as another:
            another.execute("BEGIN")
            kept = {
                table: another.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
                for table in ("timelines", "heads", "packs", "objects")
            }
            another.execute("COMMIT")
            another.execute(broken)
            assert any(found in fault for fault in store.verify()), broken
            for table, rows in kept.items():
                another.execute(f"TRUNCATE {table}")
                for row in rows:
                    places = ", ".join(["%s"] * len(row))
                    another.execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608
    assert store.verify() == []
    store.close()


def test_two_collections_beside_each_other_take_nothing_twice(tmp_path: Path) -> None:
    stores = [PostgresStore(url_of(tmp_path)) for _ in range(2)]
    line = Line(stores[0])
    kept = line.save()
    for at in range(20):
        stray = but(line.next(), move=None, event=an_entry(f"{at}"), objects=an_object(f"{at}"))
        stores[0].commit(stray)
    done = at_once([lambda store=store: store.collect(refs_of, exact=True) for store in stores])  # type: ignore[misc] # bound to the loop
    assert sum(each.objects for each in done) == 20
    assert stores[1].missing(None, [kept.root]) == set()
    assert stores[1].verify() == []
    for store in stores:
        store.close()


def test_what_lies_in_a_second_pack_goes_with_its_first(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    line = Line(store)
    twice = an_object("twice")
    first = line.save_tree(twice)
    kept = an_object("kept")
    line.save_tree({**twice, **kept})
    last = line.save()
    gone = Changes(drop=[first.id])
    store.commit(but(line.next(), move=None, event=an_entry("drop"), objects={}, changes=gone))
    assert last.root in store.read(None, [last.root])
    assert store.collect(refs_of, exact=True).objects == 1
    store.forget()
    assert not store.read(None, [*twice, *kept]).keys() & twice.keys()
    assert store.missing(None, kept) == set()
    assert store.verify() == []
    store.close()


def test_writers_go_on_while_packs_are_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One comes between two packs: what it finds to be there has all that it refers to, and what it
    stores again stays."""
    store, other = (PostgresStore(url_of(tmp_path)) for _ in range(2))
    line, shrink = Line(store), collection.Collector._shrink
    trees = [an_object(f"{at}") | a_parent(f"{at}", *an_object(f"{at}")) for at in range(6)]
    dropped = [line.save_tree(tree) for tree in trees]
    line.save()
    operate(store, "drop", Changes(drop=[each.id for each in dropped]))
    again = Line(other, "again")

    def before(*given: Any) -> int:
        if again.saved or given[-1][0] == 1:
            return shrink(*given)
        raise Between

    monkeypatch.setattr(collection, "_PACKS_AT_ONCE", 1)
    monkeypatch.setattr(collection.Collector, "_shrink", before)
    with pytest.raises(Between):  # as if it were killed
        store.collect(refs_of, exact=True)
    assert other.missing(None, list(trees[-1])) == trees[-1].keys()
    again.save_tree(trees[-1])
    assert store.collect(refs_of, exact=True).freed_bytes > 0
    for each in (store, other):
        each.forget()
        assert each.missing(None, list(trees[-1])) == set()
        assert each.read(None, list(trees[-1])) == trees[-1]
        stored = [hash for part in each.scan(None) for hash in part]
        assert not {hash for tree in trees[:-1] for hash in tree} & {*stored}
        assert len(stored) == len({*stored}), "each lies in one pack"
        assert each.verify() == []
        each.close()


class Between(Exception):
    """The collection ends here."""


def test_a_turn_whose_session_is_gone_is_lost_and_writes_nothing(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    with store.once("clean") as ours:
        assert ours is not None
        with beside(tmp_path) as another:
            another.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        with pytest.raises(Unavailable):
            ours.write(b"by one that has lost it")
    with store.once("clean") as again:
        assert again is not None
        assert again.read() == b""
    store.close()
