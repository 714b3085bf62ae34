from collections.abc import Callable
from typing import Any

import pytest

from hardsave.errors import Conflict
from hardsave.objects.records import TaskRecord
from hardsave.tasks import states
from hardsave.testing.duties import a_task

NOW = 1_000
ME = b"me"


def in_progress(**about: Any) -> TaskRecord:
    return a_task("t", state="in_progress", epoch=4, attempts=1, owner=ME, **about)


CHANGES: dict[str, Callable[[TaskRecord], TaskRecord]] = {
    "completed": lambda task: states.completed(task, b"\xc0", NOW),
    "failed": lambda task: states.failed(task, "no", NOW, again_at=None),
    "asked": lambda task: states.asked(task, b"q", NOW),
    "handed_back": lambda task: states.handed_back(task, NOW),
    "interrupted": lambda task: states.interrupted(task, NOW),
    "cancelled": lambda task: states.cancelled(task, NOW),
    "rolled_back": lambda task: states.rolled_back(task, NOW),
    "progressed": lambda task: states.progressed(task, 1, 2),
    "claimed": lambda task: states.claimed(task, ME, NOW),
    "forced": lambda task: states.claimed(task, ME, NOW, force=True),
    "retried": lambda task: states.retried(task, extra=True),
    "started over": lambda task: states.retried(task, extra=True, force=True),
    "reinstated": lambda task: states.reinstated(task, states.memo(a_task("t"))),
    "woken": states.woken,
    "answered": lambda task: states.answered(task._replace(question=b"q")),
}


def test_every_move_is_tried() -> None:
    assert CHANGES.keys() == states.MOVES.keys()


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("state", states.STATES)
def test_a_move_works_from_its_states_and_from_no_other(what: str, state: str) -> None:
    task = a_task("t", state=state, attempts=1)
    if state in states.MOVES[what]:
        assert CHANGES[what](task).name == "t"
    else:
        with pytest.raises(Conflict, match=f"is {state} and cannot be {what}"):
            CHANGES[what](task)


@pytest.mark.parametrize(
    "what",
    sorted(CHANGES.keys() - {"progressed"}),
)
def test_whatever_takes_a_task_away_raises_its_epoch(what: str) -> None:
    task = a_task("t", state=states.MOVES[what][0], epoch=4, attempts=1)
    assert CHANGES[what](task).epoch == 5


def test_an_attempt_counts_unless_it_was_handed_back_or_paused() -> None:
    assert states.claimed(a_task("t"), ME, NOW).attempts == 1
    assert states.interrupted(in_progress(), NOW).attempts == 1
    assert states.failed(in_progress(), "no", NOW, again_at=5).attempts == 1
    assert states.handed_back(in_progress(), NOW).attempts == 0
    assert states.asked(in_progress(), b"q", NOW).attempts == 0


def test_what_fails_for_the_last_time_stays_failed() -> None:
    again = states.failed(in_progress(), "no", NOW, again_at=5)
    assert (again.state, again.due, again.error) == ("pending", 5, "no")
    over = states.failed(in_progress(), "no", NOW, again_at=None)
    assert (over.state, over.error, over.ended_at) == ("failed", "no", NOW)


def test_success_clears_the_error_of_an_earlier_attempt() -> None:
    done = states.completed(in_progress(error="before", done=3, total=7), b"\xc0", NOW)
    assert (done.error, done.done, done.total) == (None, 7, 7)


def test_a_task_that_kills_its_process_every_time_ends_as_failed() -> None:
    last = states.interrupted(in_progress()._replace(attempts=3), NOW)
    assert last.state == "failed"
    assert last.error is not None
    assert "3 times" in last.error
    assert states.interrupted(in_progress(), NOW).state == "pending"


def test_progress_is_kept_for_the_next_attempt() -> None:
    task = states.interrupted(in_progress(done=4, total=7), NOW)
    assert (task.done, task.total) == (4, 7)
    assert states.claimed(task, ME, NOW).done == 4


@pytest.mark.parametrize("state", ["completed", "rolled_back"])
def test_what_is_forced_after_its_end_starts_over(state: str) -> None:
    task = a_task("t", state=state, generation=2, attempts=3, result=b"\x01", done=7, total=7)
    again = states.claimed(task, ME, NOW, force=True)
    assert (again.generation, again.attempts, again.result, again.done) == (3, 1, None, 0)


def test_what_is_not_due_says_what_it_waits_for() -> None:
    for about, why in (
        ({"due": NOW + 1}, "its time has not come"),
        ({"due": None, "question": b"q"}, "waits for an answer"),
        ({"due": None, "waits_for": "other"}, "waits for task 'other'"),
    ):
        with pytest.raises(Conflict, match=why):
            states.claimed(a_task("t", **about), ME, NOW)


def test_a_retry_by_hand_gives_one_more_attempt_than_there_were() -> None:
    spent = a_task("t", state="failed", attempts=3, max_attempts=3)
    assert states.retried(spent, extra=True).max_attempts == 4
    assert states.retried(spent, extra=False).max_attempts == 3
    assert states.retried(spent._replace(attempts=1), extra=True).max_attempts == 3


@pytest.mark.parametrize("state", [each for each in states.STATES if each != "in_progress"])
def test_what_was_rolled_back_is_reinstated_as_it_was(state: str) -> None:
    task = a_task("t", state=state, attempts=2, due=None, question=b"q", ended_at=7, result=b"r")
    back = states.reinstated(states.rolled_back(task, NOW), states.memo(task))
    assert back == task._replace(epoch=task.epoch + 2)


def test_an_attempt_that_was_rolled_back_does_not_count() -> None:
    task = in_progress(due=0)
    back = states.reinstated(states.rolled_back(task, NOW), states.memo(task))
    assert (back.state, back.attempts, back.owner, back.due) == ("pending", 0, None, 0)


AGAIN: dict[str, Callable[[TaskRecord], TaskRecord]] = {
    "failed": lambda task: states.failed(task, "no", NOW, again_at=NOW + 1),
    "handed back": lambda task: states.handed_back(task, NOW),
    "interrupted": lambda task: states.interrupted(task, NOW),
    "answered": lambda task: states.answered(states.asked(task, b"q", NOW)),
    "retried": lambda task: states.retried(states.cancelled(task, NOW), extra=True),
    "reinstated": lambda task: states.reinstated(states.rolled_back(task, NOW), states.memo(task)),
}


@pytest.mark.parametrize("what", AGAIN)
def test_what_was_begun_before_its_time_is_not_due_again_before_it(what: str) -> None:
    back = AGAIN[what](in_progress(not_before=NOW + 9, max_attempts=3))
    assert (back.state, back.due) == ("pending", NOW + 9)
    late = AGAIN[what](in_progress(not_before=7, max_attempts=3))
    assert (late.state, late.due) == ("pending", NOW + 1 if what == "failed" else 7)


def test_what_is_begun_by_name_alone_is_not_put_back_to_work_for_others() -> None:
    never = int(states.NEVER.timestamp()) * 1_000_000
    task = a_task("run-1", text="workflow w", state="failed", attempts=1, not_before=never)
    with pytest.raises(Conflict, match=r"'run-1' \(workflow w\) is taken up by no runner"):
        states.retried(task, extra=True)
    assert states.claimed(task, ME, NOW, force=True).state == "in_progress"
