"""Runs jobs: each in its own conversation, all of them on one event loop.

Contract. A job that is killed goes on where it was: by itself if it has retries left, else when
it is resumed. Its callback is told only after its end is on record, and by any worker then; the
same goes for its purge, if it was to be purged. A tool that needs approval pauses the job, and its
slot is free for others. A job whose agent or model a worker was not given is left to one that was.
"""

import asyncio
import contextlib
import functools
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from hardsave.defaults import GRACE_SECONDS, LEASE_SECONDS
from hardsave.errors import HardsaveError, LeaseLost, Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.objects.types import default_name
from hardsave.runtime import event_loop, loop
from hardsave.runtime.event_loop import Submitted
from hardsave.runtime.jobs import closing, files, notices, occurrences
from hardsave.runtime.loop.retrying import RETRY, Sleep
from hardsave.tasks import offers
from hardsave.tasks.attempt import Attempt, make_last
from hardsave.tasks.executor import Runner, side_loop
from hardsave.tasks.retry import Retry
from hardsave.tasks.slots import Lanes
from hardsave.tasks.steps import UnknownPolicy
from hardsave.tasks.task import Task
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.capabilities import Capabilities
from hardsave.vault.jobs.spec import JobId, JobSpec
from hardsave.vault.jobs.state import Job
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from hardsave.vault.workspace import Workspace

T = TypeVar("T")
AgentFor = Agent[Any, Any] | Callable[[Job], Agent[Any, Any]]

_GIVE = "give an Agent of Pydantic AI, or a function that makes one for a job"

LOOK_SECONDS = 0.2


class OutOfTurns(HardsaveError):
    """It has used the turns that it was given. To try again by itself would not give it more."""


BACKOFF = Retry(first_seconds=10.0, max_seconds=600.0)


