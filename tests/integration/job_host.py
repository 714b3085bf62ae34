"""A worker on a host of its own, for `test_jobs_on_two_hosts`.

python -m tests.integration.job_host URL LEASE_SECONDS

It tells in lines of JSON what each attempt finds and saves. A job changes files in each attempt,
and then waits: for its end, or for a line on standard input, after which it goes on or is done.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.host import processes
from hardsave.stores.postgres import PostgresStore
from hardsave.vault.jobs.state import Job
from tests.integration import job_files
from tests.integration.hosted import FIRST_NUMBERING

CHANGED = 20  # files in each attempt
_telling = threading.Lock()


def tell(**what: Any) -> None:
    with _telling:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


def agent_of(vault: hardsave.Vault, job: Job) -> Agent[None, Any]:
    at = time.monotonic()  # of all hosts of one kernel
    root, attempt = Path(str(job.spec.workspace)), job.attempts
    head = vault.timeline(job.lineage).get("@")
    is_equal = job_files.on_disk(root) == job_files.saved(head)
    tell(job=job.lineage, attempt=attempt, at=at, root=str(root), equal=is_equal, seq=head.seq)
    asked = 0

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal asked
        asked += 1
        if asked == 1:
            return ModelResponse(parts=[ToolCallPart("change", {}, tool_call_id=f"id-{attempt}")])
        tell(job=job.lineage, saved=attempt)
        if json.loads(sys.stdin.readline())["done"]:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("change", {}, tool_call_id=f"more-{asked}")])

    agent: Agent[None, Any] = Agent(FunctionModel(say))

    @agent.tool_plain
    def change() -> str:
        """Change some files, remove one, and add one."""
        stamp = job_files.stamp(job.lineage, attempt)
        files = sorted(path for path in root.rglob("*") if path.is_file())
        for path in files[attempt :: max(1, len(files) // CHANGED)]:
            path.write_text(f"{stamp}{path.name} {asked}\n")
            path.chmod(0o755 if attempt % 2 else 0o644)
        if files:
            files[-1].unlink()
        (root / f"made-{attempt}-{asked}").write_text(stamp)
        return "changed"

    return agent


def main() -> None:
    url, lease = sys.argv[1:]
    processes.space = lambda pid="self": FIRST_NUMBERING
    with hardsave.Vault(PostgresStore(url)) as vault:
        worker = Worker(vault, {"default": lambda job: agent_of(vault, job)}, unknown="retry")
        tell(ready=True)
        worker.run(lease_seconds=float(lease), grace_seconds=0)


if __name__ == "__main__":
    main()
