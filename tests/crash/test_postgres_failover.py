"""A replica takes over: what is lost is known, and followers are told, so they miss nothing."""

import threading
from collections.abc import Iterator

import pytest

import hardsave
from hardsave import Vault
from hardsave.errors import HardsaveError, LeaseLost, Misuse
from hardsave.logs import log
from hardsave.stores.postgres import PostgresStore
from tests.own_postgres import OwnServer, own_folder, url_of

RECEIVED = """
    SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver)
"""


@pytest.fixture
def servers() -> Iterator[tuple[OwnServer, OwnServer]]:
    with own_folder() as folder:
        primary = OwnServer(folder, "one").create()
        replica = primary.replicate("two")
        yield primary, replica
        for server in (primary, replica):
            server.remove()


def save(vault: Vault, timeline: str, count: int) -> list[str]:
    line = vault.timeline(timeline)
    return [line.save({"turn": turn}).id for turn in range(count)]


def catch_up(primary: OwnServer, replica: OwnServer) -> None:
    at = primary.ask("SELECT pg_current_wal_lsn()::text")
    while not replica.ask(RECEIVED, at):
        threading.Event().wait(0.02)


def wait_for(saved: list[str], count: int) -> None:
    while len(saved) < count:
        threading.Event().wait(0.01)


def test_a_follower_is_told_that_numbers_were_given_again(
    servers: tuple[OwnServer, OwnServer],
) -> None:
    primary, replica = servers
    with hardsave.open(url_of(*servers)) as vault, hardsave.open(url_of(*servers)) as other:
        following = other.follow(0)
        late = other.follow(0)
        kept = save(vault, "kept", 10)
        catch_up(primary, replica)
        replica.stop("fast")
        lost = save(vault, "lost", 5)
        told = [event.checkpoint.id for event in following.read() if event.checkpoint]
        assert told == kept + lost
        assert [event.number for event in late.read()][-1] == 15
        primary.stop()
        replica.start()
        replica.promote()
        assert vault.timeline("kept").head.id == kept[-1]  # type: ignore[union-attr]
        fresh = save(vault, "fresh", 3)
        assert [(each.kind, each.number) for each in following.read()] == [("reload", 13)]
        fresh += save(vault, "fresh2", 9)
        told = [event.checkpoint.id for event in following.read() if event.checkpoint]
        assert told == fresh[3:]
        # Overtaken before the next look: the number alone would tell nothing.
        assert [(each.kind, each.number) for each in late.read()] == [("reload", 22)]
        assert late.read() == []
        again = [event.checkpoint.id for event in other.follow(0).read() if event.checkpoint]
        assert again == kept + fresh
        assert len(lost) == 5
        assert vault.store.verify().ok


def test_a_claim_that_a_replica_has_lost_makes_no_second_writer(
    servers: tuple[OwnServer, OwnServer],
) -> None:
    """The lease of its worker was replicated, and the claim was not."""
    primary, replica = servers
    with hardsave.open(url_of(*servers)) as one, hardsave.open(url_of(*servers)) as two:
        with one.tasks.attempt(one.tasks.add("before").id):
            one.tasks.add("work")
        catch_up(primary, replica)
        replica.stop("fast")
        block = one.tasks.attempt("work")
        attempt = block.__enter__()
        primary.stop()
        replica.start()
        replica.promote()
        other = two.tasks.claim("work")
        assert len(two._context.store.owners(None)) == 2
        with pytest.raises(LeaseLost):
            one.timeline("main").save({"by": "one"})
        with pytest.raises(LeaseLost):
            attempt.complete("by one")
        other.complete("by two")
        with pytest.raises(LeaseLost):
            block.__exit__(None, None, None)
        assert two.tasks.get("work").result == "by two"
        assert two.timeline("main").head is None


@pytest.mark.torture
@pytest.mark.parametrize("is_synchronous", [True, False])
def test_a_failover_under_load_loses_what_the_store_said_it_may(
    servers: tuple[OwnServer, OwnServer], is_synchronous: bool
) -> None:
    primary, replica = servers
    if is_synchronous:
        with primary.connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        while primary.ask("SHOW synchronous_standby_names") != "*":
            pass
    store = PostgresStore(url_of(*servers))
    assert store.failover().startswith("nothing") == is_synchronous
    store.close()
    saved: list[str] = []
    is_over = threading.Event()

    def work(name: str) -> None:
        with hardsave.open(url_of(primary)) as vault:
            line = vault.timeline(name)
            while not is_over.is_set():
                try:
                    with hardsave.deadline(2):
                        saved.append(line.save({"turn": len(saved)}).id)
                except HardsaveError:
                    return

    threads = [threading.Thread(target=work, args=(f"line {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    wait_for(saved, 150)
    if not is_synchronous:
        replica.stop("fast")
    wait_for(saved, 300)
    primary.stop()
    if not is_synchronous:
        replica.start()
    replica.promote()
    is_over.set()
    for thread in threads:
        thread.join()
    with hardsave.open(url_of(replica)) as vault:
        there = {event.checkpoint.id for event in _all(vault) if event.checkpoint}
        lost = [id for id in saved if id not in there]
        log(__name__).warning("%d of %d acknowledged lost", len(lost), len(saved))
        assert bool(lost) != is_synchronous
        assert vault.store.verify().ok


def _all(vault: Vault) -> list[hardsave.Event]:  # type: ignore[type-arg]
    following, found = vault.follow(0), []
    while events := following.read():
        found += events
    return found


def test_a_server_that_would_lose_what_it_acknowledged_is_refused() -> None:
    with own_folder() as folder:
        server = OwnServer(folder, "quick", fsync="off").create()
        with pytest.raises(Misuse, match="fsync is off"):
            hardsave.open(url_of(server))
        with hardsave.open(url_of(server), durability="process") as vault:
            save(vault, "main", 1)
        with hardsave.open(url_of(server), read_only=True) as vault:
            assert len(vault.timeline("main").checkpoints()) == 1
        server.remove()
