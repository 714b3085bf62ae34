"""`hardsave worker` on a store that many hosts share."""

import signal
import subprocess
import sys
from pathlib import Path

import hardsave
from tests import postgres_server
from tests.integration.workers.crew import until

AGENTS = """
from tests.integration.workers.agents import echoing

AGENTS = {"default": echoing(print)}
MODELS = {}
EVERY_SECOND = {"chime": {"cron": "* * * * * *", "prompt": "strike"}}
"""


def test_it_runs_jobs_and_periodic_ones_and_stops_when_it_is_told(tmp_path: Path) -> None:
    url, agents = postgres_server.url_of(tmp_path), tmp_path / "agents.py"
    agents.write_text(AGENTS)
    options = [
        *("worker", "--store", url, "--agents", f"{agents}:AGENTS", "--models", f"{agents}:MODELS"),
        *("--periodic", f"{agents}:EVERY_SECOND", "--lease-seconds", "3.5", "--concurrency", "2"),
        *("--log", str(tmp_path / "log")),
    ]
    root = Path(__file__).parents[3]
    with hardsave.open(url) as vault:
        vault.jobs.add("fix", "Fix it")
        worker = subprocess.Popen([sys.executable, "-m", "hardsave", *options], cwd=root)
        until(lambda: vault.jobs.get("fix").state == "succeeded")
        until(lambda: any(job.id.startswith("chime-") for job in vault.jobs.every()))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
        assert vault.tasks.stats().in_progress == 0
    assert "fix: attempt 1 of 4, Fix it" in (tmp_path / "log").read_text()
