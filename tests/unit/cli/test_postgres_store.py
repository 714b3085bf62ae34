"""Every command that asks a store, on one that a PostgreSQL server keeps."""

from pathlib import Path

import pytest

from hardsave.cli.errors import Exit
from tests.postgres_server import url_of
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_every_command import ANSWERING, agreed

# They ask no store, or are tried with one of their own.
APART = {"init", "demo", "completion", "trust", "jobs watch", "worker", "workflow run"}


@pytest.fixture
def session(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    monkeypatch.setenv("HARDSAVE_STORE", url_of(tmp_path))
    request.getfixturevalue("session_1")
    return project


@pytest.mark.parametrize("name", sorted({*ANSWERING} - APART))
def test_a_command_works_on_a_server_or_names_the_servers_own_tool(
    session: Path, run: Run, name: str
) -> None:
    ran = run(*agreed(name, run, "--json"))
    if name == "store repair":
        assert (ran.code, "pg_amcheck" in ran.out) == (Exit.USAGE, True)
    else:
        assert ran.code == Exit.DONE, (ran.out, ran.err)
