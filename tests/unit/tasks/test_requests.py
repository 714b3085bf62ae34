"""Acts on tasks that a client asks for twice, because it did not get the answer: done once."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Conflict, Misuse, NotFound, Task, Tasks, Vault, aio
from hardsave.stores import requests

QUESTION = "which colour?"


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store/runs.db"
    with hardsave.open(url) as opened:
        yield opened


@pytest.fixture
def tasks(vault: Vault) -> Tasks:
    return vault.tasks


def asks(tasks: Tasks, question: str = QUESTION) -> None:
    """Task `t` has an attempt that ends with a question."""
    with tasks.attempt("t") as attempt:
        attempt.ask(question)
        attempt.ask("and then?")


Act = Callable[[Tasks, str], Task]


def _ready_to_cancel(tasks: Tasks) -> None:
    tasks.add("t")


def _ready_to_retry(tasks: Tasks) -> None:
    tasks.add("t")
    tasks.cancel("t")


def _ready_to_answer(tasks: Tasks) -> None:
    tasks.add("t")
    asks(tasks)


ACTS: dict[str, tuple[Callable[[Tasks], None], Act]] = {
    "cancelled": (_ready_to_cancel, lambda tasks, key: tasks.cancel("t", key=key)),
    "retried": (_ready_to_retry, lambda tasks, key: tasks.retry("t", key=key)),
    "answered": (_ready_to_answer, lambda tasks, key: tasks.answer("t", ["red"], key=key)),
}


def kinds(tasks: Tasks) -> list[str]:
    return [each.kind for each in tasks.history("t")]


@pytest.mark.parametrize("kind", ACTS)
def test_an_act_with_the_same_key_is_done_once(tasks: Tasks, kind: str) -> None:
    prepare, act = ACTS[kind]
    prepare(tasks)
    first = act(tasks, "request 1")
    assert act(tasks, "request 1") == first
    assert kinds(tasks).count(kind) == 1


def test_a_cancel_that_comes_again_after_a_retry_cancels_nothing(tasks: Tasks) -> None:
    tasks.add("t")
    tasks.cancel("t", key="k")
    tasks.retry("t")
    assert tasks.cancel("t", key="k").state == "pending"
    with tasks.attempt("t"):
        assert tasks.cancel("t", key="k").state == "in_progress"
    assert tasks.get("t").state == "completed"


def test_a_retry_that_comes_again_after_another_failure_retries_nothing(tasks: Tasks) -> None:
    tasks.add("t")
    tasks.cancel("t")
    tasks.retry("t", force=True, key="k")
    with tasks.attempt("t"):
        pass
    assert tasks.retry("t", force=True, key="k").state == "completed"
    assert kinds(tasks).count("retried") == 1


def test_an_answer_that_comes_again_does_not_answer_the_next_question(tasks: Tasks) -> None:
    tasks.add("t")
    asks(tasks)
    tasks.answer("t", "red", key="k")
    asks(tasks)
    assert tasks.answer("t", "red", key="k").question == "and then?"
    assert kinds(tasks).count("answered") == 1


def test_a_key_of_another_request_is_refused(vault: Vault, tasks: Tasks) -> None:
    line = vault.timeline("main")
    for turn in range(2):
        line.save({"turn": turn})
    line.rewind("@~1", key="rewind")
    tasks.add("t")
    tasks.add("other")
    asks(tasks)
    tasks.answer("t", 1, key="answer")
    tasks.cancel("t", key="cancel")
    tasks.retry("t", key="retry")
    calls: list[Callable[[], object]] = [
        lambda: tasks.cancel("other", key="cancel"),
        lambda: tasks.cancel("t", key="retry"),
        lambda: tasks.cancel("t", key="rewind"),
        lambda: tasks.retry("t", key="cancel"),
        lambda: tasks.retry("t", force=True, key="retry"),
        lambda: tasks.retry("t", unknown="skip", key="retry"),
        lambda: tasks.answer("t", True, key="answer"),
        lambda: tasks.answer("t", 1, question=QUESTION, key="answer"),
        lambda: line.rewind("@~1", key="cancel"),
        lambda: vault.undo(key="cancel"),
    ]
    for call in calls:
        with pytest.raises(Conflict, match="this key is that of another request"):
            call()
    with pytest.raises(Conflict, match="request, about task 't'; give each request its own"):
        tasks.cancel("other", key="cancel")
    assert tasks.get("other").state == "pending"


@pytest.mark.parametrize("wrong", ["", 3, "x" * 1001, "\ud800"])
def test_what_is_no_key_is_refused(tasks: Tasks, wrong: Any) -> None:
    tasks.add("t")
    for act in (tasks.cancel, tasks.retry):
        with pytest.raises(Misuse, match="key"):
            act("t", key=wrong)
    with pytest.raises(Misuse, match="key"):
        tasks.answer("t", 1, key=wrong)


def test_a_request_that_was_refused_is_not_remembered(tasks: Tasks) -> None:
    with pytest.raises(NotFound):
        tasks.cancel("t", key="k")
    tasks.add("t")
    with pytest.raises(Conflict, match="cannot be retried"):
        tasks.retry("t", key="k")
    assert tasks.cancel("t", key="k").state == "failed"


def test_a_request_about_a_task_that_is_forgotten_since_finds_nothing(tasks: Tasks) -> None:
    tasks.add("t")
    tasks.cancel("t")
    tasks.retry("t", key="k")
    with tasks.attempt("t"):
        pass
    tasks.forget(keep_completed=0)
    with pytest.raises(NotFound):
        tasks.retry("t", key="k")
    tasks.add("t")
    assert tasks.retry("t", key="k").state == "pending"


def test_users_have_their_own_keys(tmp_path: Path) -> None:
    for user in (None, "ada"):
        with hardsave.open(f"sqlite:///{tmp_path}/runs.db", user=user) as vault:
            vault.tasks.add("t")
            assert vault.tasks.cancel("t", key="k").state == "failed"
            assert kinds(vault.tasks) == ["added", "cancelled"]


def test_another_process_recognises_the_key(tmp_path: Path) -> None:
    for _ in range(2):
        with hardsave.open(f"sqlite:///{tmp_path}/runs.db") as vault:
            vault.tasks.add("t")
            vault.tasks.cancel("t", key="k")
            assert kinds(vault.tasks) == ["added", "cancelled"]


def meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two callers look for a request before either of them makes it."""
    look, both, looked = requests.found, threading.Barrier(2, timeout=60), threading.local()

    def together(*given: Any) -> Any:
        made = look(*given)
        if not hasattr(looked, "once"):
            looked.once = True
            both.wait()
        return made

    monkeypatch.setattr(requests, "found", together)


