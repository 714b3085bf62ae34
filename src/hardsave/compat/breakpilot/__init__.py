"""Named checkpoints of an agent's session, with the interface of Breakpilot's agents.

    manager = CheckpointManager("session-1")
    manager.create("task_started", {"step": 1})
    manager.rollback_to("session-1:1")            # {"step": 1}: gives back data, moves nothing

Each session is a timeline of the vault; without one it lives in memory. What comes back is
always a copy. Where the original falls short, this does what was meant: `max_checkpoints`
holds, thinning never doubles a checkpoint, an import never brings an id twice, and a number
is never given out again, not after `clear` and not after a restart.
"""

from hardsave.compat.breakpilot.manager import CheckpointManager
from hardsave.compat.breakpilot.records import Checkpoint

__all__ = ["Checkpoint", "CheckpointManager"]
