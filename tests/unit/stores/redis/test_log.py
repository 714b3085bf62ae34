"""The log of a user: one script a commit, replies that are lost, rewriting, other histories."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Conflict, Unavailable
from hardsave.objects.records import Note
from hardsave.stores.base import Batch, Changes, Query
from hardsave.stores.redis import RedisStore, changes, replica
from hardsave.stores.redis.server import command
from hardsave.testing.batches import (
    Line,
    a_note,
    a_parent,
    an_entry,
    an_id,
    an_object,
    but,
    operate,
    refs_of,
    some_objects,
    trace,
)
from hardsave.testing.duties import a_task, add, an_owner, move
from tests.proxy import Proxy
from tests.redis_server import Valkey, beside, prefix_of, server, url_of


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    url_of(tmp_path)  # the server is there
    with Proxy(Path(server(), "s")) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy, tmp_path: Path) -> Iterator[RedisStore]:
    store = RedisStore(f"redis+socket://{proxy.host}/s?db=0&prefix={prefix_of(tmp_path)}")
    Line(store, "first").save()
    store.timeline(None, "first")  # the server knows the scripts
    yield store
    store.close()


# Round trips


def test_a_commit_is_one_round_trip(proxy: Proxy, store: RedisStore) -> None:
    line = Line(store)
    before: dict[bytes, bytes] = {}
    for at in range(4):
        batch = line.next(objects=some_objects(f"turn {at}", 5))
        with proxy.counting(1):
            line.commit(but(batch, requires=list(before)))
        before = dict(batch.objects)


def test_a_commit_after_another_processs_is_two_round_trips_and_no_conflict(
    proxy: Proxy, store: RedisStore, tmp_path: Path
) -> None:
    line, other = Line(store), RedisStore(url_of(tmp_path))
    for at in range(3):
        other.commit(a_note(f"beside {at}"))
        batch = line.next()
        with proxy.counting(2):
            line.commit(batch)
    other.close()


def test_a_read_is_one_round_trip(proxy: Proxy, store: RedisStore) -> None:
    with proxy.counting(1):
        store.checkpoints(None, Query("first", 9))


# Replies that are lost


@pytest.mark.parametrize("loses", ["request", "reply"])
def test_a_commit_that_is_lost_on_its_way_is_made_once(
    proxy: Proxy, store: RedisStore, loses: str
) -> None:
    line = Line(store)
    for at in range(5):
        proxy.loses = loses
        line.save()
        assert proxy.lost == at + 1
    rows = store.checkpoints(None, Query("main", 99))
    assert [row.seq for row in rows] == [5, 4, 3, 2, 1]
    assert [row.number for row in rows] == [6, 5, 4, 3, 2]


def test_a_lost_reply_is_recognised_also_if_another_process_wrote_since(
    proxy: Proxy, store: RedisStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store hears nothing of its first attempt, and before its second there is another."""
    other = RedisStore(url_of(tmp_path))
    line, sent = Line(store), store._server.script

    def interrupted(name: str, *words: object) -> object:
        monkeypatch.setattr(store._server, "script", sent)
        sent(name, *words)  # type: ignore[arg-type] # as they came
        other.commit(a_note("between"))
        return sent(name, *words)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(store._server, "script", interrupted)
    line.save()
    assert [row.seq for row in store.checkpoints(None, Query("main", 9))] == [1]
    assert [entry.id for entry in store.log(None, 0, 9)] == [an_id("between")]
    assert trace(store) == trace(other)
    other.close()


def test_a_claim_whose_reply_is_lost_is_made_once(proxy: Proxy, store: RedisStore) -> None:
    task = add(store, a_task("t1"))
    proxy.loses = "reply"
    claimed = move(store, task, "claim", state="in_progress", epoch=1, owner=an_id("w"))
    assert proxy.lost == 1
    assert claimed.epoch == 1
    assert len(store.entries(None, "t1")) == 2


# Rewriting


def test_rows_that_take_the_place_of_the_log_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "REWRITTEN_FROM", 2_000)
    store, follower = RedisStore(url_of(tmp_path)), RedisStore(url_of(tmp_path))
    for user in (None, "ada"):
        _lived(store, user)
    key = store._keys(None)[0]
    assert beside(tmp_path).xlen(key) < 20, "it was rewritten"
    fresh = RedisStore(url_of(tmp_path))
    for user in (None, "ada"):
        seen = _seen(store, user)
        assert _seen(follower, user) == seen
        assert _seen(fresh, user) == seen
    line = Line(fresh)
    line.standing = fresh.timeline(None, "main")
    assert line.save().number == store.latest_number(None)
    for each in (store, follower, fresh):
        each.close()


