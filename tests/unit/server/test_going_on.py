"""After a rewind over HTTP, the answer has the command that goes on with the agent."""

import json
import os
from pathlib import Path

import pytest

import hardsave
from hardsave.vault.workspaces.projects import own_store
from tests.unit.agents.test_claude_code import CALL, HELLO, RESULT, state, written
from tests.unit.server.api_client import ApiClient
from tests.unit.server.job_server import OWN_TOKEN, serving

ANY = {"If-Match": "*"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def test_the_conversation_of_the_moment_is_made_ready(tmp_path: Path, work: Path) -> None:
    room = tmp_path / "claude" / "projects" / "-p"
    room.mkdir(parents=True)
    path = written(room, HELLO, CALL, RESULT)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with hardsave.open(url) as vault:
        line = vault.timeline("claude-s-1")
        stop = {"hook": "Stop"}
        line.save(state(path, HELLO), workspace=work, metadata=stop)
        line.save(state(path, HELLO, CALL, RESULT), workspace=work, metadata=stop)
    with serving(url, tmp_path) as server, ApiClient(server.port, OWN_TOKEN) as client:
        asked = {"timeline": "claude-s-1", "ref": ":1"}
        done = client.send("POST", "/api/v1/rewind", asked, ANY).data
        (copy,) = (each for each in room.iterdir() if each != path)
        told = done["going_on"]
        assert told["command"].endswith(f"claude --resume {copy.stem}")
        assert told["agent"] == "claude-code"
        assert json.loads(copy.read_text().splitlines()[0])["sessionId"] == copy.stem
        files = client.send("POST", "/api/v1/rewind", {**asked, "what": "files"}, ANY).data
        assert files["going_on"] is None  # the conversation stays where it is
        back = client.send("POST", "/api/v1/undo", {"timeline": "claude-s-1"}).data
        assert "claude --resume s-1" in back["going_on"]["command"]
        other = client.send(
            "POST", "/api/v1/fork", {"ref": "claude-s-1:1", "name": "try", "directory": "try"}
        ).data
        assert other["going_on"]["agent"] == "claude-code"
        assert (work.with_name("try") / "a.txt").read_text() == "one\n"
    again, _ = own_store(os.environ, work.with_name("try"))
    assert again == url  # commands that are typed there go on with this store
