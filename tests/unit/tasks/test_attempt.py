"""Attempts and their steps."""

import functools
import linecache
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, LeaseLost, Misuse, StepsChanged, StepUnknown, Unstorable
from hardsave.stores.sqlite import SqliteStore
from hardsave.tasks import attempt as attempt_module
from hardsave.tasks import claiming, context, current
from hardsave.tasks import step_calls as calls
from hardsave.tasks.attempt import Attempt
from hardsave.tasks.lease import Lease
from hardsave.tasks.step_calls import Paused
from hardsave.tasks.task import Progress
from tests.unit.tasks.room import AT_ONCE, Counter, Room
from tests.unit.tracing import at_line

AT_WORK = tuple(each.__file__ for each in (attempt_module, calls, claiming, current, context))


class Crash(BaseException):
    """The process dies here: nothing is written any more."""


@pytest.fixture(params=["memory", "sqlite"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Room:
    if request.param == "memory":
        return Room()
    return Room(SqliteStore(tmp_path / "store.db", durability="process", backup=False))


def crashed(room: Room, id: str, body: Any, **how: Any) -> None:
    """Run `body(attempt)` in a process that dies in the middle: its lease is gone."""
    dying = hardsave.Vault(room.store, clock=room.clock).tasks
    attempt = dying.claim(id, **how)
    with pytest.raises(Crash):
        body(attempt)
    dying.close()  # the lease goes, the task is still in progress
    with room.tasks.runner("next") as runner:
        assert [task.id for task in runner.report.interrupted] == [id]


def crash(*args: Any) -> None:
    raise Crash


# Steps


def test_a_step_is_called_once_and_returned_ever_after(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def body(attempt: hardsave.Attempt, end: Any) -> list[Any]:
        found = [attempt.step("one", effects, {"a": 1}), attempt.step("two", effects, (1, 2))]
        end()
        return found

    crashed(room, "t1", lambda attempt: body(attempt, crash))
    with room.tasks.attempt("t1") as attempt:
        assert attempt.number == 2
        assert body(attempt, lambda: None) == [{"a": 1}, (1, 2)]
    assert effects.calls == [{"a": 1}, (1, 2)]


def test_work_goes_on_after_the_last_step(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def body(attempt: hardsave.Attempt, until: int) -> None:
        for number in range(1, 8):
            if number == until:
                crash()
            attempt.step("step", effects, number)
            attempt.progress(number, 7)

    crashed(room, "t1", lambda attempt: body(attempt, 5))
    assert room.tasks.get("t1").progress == Progress(4, 7)
    with room.tasks.attempt("t1") as attempt:
        assert attempt.task.progress == Progress(4, 7)
        body(attempt, 99)
    assert effects.calls == [1, 2, 3, 4, 5, 6, 7]
    assert room.tasks.get("t1").progress == Progress(7, 7)


def test_what_comes_back_is_the_same_the_first_time(room: Room) -> None:
    """A class that nobody registered comes back as its fields: from the beginning."""

    @dataclass
    class Plan:
        goal: str

    room.tasks.add("t1")
    found: list[Any] = []
    for _ in range(2):
        attempt = room.tasks.claim("t1", retry=AT_ONCE)
        found.append(attempt.step("plan", lambda: Plan("ship")))
        attempt.fail("again")
    assert found == [{"goal": "ship"}] * 2


def test_a_failed_step_is_run_again_by_the_next_attempt(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def fails(number: int) -> None:
        effects(number)
        raise OSError("away")

    for number in (1, 2):
        with (
            pytest.raises(OSError, match="away"),
            room.tasks.attempt("t1", retry=AT_ONCE) as attempt,
        ):
            attempt.step("call", lambda number=number: fails(number))
    assert effects.calls == [1, 2]


def test_a_step_may_have_tries_of_its_own(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def flaky() -> str:
        effects(1)
        if len(effects.calls) < 3:
            raise OSError("away")
        return "there"

    with room.tasks.attempt("t1") as attempt:
        quick = hardsave.Retry(attempts=3, first_seconds=0)
        assert attempt.step("call", flaky, retry=quick) == "there"
        effects.calls.clear()
        twice = hardsave.Retry(attempts=2, first_seconds=0)
        with pytest.raises(OSError, match="away"):
            attempt.step("again", flaky, retry=twice)
    assert len(effects.calls) == 2


def test_steps_lie_inside_each_other(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def outer(attempt: hardsave.Attempt, end: Any) -> str:
        attempt.step("inner", effects, "first")
        end()
        attempt.step("inner", effects, "second")
        return "outer"

    crashed(room, "t1", lambda attempt: attempt.step("outer", lambda: outer(attempt, crash)))
    with room.tasks.attempt("t1") as attempt:
        assert attempt.step("outer", lambda: outer(attempt, lambda: None)) == "outer"
        assert attempt.step("inner", effects, "top") == "top"
    assert effects.calls == ["first", "second", "top"]
    steps = [entry.step for entry in room.store.journal(None, "t1", 1)]
    assert steps == ["outer#1/inner#1", "outer#1/inner#2", "outer#1", "inner#1"]


def test_a_step_that_is_tried_again_counts_its_inner_steps_anew(room: Room) -> None:
    effects = Counter()
    tries = Counter()
    room.tasks.add("t1")

    def outer(attempt: hardsave.Attempt) -> None:
        attempt.step("inner", effects, "x")
        if len(tries.calls) < 2:
            tries(1)
            raise OSError("away")

    with room.tasks.attempt("t1") as attempt:
        quick = hardsave.Retry(attempts=3, first_seconds=0)
        attempt.step("outer", lambda: outer(attempt), retry=quick)
    assert effects.calls == ["x"]


def test_steps_at_once_need_keys_and_may_come_in_any_order(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def body(attempt: hardsave.Attempt, names: str, end: Any) -> None:
        threads = [
            threading.Thread(target=attempt.step, args=("get", effects, name), kwargs={"key": name})
            for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end()

    crashed(room, "t1", lambda attempt: body(attempt, "abc", crash))
    with room.tasks.attempt("t1") as attempt:
        body(attempt, "dcba", lambda: None)
    assert sorted(effects.calls) == ["a", "b", "c", "d"]


def test_two_steps_of_one_name_at_once_are_refused(room: Room) -> None:
    room.tasks.add("t1")
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        inside.set()
        go_on.wait(60)

    with room.tasks.attempt("t1") as attempt:
        thread = threading.Thread(target=attempt.step, args=("get", slow))
        thread.start()
        assert inside.wait(60)
        with pytest.raises(Misuse, match="give each a key="):
            attempt.step("get", slow)
        go_on.set()
        thread.join()


def test_a_changed_order_of_steps_is_noticed_before_anything_runs(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")

    def old(attempt: hardsave.Attempt) -> None:
        attempt.step("read", effects, "read")
        attempt.step("write", effects, "write")
        crash()

    crashed(room, "t1", old)
    attempt = room.tasks.claim("t1")
    attempt.step("read", effects, "read")
    with pytest.raises(StepsChanged, match=r"'check#1' is asked for where 'write#1'") as found:
        attempt.step("check", effects, "check")
    attempt.fail(found.value)
    assert effects.calls == ["read", "write"]
    assert room.tasks.get("t1").state == "failed"  # trying again would change nothing


def test_other_arguments_are_noticed(room: Room) -> None:
    room.tasks.add("t1")
    effects = Counter()

    def old(attempt: hardsave.Attempt) -> None:
        attempt.step("pay", effects, 10)
        crash()

    crashed(room, "t1", old)
    with pytest.raises(StepsChanged, match="other arguments"), room.tasks.attempt("t1") as attempt:
        attempt.step("pay", effects, 20)
    assert effects.calls == [10]


def test_a_task_fails_by_another_that_it_began_and_lost(room: Room) -> None:
    """Else it would be under way for as long as this process lives."""
    for name in ("outer", "inner"):
        room.tasks.add(name, max_attempts=1)
    lost = pytest.raises(LeaseLost, match="'inner'")
    with lost, room.tasks.attempt("outer"), room.tasks.attempt("inner") as inner:
        room.tasks.cancel("inner")
        inner.step("work", lambda: 1)
    assert [room.tasks.get(name).state for name in ("outer", "inner")] == ["failed", "failed"]


def test_a_result_that_cannot_be_stored_is_named(room: Room) -> None:
    room.tasks.add("t1")
    named = pytest.raises(Unstorable, match=r"result of call#1\.client")
    with named, room.tasks.attempt("t1") as attempt:
        attempt.step("call", lambda: {"client": object()})
    task = room.tasks.get("t1")
    assert task.state == "failed"
    assert task.error is not None
    assert "result of call#1.client" in task.error


def test_a_coroutine_is_not_a_step_here(room: Room) -> None:
    async def later() -> int:
        return 1

    room.tasks.add("t1")
    with pytest.raises(Misuse, match=r"hardsave\.aio"), room.tasks.attempt("t1") as attempt:
        attempt.step("later", later)  # type: ignore[unused-coroutine] # that is the point


# What is unknown


def begun(room: Room, effects: Counter, policy: Any) -> None:
    """A step whose function was called, and whose end was not recorded."""
    room.tasks.add("t1")

    def pay() -> None:
        effects("paid")
        crash()

    crashed(room, "t1", lambda attempt: attempt.step("pay", pay, unknown=policy))


def test_an_unknown_step_is_called_again_under_retry(room: Room) -> None:
    effects = Counter()
    begun(room, effects, "retry")
    with room.tasks.attempt("t1") as attempt:
        assert attempt.step("pay", lambda: effects("paid")) == "paid"
    assert effects.calls == ["paid", "paid"]


def test_an_unknown_step_is_passed_over_under_skip(room: Room) -> None:
    effects = Counter()
    begun(room, effects, "skip")
    with room.tasks.attempt("t1") as attempt:
        assert attempt.step("pay", lambda: effects("paid"), unknown="skip") is None
    assert effects.calls == ["paid"]
    assert room.store.journal(None, "t1", 1)[-1].kind == "step_skipped"


def test_an_unknown_step_fails_the_task_under_fail(room: Room) -> None:
    effects = Counter()
    begun(room, effects, "fail")
    room.run(lambda attempt: attempt.step("pay", lambda: effects("paid"), unknown="fail"))
    task = room.tasks.get("t1")
    assert (task.state, task.attempts) == ("failed", 2)
    assert task.error is not None
    assert task.error.startswith("StepUnknown: step 'pay#1'")
    assert effects.calls == ["paid"]
    with pytest.raises(StepUnknown), room.tasks.attempt("t1", force=True) as attempt:
        attempt.step("pay", lambda: effects("paid"), unknown="fail")


def test_a_policy_for_all_steps_of_an_attempt_holds_where_a_step_names_none(room: Room) -> None:
    effects = Counter()
    begun(room, effects, "fail")
    with pytest.raises(StepUnknown), room.tasks.attempt("t1", unknown="fail") as attempt:
        attempt.step("pay", lambda: effects("paid"))
    assert effects.calls == ["paid"]


@pytest.mark.parametrize(("settled", "calls"), [("retry", 2), ("skip", 1)])
def test_a_person_settles_what_is_unknown(room: Room, settled: Any, calls: int) -> None:
    effects = Counter()
    begun(room, effects, "fail")
    room.run(lambda attempt: attempt.step("pay", lambda: effects("paid"), unknown="fail"))
    room.tasks.retry("t1", unknown=settled)
    room.run(lambda attempt: attempt.step("pay", lambda: effects("paid"), unknown="fail"))
    assert room.tasks.get("t1").state == "completed"
    assert len(effects.calls) == calls


@pytest.mark.parametrize(
    ("answer", "calls", "state"),
    [("retry", 2, "completed"), ("skip", 1, "completed"), ("fail", 1, "failed")],
)
def test_an_unknown_step_waits_for_a_person_under_ask(
    room: Room, answer: str, calls: int, state: str
) -> None:
    effects = Counter()
    begun(room, effects, "ask")

    def handler(attempt: hardsave.Attempt) -> None:
        attempt.step("pay", lambda: effects("paid"), unknown="ask")

    room.run(handler)
    task = room.tasks.get("t1")
    assert (task.state, task.attempts) == ("pending", 1)
    assert task.question is not None
    assert "'pay#1'" in task.question
    with pytest.raises(Misuse, match="'retry', 'skip' or 'fail'"):
        room.tasks.answer("t1", "perhaps")
    room.tasks.answer("t1", answer)
    room.run(handler)
    assert room.tasks.get("t1").state == state
    assert len(effects.calls) == calls


def test_one_commit_a_step_under_retry_and_two_otherwise(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        attempt.step("one", lambda: 1)
        assert len(room.store.journal(None, "t1", 1)) == 1
        attempt.step("two", lambda: 1, unknown="fail")
        assert len(room.store.journal(None, "t1", 1)) == 3


def test_ctrl_c_inside_a_step_leaves_it_unknown_and_hands_the_task_back(room: Room) -> None:
    room.tasks.add("t1")

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), room.tasks.attempt("t1") as attempt:
        attempt.step("pay", interrupted, unknown="fail")
    task = room.tasks.get("t1")
    assert (task.state, task.attempts) == ("pending", 0)
    with pytest.raises(StepUnknown), room.tasks.attempt("t1") as attempt:
        attempt.step("pay", lambda: None, unknown="fail")


def test_ctrl_c_anywhere_in_an_attempt_leaves_nothing_behind_it(room: Room) -> None:
    """Neither a task that nobody works on, nor a thread whose saves are taken for an attempt's."""
    line = room.vault.timeline("main")
    struck: list[str] = []

    def strike() -> None:
        traced = sys._getframe(2)
        struck.append(linecache.getline(traced.f_code.co_filename, traced.f_lineno).strip())
        # Of these lines Python interrupts none: the second kind is traced as a mutex is given back.
        if not struck[-1].startswith(("try:", "with ")):
            raise KeyboardInterrupt

    for number in range(1, 1_000):
        id = f"t{number}"
        room.tasks.add(id)
        try:
            with at_line(number, strike, AT_WORK), room.tasks.attempt(id) as attempt:
                attempt.step("one", lambda: 1)
        except KeyboardInterrupt:
            pass
        if not struck:
            break
        struck.clear()
        assert line.save({"number": number}).task is None
        task = room.tasks.get(id)
        assert task.state in ("pending", "completed"), number
        if task.state == "pending":
            with room.tasks.attempt(id) as attempt:
                attempt.step("one", lambda: 1)
    assert 50 < number < 999


@pytest.mark.parametrize("door", ["__enter__", "__exit__"])
def test_ctrl_c_at_the_door_of_a_block_leaves_nothing_behind_it(
    room: Room, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """Python interrupts a function before its first line, too, where it can catch nothing yet."""
    through = getattr(Attempt, door)
    struck: list[Attempt] = []

    def interrupted(attempt: Attempt, *args: Any) -> Any:
        if not struck:
            struck.append(attempt)
            raise KeyboardInterrupt
        return through(attempt, *args)

    monkeypatch.setattr(Attempt, door, interrupted)
    room.tasks.add("t1")
    with pytest.raises(KeyboardInterrupt), room.tasks.attempt("t1"):
        pass
    assert room.tasks.get("t1").state == "pending"
    assert room.vault.timeline("main").save({}).task is None


# Questions


def test_a_question_waits_for_its_answer_and_costs_no_attempt(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1", max_attempts=1)

    def handler(attempt: hardsave.Attempt) -> Any:
        attempt.step("before", effects, "before")
        answer = attempt.ask("Deploy?")
        return attempt.step("after", effects, answer)

    room.run(handler)
    assert room.tasks.get("t1").question == "Deploy?"
    room.clock.jump(86_400 * 30)
    room.run(handler)  # nothing is due
    assert effects.calls == ["before"]
    room.tasks.answer("t1", {"go": True})
    room.run(handler)
    task = room.tasks.get("t1")
    assert (task.state, task.result, task.attempts) == ("completed", {"go": True}, 1)
    assert effects.calls == ["before", {"go": True}]


def test_a_question_inside_a_step_does_not_make_that_step_unknown(room: Room) -> None:
    room.tasks.add("t1")

    def handler(attempt: hardsave.Attempt) -> Any:
        return attempt.step("outer", lambda: attempt.ask("Sure?"), unknown="fail")

    room.run(handler)
    room.tasks.answer("t1", "yes")
    room.run(handler)
    assert room.tasks.get("t1").result == "yes"


def test_a_body_that_catches_exceptions_does_not_catch_a_pause(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        try:
            attempt.ask("Sure?")
        except Exception:  # noqa: BLE001 # what careless handlers do
            pytest.fail("a pause is no exception")
    assert not issubclass(Paused, Exception)
    assert room.tasks.get("t1").question == "Sure?"


def test_what_nobody_asked_cannot_be_answered(room: Room) -> None:
    room.tasks.add("t1")
    with pytest.raises(Conflict, match="has not asked anything"):
        room.tasks.answer("t1", 1)


# Who may write


def test_of_two_attempts_at_one_task_the_second_is_refused(room: Room) -> None:
    room.tasks.add("t1")
    says = rf"process {os.getpid()} \(session 'attempts'\) is at work on it"
    with room.tasks.attempt("t1"), pytest.raises(Conflict, match=says):
        room.tasks.claim("t1")


def test_a_completed_task_is_not_begun_again_unless_forced(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")
    for force in (False, True):
        with room.tasks.attempt("t1", force=force) as attempt:
            attempt.step("effect", effects, attempt.task.generation)
        with pytest.raises(Conflict, match="is completed and cannot be claimed"):
            room.tasks.claim("t1")
    assert effects.calls == [1, 2]


def test_nothing_is_written_after_the_end(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        attempt.complete("early")
    assert room.tasks.get("t1").result == "early"
    for late in (
        lambda: attempt.step("late", lambda: 1),
        lambda: attempt.progress(1, 2),
        lambda: attempt.complete("again"),
        lambda: attempt.fail("late"),
    ):
        with pytest.raises((Misuse, Conflict)):
            late()
    assert room.kinds("t1") == ["added", "claimed", "completed"]


def test_an_attempt_that_was_taken_over_cannot_write(room: Room) -> None:
    effects = Counter()
    room.tasks.add("t1")
    old = room.tasks.claim("t1")
    old.step("one", effects, 1)
    room.tasks.close()  # its lease is gone, as after a stop that was too long
    with room.tasks.runner("new") as runner:
        assert len(runner.report.interrupted) == 1
        with room.tasks.attempt("t1") as new:
            for late in (
                lambda: old.step("two", effects, 2),
                lambda: old.progress(1, 2),
                old.complete,
                lambda: old.fail("x"),
                old.hand_back,
            ):
                with pytest.raises(LeaseLost):
                    late()
            new.step("one", effects, 1)
            new.step("two", effects, "new")
    assert effects.calls == [1, 2, "new"]  # its body runs on, but nothing of it is recorded
    assert room.tasks.get("t1").state == "completed"


def test_a_process_that_wakes_after_its_lease_calls_nothing_that_others_may_have_called(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeat has not come to it yet, and `retry` records no start that could be refused."""
    effects = Counter()
    room.tasks.add("t1")
    attempt = room.tasks.claim("t1")
    monkeypatch.setattr(Lease, "is_overdue", lambda lease: True)
    attempt.step("one", effects, 1)  # nobody has taken it
    room.tasks.cancel("t1")
    with pytest.raises(LeaseLost):
        attempt.step("two", effects, 2)
    assert attempt.is_lost
    assert effects.calls == [1]


def test_progress_that_says_nothing_new_writes_nothing(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        for _ in range(3):
            attempt.progress(1, 2)
        wrong: list[Any] = [(-1, 2), (3, 2), (1, -1), (0.5, 1), (float("nan"),), (1, 2**63)]
        for given in wrong:
            with pytest.raises(Misuse):
                attempt.progress(*given)
    assert room.kinds("t1").count("progressed") == 1


def test_questions_with_a_key_may_come_in_another_order_the_next_time(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        attempt.ask("first?", key="a")
    room.tasks.answer("t1", "one")
    with room.tasks.attempt("t1") as attempt:
        assert attempt.ask("first?", key="a") == "one"
        attempt.ask("second?", key="b")
    room.tasks.answer("t1", "two")
    with room.tasks.attempt("t1") as attempt:
        assert attempt.ask("second?", key="b") == "two"
        assert attempt.ask("first?", key="a") == "one"
    assert room.tasks.get("t1").state == "completed"


def test_a_question_inside_a_step_that_others_overlap_binds_nobody_to_an_order(room: Room) -> None:
    room.tasks.add("t1")
    effects = Counter()

    def beside(attempt: hardsave.Attempt) -> None:
        thread = threading.Thread(target=attempt.step, args=("beside", effects, 1))
        thread.start()
        thread.join()

    def outer(attempt: hardsave.Attempt, *, starts: bool) -> Any:
        if starts:
            beside(attempt)
        return attempt.ask("may I?")

    with room.tasks.attempt("t1") as attempt:
        attempt.step("outer", lambda: outer(attempt, starts=True), unknown="fail")
    room.tasks.answer("t1", "yes")
    with room.tasks.attempt("t1") as attempt:
        beside(attempt)  # this time it is first
        found = attempt.step("outer", lambda: outer(attempt, starts=False), unknown="fail")
    assert (found, effects.calls) == ("yes", [1])


# What a task appends


def test_what_is_appended_under_an_id_of_the_task_is_there_once(room: Room) -> None:
    """However often its process dies before the end is recorded."""

    def say(attempt: Attempt, *, dies: bool = False) -> None:
        for text in ("hello", "bye"):
            room.vault.timeline("chat").append({"messages": [text]}, id=attempt.once(text))
        if dies:
            raise Crash

    room.tasks.add("t")
    for _ in range(2):
        crashed(room, "t", lambda attempt: say(attempt, dies=True))
    with room.tasks.claim("t") as attempt:
        say(attempt)
    chat = room.vault.timeline("chat")
    assert chat.load() == {"messages": ["hello", "bye"]}
    room.tasks.retry("t", force=True)
    with room.tasks.claim("t") as attempt:  # from the beginning, on purpose
        say(attempt)
    assert chat.load() == {"messages": ["hello", "bye", "hello", "bye"]}


def test_ids_of_a_task_are_its_own(room: Room) -> None:
    for name in ("t", "u"):
        room.tasks.add(name)
    with room.tasks.claim("t") as one, room.tasks.claim("u") as other:
        assert len({one.once("a"), one.once("b"), other.once("a"), other.once("b")}) == 4
        assert one.once("a") == one.once("a")
        with pytest.raises(Misuse):
            one.once("")


ODD_OPTIONS = [{"key": 1}, {"key": ""}, {"retry": 1}, {"retry": 0}, {"unknown": "?"}]


@pytest.mark.parametrize("odd", ODD_OPTIONS)
def test_an_option_of_a_step_that_was_perhaps_meant_for_its_function_is_refused(
    room: Room, odd: dict[str, Any]
) -> None:
    room.tasks.add("t")
    with room.tasks.claim("t") as attempt:
        with pytest.raises(Misuse, match=r"the step's own: .* functools\.partial"):
            attempt.step("act", dict, **odd)
        assert attempt.step("act", functools.partial(dict, **odd)) == odd


def test_a_step_takes_keywords(room: Room) -> None:
    room.tasks.add("t")
    with room.tasks.claim("t") as attempt:
        assert attempt.step("parse", int, "ff", base=16) == 255
        assert attempt.step("name", dict, name="n", fn="f") == {"name": "n", "fn": "f"}
