"""Sends a stream as the body of a response, until it ends or its client goes away."""

import asyncio
from typing import TYPE_CHECKING

from hardsave.server.live.hub import Stream

if TYPE_CHECKING:
    from starlette.types import Receive, Send


async def send_body(stream: Stream, receive: "Receive", send: "Send") -> None:
    """After the head of the response was sent. A client that does not read holds it up in `send`,
    and is noticed when it goes away all the same."""
    sending = asyncio.ensure_future(_send(stream, send))
    leaving = asyncio.ensure_future(_leave(receive))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        leaving.cancel()
        await asyncio.wait((sending, leaving))
    if not sending.cancelled():
        sending.result()


async def _send(stream: Stream, send: "Send") -> None:
    async for message in stream:
        await send({"type": "http.response.body", "body": message, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _leave(receive: "Receive") -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
