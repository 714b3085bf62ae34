"""OpenAI Agents SDK: sessions and sandbox snapshots in a vault. Needs the extra `openai-agents`."""

from hardsave.adapters.openai_agents.session import HardsaveSession
from hardsave.adapters.openai_agents.snapshot import HardsaveSnapshot, HardsaveSnapshotSpec

__all__ = ["HardsaveSession", "HardsaveSnapshot", "HardsaveSnapshotSpec"]
