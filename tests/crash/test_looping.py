"""An agent is killed at every kind of moment, and goes on: nothing twice, nothing lost."""

import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.runtime.scripted import Request, ScriptedModel
from tests.crash import events, talking
from tests.crash.injector import How, Strike
from tests.crash.launcher import Launcher

CASES = [
    "prompted",
    *(f"turn {number}" for number in (1, 2, 3)),
    *(f"begun {count}" for count in (1, 2, 4)),
    *(f"ended {count}" for count in (1, 2, 3, 4, 5)),
    *(f"inside {tool}" for tool in talking.TOOLS),
    "paid",
    "completed",
]
PIECES = [f"piece {number}" for number in (1, 4, 12, 25, 40)]
WAYS: tuple[How, ...] = ("before", "middle", "after")
SAMPLE_OF_WRITES = 1
PARTS = 6
SAMPLE = [
    ("openai", False, "ended 2"),
    ("anthropic", True, "inside pay 7"),
]


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    launched = Launcher(("looping",))
    yield launched
    launched.close()


@pytest.mark.parametrize(("wire", "stream", "moment"), SAMPLE)
def test_a_killed_agent_goes_on(
    launcher: Launcher, tmp_path: Path, wire: str, stream: bool, moment: str
) -> None:
    killed_and_resumed(launcher, tmp_path, wire, stream, [moment])


@pytest.mark.torture
@pytest.mark.parametrize("moment", [*CASES, *PIECES])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_an_agent_that_is_killed_at_any_moment_goes_on(
    launcher: Launcher, tmp_path: Path, wire: str, stream: bool, moment: str
) -> None:
    if moment in PIECES and not stream:
        pytest.skip("nothing comes in pieces")
    killed_and_resumed(launcher, tmp_path, wire, stream, [moment])


@pytest.mark.torture
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_an_agent_that_is_killed_again_and_again_goes_on(
    launcher: Launcher, tmp_path: Path, wire: str
) -> None:
    moments = ["prompted", "piece 4", "turn 1", "ended 1", "ended 5", "turn 2", "paid", "turn 3"]
    killed_and_resumed(launcher, tmp_path, wire, True, moments)


def test_an_agent_killed_at_some_writes_of_its_store_goes_on(
    launcher: Launcher, tmp_path: Path
) -> None:
    points = random.Random("agents").sample(writes(launcher, tmp_path), SAMPLE_OF_WRITES)
    for point in points:
        struck_and_resumed(launcher, tmp_path, point)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(PARTS))
def test_an_agent_killed_at_any_write_of_its_store_goes_on(
    launcher: Launcher, tmp_path: Path, part: int
) -> None:
    points = writes(launcher, tmp_path)
    assert len(points) >= 300
    for point in points[part::PARTS]:
        struck_and_resumed(launcher, tmp_path, point)


def writes(launcher: Launcher, folder: Path) -> list[Strike]:
    """Every call by which the store of a whole run writes, struck in each way that it can be."""
    journal = folder / "journal"
    went(launcher, folder / "undisturbed", "openai", False, [{"journal": str(journal)}])
    calls = events.calls(events.read(journal))
    strikes = (Strike(call.call, how) for call in calls for how in WAYS)
    fitting = {call.call: call for call in calls}
    return [strike for strike in strikes if strike.fits(fitting[strike.at])]


def struck_and_resumed(launcher: Launcher, folder: Path, strike: Strike) -> None:
    given = {"strike": (strike.at, strike.how, False)}
    check(
        went(launcher, folder / "killed", "openai", False, [given]), undisturbed(launcher, folder)
    )


def undisturbed(
    launcher: Launcher, folder: Path, wire: str = "openai", stream: bool = False
) -> "Went":
    if (wire, stream) not in UNDISTURBED:
        UNDISTURBED[wire, stream] = went(launcher, folder / "undisturbed", wire, stream, [])
    return UNDISTURBED[wire, stream]


def killed_and_resumed(
    launcher: Launcher, folder: Path, wire: str, stream: bool, moments: list[str]
) -> None:
    disturbed = [{"moment": moment} for moment in moments]
    found = went(launcher, folder / "killed", wire, stream, disturbed)
    assert found.deaths == len(moments)
    check(found, undisturbed(launcher, folder, wire, stream))


def check(found: "Went", undisturbed: "Went") -> None:
    assert found.outcome["output"] == talking.ANSWER
    assert found.outcome["turn"] == talking.TURNS
    assert found.outcome["failures"] == 0
    check_effects(found)
    check_requests(found, undisturbed)
    check_files(found, undisturbed)


class Went:
    """A run, with all its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.deaths = 0
        self.requests: list[Request] = []
        self.wasted = 0
        """Requests whose answer was not saved when the process died."""
        self.ended: set[str] = set()
        self.unknown: set[str] = set()
        self.outcome: dict[str, Any] = {}
        self.effects: Counter[str] = Counter()
        self.files: dict[str, str] = {}

    def look(self) -> None:
        """At what it has done, once it is over."""
        self.effects = Counter((self.folder / "effects").read_text().splitlines())
        made = (self.folder / "files").iterdir()
        self.files = {path.name: path.read_text() for path in made}


UNDISTURBED: dict[tuple[str, bool], Went] = {}


def went(
    launcher: Launcher, folder: Path, wire: str, stream: bool, processes: list[dict[str, Any]]
) -> Went:
    """One process after the other, with what disturbs each; and one that nothing disturbs."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    found = Went(folder)
    with ScriptedModel(talking.SCRIPT) as model:
        url = model.openai_url if wire == "openai" else model.anthropic_url
        given = {"folder": str(folder), "url": url, "wire": wire, "stream": stream}
        for disturbed in processes:
            (ended,) = launcher.start(("looping.run", {**given, **disturbed}))
            assert ended.code in (0, -signal.SIGKILL), ended.words
            found.deaths += ended.code != 0
            note_death(launcher, found, len(model.settled()))
        found.outcome = launcher.call("looping.run", **given)
        found.requests = model.requests
    found.look()
    return found


def note_death(launcher: Launcher, found: Went, requests: int) -> None:
    """What the record says after a kill: some calls have ended, some are unknown."""
    state = launcher.call("looping.left", folder=str(found.folder))
    found.wasted = requests - state["turn"]
    for call in state["calls"].values():
        kind = found.unknown if call["state"] == "began" else found.ended
        kind.add(call["tool"])


def check_effects(found: Went) -> None:
    """What ended is never called again; what must not be repeated never is."""
    for tool in talking.TOOLS:
        count = found.effects[tool]
        name = tool.partition(" ")[0]
        if name == "look":
            assert count in (1, 2)
            assert count == 1 or "look" not in found.ended
        elif name in found.unknown:
            assert count <= 1, tool
        else:
            assert count == 1, tool


def check_requests(found: Went, undisturbed: Went) -> None:
    """As few as possible, and with the very words of a run that nothing disturbed."""
    assert len(found.requests) == talking.TURNS + found.wasted
    expected = {request.turn: request.body for request in undisturbed.requests}
    for request in found.requests:
        if not found.unknown:
            assert request.body == expected[request.turn]
        else:
            assert said(request.body) == said(expected[request.turn])


def said(body: dict[str, Any]) -> list[Any]:
    """The answers in a request: text, calls and reasoning, word for word."""
    return [message for message in body["messages"] if message["role"] == "assistant"]


def check_files(found: Went, undisturbed: Went) -> None:
    if not found.unknown:
        assert found.files == undisturbed.files
