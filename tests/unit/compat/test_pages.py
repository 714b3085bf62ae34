"""The code that other checkpoint libraries show on their pages, as it is printed there but for its
import lines, and the commands that stand beside it. FlowAgent's page has a module of its own."""

import asyncio
import inspect
import io
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hardsave.cli.main import main
from hardsave.compat import breakpilot, code_agent
from hardsave.compat.ai_coder import AgentCheckpoint
from hardsave.config import CODE_AGENT_FILE, trust
from tests.unit.compat.reader import Reader


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HARDSAVE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


# CodeAgent

PROGRAM = """
from hardsave.compat.code_agent import CheckpointManager

checkpoint = CheckpointManager(project_dir)

checkpoint.mark_server_start(session_id)

checkpoint.add_task("task_001", "Реализовать функцию")

checkpoint.mark_task_start("task_001")
# ... the work of the task ...
checkpoint.mark_task_completed("task_001")

checkpoint.mark_server_stop(clean=True)
"""

STATUS = """
self.status_manager.append_status(
    f"Восстановление после сбоя. Незавершенных задач: {count}",
    level=2
)
"""

SESSION = """
session_id = self.session_tracker.current_session_id
checkpoint.mark_server_start(session_id)
"""

LOGGED = """
task_logger = TaskLogger(task_id, task_text)
checkpoint.mark_task_start(task_id)
"""

CONFIGURED = """
server:
  checkpoint:
    enabled: true
    checkpoint_file: ".codeagent_checkpoint.json"
    max_task_attempts: 3
    keep_completed_tasks: 100
"""

RECOMMENDED = [
    "max_task_attempts: 1\nkeep_completed_tasks: 50\n",
    "max_task_attempts: 3\nkeep_completed_tasks: 200\n",
    "max_task_attempts: 5\nkeep_completed_tasks: 500\n",
]


def test_code_agents_program_runs_as_it_is_printed(project: Path) -> None:
    async def session() -> None:
        reader = Reader(project_dir=project, session_id="session_001")
        await reader.types(PROGRAM)
        checkpoint = reader.names["checkpoint"]
        assert checkpoint.is_task_completed("Реализовать функцию")
        assert checkpoint.was_clean_shutdown()
        shown = json.loads((project / ".codeagent_checkpoint.json").read_text())
        assert (shown["session_id"], shown["current_task"]) == ("session_001", None)
        assert shown["server_state"]["clean_shutdown"] is True
        assert (project / ".codeagent_checkpoint.json.backup").exists()
        checkpoint.close()

    asyncio.run(session())


def test_what_stands_beside_code_agents_manager_runs_as_it_is_printed(project: Path) -> None:
    class Server:
        status_manager = code_agent.StatusManager(project / "status.md")
        session_tracker = code_agent.SessionTracker()

    async def session() -> None:
        checkpoint = code_agent.CheckpointManager(project)
        checkpoint.add_task("t", "do it")
        known: dict[str, Any] = {"task_id": "t", "task_text": "do it", "count": 2}
        reader = Reader(self=Server(), checkpoint=checkpoint, **known)
        reader.names["TaskLogger"] = code_agent.TaskLogger
        await reader.types(STATUS, SESSION, LOGGED)
        current = checkpoint.get_current_task()
        assert current is not None
        assert current["task_id"] == "t"
        assert checkpoint.get_statistics()["session_id"] == reader.names["session_id"]
        checkpoint.mark_server_stop()
        checkpoint.close()

    asyncio.run(session())
    said = (project / "status.md").read_text()
    assert said.startswith("## Восстановление после сбоя. Незавершенных задач: 2\n")


@pytest.mark.parametrize("settings", ["", *RECOMMENDED])
def test_code_agents_settings_count_as_they_are_printed(
    project: Path, settings: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = yaml.safe_load(CONFIGURED)
    said["server"]["checkpoint"] |= yaml.safe_load(settings) or {}
    file = project / CODE_AGENT_FILE
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(said) if settings else CONFIGURED)
    assert main(["trust", "--yes"]) == 0
    checkpoint = code_agent.CheckpointManager(project)
    assert checkpoint.checkpoint_file.name == ".codeagent_checkpoint.json"
    found = checkpoint._tasks._settings
    expected = said["server"]["checkpoint"]
    assert found.max_attempts == expected["max_task_attempts"]
    assert found.keep_completed == expected["keep_completed_tasks"]
    assert caplog.text == ""
    checkpoint.close()
    read = trust.look_code_agent(project)
    assert read is not None
    assert len(read.found) == 4


