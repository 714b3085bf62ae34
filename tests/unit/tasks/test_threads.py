"""Threads that take up calls, and processes that can have no more of them."""

import threading
from collections.abc import Callable

import pytest

import hardsave
from hardsave.errors import Misuse, Unavailable
from hardsave.tasks import threads
from hardsave.tasks.threads import Crew
from tests.unit.tasks.room import Counter, Room

PATIENCE_SECONDS = 60


class Limit:
    """So many threads may still be started, and no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        start = threading.Thread.start

        def limited(thread: threading.Thread) -> None:
            if self.left == 0:
                raise RuntimeError("can't start new thread")
            self.left -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Limit:
    return Limit(monkeypatch)


def test_calls_are_made_at_once_up_to_the_limit_and_then_in_turn() -> None:
    crew, made = Crew(2, "test"), Counter()
    together, go_on = threading.Barrier(3, timeout=PATIENCE_SECONDS), threading.Event()

    def first(name: str) -> Callable[[], str]:
        def call() -> str:
            together.wait()
            assert go_on.wait(PATIENCE_SECONDS)
            return str(made(name))

        return call

    begun = [crew.submit(first("a")), crew.submit(first("b")), crew.submit(lambda: made("c"))]
    together.wait()
    assert made.calls == []
    assert not begun[2].running()
    go_on.set()
    assert [each.result(PATIENCE_SECONDS) for each in begun] == ["a", "b", "c"]
    crew.close().result(PATIENCE_SECONDS)


def test_a_thread_that_is_free_is_used_again_and_an_error_is_its_callers() -> None:
    crew = Crew(16, "test")
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            crew.submit(lambda: 1 // 0).result(PATIENCE_SECONDS)
        while not crew._idle._value:  # until it is back
            pass
    assert crew.submit(threading.current_thread).result(PATIENCE_SECONDS).name == "test-0"
    crew.close().result(PATIENCE_SECONDS)
    with pytest.raises(Misuse):
        crew.submit(list)


def test_what_was_taken_is_made_before_the_threads_end() -> None:
    crew, go_on, made = Crew(1, "test"), threading.Event(), Counter()
    crew.submit(lambda: go_on.wait(PATIENCE_SECONDS))
    crew.submit(lambda: made("waited"))
    is_over = crew.close()
    assert not is_over.done()
    go_on.set()
    is_over.result(PATIENCE_SECONDS)
    assert made.calls == ["waited"]
    Crew(1, "unused").close().result(PATIENCE_SECONDS)


def test_a_call_that_is_refused_is_not_made_later(limit: Limit) -> None:
    crew, made = Crew(4, "test"), Counter()
    with pytest.raises(Unavailable, match="thread 'test-0' cannot be started: can't start new"):
        crew.submit(lambda: made("refused"))
    limit.left = 1
    crew.submit(lambda: made("first")).result(PATIENCE_SECONDS)
    crew.submit(lambda: made("second")).result(PATIENCE_SECONDS)  # by the one that there is
    crew.close().result(PATIENCE_SECONDS)
    assert made.calls == ["first", "second"]


def test_without_a_thread_no_lease_is_taken(limit: Limit) -> None:
    room = Room()
    room.tasks.add("t")
    for take in (lambda: room.tasks.claim("t"), room.tasks.runner("s").__enter__):
        with pytest.raises(Unavailable, match="'hardsave-heartbeat' cannot be started"):
            take()
        assert room.store.owners(None) == []
    assert room.tasks.get("t").state == "pending"
    limit.left = 1
    room.tasks.claim("t").complete()


def test_a_heartbeat_ends_if_its_lease_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    room.tasks.add("t")
    begun: list[threading.Thread] = []

    def noted(thread: threading.Thread) -> None:
        begun.append(thread)
        threading.Thread.start(thread)

    def broken(*args: object, **options: object) -> bool:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(threads, "start", noted)
    monkeypatch.setattr(room.store, "hold", broken)
    with pytest.raises(Unavailable, match="the disk is full"):
        room.tasks.claim("t")
    begun[0].join(PATIENCE_SECONDS)
    assert not begun[0].is_alive()


def test_a_runner_that_can_have_only_some_of_its_threads_leaves_nothing_claimed(
    limit: Limit,
) -> None:
    room = Room()
    for number in range(3):
        room.tasks.add(f"t{number}")
    limit.left = 2  # the heartbeat, and one worker
    ran = Counter()

    def handler(attempt: hardsave.Attempt) -> None:
        ran(attempt.id)

    with room.tasks.runner("s") as runner:
        with pytest.raises(Unavailable, match="'hardsave-task-1' cannot be started"):
            runner.run(handler, concurrency=2)
        assert room.tasks.stats().in_progress == 0
    assert room.store.owners(None) == []
    assert room.tasks.stats().completed == len(ran.calls)
