"""A server of the store on Redis is killed under load, again and again."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from hardsave.stores.redis import RedisStore
from hardsave.testing.batches import refs_of
from tests.redis_server import Valkey

_SAVERS = 3


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Valkey]:
    with Valkey(tmp_path / "own") as server:
        yield server


def test_a_server_that_is_killed_loses_nothing_that_was_acknowledged(
    own: Valkey, record_property: Callable[[str, object], None]
) -> None:
    record_property("redis: killed servers", _killed(own, kills=3, between=40))


@pytest.mark.torture
def test_a_server_that_is_killed_for_long_loses_nothing_that_was_acknowledged(
    own: Valkey, record_property: Callable[[str, object], None]
) -> None:
    record_property("redis: killed servers", _killed(own, kills=50, between=100))


def _killed(own: Valkey, *, kills: int, between: int) -> str:
    """Kill it each time that every process has saved so often; how many saves were acknowledged."""
    words = [sys.executable, "-m", "tests.crash.redis_saver", own.url()]
    savers = [
        subprocess.Popen([*words, f"t{at}"], stdout=subprocess.PIPE, text=True)
        for at in range(_SAVERS)
    ]
    told = [_out(saver) for saver in savers]
    acknowledged = [[out.readline().strip() for _ in range(between)] for out in told]
    try:
        for _ in range(kills):
            own.kill()
            own.start()
            for out, known in zip(told, acknowledged, strict=True):
                known += [out.readline().strip() for _ in range(between)]
    finally:
        for saver in savers:
            saver.kill()
    for out, known, saver in zip(told, acknowledged, savers, strict=True):
        known += [line.strip() for line in out if len(line) == len(f"{known[0]}\n")]
        out.close()
        saver.wait()
    store = RedisStore(own.url())
    saved = {record.id.hex(): record for record in store.saved(None, 0, 1 << 30)}
    lost = [id for known in acknowledged for id in known if id not in saved]
    assert lost == []
    for at, known in enumerate(acknowledged):
        assert len(known) == len(set(known)), "each once"
        line = [record for record in saved.values() if record.timeline == f"t{at}"]
        assert sorted(record.seq for record in line) == list(range(1, len(line) + 1))
        assert len(line) - len(known) in (0, 1), "one may be there whose reply was lost"
    assert store.missing(None, [record.root for record in saved.values()]) == set()
    assert store.collect(refs_of, exact=True).objects == 0
    assert store.verify() == []
    store.close()
    return f"{kills} kills: 0 of {sum(map(len, acknowledged))} acknowledged saves lost"


def _out(saver: "subprocess.Popen[str]") -> IO[str]:
    assert saver.stdout is not None
    return saver.stdout
