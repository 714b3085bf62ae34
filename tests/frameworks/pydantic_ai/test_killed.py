"""A real run of Pydantic AI, killed at random moments."""

import asyncio
import random
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

import hardsave
from hardsave.adapters.pydantic_ai import HardsaveStepStore
from tests.frameworks.killing import start, whole_lines
from tests.frameworks.pydantic_ai import survivor

_REACHED = {"started": {"started", "completed", "failed"}}


def _check(store: str, told: Path) -> None:
    """What was acknowledged is there. Each checkpoint has the files that it says were noted, and
    none of a call that neither it nor another run knows."""
    with hardsave.open(store) as vault:
        steps = HardsaveStepStore(vault)
        for line in whole_lines(told):
            run, call, status = line.split()
            effect = asyncio.run(steps.get_tool_effect(run_id=run, tool_call_id=call))
            assert effect is not None
            assert effect.status in _REACHED.get(status, {status})
        lines = list(vault.timelines())
        for timeline in lines:
            others = [
                line.load().get("effects", {}) for line in lines if line.name != timeline.name
            ]
            for each in timeline.checkpoints(limit=1_000):
                assert each.files is not None
                effects = timeline.load(each).get("effects", {})
                ended = [id for id, effect in effects.items() if effect["status"] != "started"]
                files = {file.path for file in each.files.list()}
                assert _files(ended) <= files <= _files(chain(effects, *others))


def _files(calls: Iterable[str]) -> set[str]:
    return {f"{id.split('-')[-1]}.txt" for id in calls}


@pytest.mark.parametrize(
    "seed",
    [*range(3), *(pytest.param(n, marks=pytest.mark.torture) for n in range(3, 50))],
)
def test_killed_at_random_it_goes_on(tmp_path: Path, seed: int) -> None:
    rng, told = random.Random(seed), tmp_path / "told"
    store = f"sqlite:///{tmp_path}/s.db"
    for attempt in range(20):
        kill = rng.random() * 0.06 if attempt < 4 else None
        is_over = start(survivor.__file__, store, tmp_path, told=told, kill=kill)
        _check(store, told)
        if is_over:
            break
    with hardsave.open(store) as vault:
        steps = HardsaveStepStore(vault)
        last = asyncio.run(steps.list_runs())[-1]
        snapshot = asyncio.run(steps.latest_snapshot(run_id=last.run_id))
    assert snapshot is not None
    assert survivor.noted(snapshot.messages) == set(range(survivor.NUMBERS))
