"""Many threads, one round: with a `run` that only notes what it was given."""

import contextlib
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from hardsave.errors import Misuse
from hardsave.stores import group_commit as group_module
from hardsave.stores.group_commit import GroupCommit, Ticket
from tests.unit.stores.background import PATIENCE_SECONDS, start
from tests.unit.stores.processes import eventually
from tests.unit.stores.test_lock import interrupted_after

Tickets = Sequence[Ticket[str, str]]


class Rounds:
    """A `run` that answers each item with itself, in capitals, and can be held up."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.hold: dict[str, threading.Event] = {}
        self.fail: dict[str, BaseException] = {}  # the whole round
        self.refuse: dict[str, Exception] = {}  # the item alone
        self.group: GroupCommit[str, str] = GroupCommit(self.run)

    def run(self, tickets: Tickets) -> None:
        self.seen.append([ticket.item for ticket in tickets])
        for ticket in tickets:
            if held := self.hold.get(ticket.item):
                assert held.wait(PATIENCE_SECONDS)
        for ticket in tickets:
            if error := self.fail.get(ticket.item):
                raise error
        for ticket in tickets:
            if refused := self.refuse.get(ticket.item):
                ticket.error = refused
            else:
                ticket.result = ticket.item.upper()

    def submit(self, item: str) -> Future[str | None]:
        return start(lambda: self.group.submit(item))

    def queue(self, *items: str) -> list[Future[str | None]]:
        """Submit each in a thread of its own, and see them queued up in that order."""
        futures = []
        for item in items:
            before = len(self.group._waiting)
            futures.append(self.submit(item))
            assert eventually(lambda before=before: len(self.group._waiting) > before)  # type: ignore[misc] # bound to the loop
        return futures

    def lead(self, item: str) -> tuple[Future[str | None], Callable[[], None]]:
        """A leader that is at work until it is let go."""
        self.hold[item] = threading.Event()
        before = len(self.seen)
        future = self.submit(item)
        assert eventually(lambda: len(self.seen) > before)
        return future, self.hold[item].set


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


def answer(future: Future[str | None]) -> str | None:
    return future.result(PATIENCE_SECONDS)


def test_a_caller_that_is_alone_runs_alone(rounds: Rounds) -> None:
    assert [rounds.group.submit(item) for item in "abc"] == ["A", "B", "C"]
    assert rounds.seen == [["a"], ["b"], ["c"]]


def test_callers_that_wait_run_in_one_group_in_order(rounds: Rounds) -> None:
    first, let_go = rounds.lead("first")
    others = rounds.queue("a", "b", "c", "d")
    let_go()
    assert [answer(future) for future in (first, *others)] == ["FIRST", "A", "B", "C", "D"]
    assert rounds.seen == [["first"], ["a", "b", "c", "d"]]


def test_an_error_is_raised_to_the_one_it_belongs_to(rounds: Rounds) -> None:
    rounds.refuse["b"] = ValueError("only b")
    first, let_go = rounds.lead("first")
    a, b, c = rounds.queue("a", "b", "c")
    let_go()
    assert [answer(first), answer(a), answer(c)] == ["FIRST", "A", "C"]
    with pytest.raises(ValueError, match="only b"):
        answer(b)


def test_when_a_group_fails_its_leader_is_told_and_the_others_do_not_know(rounds: Rounds) -> None:
    rounds.fail["b"] = OSError("disk")
    first, let_go = rounds.lead("first")
    a, b, c = rounds.queue("a", "b", "c")
    let_go()
    assert answer(first) == "FIRST"
    with pytest.raises(OSError, match="disk"):  # a leads the round
        answer(a)
    assert [answer(b), answer(c)] == [None, None]
    assert rounds.group.submit("next") == "NEXT"


def test_an_interrupted_leader_leaves_no_caller_waiting(rounds: Rounds) -> None:
    rounds.fail["first"] = KeyboardInterrupt()
    first, let_go = rounds.lead("first")
    others = rounds.queue("a", "b")
    let_go()
    with pytest.raises(KeyboardInterrupt):
        answer(first)
    assert [answer(future) for future in others] == ["A", "B"]
    assert rounds.group.submit("next") == "NEXT"


def test_a_waiting_caller_that_is_interrupted_is_not_run(rounds: Rounds) -> None:
    first, let_go = rounds.lead("first")
    (before,) = rounds.queue("before")
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.1):
        rounds.group.submit("impatient")
    (behind,) = rounds.queue("behind")
    let_go()
    assert [answer(first), answer(before), answer(behind)] == ["FIRST", "BEFORE", "BEHIND"]
    assert rounds.seen == [["first"], ["before", "behind"]]


def test_a_caller_that_is_interrupted_in_anothers_group_leaves_when_that_is_over(
    rounds: Rounds,
) -> None:
    """Then it is certain whether it was written."""
    first, let_go = rounds.lead("first")
    rounds.hold["leader"] = threading.Event()
    (leader,) = rounds.queue("leader")
    noticed = threading.Event()

    def interrupt(*_: object) -> None:
        if not noticed.is_set():
            noticed.set()
            threading.Timer(0.1, rounds.hold["leader"].set).start()
            raise KeyboardInterrupt

    def press_in_that_round() -> None:
        assert eventually(lambda: len(rounds.group._waiting) == 2)
        let_go()
        assert eventually(lambda: len(rounds.seen) == 2)
        while not noticed.wait(0.05):  # a thread that is told right before it waits does not notice
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        pressed = start(press_in_that_round)
        with pytest.raises(KeyboardInterrupt):
            rounds.group.submit("impatient")
    finally:
        noticed.set()
        pressed.result(PATIENCE_SECONDS)
        signal.signal(signal.SIGALRM, before)
    assert rounds.seen == [["first"], ["leader", "impatient"]]
    assert rounds.hold["leader"].is_set()
    assert [answer(first), answer(leader)] == ["FIRST", "LEADER"]


def test_a_caller_that_is_interrupted_as_it_is_woken_does_not_wait_to_be_woken_again(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its leader has woken it, and before the leader crosses it out."""
    wait, wake = Ticket.wait, Ticket.wake

    def interrupted(ticket: Ticket[str, str], seconds: float) -> bool:
        is_woken = wait(ticket, seconds)
        if ticket.item == "impatient" and seconds == threading.TIMEOUT_MAX:
            raise KeyboardInterrupt
        return is_woken

    def slowly(ticket: Ticket[str, str]) -> None:
        wake(ticket)
        time.sleep(0.2)

    monkeypatch.setattr(Ticket, "wait", interrupted)
    monkeypatch.setattr(Ticket, "wake", slowly)
    monkeypatch.setattr(group_module, "SETTLE_SECONDS", 100 * PATIENCE_SECONDS)
    first, let_go = rounds.lead("first")
    leader, impatient = rounds.queue("leader", "impatient")
    let_go()
    with pytest.raises(KeyboardInterrupt):
        answer(impatient)
    assert [answer(first), answer(leader)] == ["FIRST", "LEADER"]
    assert rounds.seen == [["first"], ["leader", "impatient"]]


