"""The documented routes as their document has them: curl, a server, a worker and a receiver."""

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hardsave
from tests.docs.pages import DOCS, blocks
from tests.integration.server.conftest import HARDSAVE, LIMIT, Server, Start, environment
from tests.unit.runtime.listener import Listener, listening

AGENTS = """
import time
from pathlib import Path
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def say(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("note", {}, tool_call_id="id-1")])
    if Path("../broken").exists():
        raise OSError("the model is gone")
    return ModelResponse(parts=[TextPart("all done")])

agent = Agent(FunctionModel(say, model_name="scripted"))

@agent.tool_plain
def note() -> str:
    while Path("../slow").exists():
        time.sleep(0.05)
    return "noted"

AGENTS = {"coder": agent}
"""

CAN_RESUME = "curl http://localhost:3000/checkpoints/123/can-resume"
RESUME = """\
curl -X POST http://localhost:3000/checkpoints/123/resume \\
  -H "Content-Type: application/json" \\
  -d '{"callback": {"url": "https://webhook.site/..."}}'
"""
RESUME_WITHOUT_A_BODY = "curl -X POST http://localhost:3000/checkpoints/123/resume"
LIST = "curl http://localhost:3000/checkpoints"
SHOW = "curl http://localhost:3000/checkpoints/123"
DELETE = "curl -X DELETE http://localhost:3000/checkpoints/123"
WEBHOOK = """\
curl -X POST http://localhost:3000/webhook \\
  -H "Content-Type: application/json" \\
  -d '{"task": "Fix it", "agent": "coder", "workspace": "WORKSPACE", "callback": {"url": "URL"}}'
"""


