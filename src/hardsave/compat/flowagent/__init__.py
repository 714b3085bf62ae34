"""FlowAgent's checkpoints: records, storages and their manager, awaited.

storage = SQLiteCheckpointStorage(db_path="checkpoints.db", max_checkpoints_per_user=100)
manager = CheckpointManager(storage=storage)
checkpoints = await manager.list_by_user("user_123", limit=50, offset=0)
"""

from hardsave.compat.flowagent.manager import CheckpointManager
from hardsave.compat.flowagent.records import Checkpoint, Comparison
from hardsave.compat.flowagent.storage import (
    CheckpointStorage,
    InMemoryCheckpointStorage,
    SQLiteCheckpointStorage,
)
from hardsave.compat.flowagent.tree import Tree
from hardsave.runtime.agent import Message, StandardAgent, Status
from hardsave.runtime.orchestrator import Orchestrator
from hardsave.runtime.registry import Agents
from hardsave.runtime.workflow import WorkflowExecutor

__all__ = [
    "Agents",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointStorage",
    "Comparison",
    "InMemoryCheckpointStorage",
    "Message",
    "Orchestrator",
    "SQLiteCheckpointStorage",
    "StandardAgent",
    "Status",
    "Tree",
    "WorkflowExecutor",
]