def test_a_caller_interrupted_as_it_gets_the_lead_hands_it_on(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Ticket.wait

    def interrupted(ticket: Ticket[str, str], seconds: float) -> bool:
        is_woken = wait(ticket, seconds)
        if ticket.item == "impatient":
            raise KeyboardInterrupt
        return is_woken

    monkeypatch.setattr(Ticket, "wait", interrupted)
    first, let_go = rounds.lead("first")
    impatient, behind = rounds.queue("impatient", "behind")
    let_go()
    with pytest.raises(KeyboardInterrupt):
        answer(impatient)
    assert [answer(first), answer(behind)] == ["FIRST", "BEHIND"]
    assert rounds.group.submit("next") == "NEXT"
    assert "impatient" not in [item for some in rounds.seen for item in some]


def test_a_leader_waits_a_moment_for_the_callers_of_the_last_group(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_module, "LINGER_SECONDS", PATIENCE_SECONDS)
    first, let_go = rounds.lead("first")
    crowd = rounds.queue("a", "b", "c", "d")
    let_go()
    assert all(answer(future) for future in (first, *crowd))
    again = [rounds.submit(item) for item in "efgh"]
    assert all(answer(future) for future in again)
    assert sorted(rounds.seen[-1]) == ["e", "f", "g", "h"]


def test_a_leader_does_not_wait_for_other_callers_for_long(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, let_go = rounds.lead("first")
    crowd = rounds.queue("a", "b", "c", "d")
    let_go()
    assert all(answer(future) for future in (first, *crowd))
    slept = [0.0]
    clock = SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append)
    monkeypatch.setattr(group_module, "time", clock)
    assert rounds.group.submit("alone") == "ALONE"
    assert 0 < sum(slept) < 0.01


def test_no_wake_up_is_lost() -> None:
    ran: list[int] = []
    rounds = 0
    chance = random.Random(16)

    def run(tickets: Sequence[Ticket[int, int]]) -> None:
        nonlocal rounds
        rounds += 1
        time.sleep(0.0001)  # so that others queue up meanwhile
        if chance.random() < 0.05:
            raise OSError("a failing disk")
        for ticket in tickets:
            if ticket.item % 97 == 0:
                ticket.error = ValueError(str(ticket.item))
            else:
                ran.append(ticket.item)
                ticket.result = ticket.item

    group: GroupCommit[int, int] = GroupCommit(run)
    answers: dict[int, object] = {}

    def work(worker: int) -> None:
        for number in range(worker * 200, worker * 200 + 200):
            try:
                answers[number] = group.submit(number)
            except (OSError, ValueError) as error:
                answers[number] = error

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert not any(thread.is_alive() for thread in threads)
    assert len(answers) == 3_200
    for number, got in answers.items():
        if isinstance(got, ValueError):
            assert str(got) == str(number)
        else:
            assert got in (number, None) or isinstance(got, OSError)
    assert sorted(ran) == sorted(n for n, got in answers.items() if got == n and type(got) is int)
    assert not group._waiting
    assert rounds < 3_000  # many had company


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, TimeoutError])
def test_an_interrupt_at_the_start_of_any_function_leaves_the_group_usable(
    interrupt: type[BaseException],
) -> None:
    """That is where Python calls handlers of signals, and these raise any error: the next
    caller must not wait for ever."""
    outcomes = {call: _after_interrupt_at(call, interrupt) for call in range(1, 12)}
    assert set(outcomes.values()) <= {"fine", "not interrupted"}, outcomes
    assert outcomes[1] == "fine"


