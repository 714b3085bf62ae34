"""A server that is killed in the middle of acts, and started again: each act that is asked for
again under its key was done once by then."""

import http.client
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import hardsave
from hardsave.server.tokens import FILE, TokenFile, canonical
from tests.integration.server.acts import ACTS, Asked
from tests.integration.server.conftest import LIMIT, Server, Start, environment, starting
from tests.integration.server.site import AGENT, MADE
from tests.integration.server.test_acts import with_key
from tests.unit.server.api_client import ApiClient, Got

OPTIONS = ("--allow-agent", AGENT, "--allow-workspace", ".")


class Killed:
    """Servers over one store, one after the other, and a token for all of them."""

    def __init__(self, start: Start, tmp_path: Path) -> None:
        self._start = start
        self._tokens = TokenFile(Path(environment(tmp_path)["XDG_DATA_HOME"], "hardsave", FILE))
        self.server = start(*OPTIONS)
        store = canonical(self.server.store)
        self.token = self._tokens.add(
            "program", store=store, user=None, scope="admin", now=MADE, expires_at=None
        )[1]

    def client(self) -> ApiClient:
        port = urlsplit(self.server.url).port
        assert port is not None
        return ApiClient(port, self.token)

    def kill(self) -> None:
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait(LIMIT)

    def start_again(self) -> None:
        self.server = self._start(*OPTIONS)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    tmp_path = tmp_path_factory.mktemp("killed")
    with starting(tmp_path) as start:
        yield Killed(start, tmp_path)


def begun(vault: hardsave.Vault, server: Server, words: dict[str, str]) -> dict[str, Asked]:
    return {name: ACTS[name].prepare(vault, word, server.folder) for name, word in words.items()}


def send(killed: Killed, asked: Asked, key: str, start: threading.Barrier) -> Got | None:
    """The answer; None if the server was killed before it came."""
    with killed.client() as client:
        try:
            client.get("/api/v1")  # it is connected
            start.wait(LIMIT)
            return client.try_sample(with_key(asked.sample, key))
        except (OSError, http.client.HTTPException):
            return None


def round_of_acts(killed: Killed, number: int, after: float | None) -> tuple[int, float]:
    """Ask for all acts at once, and kill the server after so many seconds; then ask again. How many
    were not answered the first time, and how long they have taken."""
    names = list(ACTS)
    random.Random(number).shuffle(names)
    words = {name: f"round-{number}-{name.replace(' ', '-')}" for name in names}
    with killed.server.vault() as vault, ThreadPoolExecutor(len(names)) as pool:
        asked = begun(vault, killed.server, words)
        start = threading.Barrier(len(names) + 1)
        sent = {name: pool.submit(send, killed, asked[name], words[name], start) for name in names}
        start.wait(LIMIT)
        began = time.monotonic()
        if after is not None:
            time.sleep(after)
            killed.kill()
        first = {name: each.result() for name, each in sent.items()}
        took = time.monotonic() - began
        if after is not None:
            killed.start_again()
        check_done_once(killed, vault, asked, words, first)
    return sum(each is None for each in first.values()), took


def check_done_once(
    killed: Killed,
    vault: hardsave.Vault,
    asked: dict[str, Asked],
    words: dict[str, str],
    first: dict[str, Got | None],
) -> None:
    with killed.client() as client:
        for name, each in asked.items():
            act, spec, answer = ACTS[name], each.sample.route.spec, first[name]
            assert spec is not None
            again = client.try_sample(with_key(each.sample, words[name]))
            assert again.status == spec.status, (name, again)
            assert act.times(vault, words[name]) == 1, (name, again)
            if answer is not None:
                assert answer.status == spec.status, (name, answer)
                assert again.is_replayed, (name, again)
                for field in act.same:
                    assert again.data[field] == answer.data[field], (name, field)
    assert vault.store.verify().ok


@pytest.mark.parametrize(
    "rounds", [5, pytest.param(50, marks=pytest.mark.torture)], ids=["5 kills", "50 kills"]
)
def test_every_act_is_done_once_though_its_server_is_killed(killed: Killed, rounds: int) -> None:
    choice = random.Random(rounds)
    unanswered, took = round_of_acts(killed, 1_000 + rounds, None)
    assert unanswered == 0
    lost = 0
    for number in range(rounds):
        after = took * (number + choice.random()) / rounds
        lost += round_of_acts(killed, 100 * rounds + number, after)[0]
    assert lost > rounds  # it was killed in the middle of some
