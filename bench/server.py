"""What `hardsave serve` costs, measured from outside: a real process, called over HTTP.

Requests come from another process. CPU time is that of the server, all of its threads, user and
system; it is judged wherever it can be, since the machine may have other work.
"""

import itertools
import json
import random
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from bench import million_store, report, server_store
from bench.companion import Companion, companion
from bench.http_load import Order, load
from bench.live_load import Heard
from bench.machine import check
from bench.report import Row, at_least, at_most
from bench.served import Served, serving
from bench.server_store import TALK
from bench.setting import Setting
from bench.stopwatch import median, percentile
from bench.store_file import url

ROUNDS = 3  # of which the best counts
BUSY_CLIENTS = 16
LIVE_CLIENTS = 200
SAVES_A_SECOND = 50
SEARCHES = 24
READERS = 4


def server(setting: Setting) -> list[Row]:
    return [*_reads(setting), *_crowd(setting)]


class Sizes(NamedTuple):
    """How much a store has, and how often it is asked."""

    timelines: int
    checkpoints: int  # of the conversation, two messages each
    requests: int  # of a round
    mixed: int

    @property
    def far(self) -> int:
        """The number of a message close to the end."""
        return self.checkpoints * 18 // 10


# A store as an agent leaves it


def _reads(setting: Setting) -> list[Row]:
    sizes = Sizes(200, 500, 50, 500) if setting.quick else Sizes(2_000, 5_000, 300, 10_000)
    store = setting.place / "agents.db"
    server_store.build(store, sizes.timelines, sizes.checkpoints)
    starts = [_start_seconds(store) for _ in range(ROUNDS)]
    with serving(store) as server, companion("bench.http_load") as clients:
        asked = _Asked(server, clients)
        return [
            _started([*starts, server.start_seconds]),
            *_single(asked, sizes),
            _rate(asked, sizes),
            _memory(asked, sizes),
        ]


def _start_seconds(store: Path) -> float:
    with serving(store) as server:
        return server.start_seconds


def _started(seconds: list[float]) -> Row:
    return Row(
        "serve: start to first answer",
        ours=f"{report.duration(median(seconds))} median",
        value=min(seconds),
        unit="s",
        target=at_most(1),
        note=f"from the fork to 200 from /healthz; best of {len(seconds)} processes",
    )


class _Asked(NamedTuple):
    """A server, and the process that calls it."""

    server: Served
    clients: Companion

    def cpu_and_bytes(self, path: str, requests: int) -> tuple[float, int]:
        """Seconds of the server a request, best round, one client; bytes on the wire."""
        order = Order(self.server.port, self.server.token, [path] * requests, 1)
        load(self.clients, order._replace(paths=[path] * 20))  # warm
        best, size = float("inf"), 0
        for _ in range(ROUNDS):
            before = self.server.cpu()
            size = load(self.clients, order).wire_bytes
            best = min(best, (self.server.cpu() - before) / requests)
        return best, size


CPU = f"CPU of the server, user and system, one client; best of {ROUNDS} rounds"


def _single(asked: _Asked, sizes: Sizes) -> list[Row]:
    """One request after another."""
    far = _path("messages", ref="@", timeline=TALK, start=sizes.far, limit=50)
    found = asked.server.get(far)
    numbers = [each["number"] for each in found["items"]]
    check(numbers == list(range(sizes.far, sizes.far + 50)), f"other messages came: {numbers}")
    newest, _ = asked.cpu_and_bytes(_path("timelines", limit=50), sizes.requests)
    messages, size = asked.cpu_and_bytes(far, sizes.requests)
    checkpoints, _ = asked.cpu_and_bytes(_checkpoints(), sizes.requests)
    name = f"50 messages at #{sizes.far:,} of {2 * sizes.checkpoints:,}"
    return [
        _cpu(f"newest 50 of {sizes.timelines:,} timelines", newest, 5),
        _cpu(name, messages, 3),
        Row(
            f"{name}, on the wire",
            value=size / 1_000,
            unit="KB",
            target=at_most(10),
            note="messages of 30 words; gzip, head of the answer included",
        ),
        _cpu(f"50 checkpoints of {sizes.checkpoints:,}", checkpoints, 2.5),
    ]


def _cpu(figure: str, seconds: float, most: float) -> Row:
    return Row(f"{figure}, CPU", value=seconds * 1_000, unit="ms", target=at_most(most), note=CPU)


def _rate(asked: _Asked, sizes: Sizes) -> Row:
    server, count = asked.server, sizes.requests * 5
    order = Order(server.port, server.token, [_checkpoints()] * count, BUSY_CLIENTS)
    loads = [load(asked.clients, order) for _ in range(ROUNDS)]
    best = min(loads, key=lambda each: each.seconds)
    return Row(
        f"50 checkpoints of {sizes.checkpoints:,}, {BUSY_CLIENTS} clients",
        ours=f"p99 {report.duration(percentile(best.times, 0.99))}",
        value=count / best.seconds,
        unit="requests/s",
        target=at_least(300),
        note=f"connections are kept; best of {ROUNDS} rounds of {count:,}",
    )


