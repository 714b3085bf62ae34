"""A process that calls a server over connections that it keeps: `python -m bench.http_load`.

For every line that it is sent, JSON of an `Order`, it prints JSON of what became of it, a `Load`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.companion import Companion
from bench.machine import check


class Order(NamedTuple):
    """Requests to make: all of `paths`, one after the other, by so many clients. With `beside`,
    again and again until each of those was answered too, all of which are asked for at once."""

    port: int
    token: str
    paths: list[str]
    clients: int
    beside: Sequence[str] = ()


class Load(NamedTuple):
    """What the server has answered."""

    seconds: float  # all of it
    times: list[float]  # seconds of each request, without those beside
    wire_bytes: int  # of the largest answer, head included
    beside_seconds: float = 0.0  # the longest of those beside


class Client:
    """One connection."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._order.port)

    async def get(self, path: str) -> tuple[float, int]:
        """The seconds and the bytes that a request took."""
        began = time.perf_counter()
        self._writer.write(head_of(path, self._order.port, self._order.token))
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        sizes = [line.partition(b":")[2] for line in lines if line.startswith(b"content-length:")]
        body = await self._reader.readexactly(int(sizes[0]))
        check(b" 200 " in lines[0], f"{path}: {lines[0]!r} {body[:300]!r}")
        return time.perf_counter() - began, len(head) + len(body)

    def close(self) -> None:
        self._writer.close()


def head_of(path: str, port: int, token: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    ).encode("ascii")


async def carried_out(order: Order) -> Load:
    clients = [Client(order) for _ in range(order.clients)]
    others = [Client(order) for _ in order.beside]
    await asyncio.gather(*(client.connect() for client in [*clients, *others]))
    began = time.perf_counter()
    beside = [asyncio.ensure_future(c.get(p)) for c, p in zip(others, order.beside, strict=True)]
    paths = _until_done(order.paths, beside) if beside else iter(order.paths)
    found = await asyncio.gather(*(_all(client, paths) for client in clients))
    took = time.perf_counter() - began
    done = await asyncio.gather(*beside)
    for client in [*clients, *others]:
        client.close()
    every = [each for some in found for each in some]
    times, sizes = [seconds for seconds, _ in every], [size for _, size in every]
    return Load(took, times, max(sizes), max((seconds for seconds, _ in done), default=0.0))


async def _all(client: Client, paths: Iterator[str]) -> list[tuple[float, int]]:
    return [await client.get(path) for path in paths]


def _until_done(paths: list[str], others: "Sequence[asyncio.Future[Any]]") -> Iterator[str]:
    while not all(each.done() for each in others):
        yield from paths


def load(companion: Companion, order: Order) -> Load:
    """From the process that measures: what becomes of an order."""
    return Load(*json.loads(companion.answer(json.dumps(order) + "\n")))


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(asyncio.run(carried_out(Order(*json.loads(line))))), flush=True)


if __name__ == "__main__":
    main()
