"""Agents for workers that tests start: no model is asked."""

from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def echoing(told: Callable[[str], object]) -> Agent[Any, Any]:
    """Answers with its prompt, and tells that."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for each in messages for part in each.parts]
        prompt = next(str(part.content) for part in parts if isinstance(part, UserPromptPart))
        told(prompt)
        return ModelResponse(parts=[TextPart(prompt)])

    return Agent(FunctionModel(answer))