@pytest.mark.parametrize("kind", ACTS)
def test_of_two_threads_with_the_same_key_one_acts(
    vault: Vault, tasks: Tasks, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, act = ACTS[kind]
    prepare(tasks)
    told: list[Task] = []
    vault.on(f"task_{kind}", told.append)  # type: ignore[arg-type] # one of these
    meet(monkeypatch)
    with ThreadPoolExecutor(2) as threads:
        made = [threads.submit(act, tasks, "k") for _ in range(2)]
        first, second = (each.result() for each in made)
    assert first == second
    assert kinds(tasks).count(kind) == len(told) == 1


def test_a_request_is_no_operation_and_nothing_to_undo(vault: Vault, tasks: Tasks) -> None:
    line = vault.timeline("main")
    for turn in range(3):
        line.save({"turn": turn})
    line.rewind("@~1")
    tasks.add("t")
    tasks.cancel("t", key="k")
    assert [each.kind for each in vault.operations()] == ["rewind"]
    assert line.undo().about["of"] == "rewind"
    assert line.load() == {"turn": 2}
    told = [(each.kind, each.task) for each in vault.tasks.happened()]
    assert told == [("added", "t"), ("cancelled", "t")]
    events = [each.kind for each in vault.follow(0).read()]
    assert events[-4:] == ["task_added", "task_cancelled", "request", "undo"]
    assert vault.store.verify().ok


def test_a_caller_learns_that_a_request_was_made_before(tasks: Tasks) -> None:
    tasks.add("t")
    seen: list[bool] = []
    for _ in range(2):
        repeated: list[bytes] = []
        token = requests.repeats.set(repeated)
        tasks.cancel("t", key="k")
        requests.repeats.reset(token)
        seen.append(bool(repeated))
    assert seen == [False, True]


def test_awaited_acts_with_the_same_key_are_done_once() -> None:
    async def main() -> list[str]:
        async with aio.open("memory://") as vault:
            tasks = vault.tasks
            await tasks.add("t")
            for _ in range(2):
                await tasks.cancel("t", key="cancel")
                await tasks.retry("t", key="retry")
            await asyncio.to_thread(asks, vault._sync.tasks)
            for _ in range(2):
                await tasks.answer("t", "red", question=QUESTION, key="answer")
            return [each.kind for each in await tasks.history("t")]

    found = asyncio.run(main())
    assert [found.count(kind) for kind in ("cancelled", "retried", "answered")] == [1, 1, 1]