def _memory(asked: _Asked, sizes: Sizes) -> Row:
    server, before = asked.server, asked.server.resident()
    paths = list(itertools.islice(itertools.cycle(_mix(sizes)), sizes.mixed))
    load(asked.clients, Order(server.port, server.token, paths, READERS))
    return Row(
        f"resident memory after {sizes.mixed:,} requests",
        ours=f"{report.size(before)} before them",
        value=server.resident() / 1e6,
        unit="MB",
        target=at_most(100),
        note=f"by {READERS} clients: timelines, checkpoints, messages, states, graphs, operations, "
        "tasks",
    )


def _mix(sizes: Sizes) -> list[str]:
    """Reads of every kind, each of another place."""
    chosen = random.Random(1)  # no secret
    paths: list[str] = []
    for _ in range(500):
        at = chosen.randrange(sizes.checkpoints) + 1
        one = f"agent-{chosen.randrange(sizes.timelines - 1):04}"
        paths += [
            _path("timelines", limit=50),
            _path("timelines", prefix=one[:8]),
            _path("timeline", timeline=one),
            _checkpoints(),
            _path("checkpoints", timeline=one),
            _path("checkpoint", ref=f"{TALK}:{at}"),
            _path("messages", ref=f"{TALK}:{at}", start=-50),
            _path("messages", ref="@", timeline=TALK, start=2 * at, full="true"),
            _path("state", ref=f"{one}:3"),
            _path("graph", timeline=TALK, limit=100),
            _path("operations"),
            _path("tasks"),
        ]
    return paths


def _checkpoints() -> str:
    return _path("checkpoints", timeline=TALK, limit=50)


def _path(route: str, **query: object) -> str:
    return f"/api/v1/{route}?{urlencode(query)}"


# A large store, and many clients


def _crowd(setting: Setting) -> list[Row]:
    size = setting.choose(100_000, 2_000)
    store = setting.place / "large.db"
    million_store.build(store, 0, size, setting.choose(million_store.TIMELINES, 200))
    with serving(store) as server:
        return [
            *_live(server, store, seconds=setting.choose(20, 3)),
            _beside_searches(server, size),
        ]


def _live(server: Served, store: Path, *, seconds: int) -> list[Row]:
    with companion("bench.live_load") as live, companion("bench.steady_saver", url(store)) as saver:
        live.answer(json.dumps([server.port, server.token, LIVE_CLIENTS]) + "\n")
        time.sleep(1)  # what the last of them had to be told is told
        idle = _share(server, seconds)
        before, began = server.cpu(), time.monotonic()
        saved = saver.answer(f"{SAVES_A_SECOND * seconds} {SAVES_A_SECOND}\n")
        busy = (server.cpu() - before) / (time.monotonic() - began)
        heard = Heard(*json.loads(live.answer(saved + "\n")))
    name = f"{LIVE_CLIENTS} live clients"
    return [
        Row(f"{name}, idle", value=idle * 100, unit="% of a core", target=at_most(3)),
        Row(
            f"{name}, {SAVES_A_SECOND} saves/s: commit to receipt, p99",
            ours=f"median {report.duration(heard.median_seconds)}, worst "
            f"{report.duration(heard.worst_seconds)}",
            other=f"{busy * 100:.0f} % of a core",
            value=heard.p99_seconds * 1_000,
            unit="ms",
            target=at_most(250),
            note="another process saves; from the return of its call to the event in the client",
        ),
        Row(
            f"{name}, {SAVES_A_SECOND} saves/s: events missed",
            ours=f"{len(json.loads(saved)):,} saves to each client",
            value=heard.missed,
            unit="",
            target=at_most(0),
        ),
    ]


def _share(server: Served, seconds: float) -> float:
    """How much of a core the server uses when left alone."""
    before, began = server.cpu(), time.monotonic()
    time.sleep(seconds)
    return (server.cpu() - before) / (time.monotonic() - began)


def _beside_searches(server: Served, checkpoints: int) -> Row:
    chosen = random.Random(2)  # no secret
    texts = [million_store.message(chosen, 0)["content"].split()[0] for _ in range(SEARCHES)]
    searches = [_path("search", text=text) for text in texts]
    read = _path("checkpoints", timeline=million_store.LONG, limit=50)
    with companion("bench.http_load") as clients:
        order = Order(server.port, server.token, [read] * 20, READERS)
        alone = load(clients, order)
        found = load(clients, order._replace(beside=searches))
    return Row(
        f"50 checkpoints beside {SEARCHES} searches on a cold index, p99",
        ours=f"median {report.duration(median(found.times))} of {len(found.times):,}",
        other=f"{report.duration(median(alone.times))} alone",
        value=percentile(found.times, 0.99) * 1_000,
        unit="ms",
        target=at_most(200),
        note=f"{READERS} clients read until the last search was answered, after "
        f"{report.duration(found.beside_seconds)}; {checkpoints:,} checkpoints, the first search "
        "begins the index",
    )
