"""A server with a script, and a vault that is connected to it."""

from collections.abc import Iterator

import pytest

from hardsave.client import RemoteVault, connect
from tests.unit.client.scripted import TOKEN, Scripted, scripted


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.delenv("HARDSAVE_TOKEN", raising=False)
    with scripted() as script:
        yield script


@pytest.fixture
def vault(server: Scripted) -> Iterator[RemoteVault]:
    with connect(server.url, token=TOKEN) as vault:
        yield vault
