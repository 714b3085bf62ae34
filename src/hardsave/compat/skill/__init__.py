"""Checkpoints of a project for autonomous coding, with the interface of the checkpoint skill.

    manager = CheckpointManager(project_dir)
    checkpoint = await manager.create_checkpoint(name="before-refactor")
    await manager.rollback(checkpoint.id)

The vault is the truth: each checkpoint holds all files of the project, not just the names of
those that changed. `.claude/checkpoints/ID/` is a readable mirror of it. A rollback first
saves what is there, touches no ignored file, and can be undone.
"""

from hardsave.compat.skill.manager import CheckpointManager, Rollback
from hardsave.compat.skill.records import Checkpoint, Context, FeatureState, GitState

__all__ = ["Checkpoint", "CheckpointManager", "Context", "FeatureState", "GitState", "Rollback"]
