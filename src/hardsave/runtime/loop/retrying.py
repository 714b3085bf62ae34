"""Requests to a model that are tried again, if the error may pass by itself."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import random
from typing import Any, TypeVar

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from hardsave.logs import log
from hardsave.tasks.retry import Retry, longest_seconds, wait_seconds

STATUSES = frozenset({429, 500, 502, 503, 504, 529})
RETRY = Retry(attempts=5, first_seconds=10.0)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[Any]]


@dataclass(frozen=True)
class Patience:
    """How often and how long; the clock is passed in."""

    retry: Retry
    sleep: Sleep
    random: Callable[[], float] = random


def pause_seconds(
    error: ModelHTTPError, failures: int, retry: Retry, random: Callable[[], float]
) -> float | None:
    """How long to wait after so many failures; None if it is not worth it. Pure.

    A server that names a time is believed, up to the longest wait of the policy.
    """
    if error.status_code not in STATUSES or failures >= retry.attempts:
        return None
    named = _seconds((error.headers or {}).get("retry-after"))
    return max(wait_seconds(retry, failures, random), min(named, longest_seconds(retry)))


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text or 0)
    except ValueError:
        return 0.0  # a date: the policy's own wait is as good
    return seconds if 0 <= seconds < float("inf") else 0.0


class Retrying(WrapperModel):
    """A model with patience. A stream is tried again until it has begun, never after."""

    def __init__(self, wrapped: Model, patience: Patience) -> None:
        super().__init__(wrapped)
        self._patience = patience

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return await self._tried(
            lambda: self.wrapped.request(messages, model_settings, model_request_parameters)
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse, None]:
        async with AsyncExitStack() as stack:
            yield await self._tried(
                lambda: stack.enter_async_context(
                    self.wrapped.request_stream(
                        messages, model_settings, model_request_parameters, run_context
                    )
                )
            )

    async def _tried(self, request: Callable[[], Awaitable[T]]) -> T:
        patience, failures = self._patience, 0
        while True:
            try:
                return await request()
            except ModelHTTPError as error:
                failures += 1
                seconds = pause_seconds(error, failures, patience.retry, patience.random)
                if seconds is None:
                    raise
                log(__name__).warning(
                    "model %s answered %d; trying again in %.0f s",
                    self.model_name,
                    error.status_code,
                    seconds,
                )
            await patience.sleep(seconds)
