"""The steps of one attempt as they are called: looked up in the journal, run, recorded."""

import threading
from contextvars import ContextVar, Token
from typing import Any, Protocol

from hardsave.errors import Misuse, StepUnknown
from hardsave.objects.records import EntryRecord, Id, TaskRecord, filled
from hardsave.tasks import names, retry, steps
from hardsave.tasks.appends import Appends
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.retry import Retry
from hardsave.tasks.steps import (
    POLICIES,
    Asked,
    Body,
    Given,
    Journal,
    Scope,
    UnknownPolicy,
    unknown_question,
)
from hardsave.tuples import NamedTuple

MOST_SAID = 10_000  # characters of an error
MOST_TRACED = 100_000  # and of its traceback

# Come back from the journal as they went in, unless secrets are taken out of them.
_PLAIN = (type(None), bool, int, float, str, bytes)


class Paused(BaseException):
    """The task waits for an answer: its body ends here, and begins again when there is one.

    Not an `Exception`: a handler that catches those is not meant to catch this.
    """


class Holder(Protocol):
    """The attempt, as its steps see it."""

    @property
    def is_over(self) -> bool: ...

    def check(self) -> None:
        """Raise if the task is not this attempt's any more, as far as is known; if the lease has
        passed, by what the ledger says."""

    def write(self, entry: EntryRecord) -> None:
        """Add an entry to the journal, if the task is still this attempt's."""

    def paused(self, question: str, call: "Call") -> Paused:
        """End the attempt with a question; what to leave its body with."""


class _Enclosing(NamedTuple):
    calls: int
    path: str


_enclosing: ContextVar[_Enclosing | None] = ContextVar("hardsave_step", default=None)


class Calls:
    """All steps of one attempt. Threads share it."""

    def __init__(
        self,
        context: LedgerContext,
        task: TaskRecord,
        journal: Journal,
        holder: Holder,
        unknown: UnknownPolicy,
    ) -> None:
        check_policy(unknown)
        self.context = context
        self.task = task
        self.journal = journal
        self.holder = holder
        self._unknown = unknown
        self._mutex = threading.Lock()
        self._names: set[str] = set()  # that were found to be fine
        self._scopes: dict[str, Scope] = {}
        self._started: dict[str, Call] = {}  # under way, with their start recorded
        self._appends = Appends(task)

    @property
    def enclosing(self) -> str:
        """The path of the step that this is called in; empty outside of any."""
        inside = _enclosing.get()
        return inside.path if inside is not None and inside.calls == id(self) else ""

    def begin(
        self,
        name: str,
        given: Given,
        *,
        enclosing: str,
        key: str | None = None,
        unknown: UnknownPolicy | None = None,
        retry: Retry | None = None,
    ) -> "Call":
        """Ask for a step. What comes back has its result, or is to be run."""
        if name not in self._names:
            names.check("the name of a step", name)
            self._names.add(name)
        if key is not None or unknown is not None or retry is not None:
            _check_options(key, unknown, retry)
        policy = self._unknown if unknown is None else unknown
        with self._mutex:
            scope = self._scopes.get(enclosing)
            if scope is None:
                scope = self._scopes[enclosing] = Scope()
            asked = scope.enter(enclosing, name, key)
        call = Call(
            self, scope, asked, steps.arguments_hash(self.context.codec, given), policy, retry
        )
        try:
            call.look()
        except BaseException:
            call.leave()
            raise
        return call

    def entry(self, kind: str, asked: Asked, body: Body) -> EntryRecord:
        task, context = self.task, self.context
        return filled(
            EntryRecord,
            (
                0,
                context.new_id(),
                task.name,
                kind,
                task.generation,
                task.epoch,
                context.clock(),
                asked.path,
                steps.pack(body),
            ),
        )

    def write(self, kind: str, asked: Asked, body: Body) -> None:
        self.holder.write(self.entry(kind, asked, body))
        self.journal.note(asked.path, kind, body)

    def around(self, path: str) -> list[EntryRecord]:
        """Ends for the steps around one that pauses: they begin again, and are not unknown."""
        data = self.context.codec.encode("paused")
        with self._mutex:  # other threads begin and end steps meanwhile
            started = list(self._started.items())
        found = [call for each, call in started if path.startswith(each + "/")]
        return [
            self.entry("step_failed", call.asked, Body(call.arguments, call.place, data))
            for call in found
        ]

    def started(self, call: "Call") -> None:
        with self._mutex:
            self._started[call.asked.path] = call

    def anew(self, path: str) -> None:
        """What is inside a step counts from the beginning, each time it runs."""
        self._scopes.pop(path, None)  # one call, which no other thread can come between
        with self._mutex:
            self._appends.anew(path)

    # Appends to timelines, in the step that they are made in

    def failed(self, path: str) -> None:
        with self._mutex:
            self._appends.failed(path)

    def look(self, timeline: str) -> None:
        with self._mutex:
            self._appends.look(self.enclosing, timeline)

    def begin_append(self, timeline: str, content: bytes) -> Id | None:
        with self._mutex:
            return self._appends.begin(self.enclosing, timeline, content)

    def give_up_append(self, id: Id) -> None:
        with self._mutex:
            self._appends.give_up(self.enclosing, id)

    def leave(self, scope: Scope, asked: Asked) -> None:
        with self._mutex:
            scope.leave(asked)
            self._started.pop(asked.path, None)


