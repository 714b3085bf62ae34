"""What `/metrics` tells, as a parser of Prometheus' text form reads it."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import hardsave
from hardsave import JobHealth, Stats, TaskStats
from hardsave.daemon import spool
from hardsave.server import metrics
from hardsave.server.metrics import Numbers, Scraper
from hardsave.server.prometheus import Metric, Rising, single, text

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SAMPLE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?P<label>[a-z]+)="(?P<value>(\\.|[^"\\])*)"\})? '
    r"(?P<number>[0-9.e+-]+|NaN)"
)


class Read(NamedTuple):
    """A metric as a scraper has read it."""

    kind: str
    help: str
    values: dict[str, float]


def read(page: str) -> dict[str, Read]:
    """A strict reader: what Prometheus or promtool complain about is an error here."""
    assert page.endswith("\n")
    found: dict[str, Read] = {}
    helps: dict[str, str] = {}
    for line in page.splitlines():
        if line.startswith("# HELP "):
            _, _, name, help = line.split(" ", 3)
            assert name not in helps, f"a second HELP of {name}"
            assert help[0].isupper()
            assert help.endswith(".")
            helps[name] = help
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in found, f"a second TYPE of {name}"
            assert _NAME.fullmatch(name)
            assert kind in ("counter", "gauge")
            assert (kind == "counter") == name.endswith("_total")
            found[name] = Read(kind, helps[name], {})
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert [*found][-1] == sample["name"], "samples follow their own TYPE"
            label = sample["value"] or ""
            assert label not in found[sample["name"]].values
            found[sample["name"]].values[label] = float(sample["number"])
    assert all(each.values for each in found.values())
    return found


JOBS = JobHealth(
    total=9,
    queued=1,
    unserved=1,
    active=2,
    waiting=1,
    succeeded=2,
    failed=3,
    rolled_back=0,
    forgotten=0,
    resumable=3,
    stale=2,
    near_limit=1,
    failures=6,
    resumes_open=1,
    resumes_succeeded=3,
    resumes_failed=1,
)
TASKS = TaskStats(
    total=9,
    pending=1,
    in_progress=2,
    completed=3,
    failed=3,
    rolled_back=0,
    iterations=0,
    session=None,
)
STORE = Stats(timelines=4, checkpoints=40, objects=100, disk_bytes=5_000, backup_bytes=2_000)
NUMBERS = Numbers(saves=70, missed=5, jobs=JOBS, tasks=TASKS, store=STORE)


def test_every_number_that_was_read_has_a_name() -> None:
    found = read(text(metrics.metrics(NUMBERS)))
    assert {name: each.values for name, each in found.items()} == {
        "hardsave_checkpoints_saved_total": {"": 70},
        "hardsave_saves_missed": {"": 5},
        "hardsave_checkpoints": {"": 40},
        "hardsave_timelines": {"": 4},
        "hardsave_store_bytes": {"main": 3_000, "backup": 2_000},
        "hardsave_jobs": {
            "queued": 1,
            "active": 2,
            "waiting": 1,
            "succeeded": 2,
            "failed": 3,
            "rolled_back": 0,
            "forgotten": 0,
        },
        "hardsave_jobs_unserved": {"": 1},
        "hardsave_jobs_resumable": {"": 3},
        "hardsave_jobs_stale": {"": 2},
        "hardsave_jobs_near_limit": {"": 1},
        "hardsave_job_failures_total": {"": 6},
        "hardsave_resumes_total": {"succeeded": 3, "failed": 1},
        "hardsave_resumes_open": {"": 1},
        "hardsave_resume_success_ratio": {"": 0.75},
        "hardsave_tasks": {
            "pending": 1,
            "in_progress": 2,
            "completed": 3,
            "failed": 3,
            "rolled_back": 0,
        },
    }


def test_without_a_resumption_there_is_no_ratio() -> None:
    none = NUMBERS._replace(jobs=JOBS.replace(resumes_succeeded=0, resumes_failed=0))
    ratio = read(text(metrics.metrics(none)))["hardsave_resume_success_ratio"].values[""]
    assert math.isnan(ratio)


def test_a_label_may_hold_any_text() -> None:
    strange = Metric("some", "gauge", "Some.", {'a"b\\c\nd': 1}, "part")
    assert text([strange]).splitlines()[2] == 'some{part="a\\"b\\\\c\\nd"} 1'


def test_a_counter_never_falls_and_goes_on_from_there() -> None:
    rising = Rising()
    told = [
        rising.shown(single("saves_total", "counter", "Saves.", value)).values[""]
        for value in (10, 12, 7, 9, 9)
    ]
    assert told == [10, 12, 12, 14, 14]
    gauge = single("jobs", "gauge", "Jobs.", 3)
    assert rising.shown(gauge) == gauge


@pytest.fixture
def vault() -> Iterator[hardsave.Vault]:
    with hardsave.open("memory://") as vault:
        yield vault


def test_what_is_saved_is_counted_at_once_and_the_store_measured_once_a_minute(
    vault: hardsave.Vault,
) -> None:
    now = 1_000.0
    scraper = Scraper(lambda: now)

    def told() -> tuple[float, float]:
        found = read(scraper.text(vault))
        names = "hardsave_checkpoints_saved_total", "hardsave_checkpoints"
        saved, stored = (found[name].values[""] for name in names)
        return saved, stored

    line = vault.timeline("main")
    line.save({"n": 1})
    assert told() == (1, 1)
    line.save({"n": 2})
    now += metrics.STATS_SECONDS - 1
    assert told() == (2, 1)
    now += 1
    assert told() == (2, 2)
    vault.store.purge(timeline="main")
    now += metrics.STATS_SECONDS
    assert told() == (2, 0)


def test_missed_saves_of_all_projects_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vault: hardsave.Vault
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    environment = {"XDG_DATA_HOME": str(tmp_path)}

    def missed() -> float:
        return read(Scraper().text(vault))["hardsave_saves_missed"].values[""]

    assert missed() == 0
    for project, times in ((Path("/a"), 2), (Path("/b"), 3)):
        place = spool.folder(environment, project)
        for number in range(times):
            spool.fail(spool.begin(place, f"note-{number}", {"hook": "PostToolUse"}), "disk full")
    assert missed() == 5
