"""`/readyz` while its store is taken away, in one process with the server."""

import http.client
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hardsave
from tests.unit.server.job_server import LIMIT, Client, serving


def removed(store: Path) -> None:
    store.rename(store.with_suffix(".away"))


def replaced(store: Path) -> None:
    shutil.copy(store, store.with_suffix(".copy"))
    store.with_suffix(".copy").rename(store)


def damaged(store: Path) -> None:
    with open(store, "r+b") as file:
        file.write(b"\0" * 100)


def ready(client: Client) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=LIMIT)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("harm", [removed, replaced, damaged])
def test_a_store_that_cannot_be_used_is_not_ready_and_its_path_is_not_told(
    tmp_path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "kept" / "secret-name.db"
    store.parent.mkdir()
    hardsave.open(f"sqlite:///{store}").close()
    with serving(f"sqlite:///{store}", tmp_path) as client:
        assert ready(client) == (200, {"status": "ok"})
        harm(store)
        before = {path: path.stat().st_mtime_ns for path in store.parent.iterdir()}
        status, body = ready(client)
        assert status in (500, 503)
        assert body["code"] in ("damaged", "unavailable")
        assert "secret-name" not in json.dumps(body)
        assert f"request {body['request_id']}" in caplog.text
        assert "secret-name.db" in caplog.text
        assert {path: path.stat().st_mtime_ns for path in store.parent.iterdir()} == before
