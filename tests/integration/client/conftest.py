"""A store, the server over it, and both as a program sees them: the vault, and the remote one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import hardsave
from hardsave.client import RemoteVault, connect
from hardsave.server.route import Allowed
from tests.unit.server.job_server import OWN_TOKEN, serving


class Both(NamedTuple):
    """One store, from two sides."""

    local: hardsave.Vault
    remote: RemoteVault
    port: int
    workspace: Path


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    url = f"sqlite:///{tmp_path / 'served.db'}"
    workspace = tmp_path / "work"
    workspace.mkdir()
    allowed = Allowed(("coder",), (workspace.resolve(),))
    with (
        hardsave.open(url) as local,
        serving(url, tmp_path, allowed=allowed) as server,
        connect(f"http://127.0.0.1:{server.port}", token=OWN_TOKEN) as remote,
    ):
        yield Both(local, remote, server.port, workspace)
