"""What the page about signed callbacks shows happens: its commands print it, its receiver runs."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.runtime.webhooks import disabled
from hardsave.runtime.webhooks.secret_file import secret_file
from hardsave.runtime.webhooks.signature import new_secret
from hardsave.vault.opening import url_of
from tests.docs.pages import DOCS, blocks
from tests.docs.test_howto import Typed, ran, shape, typed

PAGE = DOCS / "howto" / "webhooks.md"
ID = re.compile(r"\b(?:[0-9a-f]{16}|[0-9a-f]{8})\b")
SECRET = re.compile(r"whsec_(?:…|[\w+/]{43}=)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the data of `test_howto.ran`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("HARDSAVE_STORE", raising=False)
    made = tmp_path / "project"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def without_ids(printed: str, folder: Path) -> list[str]:
    return shape(SECRET.sub("SECRET", ID.sub("ID", printed)), folder)


def check(steps: list[Typed], folder: Path, known: dict[str, str]) -> None:
    """Type all of them, with the ids of this run in place of those of the page."""
    for command, printed in steps:
        found = ran(ID.sub(lambda each: known[each[0]], command), folder)
        assert without_ids(found, folder) == without_ids(printed, folder), command
        known.update(zip(ID.findall(printed), ID.findall(found), strict=True))


def test_its_commands_print_what_it_says(folder: Path) -> None:
    secrets, gone = [typed(block) for block in blocks(PAGE, "console")]
    known: dict[str, str] = {}
    check(secrets, folder, known)
    with hardsave.open() as vault:
        disabled.disable(vault.tasks, "https://ci.example/hooks/done", datetime.now(UTC))
    check(gone, folder, known)
    assert len(known) == 3


@pytest.fixture
def receiver(folder: Path) -> Iterator[tuple[str, str, IO[str]]]:
    """The program of the page: its address, its secret, and what it prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (program,) = blocks(PAGE, "python")
    secret = new_secret()
    with subprocess.Popen(
        [sys.executable, "-c", program.replace("8000", str(port))],
        env={**os.environ, "WEBHOOK_SECRET": secret},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdout is not None
        try:
            wait_for(port, running)
            yield f"http://127.0.0.1:{port}/", secret, running.stdout
        finally:
            running.kill()


def wait_for(port: int, running: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while True:
        assert running.poll() is None, "it has ended"
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            time.sleep(0.02)
        else:
            return


def told(vault: hardsave.Vault, id: str, url: str) -> str | None:
    """Tell the receiver that a job is over; why that has failed, if it has."""
    vault.jobs.add(id, "Fix", callback=url)
    vault.tasks.cancel(id)
    Worker(vault, {}, allow_private_callbacks=True).run(until_idle=True)
    (notice,) = [each for each in vault.tasks.find(limit=9) if each.id.startswith(f"{id}/")]
    return notice.error


def test_its_receiver_takes_what_is_signed_and_nothing_else(
    receiver: tuple[str, str, IO[str]],
) -> None:
    url, secret, printed = receiver
    with hardsave.open() as vault:
        assert "answered 401" in (told(vault, "unsigned", url) or "")
        now = datetime.now(UTC)
        secret_file().add(secret, store=url_of(vault), receiver=None, now=now)
        assert told(vault, "fix-1", url) is None
    assert printed.readline() == "fix-1 failed\n"
