"""Pydantic AI: step and conversation stores of its harness, and a workspace that saves itself.

Needs the extra `pydantic-ai`. Runs that go on by themselves after a crash are `hardsave.runtime`.
"""

from hardsave.adapters.pydantic_ai.conversations import HardsaveConversationStore
from hardsave.adapters.pydantic_ai.steps import HardsaveStepStore
from hardsave.adapters.pydantic_ai.workspace import HardsaveWorkspaceBackend

__all__ = ["HardsaveConversationStore", "HardsaveStepStore", "HardsaveWorkspaceBackend"]
