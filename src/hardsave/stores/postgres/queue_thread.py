"""The thread in which procrastinate's worker runs, beside the threads of a runner.

It fetches hints, offers them to the runner, and holds each until the runner has answered. A server
that is away is waited for; should the worker end by itself, another is started, and meanwhile the
runner asks the ledger alone.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, LiteralString, TypeVar

import procrastinate
import psycopg
from procrastinate import connector as connectors
from procrastinate import exceptions, jobs, manager

from hardsave.errors import HardsaveError, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.stores.dispatch import AGAIN, DONE, Answer, Hints
from hardsave.stores.postgres.address import Address, session_options
from hardsave.stores.postgres.connections import CONNECT
from hardsave.stores.postgres.translation import is_passing
from hardsave.tuples import NamedTuple

T = TypeVar("T")

HINT, MEND, OCCURRENCE = "hardsave.hint", "hardsave.mend", "hardsave.occurrence"
_MEND_QUEUE = "mend"
_EVERY_MINUTE = "* * * * *"
_POLL_SECONDS = 1.0  # what is due later comes with no NOTIFY
_PAUSE_SECONDS = 0.5  # before a server that is away is asked again
_AGAIN_SECONDS = 1.0  # before a hint comes again that could not be taken
_ANSWER_SECONDS = 2.0  # for hints to be answered, when the worker ends
_CLOSE_SECONDS = 5.0
_LATE_SECONDS = 600.0  # an occurrence that is older does not happen, as with procrastinate

_log = log(__name__)


class Queues(NamedTuple):
    """The queues that a process is told from."""

    own: str
    lanes: tuple[str, ...]

    def names(self) -> list[str]:
        return [self.own, _MEND_QUEUE, *map(self.lane, self.lanes)]

    def lane(self, lane: str) -> str:
        """A name of a queue is part of that of a channel, which is short."""
        return f"{self.own}-{digest(lane.encode())[:8].hex()}"


class QueueThread:
    """Runs procrastinate's worker from `start` to `close`."""

    def __init__(
        self, address: Address, queues: Queues, hints: Hints, install: Callable[[], None]
    ) -> None:
        self._address = address
        self._queues = queues
        self._hints = hints
        self._install = install
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hardsave-queue", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Tell nothing more. Hints that were answered go where they belong, if the server lets
        them in time; all others are done with: the ledger has what became of them."""
        self._is_closed.set()
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._until_closed())

    async def _until_closed(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        told = ""
        while not self._is_closed.is_set():
            try:
                await asyncio.to_thread(self._install)
                await self._work(self._stop)
                said = "its worker has ended"
            except Exception as error:  # noqa: BLE001 # any error: the ledger is right without it
                said = f"{type(error).__name__}: {error.__cause__ or error}"
            self._hints.receiver.fed(False)
            if said != told and not self._is_closed.is_set():
                told = said
                _log.warning("no hints come from the queue: %s; the ledger is asked instead", said)
            await _first(self._stop.wait(), asyncio.sleep(_PAUSE_SECONDS))

    async def _work(self, stop: asyncio.Event) -> None:
        """Until it is told to stop, or ends by itself."""
        app = self._app(stop)
        async with app.open_async():
            self._hints.receiver.fed(True)
            work = asyncio.ensure_future(
                app.run_worker_async(
                    queues=self._queues.names(),
                    concurrency=self._hints.concurrency,
                    fetch_job_polling_interval=_POLL_SECONDS,
                    shutdown_graceful_timeout=_ANSWER_SECONDS,
                    delete_jobs="always",
                    install_signal_handlers=False,
                )
            )
            await _first(stop.wait(), asyncio.shield(work))
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):  # as it was told
                await work

    def _app(self, stop: asyncio.Event) -> procrastinate.App:
        connector = _Connector(
            conninfo=self._address.conninfo,
            kwargs={
                **{name: value for name, value in CONNECT.items() if name != "autocommit"},
                "options": session_options(self._address, os.environ),
            },
            configure=_set_up,
            min_size=1,
            max_size=2,
            timeout=_ANSWER_SECONDS,
            reconnect_timeout=_ANSWER_SECONDS,
            num_workers=1,
            name=f"hardsave queue {self._address.schema}",
        )
        app = procrastinate.App(connector=connector)
        app.job_manager = _Manager(connector, self._happen)
        app.task(name=HINT, pass_context=True)(_Hinting(app, self._queues, self._hints, stop).tell)
        self._register_periodic(app)
        return app

    def _register_periodic(self, app: procrastinate.App) -> None:
        async def mend(timestamp: int) -> None:
            await app.connector.execute_query_async("SELECT queue_mend_1()")

        async def occur(timestamp: int) -> None:
            """Its occurrences are added to the ledger, and never wait here."""

        mending = app.task(name=MEND, queue=_MEND_QUEUE, queueing_lock=MEND)(mend)
        app.periodic(cron=_EVERY_MINUTE, periodic_id=MEND)(mending)
        occurring = app.task(name=OCCURRENCE)(occur)
        for each in self._hints.periodic:
            app.periodic(cron=each.cron, periodic_id=each.name)(occurring)

    async def _happen(self, name: str, timestamp: int) -> None:
        """One occurrence: each process adds it to the ledger, which has it once."""
        at = datetime.fromtimestamp(timestamp, UTC)
        add = next(each.add for each in self._hints.periodic if each.name == name)
        while not self._is_closed.is_set():
            if (datetime.now(UTC) - at).total_seconds() > _LATE_SECONDS:
                return
            try:
                await asyncio.to_thread(add, at)
                return
            except Unavailable as error:
                _log.warning("%r cannot be added yet: %s", name, error)
                await asyncio.sleep(_AGAIN_SECONDS)
            except HardsaveError:
                _log.exception("%r of %s cannot be added", name, at.isoformat())
                return


class _Hinting:
    """Offers a hint to the runner, and sees to what it answers."""

    def __init__(
        self, app: procrastinate.App, queues: Queues, hints: Hints, stop: asyncio.Event
    ) -> None:
        self._app = app
        self._queues = queues
        self._receiver = hints.receiver
        self._stop = stop

    async def tell(self, context: procrastinate.JobContext, task: str) -> None:
        answer = await self._answered(task)
        if answer.again or answer.lane is not None:
            await self._put_back(context.job, task, answer)

    async def _answered(self, task: str) -> Answer:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Answer] = loop.create_future()

        def answer(said: Answer) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, found, said)

        if not self._receiver.offer(task, answer):
            return AGAIN
        await _first(found, self._stop.wait())
        return found.result() if found.done() else DONE

    async def _put_back(self, job: jobs.Job, task: str, answer: Answer) -> None:
        """Where another process, or this one a moment later, is told. There may be a newer hint."""
        at_once = answer.lane is not None or self._stop.is_set()
        again = self._app.configure_task(
            HINT,
            queue=job.queue if answer.lane is None else self._queues.lane(answer.lane),
            priority=job.priority,
            queueing_lock=job.queueing_lock,
            schedule_in=None if at_once else {"seconds": _AGAIN_SECONDS},
        )
        with contextlib.suppress(exceptions.AlreadyEnqueued):
            await again.defer_async(task=task)


class _Manager(manager.JobManager):
    """procrastinate's own, but for what the ledger does better."""

    def __init__(
        self,
        connector: connectors.BaseConnector,
        happen: Callable[[str, int], Awaitable[None]],
    ) -> None:
        super().__init__(connector)
        self._happen = happen

    async def finish_job(self, job: jobs.Job, status: jobs.Status, delete_job: bool) -> None:
        """A row that is gone, as after the queue was emptied, is as good as finished."""
        try:
            await super().finish_job(job, status, delete_job)
        except exceptions.ConnectorException as error:
            _log.debug("hint %s was gone before it was removed: %s", job.id, error.__cause__)

    async def defer_periodic_job(
        self, job: jobs.Job, periodic_id: str, defer_timestamp: int
    ) -> int | None:
        if job.task_name != OCCURRENCE:
            return await super().defer_periodic_job(job, periodic_id, defer_timestamp)
        await self._happen(periodic_id, defer_timestamp)
        return None


