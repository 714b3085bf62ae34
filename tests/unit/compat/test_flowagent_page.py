"""The code of FlowAgent's page on checkpoints, as it is printed there but for its imports."""

import asyncio
import subprocess
import sys
import textwrap
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.compat.flowagent import Checkpoint, Message, StandardAgent, WorkflowExecutor
from tests.unit.compat.reader import Reader

QUICK_START = """
from hardsave.compat.flowagent import CheckpointManager, InMemoryCheckpointStorage

# Create checkpoint manager
storage = InMemoryCheckpointStorage()
checkpoint_mgr = CheckpointManager(storage=storage)

# Save checkpoint
checkpoint_id = await checkpoint_mgr.save(agent)

# Later: restore agent
restored_agent = await checkpoint_mgr.restore(checkpoint_id)
"""

IN_MEMORY = """
from hardsave.compat.flowagent import InMemoryCheckpointStorage

storage = InMemoryCheckpointStorage(max_checkpoints=1000)
"""

SQLITE = """
from hardsave.compat.flowagent import SQLiteCheckpointStorage

storage = SQLiteCheckpointStorage(
    db_path="checkpoints.db",
    max_checkpoints_per_user=100
)
"""

CUSTOM = """
from typing import List, Optional
from hardsave.compat.flowagent import CheckpointStorage, Checkpoint

class MyStorage(CheckpointStorage):

    async def save(self, checkpoint: Checkpoint) -> str:
        # Save to your backend
        await self.db.insert(checkpoint.to_dict())
        return checkpoint.id

    async def load(self, checkpoint_id: str) -> Optional[Checkpoint]:
        # Load from your backend
        data = await self.db.find(checkpoint_id)
        return Checkpoint.from_dict(data) if data else None

    async def list_by_user(self, user_id: str, limit: int, offset: int) -> List[Checkpoint]:
        # List user's checkpoints
        return await self.db.find_many(user_id=user_id, limit=limit, offset=offset)
"""

AUTOMATIC = """
from hardsave.compat.flowagent import Orchestrator

orchestrator = Orchestrator(
    agents=[agent],
    checkpoint_manager=checkpoint_mgr,
    auto_checkpoint=True  # Save on every state change
)
"""

MANUAL = """
from hardsave.compat.flowagent import StandardAgent

class MyAgent(StandardAgent):

    async def on_running(self, msg):
        # Do some work
        await self.expensive_operation()

        # Save checkpoint before risky operation
        if self.checkpoint_manager:
            await self.checkpoint_manager.save(self)

        # Continue with risky operation
        await self.risky_operation()
"""

LIST = """
# Get all checkpoints for a user
checkpoints = await checkpoint_mgr.list_by_user(
    user_id="user_123",
    limit=50,
    offset=0
)

for cp in checkpoints:
    print(f"{cp.id}: {cp.status} at {cp.timestamp}")
"""

RESTORE = """
from hardsave.compat.flowagent import Message

# Find checkpoint before the error
checkpoints = await checkpoint_mgr.list_by_user("user_123")
target = next(cp for cp in checkpoints if cp.status == "RUNNING")

# Restore and retry
agent = await checkpoint_mgr.restore(target.id)
result = await agent.reply(Message(content="retry", role="user"))
"""

COMPARE = """
# Compare two checkpoints
diff = await checkpoint_mgr.compare(checkpoint_id_1, checkpoint_id_2)

print(f"Changed fields: {diff.changed_fields}")
print(f"Status: {diff.old_status} -> {diff.new_status}")
"""

WORKFLOW = """
# workflow.yaml
workflow:
  checkpoint: true

steps:
  - name: expensive_step
    agent: ExpensiveAgent
    checkpoint: true  # Save after this step

  - name: risky_step
    agent: RiskyAgent
    checkpoint: true
"""

RESUME = """
result = await executor.run(
    workflow="workflow.yaml",
    checkpoint_id="chk_abc123"  # Resume from here
)
"""

CLEANUP = """
# Clear old checkpoints for a user
deleted_count = await checkpoint_mgr.clear_user_history(user_id="user_123")

# Clear checkpoints older than N days
await checkpoint_mgr.cleanup_old_checkpoints(max_age_days=30)
"""

DATA = """
from dataclasses import dataclass
from datetime import datetime

@dataclass
class Checkpoint:
    id: str                    # Unique identifier
    agent_id: str              # Agent instance ID
    agent_type: str            # Agent class name
    user_id: str               # Tenant/user ID
    status: str                # Agent status at checkpoint
    collected_fields: dict     # Collected field values
    required_fields: list      # Field definitions
    context_summary: str       # Context at checkpoint
    parent_checkpoint_id: str  # Previous checkpoint (for chain)
    timestamp: datetime        # When checkpoint was created
    metadata: dict             # Custom metadata
"""

EVENTS = """
from hardsave.compat.flowagent import Checkpoint

@checkpoint_mgr.on("checkpoint_saved")
async def on_saved(checkpoint: Checkpoint):
    logger.info(f"Saved checkpoint: {checkpoint.id}")

@checkpoint_mgr.on("checkpoint_restored")
async def on_restored(checkpoint: Checkpoint, agent):
    logger.info(f"Restored agent from: {checkpoint.id}")
"""


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, line: str) -> None:
        self.lines.append(line.partition(":")[0])


class Working(StandardAgent):
    """What the page's `MyAgent` does not show."""

    fails = True

    async def expensive_operation(self) -> None:
        self.collected_fields["work"] = "done"

    async def risky_operation(self) -> None:
        if Working.fails:
            raise OSError("it was risky")