def test_what_was_dropped_or_replaced_is_in_no_key_after_an_exact_collection(
    tmp_path: Path,
) -> None:
    store = RedisStore(url_of(tmp_path))
    line = Line(store)
    old = line.save(description="a s3cret word")
    line.save()
    operate(store, "purge", Changes(replace=[old._replace(description="[purged]")], purges=True))
    assert _is_in_a_key(tmp_path, b"s3cret")
    store.collect(refs_of, exact=True)
    assert not _is_in_a_key(tmp_path, b"s3cret")
    assert store.last_purge(None) == 3
    fresh = RedisStore(url_of(tmp_path))
    assert trace(fresh) == trace(store)
    fresh.close()
    store.close()


def test_a_log_of_many_pages_is_read_to_its_end(tmp_path: Path) -> None:
    store = RedisStore(url_of(tmp_path))
    with beside(tmp_path).pipeline() as pipeline:
        for at in range(1, 2_101):
            change = changes.written(a_note(f"note {at}"))
            pipeline.xadd(store._keys(None)[0], {"change": change}, id=f"{at}-1")
        pipeline.execute()
    assert store.commit(a_note("last")) == 2_101
    store.close()


def test_a_log_of_a_newer_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisStore(url_of(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(changes, "FORMAT", changes.FORMAT + 1)
        store.commit(a_note("from the future"))
    older = RedisStore(url_of(tmp_path))
    with pytest.raises(Unavailable, match="newer version"):
        older.log(None, 0, 9)
    older.close()
    store.close()


# Collecting


@pytest.mark.parametrize("way", ["save", "put"])
def test_what_is_needed_from_now_on_is_not_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Between the moment it was found to be of no use and that of its removal."""
    store, other = RedisStore(url_of(tmp_path)), RedisStore(url_of(tmp_path))
    stray = an_object("stray")
    store.commit(Batch(None, an_entry("stray"), objects=stray | an_object("of no use")))
    sent = store._server.script

    def late(name: str, keys: Sequence[str], *words: Any) -> Any:
        if name == "sweep" and len(words) > 1:
            monkeypatch.setattr(store._server, "script", sent)
            if way == "save":
                line = Line(other)
                line.commit(but(line.next(objects=a_parent("root", *stray)), requires=list(stray)))
            else:
                other.put(None, stray, pin=b"pin", seconds=60)
        return sent(name, keys, *words)

    monkeypatch.setattr(store._server, "script", late)
    done = store.collect(refs_of)
    assert store.missing(None, stray) == set()
    assert (done.objects, done.left) == ((1, ()) if way == "save" else (0, (None,)))
    other.close()
    store.close()


# Another history


def test_a_process_that_knows_more_than_a_server_that_lost_it_goes_by_the_server(
    tmp_path: Path,
) -> None:
    with Valkey(tmp_path / "own", appendonly="no") as own:
        _goes_by(own)


def _goes_by(own: Valkey) -> None:
    store = RedisStore(own.url(durability="process"))
    line = Line(store)
    line.save()
    command(own.client(), "SAVE")
    for _ in range(3):
        line.save()
    own.kill()
    own.start()
    other = Line(other_store := RedisStore(own.url(durability="process")), writer="other")
    other.standing = other_store.timeline(None, "main")
    for _ in range(3):  # the numbers that were lost are given again
        other.save()
    with pytest.raises(Conflict):
        line.save()
    assert trace(store) == trace(other_store)
    assert [row.id for row in store.checkpoints(None, Query("main", 3))] == [
        record.id for record in reversed(other.saved)
    ]
    other_store.close()
    store.close()


# Expiring


def test_each_save_renews_all_keys_of_its_user_and_of_no_other(tmp_path: Path) -> None:
    store, client = RedisStore(url_of(tmp_path, ttl_seconds="1000")), beside(tmp_path)
    for user in (None, "ada"):
        Line(store, user=user).save()
        store.put(user, {}, pin=b"pin", seconds=60)
    writes: list[Callable[[], object]] = [
        lambda: store.commit(a_note("note")),
        lambda: store.put(None, {}, pin=b"pin", seconds=60),
        lambda: store.hold(None, an_owner("w"), is_new=True),
        lambda: store.put_notes(None, trace(store).checkpoints[0].id, [Note("k", b"v")]),
    ]
    for at, write in enumerate(writes):
        for user in (None, "ada"):
            for key in store._keys(user):
                assert client.expire(key, 500)
        write()
        assert all(client.ttl(key) > 900 for key in store._keys(None)), at
        assert all(client.ttl(key) <= 500 for key in store._keys("ada")), at
    assert client.ttl(f"{prefix_of(tmp_path)}:store") == -1
    store.close()


def test_a_user_expires_as_a_whole_and_may_begin_anew(tmp_path: Path) -> None:
    store, client = RedisStore(url_of(tmp_path, ttl_seconds="1")), beside(tmp_path)
    line = Line(store)
    line.save()
    store.commit(a_note("beside"))
    keys = store._keys(None)
    while client.exists(*keys):
        assert client.exists(*keys[:3]) in (0, 3), "they go together"
        assert list(store.verify()) == []
    assert trace(store) == trace(RedisStore(url_of(tmp_path)))
    assert trace(store).checkpoints == []
    with pytest.raises(Conflict, match="does not exist any more"):
        line.save()
    assert Line(store).save().number == 1
    assert store.collect(refs_of).objects == 0
    store.close()


def test_a_key_that_went_alone_is_found(tmp_path: Path) -> None:
    store = RedisStore(url_of(tmp_path))
    Line(store).save()
    assert store.verify() == []
    beside(tmp_path).delete(store._keys(None)[1])
    assert len(store.verify()) == 1
    store.close()


# One slot a user


def test_what_belongs_together_lies_in_one_slot_of_a_cluster(tmp_path: Path) -> None:
    with Valkey(tmp_path / "own", cluster_enabled="yes") as own:
        _lies_in_slots_of(own)


def _lies_in_slots_of(own: Valkey) -> None:
    command(own.client(), "CLUSTER ADDSLOTSRANGE", 0, 16383)
    while command(own.client(), "CLUSTER INFO").get("cluster_state") != "ok":
        time.sleep(0.02)
    store = RedisStore(own.url())
    for user in (None, "ada"):
        _lived(store, user)
    store.collect(refs_of, exact=True)
    with store.once("turn}{") as turn:
        assert turn is not None
        turn.write(b"note")
    assert store.verify() == []
    store.close()


def _lived(store: RedisStore, user: str | None) -> None:
    """A bit of everything."""
    line = Line(store, user=user)
    for _ in range(12):
        line.save()
    first, second, third = line.saved[:3]
    batch = line.next()
    line.commit(
        batch._replace(labels={first.id: (("colour", "red"),)}, notes={first.id: [Note("b", b"1")]})
    )
    store.put_notes(user, first.id, [Note("a", b"2")])
    line.save_files(b"/w")
    operate(store, "hide", Changes(hide=[second.id], drop=[third.id]), user)
    operate(store, "show", Changes(show=[store.latest_number(user)]), user)
    owner = an_owner("w")
    store.hold(user, owner, is_new=True)
    store.hold(user, owner._replace(until=2_000))
    waiting = a_task("t2", after=("t1",))
    task = add(store, a_task("t1"), user)
    add(store, waiting, user)
    move(store, task, "done", user, state="completed", epoch=1)
    store.commit(line.next()._replace(event=an_entry("end"), move=None))


def _seen(store: RedisStore, user: str | None) -> list[object]:
    ids = [record.id for record in store.saved(user, 0, 99)]
    return [
        *trace(store, user),
        store.labels(user, ids),
        store.notes(user, ids),
        store.owners(user),
        [store.task(user, name) for name in ("t1", "t2")],
        store.happened(user, 0, 99),
        store.due(user, 1, 9),
        [store.tombstone(user, id) for id in map(an_id, map(str, range(3)))],
        store.tombstones(user, "main", None, 9),
        store.latest_number(user),
    ]


def _is_in_a_key(folder: Path, text: bytes) -> bool:
    client = beside(folder)
    keys = client.scan_iter(f"{prefix_of(folder)}:*")
    found = False
    for key in keys:
        kind = client.type(key)
        values: object = (
            client.get(key)
            if kind == b"string"
            else (client.hgetall(key) if kind == b"hash" else client.xrange(key))
        )
        found = found or text in repr(values).encode()
    return found