class Curl:
    """Runs a command as it is printed, with port, job and addresses filled in."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def __call__(self, printed: str, *, job: str = "123", **words: str) -> tuple[int, Any]:
        port = self.server.url.rpartition(":")[2]
        command = printed.replace(":3000", f":{port}").replace("/123", f"/{job}")
        for word, value in words.items():
            command = command.replace(word, value)
        command = command.replace("curl ", "curl -s -w '\\n%{http_code}' ")
        ran = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=LIMIT, check=True
        )
        body, _, status = ran.stdout.rpartition("\n")
        return int(status), json.loads(body)

    def wait(self, job: str, wanted: Callable[[Any], bool]) -> None:
        """Until `can-resume` tells so."""
        end = time.monotonic() + LIMIT
        while not wanted(told := self(CAN_RESUME, job=job)[1]):
            assert time.monotonic() < end, told
            time.sleep(0.1)


@pytest.fixture
def curl(start: Start) -> Curl:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed: the commands of the document were NOT run")
    server = start("--open-loopback", "--allow-agent", "coder", "--allow-workspace", ".")
    (server.folder / "agents.py").write_text(AGENTS)
    return Curl(server)


@contextmanager
def worker(server: Server, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A real worker, for as long as the block takes; it ends well, or was killed."""
    with open(tmp_path / "worker", "w") as said:
        command = [*HARDSAVE, "worker", "--agents", "agents.py:AGENTS", "--store", server.store]
        process = subprocess.Popen(
            [*command, "--allow-private-callbacks"],
            cwd=server.folder,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            yield process
        finally:
            process.terminate()
            code = process.wait(LIMIT)
    assert code in (0, -signal.SIGKILL), (tmp_path / "worker").read_text()


def heard(listener: Listener, count: int) -> list[dict[str, Any]]:
    """What a receiver was told, once it was told so much."""
    end = time.monotonic() + LIMIT
    while len(listener.got) < count:
        assert time.monotonic() < end, listener.got
        time.sleep(0.05)
    return [told for _, _, told in listener.got]


def test_a_job_is_queued_fails_and_is_resumed_with_the_documents_commands(
    curl: Curl, tmp_path: Path
) -> None:
    broken = curl.server.folder.parent / "broken"  # outside: a resumption restores the files
    broken.touch()
    with listening() as first, listening() as second, worker(curl.server, tmp_path):
        status, told = curl(WEBHOOK, WORKSPACE=str(curl.server.folder), URL=first.url)
        assert (status, told["status"]) == (202, "waiting")
        id = told["jobId"]
        [failure] = heard(first, 1)
        assert failure.pop("completedAt")
        assert failure == {
            "jobId": id,
            "status": "failed",
            "success": False,
            "message": "OSError: the model is gone",
            "error": "OSError: the model is gone",
        }
        status, told = curl(CAN_RESUME, job=id)
        known = {"jobId": id, "canResume": True, "hasCheckpoint": True, "jobStatus": "failed"}
        assert (status, told) == (200, known)
        assert [each["jobId"] for each in curl(LIST)[1]["checkpoints"]] == [id]
        assert curl(SHOW, job=id)[1]["metadata"]["canResume"] is True

        broken.unlink()
        status, told = curl(RESUME.replace("https://webhook.site/...", second.url), job=id)
        assert (status, told["originalJobId"], told["newJobId"]) == (200, id, f"{id}~2")
        assert told["resumedFrom"]["turns"] == 1
        [success] = heard(second, 1)
        assert success.pop("completedAt")
        assert success == {
            "jobId": f"{id}~2",
            "status": "completed",
            "success": True,
            "message": "all done",
        }
        assert len(first.got) == 1  # the receiver of the first run is not told
        assert curl(LIST) == (200, {"total": 0, "checkpoints": []})
        assert curl(RESUME, job=id)[0] == 400
        assert curl(DELETE, job=id)[0] == 404


def test_a_job_whose_worker_was_killed_is_resumed_by_another(curl: Curl, tmp_path: Path) -> None:
    slow, submitted = (
        curl.server.folder.parent / "slow",
        WEBHOOK.replace(', "callback": {"url": "URL"}', ""),
    )
    slow.touch()
    with worker(curl.server, tmp_path) as killed:
        id = curl(submitted, WORKSPACE=str(curl.server.folder))[1]["jobId"]
        curl.wait(id, lambda told: told["jobStatus"] == "active" and told["hasCheckpoint"])
        assert curl(RESUME, job=id)[0] == 400
        killed.kill()
    if curl.server.store.startswith("postgresql"):  # of which another worker takes it up by itself
        curl.wait(id, lambda told: told["jobStatus"] == "waiting")
        slow.unlink()
    else:
        curl.wait(id, lambda told: told["canResume"])
        slow.unlink()
        assert curl(RESUME_WITHOUT_A_BODY, job=id)[0] == 200
    with worker(curl.server, tmp_path):
        curl.wait(id, lambda told: told["jobStatus"] == "completed")


def test_a_receiver_that_is_not_there_fails_no_job(curl: Curl, tmp_path: Path) -> None:
    with listening() as gone:
        url = gone.url
    with worker(curl.server, tmp_path), curl.server.vault() as vault:
        id = curl(WEBHOOK, WORKSPACE=str(curl.server.folder), URL=url)[1]["jobId"]
        end = time.monotonic() + LIMIT
        while not any(task.error for task in vault.tasks.find(state="pending")):
            assert time.monotonic() < end
            time.sleep(0.1)
        assert vault.jobs.get(id).state == "succeeded"


def test_the_commands_of_the_document_run_as_printed(curl: Curl) -> None:
    assert curl(CAN_RESUME)[1]["canResume"] is False
    assert curl(RESUME)[0] == curl(SHOW)[0] == curl(DELETE)[0] == 404
    with curl.server.vault() as vault:
        failed(vault)
        assert curl(CAN_RESUME)[1]["canResume"] is True
        assert curl(RESUME)[1]["newJobId"] == "123~2"
        assert vault.jobs.get("123").spec.callback == "https://webhook.site/..."
        assert curl(RESUME_WITHOUT_A_BODY)[0] == 400
        vault.tasks.cancel("123~2")
        assert curl(RESUME_WITHOUT_A_BODY)[1]["newJobId"] == "123~3"
        assert curl(DELETE)[0] == 200
        assert curl(DELETE)[0] == 404


def failed(vault: hardsave.Vault) -> None:
    """Job 123, as a worker leaves it that has failed after a turn."""
    job = {"lineage": "123", "prompt": "Fix it", "id": "123"}
    vault.jobs.add("123", "Fix it")
    vault.timeline("123").save(
        {
            "messages": [{"role": "user", "content": "Fix it"}],
            "data": {"content": {"job": job}},
            "turn": 1,
            "status": "running",
            "model": None,
            "error": None,
            "output": {"content": None},
        }
    )
    vault.tasks.cancel("123")


def test_the_commands_of_the_page_are_answered_as_it_says(curl: Curl, tmp_path: Path) -> None:
    with curl.server.vault() as vault:
        failed(vault)
    (block,) = blocks(DOCS / "howto" / "server-jobs.md", "bash")
    steps = re.findall(r"^# (\d+): .*\n((?:(?!#).*\n)+)", block, re.MULTILINE)
    assert len(steps) == block.count("curl ") == 8
    for status, command in steps:
        told = curl(command, **{"/srv/shop": str(curl.server.folder)})
        assert told[0] == int(status), (command, told)
    undo = [*HARDSAVE, "undo", "--timeline", "123", "--store", curl.server.store]
    subprocess.run(undo, cwd=curl.server.folder, env=environment(tmp_path), check=True)
    assert curl(CAN_RESUME)[1]["canResume"] is True


@pytest.mark.parametrize("header", ["Host: evil.example", "Origin: http://evil.example"])
def test_without_a_token_the_address_and_the_site_are_still_checked(
    curl: Curl, header: str
) -> None:
    for printed in (LIST, RESUME, DELETE, WEBHOOK):
        status, told = curl(f"{printed.rstrip()} -H '{header}'")
        assert (status, told.keys()) == (403, {"error", "message"})
