"""`/metrics`: how saves, jobs and tasks go, for Prometheus.

Servers, workers and hooks are different processes, so every number is read from the store, and none
is counted in this process. What is expensive to read is read once a minute.
"""

import math
import os
import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from hardsave import JobHealth, Stats, TaskStats, Vault
from hardsave.daemon import spool
from hardsave.server.prometheus import TEXT, Metric, Rising, single, text
from hardsave.server.route import Answer, Call, Route
from hardsave.tuples import NamedTuple

STATS_SECONDS = 60  # with 100,000 checkpoints reading them takes a fifth of a second

_JOB_STATES = ("queued", "active", "waiting", "succeeded", "failed", "rolled_back", "forgotten")
_TASK_STATES = ("pending", "in_progress", "completed", "failed", "rolled_back")


class Numbers(NamedTuple):
    """What was read of a vault."""

    saves: int
    missed: int
    jobs: JobHealth
    tasks: TaskStats
    store: Stats


def metrics(numbers: Numbers) -> list[Metric]:
    """The numbers with their names. Pure."""
    return [*_of_saves(numbers), *_of_jobs(numbers.jobs), *_of_tasks(numbers.tasks)]


def _of_saves(numbers: Numbers) -> list[Metric]:
    store = numbers.store
    sizes = {"main": store.disk_bytes - store.backup_bytes, "backup": store.backup_bytes}
    return [
        single(
            "hardsave_checkpoints_saved_total",
            "counter",
            "Checkpoints that were ever saved, also those dropped since.",
            numbers.saves,
        ),
        single(
            "hardsave_saves_missed",
            "gauge",
            "Saves that hooks of this account missed and that no checkpoint lists yet.",
            numbers.missed,
        ),
        single("hardsave_checkpoints", "gauge", "Checkpoints in the store.", store.checkpoints),
        single("hardsave_timelines", "gauge", "Timelines in the store.", store.timelines),
        Metric("hardsave_store_bytes", "gauge", "Size of the store's files.", sizes, "part"),
    ]


def _of_jobs(jobs: JobHealth) -> list[Metric]:
    resumes = {
        "succeeded": jobs.resumes_succeeded,
        "failed": jobs.resumes_failed,
    }
    ratio = jobs.resume_success_ratio
    states = {state: getattr(jobs, state) for state in _JOB_STATES}
    return [
        Metric("hardsave_jobs", "gauge", "Jobs by state.", states, "state"),
        single("hardsave_jobs_unserved", "gauge", "Queued jobs without a worker.", jobs.unserved),
        single("hardsave_jobs_resumable", "gauge", "Jobs that can be resumed.", jobs.resumable),
        single(
            "hardsave_jobs_stale",
            "gauge",
            "Unfinished jobs of which nothing was saved for an hour.",
            jobs.stale,
        ),
        single(
            "hardsave_jobs_near_limit",
            "gauge",
            "Unfinished jobs that have used 90 % of their turns.",
            jobs.near_limit,
        ),
        single(
            "hardsave_job_failures_total",
            "counter",
            "Runs of jobs that ended without success.",
            jobs.failures,
        ),
        Metric(
            "hardsave_resumes_total",
            "counter",
            "Resumptions of jobs that have ended, by result.",
            resumes,
            "result",
        ),
        single("hardsave_resumes_open", "gauge", "Resumptions under way.", jobs.resumes_open),
        single(
            "hardsave_resume_success_ratio",
            "gauge",
            "Of the resumptions that have ended, the share that succeeded; NaN if none has.",
            math.nan if ratio is None else ratio,
        ),
    ]


def _of_tasks(tasks: TaskStats) -> list[Metric]:
    states = {state: getattr(tasks, state) for state in _TASK_STATES}
    return [Metric("hardsave_tasks", "gauge", "Tasks by state, jobs included.", states, "state")]


class Scraper:
    """Reads the numbers of one vault, for one caller at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._rising = Rising()
        self._stats: tuple[float, Stats] | None = None

    def text(self, vault: Vault) -> str:
        with self._turn:
            return text(map(self._rising.shown, metrics(self._read(vault))))

    def _read(self, vault: Vault) -> Numbers:
        return Numbers(
            saves=vault.store.saves(),
            missed=spool.missed_anywhere(os.environ),
            jobs=vault.jobs.health(),
            tasks=vault.tasks.stats(),
            store=self._read_stats(vault),
        )

    def _read_stats(self, vault: Vault) -> Stats:
        now = self._clock()
        if self._stats is None or now - self._stats[0] >= STATS_SECONDS:
            self._stats = now, vault.store.stats()
        return self._stats[1]


_scrapers: "WeakKeyDictionary[Vault, Scraper]" = WeakKeyDictionary()
_making = threading.Lock()


def get(call: Call) -> Answer:
    with _making:
        scraper = _scrapers.setdefault(call.vault, Scraper())
    return Answer(body=scraper.text(call.vault), media_type=TEXT)


ROUTES = (Route("GET", "/metrics", get, scope="read"),)
