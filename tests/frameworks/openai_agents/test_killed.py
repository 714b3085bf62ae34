"""A real run, killed at random moments: it goes on, and nothing that was acknowledged is lost."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.adapters.openai_agents import HardsaveSession
from tests.frameworks.killing import start, whole_lines
from tests.frameworks.openai_agents import survivor

_STARTS = 60


def _items(store: str, folder: Path) -> list[Any]:
    with hardsave.open(store) as vault:
        session = HardsaveSession(survivor.SESSION, vault, workspace=folder / "work")
        return asyncio.run(session.get_items())


@pytest.mark.parametrize(
    "seed",
    [*range(3), *(pytest.param(n, marks=pytest.mark.torture) for n in range(3, 50))],
)
def test_killed_at_random_it_goes_on(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store, told = f"sqlite:///{tmp_path}/s.db", tmp_path / "told"
    for attempt in range(_STARTS):
        kill = rng.random() * 0.06 if attempt < 5 else None
        if start(survivor.__file__, store, tmp_path, told=told, kill=kill):
            break
        items = _items(store, tmp_path)
        there = {(item.get("type"), item.get("call_id")) for item in items}
        for line in whole_lines(told):
            what, _, id = line.partition(" ")
            kind = "function_call" if what == "asked" else "function_call_output"
            assert (kind, id) in there, f"{line!r} was acknowledged, and is lost"
    items = _items(store, tmp_path)
    assert survivor.results(items) == {n: f"noted {n}" for n in range(survivor.NUMBERS)}
    _check_history(store)


def _check_history(store: str) -> None:
    """Each checkpoint has the files of what its state says was noted, none that was not asked for,
    and a valid conversation."""
    with hardsave.open(store) as vault:
        line = vault.timeline(survivor.SESSION)
        for each in line.checkpoints(limit=1_000):
            state = line.load(each)
            turn = state.get("turn") or {"response": [], "outputs": {}}
            items = [*state["messages"], *turn["response"], *turn["outputs"].values()]
            noted = {n for n, text in survivor.results(items).items() if text == f"noted {n}"}
            assert each.files is not None
            files = {entry.path for entry in each.files.list()}
            asked = [item for item in items if item.get("type") == "function_call"]
            numbers = {json.loads(call["arguments"])["number"] for call in asked}
            assert {f"{n}.txt" for n in noted} <= files <= {f"{n}.txt" for n in numbers}
            calls = [call["call_id"] for call in asked]
            assert len(calls) == len(set(calls)), "a call stands there twice"
