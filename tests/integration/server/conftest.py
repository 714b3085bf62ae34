"""A real server process on a free port, over a store of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

import hardsave
from tests import postgres_server

if TYPE_CHECKING:
    from tests.integration.server.site import Site

HARDSAVE = [sys.executable, "-m", "hardsave"]
LIMIT = 30.0


class Server:
    """A running `hardsave serve`, and ways to call it."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path, store: str) -> None:
        self.process = process
        self.folder = folder  # its working directory
        self.store = store
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder.parent / "stderr").read_text()
        ready = json.loads(line)
        self.url: str = ready["url"]
        self.token: str = ready["token"]
        self.link: str = ready["link"]

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """A request with the server's own token, unless `headers` say otherwise."""
        headers = more.pop("headers", self.bearer)
        return httpx2.request(method, self.url + path, headers=headers, timeout=LIMIT, **more)

    def log(self) -> str:
        return (self.folder.parent / "stderr").read_text()

    @contextmanager
    def vault(self, user: str | None = None) -> Iterator[hardsave.Vault]:
        """The store that it serves, opened in this process, too."""
        with hardsave.open(self.store, user=user) as vault:
            yield vault

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT)


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "LANG": "C.UTF-8",
        "HARDSAVE_DAEMON": "off",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # the tree that the tests are of
    }


Start = Callable[..., Server]


def store_of(folder: Path) -> str:
    """A file; on a PostgreSQL server if HARDSAVE_TEST_STORE says `postgresql`."""
    if os.environ.get("HARDSAVE_TEST_STORE") == "postgresql":
        return postgres_server.url_of(folder)
    return f"sqlite:///{folder / 'served.db'}"


@contextmanager
def starting(tmp_path: Path) -> Iterator[Start]:
    """Starts servers over one store; they are stopped at the end."""
    folder = tmp_path / "project"
    folder.mkdir()
    store = store_of(tmp_path)
    hardsave.open(store).close()
    with ExitStack() as stack:

        def started(*options: str, **variables: str) -> Server:
            errors = stack.enter_context(open(tmp_path / "stderr", "w"))
            process = stack.enter_context(
                subprocess.Popen(
                    [*HARDSAVE, "serve", "--json", "--port", "0", "--store", store, *options],
                    cwd=folder,
                    env=environment(tmp_path) | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return Server(process, folder, store)

        yield started


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as started:
        yield started


@pytest.fixture
def server(start: Start) -> Server:
    """A server on loopback, with nothing said to it."""
    return start()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Site]":
    """A server over a store with something of everything, for all tests of a module."""
    from tests.integration.server.site import a_site  # which needs this module

    with a_site(tmp_path_factory.mktemp("site")) as made:
        yield made


# The page in a browser: see browser.py


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from tests.integration.server.browser import launched  # few tests need Playwright

    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def storied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a story, a fork of it and a long talk, for tests that only look at them."""
    from tests.integration.server.session_story import NAME, Story, long_talk, say

    with starting(tmp_path_factory.mktemp("storied")) as start:
        server = start()
        with server.vault() as vault:
            Story(vault, server.folder).tell()
            long_talk(vault)
            vault.timeline(NAME).fork(":2", name="elsewhere").append({"messages": [say("aside")]})
        yield server


@pytest.fixture
def visitor(chromium: Any, storied: Server) -> Iterator[Any]:
    from tests.integration.server.browser import visiting

    with visiting(chromium, storied) as found:
        yield found
