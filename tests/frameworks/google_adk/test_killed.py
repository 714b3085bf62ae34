"""A real run, killed at random moments: it goes on, and nothing that was acknowledged is lost."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.sessions import Session

import hardsave
from hardsave.adapters.google_adk import HardsaveSessionService
from tests.frameworks.google_adk import survivor
from tests.frameworks.google_adk.scripted import results
from tests.frameworks.killing import ROOT, start, whole_lines

PLACE: dict[str, Any] = {"app_name": survivor.APP, "user_id": survivor.USER}
TIMELINE = f"google-adk/{survivor.APP}/{survivor.USER}/{survivor.SESSION}"


def _noted(session: Session) -> set[object]:
    return {*results([each.content for each in session.events if each.content])}


def _check(store: str, told: Path) -> set[object]:
    """What was acknowledged is there, with the state that it set; each checkpoint has the files
    that its events say were written. What the newest says."""
    with hardsave.open(store) as vault:
        service = HardsaveSessionService(vault)
        session = asyncio.run(service.get_session(**PLACE, session_id=survivor.SESSION))
        if session is None:
            assert whole_lines(told) == []
            return set()
        ids = [each.id for each in session.events]
        assert len(ids) == len({*ids}), "an event stands there twice"
        assert {*whole_lines(told)} <= {*ids}
        set_by_events = {key for each in session.events for key in each.actions.state_delta}
        assert set_by_events <= session.state.keys()
        line = vault.timeline(TIMELINE)
        for each in line.checkpoints(limit=1_000):
            assert each.files is not None
            files = {file.path for file in each.files.list()}
            events = [Event.model_validate(e) for e in each.read("messages")]
            noted = {*results([e.content for e in events if e.content])}
            assert {f"{str(n).removeprefix('noted ')}.txt" for n in noted} <= files
        return _noted(session)


@pytest.mark.parametrize(
    "seed",
    [*range(3), *(pytest.param(n, marks=pytest.mark.torture) for n in range(3, 50))],
)
def test_killed_at_random_it_goes_on(tmp_path: Path, seed: int) -> None:
    rng, told = random.Random(seed), tmp_path / "told"
    store, found = f"sqlite:///{tmp_path}/s.db", {"PYTHONPATH": str(ROOT)}
    before = set[object]()
    for attempt in range(20):
        kill = rng.random() * 0.1 if attempt < 2 else None
        program = (survivor.__file__, store, tmp_path)
        # ADK takes long for its first answer: the time runs from when a tool begins.
        is_over = start(*program, told=tmp_path / "begun", kill=kill, environment=found)
        now = _check(store, told)
        assert before <= now
        before = now
        if is_over:
            break
    assert before == {f"noted {n}" for n in range(survivor.NUMBERS)}
