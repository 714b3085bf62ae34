"""`hardsave tasks run`: a server of tasks, ready to start. It runs a command, or a Python function,
for each task that is due, until it is stopped."""

import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.arguments import LEASE, PROGRAM
from hardsave.cli.command import command
from hardsave.cli.errors import Exit
from hardsave.cli.hints import quoted
from hardsave.cli.render.output import stdout_is_stderr
from hardsave.cli.session import Session
from hardsave.cli.task_status import Status, telling
from hardsave.defaults import GRACE_SECONDS, RETRY_FIRST_SECONDS, RETRY_MAX_SECONDS
from hardsave.errors import HardsaveError, Misuse
from hardsave.logs import log
from hardsave.tuples import NamedTuple
from hardsave.vault import json_data

if TYPE_CHECKING:
    from hardsave import Attempt, RecoveryReport, Runner, Task, Vault

PLACES = ("{id}", "{text}")
_LOOK_SECONDS = 0.05
_MORE_SECONDS = 5.0  # than a command has to end, for its attempt to be handed back after that
_LOOKED_AT = 1_000  # tasks that may wait for an answer
_SECONDS = click.FloatRange(0)


@command(
    "run",
    examples="""
        hardsave tasks run -- ./agent.sh {text}
        hardsave tasks run --handler server.py:handle --concurrency 4
        hardsave tasks run --until-idle --log status.log -- sh -c 'agent "$HARDSAVE_TASK_TEXT"'
    """,
)
@click.argument("program", nargs=-1, type=PROGRAM)
@click.option(
    "--handler", metavar="FILE.py:NAME", help="A Python function, called with each attempt."
)
@click.option("--session", "name", default="tasks", show_default=True, help="What it is called.")
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True)
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do.")
@click.option(
    "--retry-seconds",
    type=_SECONDS,
    default=RETRY_FIRST_SECONDS,
    show_default=True,
    help="Before the second attempt; each further wait is twice as long.",
)
@click.option(
    "--retry-max-seconds",
    type=_SECONDS,
    default=RETRY_MAX_SECONDS,
    show_default=True,
    help="No wait is longer.",
)
@click.option(
    "--grace-seconds",
    type=_SECONDS,
    default=GRACE_SECONDS,
    show_default=True,
    help="What runs when it is stopped has so long to end.",
)
@click.option(
    "--log", "status_log", metavar="FILE", help="Append what begins, ends and is recovered."
)
@LEASE
@click.option("--take-over", is_flag=True, help="Take sessions on other machines for dead.")
def run(session: Session, program: tuple[str, ...], handler: str | None, **given: Any) -> Exit:
    """Run a command, or a function, for each task that is due.

    A command finds the task in HARDSAVE_TASK, HARDSAVE_TASK_TEXT and HARDSAVE_TASK_ATTEMPT; the
    arguments {id} and {text} stand for the first two. No shell reads them unless you name one.
    Exit code 0 completes the task, any other fails it, and it is tried again as often as it may be.

    Ctrl-C and SIGTERM stop the server: commands are ended, their tasks are handed back, and
    those attempts do not count. After a kill or a crash, the next start says what was interrupted
    and goes on. Several servers can share a store: each task runs once.
    """
    terms = _Terms(**given)
    work = _work(program, handler, terms.grace_seconds)
    session.may_create_store = True
    with stdout_is_stderr():  # commands and handlers may print
        done = _serve(session, work, terms)
    session.out.result(done.as_data, done.lines)
    return done.exit


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """How the tasks are to be run, as it was typed."""

    name: str
    concurrency: int
    until_idle: bool
    retry_seconds: float
    retry_max_seconds: float
    grace_seconds: float
    status_log: str | None
    lease_seconds: float
    take_over: bool


# What is done for a task


class _Work(NamedTuple):
    """What is called with each attempt, and how that is stopped."""

    handle: "Callable[[Attempt], Any]"
    stop: Callable[[], None] = lambda: None  # a function cannot be ended: it is handed back
    more_seconds: float = 0.0  # that a stop takes beyond the time of grace


class _Commands:
    """Runs a command for each attempt."""

    def __init__(self, program: Sequence[str], grace_seconds: float) -> None:
        self._program = program
        self._grace_seconds = grace_seconds
        self._is_stopped = threading.Event()

    def stop(self) -> None:
        """End all that run; their attempts are handed back."""
        self._is_stopped.set()

    def handle(self, attempt: "Attempt") -> Any:
        from hardsave.cli.child_process import run_unless  # with subprocess

        code = run_unless(
            filled_in(self._program, attempt.task),
            _variables(attempt),
            attempt.child_lock(),
            is_over=lambda: self._is_stopped.is_set() or attempt.is_lost,
            grace_seconds=self._grace_seconds,
        )
        if code:
            attempt.fail(f"{self._program[0]} ended with exit code {code}")
        elif code is None and not attempt.is_lost:
            attempt.hand_back()
        return {"exit": code}


def _work(program: Sequence[str], handler: str | None, grace_seconds: float) -> _Work:
    if bool(program) == (handler is not None):
        raise Misuse("give a command behind --, or --handler FILE.py:NAME: one of the two")
    if handler is not None:
        from hardsave.cli.agent_loader import load_handler

        return _Work(load_handler(handler))
    from hardsave.cli.child_process import check

    check(program[0])
    check_places(program)
    commands = _Commands(program, grace_seconds)
    return _Work(commands.handle, commands.stop, _MORE_SECONDS)