MAIN = """
import os, signal, sys
from hardsave.compat.code_agent import CheckpointManager

checkpoint = CheckpointManager(os.getcwd())
for name in ("one", "two", "three"):
    if checkpoint.get_task(name) is None:
        checkpoint.add_task(name, f"do {name}")
recovery_info = checkpoint.get_recovery_info()
if not recovery_info["was_clean_shutdown"]:
    print("not clean:", recovery_info["current_task"]["task_text"])
checkpoint.mark_server_start(f"session_{os.getpid()}")
try:
    for task in checkpoint.get_incomplete_tasks():
        if not checkpoint.should_retry_task(task["task_id"]):
            continue
        checkpoint.mark_task_start(task["task_id"])
        if sys.argv[1:] == [task["task_id"], "killed"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1:] == [task["task_id"], "interrupted"]:
            raise KeyboardInterrupt
        print("ran", task["task_id"], flush=True)
        checkpoint.mark_task_completed(task["task_id"])
except KeyboardInterrupt:
    pass
checkpoint.mark_server_stop(clean=True)
"""


def test_a_server_goes_on_after_ctrl_c_and_after_a_crash(project: Path) -> None:
    """python main.py, three times."""
    (project / "main.py").write_text(MAIN)

    def run(*arguments: str) -> tuple[int, list[str]]:
        command = [sys.executable, "-W", "ignore", "main.py", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=os.environ
        )
        return done.returncode, done.stdout.splitlines()

    assert run("one", "interrupted") == (0, [])
    assert run("two", "killed") == (-signal.SIGKILL, ["ran one"])
    assert run() == (0, ["not clean: do two", "ran two", "ran three"])
    assert run() == (0, [])


# AI Coder, in Python spelling

LOADED = """
from hardsave.compat.ai_coder import checkpoint_manager

# Look at a checkpoint
checkpoint = await checkpoint_manager.load_checkpoint(job_id)
print(f"Job pode retomar do turn {checkpoint.turns}")

# List all
active = await checkpoint_manager.list_active_checkpoints()
"""


