"""Running a workflow, so that it goes on where it was: finished steps are not run again.

Contract. After each step that asks for it, what all finished steps have answered is saved on the
run's timeline. A run from a checkpoint skips what was finished there and uses its answers. A
step that has another agent or other inputs than it had then is told: it would be wrong to go on
as if nothing had changed, so that is a `Conflict`, unless the caller accepts it, and then such
steps run again.

A run is a task of the ledger while a process is at it, under the run's id: of two that go on with
one run, in whichever processes, one has it, and the other gets a `Conflict` that names who. Who
was taken for dead meanwhile saves nothing more. A runner of tasks never takes one up: its time
does not come by itself.
"""

import asyncio
import contextlib
import functools
import inspect
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import hardsave
from hardsave.errors import Conflict, LeaseLost, Misuse, NotFound, Unavailable, Unstorable
from hardsave.logs import log
from hardsave.objects.types import default_name
from hardsave.runtime.agent import Message, StandardAgent
from hardsave.runtime.orchestrator import is_cancelled
from hardsave.runtime.plan import (
    INPUTS,
    Step,
    Workflow,
    asked_inputs,
    check_storable,
    filled,
    read_file,
)
from hardsave.tasks import error_text
from hardsave.tasks.attempt import Attempt, working
from hardsave.tasks.states import NEVER
from hardsave.tasks.step_calls import said

_log = log(__name__)

Worker = Callable[[dict[str, Any]], Any | Awaitable[Any]]
"""Does a step's work: gets its inputs, gives its answer. May be a coroutine function."""

StepStatus = Literal["completed", "skipped", "failed"]


@dataclass
class Outcome:
    """How a step ended."""

    status: StepStatus
    answer: Any = None
    attempts: int = 0
    error: str = ""
    key: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass
class Run:
    """A workflow's run: where it stands."""

    id: str
    workflow: str
    inputs: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, Outcome] = field(default_factory=dict)
    checkpoint_id: str | None = None
    """The latest checkpoint; `run(workflow, checkpoint_id=…)` goes on from it."""

    @property
    def answers(self) -> dict[str, Any]:
        """What each finished step has answered."""
        return {name: step.answer for name, step in self.steps.items()}

    @property
    def ok(self) -> bool:
        return all(step.status == "completed" for step in self.steps.values())


