"""Signed callbacks from end to end: the command line, a server, workers and a receiver, each a
process or a socket of its own."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from hardsave.errors import Misuse
from hardsave.runtime import verify_webhook
from tests.integration.server.conftest import HARDSAVE, LIMIT, Server, Start, environment
from tests.integration.server.test_documented_routes import AGENTS, heard, worker
from tests.unit.runtime.listener import Listener, listening


def typed(server: Server, tmp_path: Path, *arguments: str) -> Any:
    """The answer of `hardsave webhook …` for the store of the server."""
    ran = subprocess.run(
        [*HARDSAVE, "webhook", *arguments, "--json", "--store", server.store],
        cwd=server.folder,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    return json.loads(ran.stdout)


def queue(server: Server, listener: Listener) -> str:
    asked = {
        "task": "Fix it",
        "agent": "coder",
        "workspace": str(server.folder),
        "callback": {"url": listener.url},
    }
    answer = server.call("POST", "/webhook", json=asked)
    assert answer.status_code == 202, answer.text
    id: str = answer.json()["jobId"]
    return id


def test_callbacks_are_signed_while_a_secret_is_replaced_and_stop_at_410(
    start: Start, tmp_path: Path
) -> None:
    server = start("--allow-agent", "coder", "--allow-workspace", ".")
    (server.folder / "agents.py").write_text(AGENTS)
    with listening() as listener:
        old = typed(server, tmp_path, "add", "--for", listener.url)
        with worker(server, tmp_path):
            first = queue(server, listener)
            heard(listener, 1)
            new = typed(server, tmp_path, "add", "--for", listener.url, "--overlap", "24h")
            queue(server, listener)
            heard(listener, 2)
            typed(server, tmp_path, "remove", old["id"])
            listener.status = 410
            queue(server, listener)
            heard(listener, 3)
        verifies = [
            [is_verified(each["secret"], listener, at) for each in (old, new)] for at in range(3)
        ]
        assert verifies == [[True, False], [True, True], [False, True]]
        assert verify_webhook(old["secret"], *listener.requests[0])["jobId"] == first
        for place in filter(Path.is_file, [tmp_path / "worker", *tmp_path.glob("served.db*")]):
            assert new["secret"].encode() not in place.read_bytes()

        [gone] = typed(server, tmp_path, "list")["disabled"]
        assert f"hardsave webhook enable {gone['id']}" in (tmp_path / "worker").read_text()
        listener.status = 200
        with worker(server, tmp_path):
            unsent = queue(server, listener)
            assert f"webhook enable {gone['id']}" in why_unsent(server, unsent)
            typed(server, tmp_path, "enable", gone["id"])
            last = queue(server, listener)
            assert [told["jobId"] for told in heard(listener, 4)][3:] == [last]


def is_verified(secret: str, listener: Listener, at: int) -> bool:
    try:
        verify_webhook(secret, *listener.requests[at])
    except Misuse:
        return False
    return True


def why_unsent(server: Server, job: str) -> str:
    """Why the notice of a job has failed, once it has."""
    end = time.monotonic() + LIMIT
    with server.vault() as vault:
        while True:
            for each in vault.tasks.find(state="failed", limit=9):
                if each.id.startswith(f"{job}/notice"):
                    return each.error or ""
            assert time.monotonic() < end
            time.sleep(0.05)
