"""Collecting beside writers, in threads and in another process: nothing that is needed goes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.objects.envelope import refs
from hardsave.stores.base import Query
from tests.unit.vault.churn import Crowd

ROOT = Path(__file__).parents[3]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def beside(url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.unit.vault.churn", url, "99"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def race(url: str, beside: subprocess.Popen[str], rounds: int) -> None:
    removed = 0
    with hardsave.open(url, durability="process") as vault, Crowd(vault, range(2)) as crowd:
        for at in range(rounds):
            exact = at % 10 == 0
            removed += vault._context.store.collect(refs, exact=exact).objects
            if at % 20 == 0:
                vault.store.compact()
            if crowd.faults or beside.poll() is not None:
                break
    beside.terminate()
    told, complaints = beside.communicate(timeout=60)
    assert beside.returncode == 0, complaints
    assert crowd.faults == []
    assert int(told) > 0
    assert min(writer.steps for writer in crowd.writers) > 0
    assert removed > 0
    check(url)


def check(url: str) -> None:
    """Everything is sound, and every checkpoint that was not dropped loads."""
    with hardsave.open(url) as vault:
        assert vault.store.verify().faults == ()
        for _ in range(2):
            for line in vault.timelines():
                store = vault._context.store
                for record in store.checkpoints(None, Query(line.name, 10_000, hidden=True)):
                    vault._context.objects.reader.load(record.root)
            vault._context.store.collect(refs, exact=True)
        assert vault.store.gc().objects == 0


def test_forty_collections_beside_writers(url: str, beside: subprocess.Popen[str]) -> None:
    race(url, beside, 40)


@pytest.mark.torture
def test_ten_thousand_collections_beside_writers(url: str, beside: subprocess.Popen[str]) -> None:
    race(url, beside, 10_000)