class StepFailed(hardsave.HardsaveError):
    """A step has failed for good. What was finished before it is saved; `run` has it all."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class WorkflowExecutor:
    """Runs workflows with the agents that it was given by name."""

    def __init__(
        self, agents: Mapping[str, Worker | StandardAgent], *, vault: hardsave.Vault
    ) -> None:
        self._agents = dict(agents)
        self._vault = vault
        self._unrecorded: dict[str, Callable[[], None]] = {}

    async def run(
        self,
        workflow: "Workflow | str | Path",
        *,
        inputs: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        accept_changes: bool = False,
        begun: Callable[[Run], object] | None = None,
    ) -> Run:
        """Run a workflow, or the file it is in; with `checkpoint_id` from there on. `begun` gets
        the run before its first step: its id is the timeline that it is saved on."""
        plan = workflow if isinstance(workflow, Workflow) else read_file(workflow)
        self._check_agents(plan)
        if not isinstance(inputs, Mapping | None):
            raise Misuse(f"inputs is a dict, not {inputs!r}")
        check_storable(dict(inputs or {}), "inputs")
        if checkpoint_id is None:
            id = f"run-{uuid.uuid4().hex[:12]}"
            run = Run(id, plan.name, self._as_saved(id, dict(inputs or {})))
        else:
            run = self._resumed(plan, checkpoint_id, inputs, accept_changes=accept_changes)
        _check_inputs(plan, run.inputs)
        with self._held(run):
            if begun is not None:
                begun(run)
            for step in plan.steps:
                if not _is_over(step, run.steps.get(step.name)):
                    is_last = step is plan.steps[-1]
                    await self._take(step, run, "completed" if is_last else "running")
        return run

    # Having it

    @contextlib.contextmanager
    def _held(self, run: Run) -> Iterator[None]:
        """Inside, no other process goes on with it; if one does, what is saved here is refused."""
        before = self._head(run)
        attempt = self._claimed(run)
        try:
            if before == run.checkpoint_id != self._head(run):
                raise Conflict(f"run {run.id!r} has just gone on elsewhere; look at it again")
            with working(attempt):
                yield
        except BaseException as error:
            # What has happened matters more than what is recorded of it. (`Misuse`: a step has
            # forked, and this is the child.) It has one attempt: no worker takes it up unasked.
            # What a step raised was logged then, and the caller gets the error: it is no news.
            why = said(error) if isinstance(error, StepFailed) else error
            with contextlib.suppress(LeaseLost, Misuse, Unavailable):
                self._record(run, functools.partial(attempt.fail, why))
            raise
        self._record(run, attempt.complete)

    def _record(self, run: Run, end: Callable[[], None]) -> None:
        """Write that it is over. While that cannot be done this process is at work on it, for all
        that others know; so a caller that goes on with it here does that first."""
        try:
            end()
        except Unavailable as error:
            _log.warning("the end of run %r could not be recorded: %s", run.id, error)
            self._unrecorded[run.id] = end
            raise

    def _claimed(self, run: Run) -> Attempt:
        end = self._unrecorded.pop(run.id, None)
        if end is not None:
            with contextlib.suppress(LeaseLost):
                self._record(run, end)
        try:
            return self._vault.tasks.claim(run.id, force=True)
        except NotFound:  # new, or its task was forgotten
            self._add(run)
        except Conflict as error:
            raise Conflict(f"run {run.id!r} cannot be gone on with now: {error}") from error
        return self._claimed(run)

    def _add(self, run: Run) -> None:
        self._vault.tasks.add(
            run.id,
            f"workflow {run.workflow}",
            key=f"workflow:{run.id}",
            max_attempts=1,
            not_before=NEVER,
            metadata={"workflow": {"name": run.workflow, "run": run.id}},
        )

    def _head(self, run: Run) -> str | None:
        head = self._vault.timeline(run.id).head
        return None if head is None else head.id

    def _check_agents(self, plan: Workflow) -> None:
        for step in plan.steps:
            if step.agent not in self._agents:
                known = ", ".join(sorted(self._agents)) or "none"
                raise NotFound(
                    f"{plan.where(step)} wants agent {step.agent!r}, which was not given (there "
                    f"are: {known})"
                )
            if not _is_worker(self._agents[step.agent]):
                raise Misuse(
                    f"{plan.where(step)} has agent {step.agent!r}, which is "
                    f"{_kind(self._agents[step.agent])}; give a function that takes the step's "
                    "inputs and returns its answer, or a StandardAgent"
                )

    # Going on

    def _resumed(
        self,
        plan: Workflow,
        checkpoint_id: str,
        inputs: Mapping[str, Any] | None,
        *,
        accept_changes: bool,
    ) -> Run:
        found = self._vault.get(checkpoint_id)
        saved = found.read()
        steps = _outcomes(saved)
        if steps is None:
            raise Misuse(f"checkpoint {checkpoint_id} is not one of a workflow's run")
        if saved["workflow"] != plan.name:
            raise Conflict(
                f"checkpoint {checkpoint_id} is of workflow {saved['workflow']!r}, not of "
                f"{plan.name!r}"
            )
        changes = changed(plan, steps)
        if changes and not accept_changes:
            raise Conflict(
                f"the workflow has changed since {checkpoint_id}: {'; '.join(changes)}. Run it "
                "anew, or accept_changes=True to run the changed steps again"
            )
        id = saved["run"]
        given = saved["inputs"] if inputs is None else self._as_saved(id, dict(inputs))
        if given != saved["inputs"] and not accept_changes:
            raise Conflict(
                f"the run of {checkpoint_id} has other inputs. Go on without any, run it anew, or "
                "accept_changes=True to run all steps again with these"
            )
        kept = _kept(plan, steps) if given == saved["inputs"] else {}
        return Run(id, plan.name, given, kept, found.id)  # a ref has many spellings

    # One step

    async def _take(self, step: Step, run: Run, status: str) -> None:
        outcome = await self._tried(step, run)
        run.steps[step.name] = outcome
        if outcome.status == "failed" and step.on_error != "continue":
            if step.on_error == "fail":
                self._save(run, "failed")
                raise StepFailed(f"step {step.name!r} failed: {outcome.error}", run)
            outcome.status = "skipped"
        if step.checkpoint:
            self._save(run, status)

    async def _tried(self, step: Step, run: Run) -> Outcome:
        answers = {**run.answers, INPUTS: run.inputs}
        try:
            filled(dict(step.inputs), answers)
        except Misuse as wrong:  # what is not there will not be there the next time, either
            _log.warning("step %s cannot begin: %s", step.name, wrong)
            return Outcome("failed", None, 0, said(wrong), step.key)
        attempt, error = 0, ""
        for attempt in range(1, step.retry + 2):
            try:
                inputs = _own(filled(dict(step.inputs), answers))
                answer = await _asked(self._agents[step.agent], inputs)
                check_storable(answer, "answer")
                kept = self._as_saved(run.id, answer)
                return Outcome("completed", kept, attempt, key=step.key)
            except (Exception, asyncio.CancelledError) as failure:  # all that an agent may raise
                if isinstance(failure, asyncio.CancelledError) and is_cancelled():
                    raise
                error = said(failure)
                told = self._as_saved(run.id, error_text.brief(failure))
                _log.warning("step %s, attempt %d: %s", step.name, attempt, told)
                if isinstance(failure, Unstorable):
                    break  # it has done its work, and would do it again
        return Outcome("failed", None, attempt, error, step.key)

    def _as_saved(self, run_id: str, value: Any) -> Any:
        """What steps get is the same in the process that began a run as in one that goes on with
        it. And it is a copy: the caller may change its own."""
        return self._vault.timeline(run_id).as_saved(value)

    def _save(self, run: Run, status: str) -> None:
        state = {
            "workflow": run.workflow,
            "run": run.id,
            "inputs": run.inputs,
            "steps": {name: step.to_dict() for name, step in run.steps.items()},
        }
        line = self._vault.timeline(run.id)
        run.checkpoint_id = line.save(state, status=status, expect=hardsave.ANY_HEAD).id


def _check_inputs(plan: Workflow, given: Mapping[str, Any]) -> None:
    """Before anything runs: a run that was begun without one cannot go on with it."""
    for step in plan.steps:
        if step.on_error != "fail":
            continue  # it may do without
        for name in asked_inputs(step.inputs):
            if name not in given:
                raise Misuse(
                    f"{plan.where(step)} asks for ${{inputs.{name}}}, which was not given; give "
                    "it in inputs"
                )


def _own(value: Any) -> Any:
    """A copy: the receiver may change its own, and what was answered stands. What is nested
    too deeply for that is shared."""
    try:
        return deepcopy(value)
    except RecursionError:
        return value


async def _asked(worker: Worker | StandardAgent, inputs: dict[str, Any]) -> Any:
    """What a worker answers to inputs: an agent gets them as a message."""
    if isinstance(worker, StandardAgent):
        return (await worker.reply(Message(inputs))).content
    answer = worker(inputs)
    return await answer if inspect.isawaitable(answer) else answer


def _is_worker(given: Any) -> bool:
    """Whether it can be asked. A class of agents would make one, and that is no answer."""
    if isinstance(given, type) and issubclass(given, StandardAgent):
        return False
    return isinstance(given, StandardAgent) or callable(given)


def _kind(given: Any) -> str:
    """What it is, without all that it holds: a model may hold a key."""
    if isinstance(given, type):
        return f"the class {default_name(given)}"
    return f"of the class {default_name(type(given))}"


def _outcomes(saved: Any) -> dict[str, Outcome] | None:
    """The steps that a run has saved; None if it is no run."""
    kinds = {"workflow": str, "run": str, "inputs": Mapping, "steps": Mapping}
    if not isinstance(saved, Mapping):
        return None
    if not all(isinstance(saved.get(key), kind) for key, kind in kinds.items()):
        return None
    try:
        return {name: Outcome(**step) for name, step in saved["steps"].items()}
    except TypeError:
        return None


def changed(plan: Workflow, done: Mapping[str, Outcome]) -> list[str]:
    """What is otherwise than when these steps were finished, as people can understand it. One
    that was never begun, because an answer was missing, may well be another by now."""
    present = {step.name: step for step in plan.steps}
    found = [f"step {name!r} is gone" for name in done if name not in present]
    for name, outcome in done.items():
        step = present.get(name)
        if step is not None and outcome.key != step.key and outcome.attempts > 0:
            found.append(f"step {name!r} has another agent or other inputs")
    finished = [step.name for step in plan.steps if step.name in done]
    before = [step.name for step in plan.steps[: len(finished)]]
    if sorted(finished) != sorted(before):
        new = [name for name in before if name not in done]
        found.append(f"new before finished ones: {', '.join(map(repr, new))}")
    return found


def _kept(plan: Workflow, done: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """What need not run again: finished, unchanged, and not after something that is new."""
    kept: dict[str, Outcome] = {}
    for step in plan.steps:
        outcome = done.get(step.name)
        if outcome is None or outcome.key != step.key or not _is_over(step, outcome):
            break
        kept[step.name] = outcome
    return kept


def _is_over(step: Step, outcome: Outcome | None) -> bool:
    """Whether a step is done with: a failure is, where the others go on in spite of it."""
    return outcome is not None and (outcome.status != "failed" or step.on_error == "continue")
