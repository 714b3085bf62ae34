"""A process with many clients of a server's live events: `python -m bench.live_load`.

It says `ready`. To the first line, JSON of whom to call, it answers when all are connected. To the
second, JSON of checkpoints and of when each was there, it answers with a `Heard`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from bench.http_load import head_of
from bench.machine import check
from bench.stopwatch import median, percentile

PATIENCE_ROUNDS = 200  # of a twentieth of a second, that the last event may take


class Heard(NamedTuple):
    """What all clients together were told: seconds from a commit to its receipt."""

    median_seconds: float
    p99_seconds: float
    worst_seconds: float
    missed: int  # checkpoints, each counted for each client that was not told of it


class Listener:
    """One client, and when it was told of each checkpoint."""

    def __init__(self) -> None:
        self.told: dict[str, float] = {}
        self.is_connected = asyncio.Event()

    async def listen(self, port: int, token: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head_of("/api/v1/events", port, token))
        head = await reader.readuntil(b"\r\n\r\n")
        check(b" 200 " in head.partition(b"\r\n")[0], repr(head))
        messages = b""
        while size := int(await reader.readline(), 16):  # a chunk
            messages += (await reader.readexactly(size + 2))[:size]
            *whole, messages = messages.split(b"\n\n")
            for message in whole:
                self._note(message)

    def _note(self, message: bytes) -> None:
        now = time.monotonic()
        kind, saved = read(message)
        check(kind in ("hello", "events", ""), f"a client was told: {message[:300]!r}")
        if kind == "hello":
            self.is_connected.set()
        for id in saved:
            check(id not in self.told, f"{id} came twice")
            self.told[id] = now


@lru_cache(maxsize=64)
def read(message: bytes) -> tuple[str, tuple[str, ...]]:
    """The kind of a message, and the ids of the checkpoints in it. Most clients are sent the same:
    each is parsed once, or this process would be busier than the server."""
    fields = dict(line.split(": ", 1) for line in message.decode("ascii").split("\n"))
    items = json.loads(fields.get("data", "{}")).get("items", ())
    return fields.get("event", ""), tuple(
        item["checkpoint"]["id"] for item in items if item["kind"] == "checkpoint_saved"
    )


async def listening(port: int, token: str, clients: int) -> None:
    listeners = [Listener() for _ in range(clients)]
    running = [await _started(one, port, token) for one in listeners]
    print("connected", flush=True)
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    saved: dict[str, float] = json.loads(line)
    for _ in range(PATIENCE_ROUNDS):
        if all(saved.keys() <= one.told.keys() for one in listeners):
            break
        await asyncio.sleep(0.05)
    _check_running(running)
    print(json.dumps(heard(saved, [one.told for one in listeners])), flush=True)


async def _started(one: Listener, port: int, token: str) -> "asyncio.Task[None]":
    """One after the other: the server refuses more than some at once."""
    running = asyncio.create_task(one.listen(port, token))
    connected = asyncio.create_task(one.is_connected.wait())
    await asyncio.wait((running, connected), return_when=asyncio.FIRST_COMPLETED)
    _check_running([running])
    return running


def _check_running(running: "list[asyncio.Task[None]]") -> None:
    for each in running:
        if each.done():
            each.result()
        check(not each.done(), "the server has ended a stream")


def heard(saved: Mapping[str, float], told: list[dict[str, float]]) -> Heard:
    late = [one[id] - at for one in told for id, at in saved.items() if id in one]
    check(bool(late), "no client was told of any save")
    missed = len(saved) * len(told) - len(late)
    return Heard(median(late), percentile(late, 0.99), max(late), missed)


def main() -> None:
    print("ready", flush=True)
    port, token, clients = json.loads(sys.stdin.readline())
    asyncio.run(listening(port, token, clients))


if __name__ == "__main__":
    main()
