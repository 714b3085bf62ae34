import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, DeadlineExceeded, Misuse, Unavailable
from hardsave.objects.records import Note
from hardsave.stores.base import Batch, Query
from hardsave.stores.ledger import TaskMove, Work
from hardsave.stores.postgres import PostgresStore
from hardsave.stores.postgres import store as store_module
from hardsave.testing.batches import Line, a_note, an_entry, an_object, but, some_objects
from hardsave.testing.duties import a_task, add
from hardsave.testing.threads import at_once
from tests.postgres_server import beside, url_of
from tests.unit.stores.background import PATIENCE_SECONDS, start
from tests.unit.stores.postgres.proxy import Proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy, tmp_path: Path) -> Iterator[PostgresStore]:
    store = PostgresStore(url_of(tmp_path, host=proxy.host))
    store.check_usable()  # the pool has its connection
    store._news.tell = lambda: None  # type: ignore[method-assign] # on a connection of its own
    yield store
    store.close()


def test_a_commit_is_one_round_trip(proxy: Proxy, store: PostgresStore) -> None:
    line = Line(store)
    before: dict[bytes, bytes] = {}
    for at in range(8):  # more often than the driver would wait to prepare a statement
        batch = line.next(objects=some_objects(f"turn {at}", 5))
        with proxy.counting(1):
            line.commit(but(batch, requires=list(before)))
        before = dict(batch.objects)


def test_a_commit_reads_no_more_of_a_store_that_was_empty_when_it_was_opened(
    tmp_path: Path,
) -> None:
    turns = 200
    with hardsave.open(url_of(tmp_path)) as vault:
        line = vault.timeline("main")
        for at in range(turns):
            line.append({"messages": [{"role": "user", "content": f"turn {at}"}]})
    with beside(tmp_path) as another:
        looked, read = 0, 0
        end = time.monotonic() + PATIENCE_SECONDS
        while looked < turns:  # a connection that was closed has told what it counted
            assert time.monotonic() < end
            ((looked, read),) = another.execute(
                "SELECT sum(idx_scan) FILTER (WHERE indexrelname = 'log_by_id')::int, "
                "sum(idx_tup_read) FILTER (WHERE relname IN ('checkpoints', 'objects'))::int "
                "FROM pg_stat_user_indexes WHERE schemaname = current_schema()"
            )
            another.execute("SELECT pg_stat_clear_snapshot()")
    assert read < 10 * turns


def test_a_refused_commit_and_a_repeated_one_are_one_round_trip(
    proxy: Proxy, store: PostgresStore
) -> None:
    line = Line(store)
    batch = line.next()
    line.commit(batch)
    with proxy.counting(1), pytest.raises(Conflict):
        store.commit(Line(store, writer="late").next())
    with proxy.counting(1):
        assert store.commit(batch) == 1


def test_a_commit_within_a_deadline_is_one_round_trip(proxy: Proxy, store: PostgresStore) -> None:
    line = Line(store)
    with hardsave.deadline(20), proxy.counting(1):
        line.save()


def test_what_locks_a_row_is_sent_with_its_end_within_a_deadline_too(
    proxy: Proxy, store: PostgresStore
) -> None:
    """A client that was stopped in between would keep it locked until it is woken."""
    id = Line(store).save().id
    writes: dict[bytes, Callable[[], object]] = {
        b"commit_1": Line(store, "other").save,
        b"put_1": lambda: store.put(None, some_objects("ahead", 3), pin=b"pin", seconds=9),
        b"put_notes_1": lambda: store.put_notes(None, id, [Note("key", b"data")]),
    }
    for name, write in writes.items():
        with hardsave.deadline(20):
            write()
        assert name in proxy.last_request
        assert proxy.last_request.endswith(b"S\0\0\0\4"), "Sync"


def test_a_conversation_of_1000_messages_is_loaded_in_six_round_trips(
    proxy: Proxy, tmp_path: Path
) -> None:
    """Two look at the timeline, one at the checkpoint, three go back through its packs."""
    said = [{"role": "user", "content": f"{at:04}" * 256} for at in range(1_000)]
    with hardsave.open(url_of(tmp_path), durability="process") as vault:
        line = vault.timeline("main")
        for at in range(0, 1_000, 2):
            line.append({"messages": said[at : at + 2]})
    with hardsave.open(url_of(tmp_path, host=proxy.host)) as vault:
        line = vault.timeline("main")
        assert line.head is not None, "the pool has its connection"
        with proxy.counting(6):
            assert line.load() == {"messages": said}


