"""Microsoft Agent Framework: a storage for the checkpoints of its workflows.

Needs the extra `agent-framework`.
"""

from hardsave.adapters.agent_framework.storage import HardsaveCheckpointStorage

__all__ = ["HardsaveCheckpointStorage"]
