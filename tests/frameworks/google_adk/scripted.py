"""A model that needs no key: what it says is a function of what it is asked."""

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

Answer = Callable[[LlmRequest], types.Content]


class Scripted(BaseLlm):
    """Stands for a model."""

    model: str = "scripted"
    answer: Answer

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=self.answer(llm_request))


def said(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def calls(tool: str, *arguments: dict[str, Any]) -> types.Content:
    return types.Content(
        role="model",
        parts=[types.Part.from_function_call(name=tool, args=each) for each in arguments],
    )


def asked(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def results(contents: list[types.Content]) -> Iterator[object]:
    """What tools have returned."""
    for content in contents:
        for part in content.parts or ():
            if part.function_response is not None:
                yield (part.function_response.response or {}).get("result")
