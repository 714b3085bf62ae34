"""`/metrics` over HTTP, while another process works."""

from hardsave.runtime.jobs.worker import Worker
from tests.integration.server.conftest import Server
from tests.unit.cli.jobs_project import agent
from tests.unit.server.test_metrics import read


def test_metrics_tell_what_another_process_has_done(server: Server) -> None:
    assert server.call("GET", "/metrics", headers={}).status_code == 401

    def told(name: str, label: str = "") -> float:
        answer = server.call("GET", "/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return read(answer.text)[name].values[label]

    assert told("hardsave_checkpoints_saved_total") == 0
    with server.vault() as vault:
        vault.jobs.add("fix", "Fix it", max_turns=10)
        Worker(vault, {"default": agent(breaks=True)}).run(until_idle=True)
        assert told("hardsave_jobs", "failed") == told("hardsave_job_failures_total") == 1
        vault.jobs.resume("fix")
        assert told("hardsave_resumes_open") == told("hardsave_jobs_unserved") == 1
        Worker(vault, {"default": agent()}).run(until_idle=True)
        saved = vault.store.saves()
    assert told("hardsave_checkpoints_saved_total") == saved > 3
    assert told("hardsave_resumes_total", "succeeded") == 1
    assert told("hardsave_resume_success_ratio") == 1
    assert told("hardsave_tasks", "completed") == 1
    assert told("hardsave_store_bytes", "main") > 0