def test_ai_coders_program_and_its_scripts(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scripts beside it list, inspect and resume: here these are commands."""

    async def session() -> None:
        reader = Reader(job_id="123")
        await reader.types("from hardsave.compat.ai_coder import checkpoint_manager\n")
        messages = [{"role": "user", "content": "Fix the bug"}]
        saved = AgentCheckpoint("123", "w-1", "Fix the bug", messages, turns=7, max_turns=50)
        await reader.names["checkpoint_manager"].save_checkpoint(saved)
        await reader.types(LOADED)
        assert reader.names["active"] == ["123"]
        await reader.names["checkpoint_manager"].close()

    asyncio.run(session())
    assert capsys.readouterr().out == "Job pode retomar do turn 7\n"
    for words, shown in (
        (["jobs"], "123"),
        (["jobs", "show", "123"], "7"),
        (["jobs", "show", "123", "--verbose"], "Fix the bug"),
        (["jobs", "resume", "123"], "123~2"),
    ):
        assert main(words) == 0, words
        assert shown in capsys.readouterr().out


# The checkpoint skill

CREATE = """
from hardsave.compat.skill import CheckpointManager

manager = CheckpointManager(project_dir)
checkpoint = await manager.create_checkpoint(
    name="before-refactor",
    description="State before major refactoring"
)
"""

ROLL_BACK = """
await manager.rollback(checkpoint.id)
# or rollback to latest
await manager.rollback_to_latest()
"""

STRUCTURE = """
{
  "id": "checkpoint-20250115-103000",
  "name": "before-refactor",
  "description": "State before major refactoring",
  "timestamp": "2025-01-15T10:30:00",
  "git_state": {
    "commit_hash": "abc1234",
    "branch": "main",
    "dirty_files": ["src/app.ts"]
  },
  "feature_state": {
    "current": "auth-003",
    "completed": ["auth-001", "auth-002"],
    "snapshot_path": ".claude/checkpoints/checkpoint-xxx/feature_list.json"
  },
  "context": {
    "session_number": 5,
    "token_usage": 45000
  }
}
"""


def shape(value: Any) -> Any:
    """The keys of a record, all the way down."""
    return {key: shape(each) for key, each in value.items()} if isinstance(value, dict) else None


def test_the_skills_program_runs_as_it_is_printed(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src/app.ts").write_text("before\n")
    listed = [{"id": "auth-001", "passes": True}, {"id": "auth-003", "status": "in_progress"}]
    (project / "feature_list.json").write_text(json.dumps(listed))

    async def session() -> None:
        reader = Reader(project_dir=project)
        await reader.types(CREATE)
        id = reader.names["checkpoint"].id
        (project / "src/app.ts").write_text("broken\n")
        (project / "src/new.tmp").touch()
        (project / "feature_list.json").write_text("[]")
        await reader.types(ROLL_BACK)
        assert (project / "src/app.ts").read_text() == "before\n"
        assert not (project / "src/new.tmp").exists()
        assert json.loads((project / "feature_list.json").read_text()) == listed
        record = json.loads((project / f".claude/checkpoints/{id}/checkpoint.json").read_text())
        printed = json.loads(STRUCTURE)
        assert {**shape(printed), **shape(record)} == shape(record)
        assert record["feature_state"]["snapshot_path"] == printed["feature_state"][
            "snapshot_path"
        ].replace("checkpoint-xxx", id)
        reader.names["manager"].close()

    asyncio.run(session())


# Breakpilot: its page is the class itself

SIGNATURES = {
    "__init__": "self, session_id, max_checkpoints=100, compress_after=50",
    "create": "self, name, data, metadata=None",
    "get": "self, checkpoint_id",
    "get_by_name": "self, name",
    "get_latest": "self, name=None",
    "get_all": "self",
    "get_since": "self, timestamp",
    "get_between": "self, start, end",
    "rollback_to": "self, checkpoint_id",
    "clear": "self",
    "get_summary": "self",
    "on_checkpoint": "self, callback",
    "export": "self",
    "import_checkpoints": "self, json_data",
    "__len__": "self",
    "__iter__": "self",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_breakpilots_methods_are_called_as_they_are_printed(name: str) -> None:
    parameters = inspect.signature(getattr(breakpilot.CheckpointManager, name)).parameters.values()
    taken = [
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in parameters
        if each.kind is not each.KEYWORD_ONLY
    ]
    assert ", ".join(taken) == SIGNATURES[name]


USED = """
from hardsave.compat.breakpilot import Checkpoint, CheckpointManager

manager = CheckpointManager(session_id="session", max_checkpoints=100, compress_after=50)
manager.on_checkpoint(callback=seen.append)
started = manager.create(name="task_started", data={"step": 1}, metadata={"by": "agent"})
done = manager.create("task_done", {"step": 2})

assert manager.get(started.id) == started
assert manager.get_by_name("task_done") == [done]
assert manager.get_latest() == done
assert manager.get_latest("task_started") == started
assert manager.get_all() == list(manager) == [started, done]
assert manager.get_since(started.timestamp) == [done]
assert manager.get_between(started.timestamp, done.timestamp) == [started, done]
assert manager.rollback_to(started.id) == {"step": 1}
assert manager.rollback_to("session:9") is None

summary = manager.get_summary()
exported = manager.export()
assert Checkpoint.from_dict(started.to_dict()) == started

other = CheckpointManager("session")
assert other.import_checkpoints(exported) == 2
assert other.export() == exported
cleared = manager.clear()
"""


def test_breakpilots_class_is_used_as_it_is_printed() -> None:
    async def session() -> None:
        seen: list[breakpilot.Checkpoint] = []
        reader = Reader(seen=seen)
        await reader.types(USED)
        assert [each.id for each in seen] == ["session:1", "session:2"]
        assert all(each.timestamp.tzinfo is UTC for each in seen)
        first, last = (each.to_dict() for each in seen)
        assert reader.names["summary"] == {
            "total_count": 2,
            "unique_names": 2,
            "names": {"task_started": 1, "task_done": 1},
            "first_checkpoint": first,
            "last_checkpoint": last,
            "duration_seconds": (seen[1].timestamp - seen[0].timestamp).total_seconds(),
        }
        assert list(first) == ["id", "name", "timestamp", "data", "metadata"]
        assert datetime.fromisoformat(first["timestamp"]) == seen[0].timestamp
        assert reader.names["cleared"] == 2
        assert len(reader.names["manager"]) == 0

    asyncio.run(session())
