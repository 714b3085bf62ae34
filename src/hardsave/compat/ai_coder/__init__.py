"""AI Coder's checkpoints of an agent's loop, with its manager in Python spelling, awaited.

    checkpoint = await checkpoint_manager.load_checkpoint(job_id)
    print(f"goes on at turn {checkpoint.turns}")
    active = await checkpoint_manager.list_active_checkpoints()

Where the original falls short, this does what was meant: a save is in the history and does not
overwrite the one before, `has` and `load` agree, and `ready_messages` are accepted by a model
also if the agent was stopped between a tool call and its result.
"""

from hardsave.compat.ai_coder.manager import CheckpointManager, checkpoint_manager
from hardsave.compat.ai_coder.records import AgentCheckpoint, CheckpointMetadata

__all__ = ["AgentCheckpoint", "CheckpointManager", "CheckpointMetadata", "checkpoint_manager"]