class _Connector(procrastinate.PsycopgConnector):
    """Waits for a server that is away, instead of giving up."""

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        execute = super().execute_query_async
        await _patiently(lambda: execute(query, **arguments))

    async def execute_query_one_async(
        self, query: LiteralString, **arguments: Any
    ) -> dict[str, Any]:
        execute = super().execute_query_one_async
        return await _patiently(lambda: execute(query, **arguments))

    async def execute_query_all_async(
        self, query: LiteralString, **arguments: Any
    ) -> list[dict[str, Any]]:
        execute = super().execute_query_all_async
        return await _patiently(lambda: execute(query, **arguments))

    async def listen_notify(
        self, on_notification: connectors.Notify, channels: Iterable[str]
    ) -> None:
        listen, names = super().listen_notify, list(channels)
        await _patiently(lambda: listen(on_notification, names))


async def _set_up(connection: psycopg.AsyncConnection[Any]) -> None:
    """procrastinate says so itself for the one that listens, and for no other."""
    await connection.set_autocommit(True)


async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await call()
        except exceptions.ConnectorException as error:
            if error.__cause__ is None or not is_passing(error.__cause__):
                raise
        await asyncio.sleep(_PAUSE_SECONDS)


async def _first(*given: Awaitable[Any]) -> None:
    """Wait for the first of them; the others are not waited for any more."""
    waiting = [asyncio.ensure_future(each) for each in given]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            if not each.done():
                each.cancel()
            elif not each.cancelled():
                each.exception()  # it is looked at where it is awaited


def _settle(found: asyncio.Future[Answer], said: Answer) -> None:
    if not found.done():
        found.set_result(said)