def _after_interrupt_at(call: int, interrupt: type[BaseException]) -> str:
    rounds = Rounds()
    outcome = "not interrupted"
    try:
        with interrupted_at_call(call, interrupt):
            rounds.group.submit("interrupted")
    except interrupt:
        outcome = "fine"
    done: list[str | None] = []
    thread = threading.Thread(target=lambda: done.append(rounds.group.submit("next")), daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    return outcome if done == ["NEXT"] else "hangs"


def test_an_interrupt_at_the_start_of_any_function_leaves_no_caller_waiting() -> None:
    """Also not the caller that is to lead next, and is not woken yet."""
    outcomes: list[object] = []
    for call in range(1, 16):
        rounds = Rounds()
        behind: list[Future[str | None]] = []
        run = rounds.group._run

        def queue_another(
            tickets: Tickets,
            rounds: Rounds = rounds,
            behind: list[Future[str | None]] = behind,
            run: Callable[[Tickets], None] = run,
        ) -> None:
            if not behind:
                behind.extend(rounds.queue("behind"))
            run(tickets)

        rounds.group._run = queue_another
        with (
            contextlib.suppress(KeyboardInterrupt),
            interrupted_at_call(call, KeyboardInterrupt),
        ):
            rounds.group.submit("interrupted")
        outcomes += [answer(future) for future in behind]
    assert set(outcomes) == {"BEHIND"}
    assert len(outcomes) > 8


def test_a_submit_inside_of_an_interrupted_submit_is_misuse() -> None:
    """As a signal handler that saves, in the middle of a save."""
    group: GroupCommit[str, str]
    refused: list[Misuse] = []

    def run(tickets: Tickets) -> None:
        with pytest.raises(Misuse, match="in the middle of a save") as caught:
            group.submit("nested")
        refused.append(caught.value)
        for ticket in tickets:
            ticket.result = ticket.item.upper()

    group = GroupCommit(run)
    assert [group.submit("outer"), group.submit("after")] == ["OUTER", "AFTER"]
    assert len(refused) == 2


class Interrupting:
    """The group's mutex. Interrupts a thread that has just taken it, or is about to release it."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._interrupt = interrupt

    def __enter__(self) -> None:
        self._lock.acquire()
        self._interrupt()

    def __exit__(self, *_: object) -> None:
        self._interrupt()
        self._lock.release()


def test_also_while_it_holds_what_others_wait_for(rounds: Rounds) -> None:
    """The caller that leads by then would need the mutex before it could answer."""
    answers: list[object] = []

    def interrupt() -> None:
        try:
            answers.append(rounds.group.submit("nested"))
        except Misuse as error:
            answers.append(type(error))

    group: Any = rounds.group
    group._mutex = Interrupting(interrupt)
    assert rounds.group.submit("outer") == "OUTER"
    assert rounds.seen == [["outer"]]
    assert set(answers) == {Misuse}
    assert len(answers) == 6  # it is taken to queue up, to lead, and to hand over


@contextlib.contextmanager
def interrupted_at_call(call: int, interrupt: type[BaseException]) -> Iterator[None]:
    """A block in which the nth function of the group that is called is interrupted at once."""
    left = call

    def trace(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_filename == group_module.__file__:
            left -= 1
            if left == 0:
                raise interrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