class Worker:
    """Runs the jobs of a vault with the agents that it was given by name, and nothing else."""

    def __init__(
        self,
        vault: Vault,
        agents: Mapping[str, AgentFor],
        *,
        deps: Callable[[Job], Any] | None = None,
        models: Mapping[str, Model] | None = None,
        unknown: "UnknownPolicy | Mapping[str, UnknownPolicy] | None" = None,
        allow_private_callbacks: bool = False,
        model_settings: ModelSettings | None = None,
        model_retry: Retry = RETRY,
        callback_retry: Retry = notices.RETRY,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """An agent is one of Pydantic AI, or a function that makes one for a job. `models` are
        those that jobs may name, and that a resumed one goes on with. A model that may never
        answer wants `model_settings={"timeout": seconds}`."""
        self._vault = vault
        self._closing = closing.Closing(vault)
        self._agents = dict(agents)
        _check_agents(self._agents)
        self._deps = deps
        self._models = dict(models or {})
        self._capabilities = Capabilities(frozenset(self._agents), frozenset(self._models))
        self._left: set[str] = set()  # jobs that others were told to be needed for
        self._unknown = unknown
        self._allow_private = allow_private_callbacks
        self._model_settings = model_settings
        self._model_retry = model_retry
        self._callback_retry = callback_retry
        self._sleep = sleep
        self._under_way: set[Submitted[Any]] = set()
        self._runner: Runner | None = None

    def run(
        self,
        session: str = "jobs",
        *,
        concurrency: int = 1,
        until_idle: bool = False,
        retry: Retry = BACKOFF,
        lease_seconds: float = LEASE_SECONDS,
        take_over: bool = False,
        grace_seconds: float = GRACE_SECONDS,
        told: Callable[[Job], object] | None = None,
        periodic: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Run jobs as they come; ends as a runner of tasks does. `retry` says how long failed ones
        wait before they are tried again; `told` gets each job when an attempt at it has ended.
        `periodic` jobs have a name, a `cron` line and the arguments of `jobs.add`: each is added
        once each time, however many workers know it. They need a store on PostgreSQL."""
        runner = self._vault.tasks.runner(session, lease_seconds=lease_seconds, take_over=take_over)
        self._runner = runner
        with self._settling(), runner, self._telling(runner, grace_seconds) as wake:
            runner.run(
                self._work,
                concurrency=concurrency,
                until_idle=until_idle,
                retry=replace(retry, never=(*retry.never, OutOfTurns)),
                grace_seconds=grace_seconds,
                wants=self._wants,
                ended=lambda attempt: self._ended(attempt, told, wake),
                lanes=Lanes(states.lane, self._capabilities.lanes()),
                periodic=occurrences.periodic(self._vault, periodic or {}),
            )

    def stop(self) -> None:
        """Begin nothing more. What is under way has its time of grace to end, and is handed back
        after that: it goes on from its last save, and the attempt does not count."""
        if self._runner is not None:
            self._runner.stop()

    def _wants(self, task: Task) -> bool:
        asked = states.queued(task)
        if asked is None:
            return False
        lacks = self._capabilities.lacks(asked[0])
        if lacks is not None and task.id not in self._left:
            self._left.add(task.id)
            log(__name__).warning(
                "job %r wants %s, which this worker was not given; it is left to one that was",
                task.id,
                lacks,
            )
        return lacks is None

    # One job

    def _work(self, attempt: Attempt) -> Any:
        asked = states.queued(attempt.task)
        assert asked is not None
        spec, id = asked
        job = self._vault.jobs.get(str(id))
        if job.id != attempt.id:
            raise Misuse(f"job {attempt.id!r} goes on as {job.id!r}")  # a retry would not help
        if specs.is_purged(spec):
            raise Misuse(f"job {attempt.id!r} was purged, its prompt too; add another one")
        self._closing.want(job.id, spec)
        if self._failures(attempt) >= spec.retries:
            make_last(attempt)
        line = self._vault.timeline(spec.lineage)
        head = _begun(line, spec, id)
        if head is not None:
            log(__name__).info("job %r goes on from %s:%d", attempt.id, head.timeline, head.seq)
        with files.at_work(self._vault, attempt, spec, line, head) as workspace:
            outcome = self._answered(attempt, _working_in(job, workspace), spec, id, workspace)
        return _storable(outcome.output)

    def _failures(self, attempt: Attempt) -> int:
        """How often it has failed before; the death of a worker is no failure."""
        if attempt.number == 1:
            return 0
        history = self._vault.tasks.history(attempt.id)
        deaths = sum(each.kind == "interrupted" for each in history)
        return attempt.number - 1 - deaths

    def _answered(
        self, attempt: Attempt, job: Job, spec: JobSpec, id: JobId, workspace: Workspace | None
    ) -> loop.Outcome[Any]:
        """The run, and the questions that it stops with."""
        words: dict[str, loop.Verdict] = {}
        while True:
            try:
                running = self._run(attempt, job, spec, id, workspace, words)
                return self._awaited(attempt, running)
            except loop.ApprovalNeeded as need:
                words = {call.id: _asked(attempt, call, need.turn) for call in need.calls}
            except UsageLimitExceeded as error:
                raise OutOfTurns(
                    f"it has used its {spec.max_turns} turns ({error}); resume gives it more"
                ) from error

    async def _run(
        self,
        attempt: Attempt,
        job: Job,
        spec: JobSpec,
        id: JobId,
        workspace: Workspace | None,
        words: Mapping[str, loop.Verdict],
    ) -> loop.Outcome[Any]:
        return await loop.run(
            self._agent(job),
            spec.prompt,
            run_id=spec.lineage,
            line=self._vault.timeline(spec.lineage),
            workspace=workspace,
            restore=False,  # they are there
            deps=None if self._deps is None else self._deps(job),
            model=None if spec.model is None else self._models[spec.model],
            models=self._models,
            unknown=self._unknown,
            approvals=words,
            turns=lambda turn: _progressed(attempt, turn, spec.max_turns),
            usage_limits=UsageLimits(request_limit=spec.max_turns),
            data={specs.KEY: specs.to_plain(spec, id)},
            model_settings=self._model_settings,
            retry=self._model_retry,
            sleep=self._sleep,
        )

    def _agent(self, job: Job) -> Agent[Any, Any]:
        found = self._agents[job.spec.agent]
        if isinstance(found, Agent):
            return found
        return _made(job.spec.agent, found(job))

    def _awaited(self, attempt: Attempt, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine, for as long as the job is this attempt's."""
        submitted = event_loop.submit(work)
        self._under_way.add(submitted)
        while True:
            try:
                return submitted.result(LOOK_SECONDS)
            except TimeoutError:
                if submitted.is_over:
                    raise  # its own
                if attempt.is_lost:
                    submitted.cancel()
                    raise LeaseLost(f"job {attempt.id!r} is not this worker's any more") from None
            finally:
                if submitted.is_over:
                    self._under_way.discard(submitted)

    @contextlib.contextmanager
    def _settling(self) -> Iterator[None]:
        """At the end, what was handed back has ended, too: it would write beside the worker that
        takes it next."""
        try:
            yield
        finally:
            left = list(self._under_way)
            for each in left:
                each.cancel()
            for each in left:
                each.wait()
            self._under_way.difference_update(left)

    # The end

    @contextlib.contextmanager
    def _telling(self, runner: Runner, grace_seconds: float) -> Iterator[Callable[[], None]]:
        """Meanwhile callbacks are told; what comes back asks for that to happen now."""
        written = notices.Notices(self._vault, allow_private=self._allow_private)
        loop = side_loop(runner, notices.terms(self._callback_retry))
        offer = functools.partial(offers.offer, runner, self._capabilities.to_plain())
        messenger = notices.Messenger(written, loop, offer)
        with messenger.at_work(grace_seconds):
            yield messenger.wake

    def _ended(
        self, attempt: Attempt, told: Callable[[Job], object] | None, wake: Callable[[], None]
    ) -> None:
        """Its end is on record; with attempts left it is not the end."""
        if attempt.is_lost:
            return
        if told is not None:
            told(self._vault.jobs.get(attempt.id))
        if attempt.task.state in ("completed", "failed"):
            wake()


def _working_in(job: Job, workspace: Workspace | None) -> Job:
    """A job as its agent is made for it: `spec.workspace` is where this attempt works."""
    if workspace is None or workspace.path == Path(os.path.realpath(str(job.spec.workspace))):
        return job
    return job.replace(spec=replace(job.spec, workspace=str(workspace.path)))


def _asked(attempt: Attempt, call: loop.PendingCall, turn: int) -> loop.Verdict:
    """What was answered about a call; ids may come again in later responses."""
    key = f"{turn}/{digest(call.id.encode()).hex()}"
    return specs.verdict(attempt.ask(f"may it call {call}?", key=key))


def _progressed(attempt: Attempt, turn: int, most: int) -> None:
    """A ledger that cannot be written stops no agent; one that has given the job away does."""
    try:
        attempt.progress(min(turn, most), most)
    except Unavailable as error:
        log(__name__).warning("the progress of job %r is not on record: %s", attempt.id, error)


def _check_agents(given: Mapping[str, Any]) -> None:
    for name, agent in given.items():
        if not isinstance(agent, Agent) and not callable(agent):
            raise Misuse(f"agent {name!r} is of the class {default_name(type(agent))}; {_GIVE}")


def _made(name: str, made: Any) -> Agent[Any, Any]:
    """What was made for a job, if it is an agent; a function for workflows gives something else."""
    if isinstance(made, AbstractAgent):
        return cast(Agent[Any, Any], made)
    if asyncio.iscoroutine(made):
        made.close()  # it is not awaited any more
    raise Misuse(f"agent {name!r} was made of the class {default_name(type(made))}; {_GIVE}")


def _storable(output: Any) -> Any:
    """As data, if it can be; the conversation holds it in any case."""
    from hardsave.runtime.loop.messages import plain_result

    try:
        return plain_result(output, "output")["value"]
    except HardsaveError:
        return None


def _begun(line: Timeline, spec: JobSpec, id: JobId) -> Checkpoint | None:
    """Where a job goes on: at its head, or where it was resumed from, if it has not begun yet."""
    head = line.head
    found = None if head is None else states.saved(head)
    if spec.restore_from is None or (found is not None and found.id == id):
        return head
    line.rewind(spec.restore_from, what="state")
    return line.head
