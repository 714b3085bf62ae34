"""A real workflow of Agent Framework, killed at random moments."""

import asyncio
import random
from pathlib import Path

import pytest

import hardsave
from hardsave.adapters.agent_framework import HardsaveCheckpointStorage
from tests.frameworks.agent_framework import survivor
from tests.frameworks.killing import ROOT, start, whole_lines


def _check(store: str, told: Path) -> list[int]:
    """What was acknowledged is there, and each checkpoint has the files that its state says were
    written, and at the most that of a step that was killed; what the newest says."""
    with hardsave.open(store) as vault:
        line = vault.timeline(f"agent-framework/{survivor.NAME}")
        storage = HardsaveCheckpointStorage(vault, types=[survivor.Turn])
        ids = asyncio.run(storage.list_checkpoint_ids(workflow_name=survivor.NAME))
        assert {*whole_lines(told)} <= {*ids}
        for each in line.checkpoints(limit=1_000):
            assert each.files is not None
            written = line.load(each)["state"].get("written", [])
            files = {int(file.path.removesuffix(".txt")) for file in each.files.list()}
            assert {*written} <= files <= {*range(len(written) + 1)}
        latest = asyncio.run(storage.get_latest(workflow_name=survivor.NAME))
        return [] if latest is None else latest.state.get("written", [])


@pytest.mark.parametrize(
    "seed",
    [*range(3), *(pytest.param(n, marks=pytest.mark.torture) for n in range(3, 50))],
)
def test_killed_at_random_it_goes_on(tmp_path: Path, seed: int) -> None:
    rng, told = random.Random(seed), tmp_path / "told"
    store, found = f"sqlite:///{tmp_path}/s.db", {"PYTHONPATH": str(ROOT)}
    before: list[int] = []
    for attempt in range(20):
        kill = rng.random() * 0.1 if attempt < 4 else None
        program = (survivor.__file__, store, tmp_path)
        is_over = start(*program, told=told, kill=kill, environment=found)
        now = _check(store, told)
        assert now[: len(before)] == before
        before = now
        if is_over:
            break
    assert before == [*range(survivor.NUMBERS)]