def check_places(program: Sequence[str]) -> None:
    """`{text}` is an argument of its own, or none at all: inside of another one, a shell could take
    the words of a task for a command."""
    for argument in program:
        for place in PLACES:
            if place in argument and place != argument:
                name = "HARDSAVE_TASK" if place == "{id}" else "HARDSAVE_TASK_TEXT"
                raise Misuse(
                    f"{place} is an argument of its own, not a part of {argument!r}; "
                    f'in a shell, write "${name}" instead'
                )


def filled_in(program: Sequence[str], task: "Task") -> list[str]:
    """The command for one task."""
    stands_for = dict(zip(PLACES, (task.id, task.text), strict=True))
    return [stands_for.get(argument, argument) for argument in program]


def _variables(attempt: "Attempt") -> dict[str, str]:
    return {
        "HARDSAVE_TASK": attempt.id,
        "HARDSAVE_TASK_TEXT": attempt.task.text,
        "HARDSAVE_TASK_ATTEMPT": str(attempt.number),
    }


# The server


@dataclass(frozen=True, kw_only=True)
class _Done:
    """What a server has done from its start to its stop."""

    session: str
    report: "RecoveryReport"
    happened: Counter[str]
    waiting: "Sequence[Task]"  # for an answer
    iterations: int
    signal: signal.Signals | None

    @property
    def exit(self) -> Exit:
        """A stop that was asked for is no failure; a task that was given up is."""
        is_failed = self.signal is None and self.happened["given_up"]
        return Exit.FAILED if is_failed else Exit.DONE

    def as_data(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "stopped_by": None if self.signal is None else self.signal.name,
            "recovery": json_data.recovery(self.report, dry_run=False),
            "attempts": self.happened["claimed"],
            "completed": self.happened["completed"],
            "failed": self.happened["given_up"],
            "handed_back": self.happened["handed_back"],
            "waiting": [{"id": each.id, "question": each.question} for each in self.waiting],
            "iterations": self.iterations,
        }

    def lines(self) -> list[str]:
        attempts = wording.count(self.happened["claimed"], "attempt")
        ends = {
            "completed": self.happened["completed"],
            "failed": self.happened["given_up"],
            "handed back": self.happened["handed_back"],
        }
        said = [f"{number:,} {end}" for end, number in ends.items() if number]
        if waiting := len(self.waiting):
            said.append(f"{waiting:,} {'waits' if waiting == 1 else 'wait'} for an answer")
        first = f"{attempts}: {', '.join(said)}" if said else attempts
        return [first, *map(_to_answer, self.waiting)]


def _to_answer(task: "Task") -> str:
    question = wording.line(task.question or "", 80)
    typed = f"hardsave tasks answer {quoted(task.id)} ANSWER"
    return f"{wording.shown(task.id)} asks {question}; answer it with: {typed}"


def _serve(session: Session, work: _Work, terms: _Terms) -> _Done:
    vault, status = session.vault, Status(session, terms.status_log)
    runner = vault.tasks.runner(
        terms.name, lease_seconds=terms.lease_seconds, take_over=terms.take_over
    )
    with _stopped_once() as told, _hangup_stops(), runner:
        status.begun(runner.report)
        with telling(vault, status):
            _run_until_told(vault, runner, work, terms, told)
            if told:
                status.say(f"stopped by {told[0].name}")
    return _Done(
        session=terms.name,
        report=runner.report,
        happened=status.happened,
        waiting=_waiting(vault),
        iterations=vault.tasks.iterations,
        signal=told[0] if told else None,
    )


def _waiting(vault: "Vault") -> "list[Task]":
    """The first of the tasks that go on when a user has answered."""
    from hardsave import Jobs

    pending = vault.tasks.find(state="pending", limit=_LOOKED_AT)
    return [each for each in pending if each.question is not None and not Jobs.owns(each)]


def _run_until_told(
    vault: "Vault",
    runner: "Runner",
    work: _Work,
    terms: _Terms,
    told: Sequence[signal.Signals],
) -> None:
    """The runner works in a thread: so this one learns of a signal before the commands have ended,
    and can end them."""
    from hardsave import Jobs, Retry
    from hardsave.tasks.slots import Lanes
    from hardsave.vault.jobs.state import TASKS, lane

    with ThreadPoolExecutor(1, "hardsave-tasks") as pool:
        running = pool.submit(
            runner.run,
            work.handle,
            concurrency=terms.concurrency,
            until_idle=terms.until_idle,
            retry=Retry(first_seconds=terms.retry_seconds, max_seconds=terms.retry_max_seconds),
            grace_seconds=terms.grace_seconds + work.more_seconds,
            wants=lambda task: not Jobs.owns(task),
            ended=lambda attempt: _iterate(vault),
            lanes=Lanes(lane, [TASKS]),
        )
        while not told and not wait([running], _LOOK_SECONDS).done:
            pass
        work.stop()
        runner.stop()
        running.result()


def _iterate(vault: "Vault") -> None:
    """Count a round. A store that cannot be written just now is no reason to end the server."""
    try:
        vault.tasks.iterate()
    except HardsaveError as error:
        log(__name__).warning("an iteration was not counted: %s", error)


@contextlib.contextmanager
def _stopped_once() -> Iterator[Sequence[signal.Signals]]:
    """The signals to stop that have come. After one, Ctrl-C means nothing more: it would interrupt
    Python itself as it ends."""
    from hardsave.tasks.executor import signals

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    told: Sequence[signal.Signals] = ()
    try:
        with signals() as told:
            yield told
    finally:
        if not told:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _hangup_stops() -> Iterator[None]:
    """A terminal that is closed stops the server like SIGTERM; under nohup it changes nothing."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


COMMANDS = {"run": run}
