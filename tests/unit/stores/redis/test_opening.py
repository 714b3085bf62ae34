"""What a store on Redis asks its server when it is opened, and what it says of it."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Misuse, NotFound, Unavailable
from hardsave.stores import on_disk, registry
from hardsave.stores.claims import NotClaimed
from hardsave.stores.redis import RedisStore
from hardsave.stores.redis.address import address_of
from hardsave.stores.redis.server import command
from hardsave.stores.redis.server_settings import ServerSettings, faults, survives
from hardsave.testing.batches import Line, a_note, refs_of, trace
from tests.redis_server import Valkey, beside, prefix_of, url_of

SOUND = ServerSettings("yes", "always", "no", "noeviction")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Valkey]:
    """A server with the settings of a fresh installation: snapshots now and then, no file."""
    with Valkey(tmp_path / "own", appendonly="no", appendfsync="everysec") as server:
        yield server


# Addresses


def test_a_password_is_shown_nowhere() -> None:
    for url in (
        "redis://ada:s3cret@cache.example:6380/2?prefix=team",
        "rediss://:s3cret@cache.example",
        "redis://cache.example/0?password=s3cret",
        "redis://ada:s3c%2Fret:s3cret@cache.example/0",
    ):
        address = address_of(url)
        assert "s3c" in str(address.client["password"])
        for shown in (address.shown, repr(address), registry.shown(url)):
            assert "s3c" not in shown
            assert "cache.example" in shown


@pytest.mark.parametrize("url", ["redis://a:s3cret@h:port/0", "redis://a:s3cret@[x/0"])
def test_a_url_that_cannot_be_read_is_misuse_without_its_password(url: str) -> None:
    with pytest.raises(Misuse) as caught:
        RedisStore(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "option", ["prefix=", "prefix=a b", "ttl_seconds=0", "ttl_seconds=7d", "durability=none"]
)
def test_an_option_without_a_meaning_is_misuse(option: str) -> None:
    with pytest.raises(Misuse, match=option.partition("=")[0]):
        address_of(f"redis://h/0?{option}")


def test_a_server_that_is_not_there_is_unavailable_without_the_password(tmp_path: Path) -> None:
    with hardsave.deadline(0.2), pytest.raises(Unavailable) as caught:
        hardsave.open(f"redis+socket://:s3cret@{tmp_path}/none?db=0")
    assert "s3cret" not in str(caught.value)


def test_a_wrong_password_is_misuse_without_it(own: Valkey) -> None:
    own.client().config_set("requirepass", "right")
    with pytest.raises(Misuse) as caught:
        RedisStore(f"redis+socket://:s3cret@{own.socket}?db=0")
    assert "s3cret" not in str(caught.value)
    assert "password" in str(caught.value)


# What the server gives


def test_durability_that_survives_a_power_loss_is_refused_by_a_server_without_a_file(
    own: Valkey,
) -> None:
    with pytest.raises(Misuse, match=r"appendonly is no: .* snapshot \(RDB\).*durability=process"):
        hardsave.open(own.url())
    own.client().config_set("appendonly", "yes")
    with pytest.raises(Misuse, match="appendfsync is everysec: a power loss"):
        hardsave.open(own.url())
    own.client().config_set("appendfsync", "always")
    with hardsave.open(own.url()) as vault:
        assert vault.store.durability() == "power"


def test_what_may_be_lost_is_told_to_a_caller_that_accepts_it(
    own: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    own.client().config_set("maxmemory-policy", "allkeys-lru")
    ways: list[Callable[[], hardsave.Vault]] = [
        lambda: hardsave.open(own.url(), durability="process"),
        lambda: hardsave.open(own.url(durability="process")),
    ]
    for opened in ways:
        caplog.clear()
        with caplog.at_level(logging.WARNING), opened() as vault:
            assert vault.store.durability() == "process"
            assert "replication is asynchronous" in vault.store.failover()
        assert "appendonly is no" in caplog.text
        assert "maxmemory-policy is allkeys-lru" in caplog.text


def test_eviction_is_told_by_a_server_that_syncs_each_commit(
    own: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in (("appendonly", "yes"), ("appendfsync", "always")):
        own.client().config_set(name, value)
    own.client().config_set("maxmemory-policy", "volatile-ttl")
    RedisStore(own.url()).close()
    assert "maxmemory-policy is volatile-ttl" in caplog.text
    assert "noeviction" in caplog.text


def test_a_server_that_does_not_tell_is_believed_nothing(own: Valkey) -> None:
    command(own.client(), "ACL SETUSER", "default", "-config")
    with pytest.raises(Misuse, match="appendonly is unknown"):
        RedisStore(own.url())
    store = RedisStore(own.url(), durability="process")
    assert store.durability() == "process"
    store.close()


@pytest.mark.parametrize("field", range(3))
def test_each_setting_that_loses_commits_counts(field: int) -> None:
    values = list(SOUND)
    values[field] = "something else"
    weak = ServerSettings._make(values)
    assert (survives(SOUND), faults(SOUND)) == ("power", [])
    assert survives(weak) == "process"
    assert len(faults(weak)) == 1


# For reading alone, emptied, full


def test_a_store_for_reading_alone_has_to_be_there_and_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        RedisStore(url_of(tmp_path), read_only=True)
    store = RedisStore(url_of(tmp_path))
    Line(store).save()
    reader = RedisStore(url_of(tmp_path), read_only=True)
    assert trace(reader) == trace(store)
    assert reader.local("cache") is None
    for write in (
        lambda: reader.commit(a_note("x")),
        lambda: reader.put(None, {}, pin=b"pin", seconds=1),
        lambda: reader.collect(refs_of),
        lambda: reader.once("turn"),
    ):
        with pytest.raises(Unavailable, match="reading alone"):
            write()
    reader.close()
    store.close()


def test_a_store_that_was_emptied_while_it_was_open_is_not_usable(tmp_path: Path) -> None:
    store = RedisStore(url_of(tmp_path))
    Line(store).save()
    client = beside(tmp_path)
    for key in client.scan_iter(f"{prefix_of(tmp_path)}:*"):
        client.delete(key)
    with pytest.raises(Unavailable, match="emptied"):
        store.check_usable()
    assert trace(store).checkpoints == []
    store.close()


def test_a_server_without_room_refuses_whole_commits(own: Valkey) -> None:
    store = RedisStore(own.url(durability="process"))
    line = Line(store)
    line.save()
    own.client().config_set("maxmemory", 1)
    before = trace(store)
    with pytest.raises(Unavailable, match=r"has no room: .*maxmemory"):
        line.save()
    assert trace(store) == before
    own.client().config_set("maxmemory", 0)
    line.save()
    store.close()


# What is not claimed


def test_what_a_vault_is_asked_for_and_its_store_does_not_claim_is_refused(
    tmp_path: Path,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.txt").write_bytes(b"x" * 1_000)
    url = url_of(tmp_path, max_workspace_bytes="1500")
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        line.save({"n": 1}, workspace=files)
        for ask in (
            lambda: vault.search("n"),
            vault.store.compact,
            vault.store.repair,
        ):
            with pytest.raises(NotClaimed, match=r"not for this store: .*(export|gc)"):
                ask()
        assert vault.store.update_search(seconds=1)
        (files / "b.txt").write_bytes(b"y" * 1_000)
        with pytest.raises(NotClaimed, match=r"2000 bytes .*1500.*max_workspace_bytes"):
            line.save({"n": 2}, workspace=files)
        assert len(line) == 1
        line.save({"n": 2})
    with pytest.raises(Misuse, match="redis-check-aof"):
        hardsave.repair(url)


def test_compacting_is_refused_for_the_store_too(tmp_path: Path) -> None:
    store = RedisStore(url_of(tmp_path))
    with pytest.raises(NotClaimed):
        on_disk.compact(store, refs_of)
    store.close()
