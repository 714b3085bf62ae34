"""A server that is killed between a request and its answer, and started again."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hardsave.client import RemoteVault, connect
from tests.integration.client.relay import Relay, relaying
from tests.integration.server.conftest import HARDSAVE, LIMIT, Server, Start, environment, starting


def port_of(server: Server) -> int:
    port = urlsplit(server.url).port
    assert port is not None
    return port


def token(tmp_path: Path, store: str) -> str:
    """One that is good for every server of this store."""
    typed = ["token", "add", "client", "--scope", "act", "--store", store, "--json"]
    made = subprocess.run(
        [*HARDSAVE, *typed],
        cwd=tmp_path / "project",
        env=environment(tmp_path),
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    return str(json.loads(made.stdout)["token"])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as started:
        yield started


@pytest.fixture
def relay(start: Start, tmp_path: Path) -> Iterator[Relay]:
    """In front of a server that is killed by the next act, once it has acted."""
    servers = [start()]
    with relaying(port_of(servers[0])) as relay:

        def kill_and_start() -> None:
            os.kill(servers[-1].process.pid, signal.SIGKILL)
            servers[-1].process.wait(LIMIT)
            servers.append(start())
            relay.port = port_of(servers[-1])

        relay.lost = kill_and_start
        with servers[0].vault() as vault:
            for number in range(3):
                vault.timeline("main").save({"number": number})
        yield relay


def test_events_go_on_where_they_were_when_the_server_is_started_again(
    start: Start, tmp_path: Path
) -> None:
    first = start()
    with (
        connect(first.url, token=token(tmp_path, first.store)) as vault,
        first.vault() as local,
    ):
        following = vault.follow()
        local.timeline("main").save({"n": 1})
        assert next(following).kind == "checkpoint_saved"
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(LIMIT)
        local.timeline("main").save({"n": 2})
        start("--port", str(port_of(first)))
        local.timeline("main").save({"n": 3})
        seen = [next(following).checkpoint for _ in range(2)]
        assert [one and one.seq for one in seen] == [2, 3]


ACTS: dict[str, Callable[[RemoteVault], str]] = {
    "save": lambda vault: vault.timeline("main").save({"number": 9}).id,
    "rewind": lambda vault: vault.timeline("main").rewind("main:1").target.id,
}


@pytest.mark.parametrize("what", ACTS)
def test_an_act_is_done_once_though_its_server_is_killed_before_it_answers(
    what: str, relay: Relay, start: Start, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'served.db'}"
    with connect(relay.url, token=token(tmp_path, store)) as vault:
        relay.lose = 1
        done = ACTS[what](vault)
        assert relay.replayed == [None, "true"]
        line = vault.timeline("main")
        assert line.get().id == done
        assert len(line.checkpoints()) == (4 if what == "save" else 3)
        assert len(vault.operations()) == (0 if what == "save" else 1)
