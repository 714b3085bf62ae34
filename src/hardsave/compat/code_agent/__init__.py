"""Crash recovery for a server of tasks, with the interface of CodeAgent's checkpoint manager.

checkpoint = CheckpointManager(project_dir)
checkpoint.mark_server_start(session_id)
checkpoint.add_task("task_001", "Implement the function")
checkpoint.mark_task_start("task_001")
checkpoint.mark_task_completed("task_001")
checkpoint.mark_server_stop(clean=True)
"""

from hardsave.compat.code_agent.beside import SessionTracker, StatusManager, TaskLogger
from hardsave.compat.code_agent.manager import CheckpointManager
from hardsave.compat.code_agent.records import TaskCheckpoint, TaskState

__all__ = [
    "CheckpointManager",
    "SessionTracker",
    "StatusManager",
    "TaskCheckpoint",
    "TaskLogger",
    "TaskState",
]