def test_the_page_runs_as_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Working.fails = True

    async def session() -> None:
        told = Told()
        reader = Reader(logger=told, Working=Working)
        await reader.types(MANUAL.replace("MyAgent(StandardAgent)", "MyAgent(Working)"))
        mine = reader.names["MyAgent"]
        reader.names["agent"] = agent = mine("agent_1", "user_123")
        await reader.types(QUICK_START)
        assert type(reader.names["restored_agent"]) is mine
        await reader.types(EVENTS, AUTOMATIC)
        (outcome,) = await reader.names["orchestrator"].run("go")
        assert isinstance(outcome.error, OSError)
        await reader.types(LIST)
        saved = reader.names["checkpoints"]
        assert [cp.status for cp in saved] == ["FAILED", "RUNNING", "RUNNING", "IDLE"]
        Working.fails = False
        await reader.types(RESTORE)
        restored = reader.names["agent"]
        assert restored is not agent
        assert (restored.agent_id, restored.status) == ("agent_1", "COMPLETED")
        assert isinstance(reader.names["result"], Message)
        reader.names.update(checkpoint_id_1=saved[3].id, checkpoint_id_2=saved[0].id)
        await reader.types(COMPARE, CLEANUP)
        assert reader.names["deleted_count"] == 5
        saves = ["Saved checkpoint"] * 3
        assert told.lines == [*saves, "Restored agent from", "Saved checkpoint"]

    asyncio.run(session())
    printed = capsys.readouterr().out
    assert "Status: IDLE -> FAILED" in printed
    assert "Changed fields: ['work']" in printed


def test_a_checkpoint_holds_what_is_printed_in_that_order() -> None:
    async def session() -> None:
        reader = Reader()
        await reader.types(IN_MEMORY, DATA)
        assert reader.names["storage"].max_checkpoints == 1000
        printed = [each.name for each in fields(reader.names["Checkpoint"])]
        assert [each.name for each in fields(Checkpoint)][: len(printed)] == printed
        now = datetime(2026, 1, 1, tzinfo=UTC)
        values = ("chk_1", "a", "MyAgent", "u", "RUNNING", {"k": 1}, ["k"], "so far", "chk_0", now)
        theirs = reader.names["Checkpoint"](*values, {"why": "test"})
        ours = Checkpoint(*values, {"why": "test"})
        assert {name: getattr(ours, name) for name in printed} == vars(theirs)

    asyncio.run(session())


def test_a_storage_of_ones_own_runs_as_it_is_printed() -> None:
    class Database:
        def __init__(self) -> None:
            self.rows: dict[str, dict[str, Any]] = {}

        async def insert(self, row: dict[str, Any]) -> None:
            self.rows[row["id"]] = row

        async def find(self, id: str) -> dict[str, Any] | None:
            return self.rows.get(id)

        async def find_many(self, user_id: str, limit: int, offset: int) -> list[Checkpoint]:
            found = [row for row in self.rows.values() if row["user_id"] == user_id]
            return [Checkpoint.from_dict(row) for row in found[::-1][offset : offset + limit]]

    async def session() -> None:
        reader = Reader(agent=StandardAgent("a", "u"))
        await reader.types(CUSTOM)
        mine = reader.names["MyStorage"]()
        mine.db = Database()
        reader.names["mine"] = mine
        await reader.types(QUICK_START.replace("InMemoryCheckpointStorage()", "mine"))
        assert reader.names["restored_agent"].agent_id == "a"
        assert len(mine.db.rows) == 1
        await reader.types(LIST.replace("user_123", "u"))
        assert [cp.id for cp in reader.names["checkpoints"]] == [reader.names["checkpoint_id"]]

    asyncio.run(session())


def test_a_workflow_runs_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("workflow.yaml").write_text(WORKFLOW)
    ran: list[str] = []

    class ExpensiveAgent(StandardAgent):
        async def on_running(self, msg: Message) -> str:
            ran.append("expensive")
            return "dear"

    def risky(inputs: dict[str, Any]) -> str:
        ran.append("risky")
        return "lucky"

    async def session() -> None:
        with hardsave.open("memory://") as vault:
            executor = WorkflowExecutor(
                {"ExpensiveAgent": ExpensiveAgent(), "RiskyAgent": risky}, vault=vault
            )
            begun = await executor.run("workflow.yaml")
            first = vault.timeline(begun.id).get("@~1").id
            reader = Reader(executor=executor)
            await reader.types(RESUME.replace("chk_abc123", first))
            assert reader.names["result"].answers == begun.answers

    asyncio.run(session())
    assert ran == ["expensive", "risky", "risky"]


PROGRAM = """
import asyncio, sys
from hardsave.compat.flowagent import CheckpointManager, StandardAgent
{sqlite}
class MyAgent(StandardAgent):
    async def on_running(self, msg):
        return "here I am"

async def main():
    checkpoint_mgr = CheckpointManager(storage=storage)
    if len(sys.argv) == 1:
        print(await checkpoint_mgr.save(MyAgent("agent_1", "user_123")))
    else:
        agent = await checkpoint_mgr.restore(sys.argv[1])
        print(type(agent).__name__, agent.agent_id, (await agent.reply("where?")).content)
    await storage.close()

asyncio.run(main())
"""


def test_an_agent_comes_back_in_another_process(tmp_path: Path) -> None:
    program = PROGRAM.format(sqlite=textwrap.dedent(SQLITE))

    def run(*args: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *args],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    assert run(run()) == "MyAgent agent_1 here I am"