class Call:
    """One step that is asked for: what the record says, or how to run it."""

    def __init__(
        self,
        calls: Calls,
        scope: Scope,
        asked: Asked,
        arguments: bytes,
        policy: UnknownPolicy,
        retry: Retry | None,
    ) -> None:
        self.asked = asked
        self.arguments = arguments
        self.is_recorded = False
        self.is_unknown = False
        self.value: Any = None
        self._calls = calls
        self._scope = scope
        self._policy = policy
        self._retry = retry
        self._failures = 0
        self._is_done = False

    def __repr__(self) -> str:
        return f"<step {self.asked.path!r} of task {self._calls.task.name!r}>"

    @property
    def place(self) -> int:
        """Where it stands in the order, as far as that is certain by now."""
        return self._scope.place(self.asked)

    def look(self) -> None:
        """Find out what the record says, and record the start if the policy wants it."""
        path, place = self.asked
        known = self._calls.journal.checked(path, place, self.arguments)
        if known is not None and known.state in ("done", "answered", "skipped"):
            self._recorded(self._calls.context.codec.decode(known.body.value))
        elif known is not None and known.state == "unknown":
            self._decide()
        if not self.is_recorded and self._policy != "retry":
            self._write("step_started", None)
            self._calls.started(self)

    def _recorded(self, value: Any) -> None:
        self.is_recorded, self.value = True, value
        self.leave()

    def _decide(self) -> None:
        """It was begun, and its end is not on record."""
        path, task = self.asked.path, self._calls.task.name
        self.is_unknown = True
        if self._policy == "skip":
            self._write("step_skipped", None)
            self._recorded(None)
        elif self._policy == "fail":
            raise StepUnknown(
                f"step {path!r} of task {task!r} was begun, and its end was not recorded; look "
                "what it did, then tasks.retry(id, unknown='retry') or 'skip' goes on"
            )
        elif self._policy == "ask":
            raise self._calls.holder.paused(unknown_question(path), self)

    def enter(self) -> "Token[_Enclosing | None]":
        """From here on its function runs: steps inside it lie beneath it."""
        self._calls.anew(self.asked.path)
        return _enclosing.set(filled(_Enclosing, (id(self._calls), self.asked.path)))

    def exit(self, token: "Token[_Enclosing | None]") -> None:
        _enclosing.reset(token)
        if not self._is_done:  # also by a cancelled coroutine, which records no failure
            self._calls.failed(self.asked.path)
        self.leave()

    def check(self) -> None:
        """Before its function is called: another process may have called it by now, if this one
        was stopped for a while."""
        self._calls.holder.check()

    def done(self, value: Any) -> Any:
        """Record a result; it, as the record gives it back. If that cannot be written nothing is:
        its function has been called, and to say that it has failed would have it called again."""
        codec = self._calls.context.codec
        try:
            data = codec.encode(value, f"result of {self.asked.path}")
        except Misuse as wrong:
            self._fail(wrong)
            raise
        self._write_data("step_done", data)
        self._is_done = True
        is_as_recorded = type(value) in _PLAIN and codec.redaction is None
        return value if is_as_recorded else codec.decode(data)

    def again(self, error: Exception) -> float | None:
        """How long to wait before it is tried again; None, and recorded, if it has failed."""
        calls, policy = self._calls, self._retry
        if calls.holder.is_over:
            return None
        self._failures += 1
        has_tries = policy is not None and self._failures < policy.attempts
        if policy is not None and has_tries and retry.is_worth_it(policy, error):
            calls.anew(self.asked.path)
            return retry.wait_seconds(policy, self._failures, calls.context.random)
        self._fail(error)
        return None

    def _fail(self, error: Exception) -> None:
        line = bounded(self._calls.context.redacted(said(error)), MOST_SAID)
        self._write("step_failed", line)

    def leave(self) -> None:
        self._calls.leave(self._scope, self.asked)

    def never_run(self) -> None:
        """Its caller has gone. If its start is on record, nothing is unknown about it."""
        if not self.is_recorded and self._policy != "retry":
            self._write("step_failed", "it was cancelled before its function was called")
        self.leave()

    def _write(self, kind: str, value: Any) -> None:
        self._write_data(kind, self._calls.context.codec.encode(value))

    def _write_data(self, kind: str, data: bytes) -> None:
        self._calls.write(kind, self.asked, filled(Body, (self.arguments, self.place, data)))


def _check_options(key: Any, unknown: Any, retry: Any) -> None:
    """One of a wrong type was perhaps meant for the step's function."""
    try:
        if key is not None:
            names.check("the key of a step", key)
        if unknown is not None:
            check_policy(unknown)
        if retry is not None and not isinstance(retry, Retry):
            raise Misuse(f"retry of a step is a hardsave.Retry, not {retry!r}")
    except Misuse as wrong:
        raise Misuse(
            f"{wrong}. key, unknown and retry are the step's own: a function that takes such a "
            "keyword gets it by functools.partial"
        ) from None


def check_policy(policy: Any) -> None:
    if policy not in POLICIES:
        raise Misuse(f"unknown is one of {', '.join(POLICIES)}, not {policy!r}")


def said(error: BaseException | str) -> str:
    """An error as a text that every store can keep: it ends a step or an attempt, and has to be
    recorded even if it cannot describe itself."""
    text = error if isinstance(error, str) else _described(error)
    return text.encode(errors="backslashreplace").decode()


def _described(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception as wrong:  # noqa: BLE001 # its own code, which may do anything
        return f"{kind} (and its text is {type(wrong).__name__})"
    return f"{kind}: {text}" if text else kind


def bounded(text: str, most: int) -> str:
    """Its beginning and its end. Secrets are taken out before: half a one is not recognised."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} […] {text[-half:]}"