def test_threads_of_one_user_share_a_transaction(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the user's row is locked all but the first of them queue up, and go together."""
    store.commit(a_note("first"))
    groups: list[int] = []
    committed = store_module._committed

    def counted(connection: Any, tickets: Any) -> Any:
        groups.append(len(tickets))
        return committed(connection, tickets)

    monkeypatch.setattr(store_module, "_committed", counted)
    with beside(tmp_path) as another, another.transaction():
        another.execute("SELECT 1 FROM heads FOR UPDATE")
        threads = [
            threading.Thread(target=store.commit, args=(a_note(f"note {at}"),)) for at in range(16)
        ]
        for thread in threads:
            thread.start()
        group = next(each for each in store._groups if each._leader is not None)
        while len(group._waiting) < 15:
            pass
    for thread in threads:
        thread.join()
    assert groups == [1, 15]
    entries = store.log(None, 0, 99)
    assert [entry.number for entry in entries] == list(range(1, 18))
    with beside(tmp_path) as another:
        rows = another.execute("SELECT DISTINCT xmin::text FROM log").fetchall()
    assert len(rows) == 3, "of the first, of the leader alone, of the group"


def test_a_batch_that_cannot_be_written_spoils_no_other_of_its_group(store: PostgresStore) -> None:
    """The same task twice in one batch is found by an index, and ends the transaction."""
    twice = Work(moves=(TaskMove(None, a_task("twice")), TaskMove(None, a_task("twice"))))
    wrong = [Batch(None, an_entry(f"wrong {at}"), work=twice) for at in range(4)]
    right = [a_note(f"right {at}") for at in range(8)]

    def attempt(batch: Batch) -> int | Conflict:
        try:
            return store.commit(batch)
        except Conflict as error:
            return error

    answers = at_once([lambda batch=batch: attempt(batch) for batch in wrong + right])  # type: ignore[misc] # bound to the loop
    assert [type(answer) for answer in answers] == [Conflict] * 4 + [int] * 8
    assert store.task(None, "twice") is None
    assert [entry.number for entry in store.log(None, 0, 99)] == list(range(1, 9))


# Replies and requests that are lost


@pytest.mark.parametrize("loses", ["reply", "request"])
def test_a_commit_is_made_once_if_a_message_is_lost(
    loses: str, proxy: Proxy, store: PostgresStore
) -> None:
    line = Line(store)
    for _ in range(10):
        proxy.loses = loses
        line.save()
    assert proxy.lost == 10
    rows = store.checkpoints(None, Query("main", 99))
    assert [row.seq for row in rows] == list(range(10, 0, -1))
    assert [row.number for row in rows] == list(range(10, 0, -1)), "no number was given twice"
    assert store.verify() == []


@pytest.mark.parametrize("loses", ["reply", "request"])
def test_everything_else_is_repeated_if_a_message_is_lost(
    loses: str, proxy: Proxy, store: PostgresStore
) -> None:
    record = Line(store).save()
    task = add(store, a_task("t1"))
    ahead = an_object("ahead")
    for call in (
        lambda: store.put(None, ahead, pin=b"pin", seconds=60),
        lambda: store.unpin(None, b"pin"),
        store.moment,
        lambda: store.stats(None),
        lambda: store.task(None, task.name),
        lambda: store.read(None, list(ahead)),
        store.check_usable,
    ):
        proxy.loses = loses
        call()
        assert proxy.loses == "", "a message was lost"
    assert store.checkpoint(None, record.id) == record
    assert store.stats(None).objects == 2


def act(vault: hardsave.Vault) -> list[Any]:
    """Something of everything, and what has come of it."""
    line = vault.timeline("main")
    for turn in range(3):
        line.append({"said": [f"turn {turn}"]})
    vault.put_notes(line.get("@"), {"seen": True})
    line.fork(":1", name="other").save({"said": ["otherwise"]})
    line.rewind(":2", what="state")
    vault.undo()
    vault.tasks.add("work", "do it")
    with vault.tasks.attempt("work") as attempt:
        attempt.step("first", lambda: 1)
        line.append({"said": ["at work"]})
    vault.tasks.close()
    return [
        [(each.name, len(each), each.load()) for each in vault.timelines()],
        [each.kind for each in vault.tasks.history("work")],
        [each.kind for each in vault.operations()],
        [each.checkpoint is not None for each in vault.follow(0).read()],
    ]


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("loses", ["reply", "request"])
def test_whichever_message_is_lost_all_is_done_once(
    loses: str, every: int, proxy: Proxy, tmp_path: Path
) -> None:
    with hardsave.open(url_of(tmp_path)) as vault:
        expected = act(vault)
    at, lost = 0, 1
    while lost:
        with hardsave.open(url_of(tmp_path, host=proxy.host), user=f"u{at}") as vault:
            vault._context.store._news.tell = lambda: None  # type: ignore[attr-defined] # of its own
            proxy.loses, proxy.spares, before = loses, at, proxy.lost
            assert act(vault) == expected, f"{loses} {at} was lost"
            lost = proxy.lost - before
            proxy.loses = ""
        at += every
    assert at > 30
    with hardsave.open(url_of(tmp_path)) as vault:
        assert vault.store.verify().ok


def test_connections_that_the_server_has_ended_are_no_error(
    store: PostgresStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line = Line(store)
    lines = [Line(store, f"line {at}") for at in range(6)]
    at_once([lambda line=line: line.save() for line in lines])  # type: ignore[misc] # bound to the loop
    for _ in range(3):
        with beside(tmp_path) as another:
            ended = another.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            ).fetchone()
        assert ended is not None
        assert ended[0] > 0
        line.save()
        assert store.count(None, "main") == line.saved[-1].seq
    assert caplog.records == [], "nor a warning, which a program would print"


def test_a_server_that_is_gone_is_unavailable(proxy: Proxy, store: PostgresStore) -> None:
    Line(store).save()
    proxy.__exit__(None, None, None)
    with hardsave.deadline(0.5), pytest.raises(Unavailable):
        store.latest_number(None)
    store.close()
    with pytest.raises(Misuse, match="closed"):
        store.latest_number(None)


# Deadlines


def test_a_commit_that_waits_for_another_process_ends_with_its_deadline(
    store: PostgresStore, tmp_path: Path
) -> None:
    line = Line(store)
    line.save()
    with beside(tmp_path) as another, another.transaction():
        another.execute("SELECT 1 FROM heads FOR UPDATE")
        with hardsave.deadline(0.3), pytest.raises(Unavailable):
            store.commit(line.next())
    line.save()
    assert store.count(None, "main") == 2


def test_a_save_that_waits_for_another_caller_ends_with_its_own_deadline(
    store: PostgresStore, tmp_path: Path
) -> None:
    store.commit(a_note("first"))
    group = store._groups[hash(None) % len(store._groups)]
    with beside(tmp_path) as another, another.transaction():
        another.execute("SELECT 1 FROM heads FOR UPDATE")
        patient = start(lambda: store.commit(a_note("patient")))
        while group._leader is None:
            pass
        with hardsave.deadline(0.3), pytest.raises(DeadlineExceeded):
            store.commit(a_note("hurried"))
    assert patient.result(PATIENCE_SECONDS) == 2
    assert store.latest_number(None) == 2


def test_the_deadline_of_one_caller_ends_the_save_of_no_other_in_its_group(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(a_note("first"))
    go_on, committed = threading.Event(), store_module._committed
    at = hash(None) % len(store._groups)
    group = store._groups[at]
    other = next(f"u{n}" for n in range(99) if hash(f"u{n}") % len(store._groups) == at)

    def held_up(connection: Any, tickets: Any) -> Any:
        if tickets[0].item.batch.user == other:
            assert go_on.wait(PATIENCE_SECONDS)
        return committed(connection, tickets)

    def hurried() -> int:
        with hardsave.deadline(2):
            return store.commit(a_note("hurried"))

    monkeypatch.setattr(store_module, "_committed", held_up)
    calls = [start(lambda: store.commit(a_note("other", other)))]
    with beside(tmp_path) as another, another.transaction():
        another.execute('SELECT 1 FROM heads WHERE "user" = 0 FOR UPDATE')
        for call in (hurried, lambda: store.commit(a_note("patient"))):
            before = len(group._waiting)
            while group._leader is None:
                pass
            calls.append(start(call))
            while len(group._waiting) == before:
                pass
        go_on.set()
        with pytest.raises(DeadlineExceeded):  # it leads both
            calls[1].result(PATIENCE_SECONDS)
    assert calls[2].result(PATIENCE_SECONDS) == 2


# Reads ahead


def test_a_long_conversation_is_read_in_few_round_trips(proxy: Proxy, tmp_path: Path) -> None:
    url = url_of(tmp_path, host=proxy.host)
    messages = [{"role": "user", "content": f"message {at} " * 20} for at in range(300)]
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        for at in range(0, 301, 5):
            line.save({"messages": messages[:at]})
    with hardsave.open(url) as vault:
        before = proxy.round_trips
        found = vault.timeline("main").head
        assert found is not None
        assert found.state == {"messages": messages}
        assert proxy.round_trips - before <= 8


def test_a_server_that_never_answers_is_waited_for_no_longer_than_the_deadline(
    proxy: Proxy, store: PostgresStore
) -> None:
    line = Line(store)
    line.save()
    proxy.is_silent = True
    with hardsave.deadline(0.2), pytest.raises(Unavailable):
        line.save()
    proxy.is_silent = False
    store.commit(a_note("goes through again"))
    assert store.saved(None, 0, 9) == line.saved
    assert len(store.log(None, 0, 9)) == 1
