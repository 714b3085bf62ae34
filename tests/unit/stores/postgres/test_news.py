import threading
from pathlib import Path

import pytest

import hardsave
from hardsave.stores.postgres import PostgresStore
from hardsave.testing.batches import a_note
from tests.postgres_server import beside, url_of


def test_a_follower_that_looks_once_an_hour_hears_of_a_commit_of_another_process(
    tmp_path: Path,
) -> None:
    with hardsave.open(url_of(tmp_path)) as vault, hardsave.open(url_of(tmp_path)) as other:
        following = vault.follow(poll_seconds=3600)
        told: list[int] = []
        for turn in range(2):
            thread = threading.Thread(target=lambda: told.append(next(following).number))
            thread.start()
            other.timeline("main").save({"turn": turn})
            thread.join(60)
        assert told == [1, 2]


def test_a_follower_ends_with_its_vault_while_it_waits_for_a_hint(tmp_path: Path) -> None:
    vault = hardsave.open(url_of(tmp_path))
    following = vault.follow(poll_seconds=3600)
    told: list[object] = []
    thread = threading.Thread(target=lambda: told.extend(following))
    thread.start()
    vault.close()
    thread.join()
    assert told == []


def test_a_vault_may_be_closed_while_its_first_follower_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(url_of(tmp_path))
    begins, go_on = threading.Event(), threading.Event()
    start = threading.Thread.start

    def slow(thread: threading.Thread) -> None:
        if thread.name == "hardsave-listening":
            begins.set()
            assert go_on.wait(60)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", slow)
    follower = threading.Thread(target=store.listen, args=[threading.Event()])
    follower.start()
    assert begins.wait(60)
    closer = threading.Thread(target=store.close)
    closer.start()
    closer.join(0.1)  # as far as it comes
    go_on.set()
    follower.join()
    closer.join()
    assert not [each for each in threading.enumerate() if each.name == "hardsave-listening"]


def test_many_commits_are_few_hints_and_a_lost_connection_costs_none(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    channel = f"hardsave_{store._id.hex()[:16]}"
    heard = threading.Event()
    store.listen(heard)
    with beside(tmp_path) as another:
        another.execute(f"LISTEN {channel}")
        for at in range(300):
            store.commit(a_note(f"{at}"))
        hints = [each.channel for each in another.notifies(timeout=0.5)]
        assert 0 < len(hints) < 150
        heard.clear()
        another.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        store.commit(a_note("after"))
        assert heard.wait(60)
    store.close()
