"""Calls of a vault from the coroutines of a framework."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hardsave.aio.pool import to_the_end

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns, made in a thread. A caller that is cancelled meanwhile is told so only
    when the call has ended, so it never leaves a write whose end is unknown."""
    return await to_the_end(asyncio.ensure_future(asyncio.to_thread(call)))
