"""The tests' side of a scenario: prepare it, run it, strike it, look at what is left."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash import events
from tests.crash.events import Event
from tests.crash.injector import How, Strike
from tests.crash.launcher import Ended, Launcher
from tests.crash.scenarios import SCENARIOS

KILLED = -9


@dataclass(frozen=True)
class Run:
    """One run of a scenario: how its processes ended, and what they leave."""

    folder: Path
    ended: list[Ended]

    @property
    def told_before(self) -> list[str]:
        """What was told while the scenario was prepared."""
        return _lines(self.folder, "before")

    @property
    def told(self) -> list[str]:
        """All lines, of all processes."""
        return [*self.told_before, *_lines(self.folder, "steps"), *_lines(self.folder, "beside")]

    @property
    def store(self) -> Path:
        return self.folder / "disk"

    @property
    def events(self) -> list[Event]:
        return events.read(self.folder / "journal")


class Rig:
    """Scenarios in folders under `base`, in processes of a launcher."""

    def __init__(self, launcher: Launcher, base: Path) -> None:
        self.launcher = launcher
        self._base = base
        self._prepared: dict[str, Path] = {}
        self._recorded: dict[str, Run] = {}
        self._count = 0

    def folder(self) -> Path:
        self._count += 1
        return self._base / str(self._count)

    def prepared(self, scenario: str) -> Path:
        """A folder with what the scenario starts from."""
        if scenario not in self._prepared:
            folder = self.folder()
            (folder / "disk").mkdir(parents=True)
            given = {"folder": str(folder / "disk"), "told": str(folder / "told-before")}
            self.launcher.call("child.run", scenario=scenario, part="before", **given)
            # Shared memory does not outlive its processes; a copy of it would be a forgery.
            for left in (folder / "disk").rglob("*-shm"):
                left.unlink()
            self._prepared[scenario] = folder
        return self._prepared[scenario]

    def fresh(self, scenario: str) -> Path:
        """A copy of that, to be used once."""
        folder = self.folder()
        shutil.copytree(self.prepared(scenario), folder)
        return folder

    def run(
        self,
        scenario: str,
        strike: Strike | None = None,
        **options: Any,
    ) -> Run:
        """Run a scenario once, in a folder of its own. `options` are those of `child.run`."""
        return self.go_on(scenario, self.fresh(scenario), strike, **options)

    def go_on(
        self,
        scenario: str,
        folder: Path,
        strike: Strike | None = None,
        **options: Any,
    ) -> Run:
        """Run a scenario on what is in a folder already."""
        given: dict[str, Any] = {"folder": str(folder / "disk"), "scenario": scenario}
        first = {
            "told": str(folder / "told-steps"),
            "journal": str(folder / "journal"),
            "strike": None if strike is None else (strike.at, strike.how, strike.lasting),
            **options,
        }
        jobs = [("child.run", {**given, **first})]
        if SCENARIOS[scenario].beside:
            second = {"told": str(folder / "told-beside"), "part": "beside"}
            jobs.append(("child.run", {**given, **second}))
        return Run(folder, self.launcher.start(*jobs))

    def recorded(self, scenario: str) -> Run:
        """A run in which nothing goes wrong, with all its events."""
        if scenario not in self._recorded:
            run = self.run(scenario)
            assert run.ended[0].code == 0, run.ended[0].words
            self._recorded[scenario] = run
        return self._recorded[scenario]

    def points(self, scenario: str, *ways: How, lasting: bool = False) -> list[Strike]:
        """Every strike that a run of the scenario offers."""
        return [
            Strike(event.call, how, lasting)
            for event in events.calls(self.recorded(scenario).events)
            for how in ways
            if Strike(event.call, how).fits(event)
        ]

    def kill(self, scenario: str, strike: Strike, bugs: list[str] | None = None) -> list[str]:
        """What does not hold after a process was killed there."""
        run = self.run(scenario, strike, bugs=bugs)
        assert was_killed(run) or SCENARIOS[scenario].varies, run.ended
        return [f"killed {strike.how} call {strike.at}: {fault}" for fault in self.faults(run)]

    def faults(self, run: Run) -> list[str]:
        """What does not hold after a run. Its folder stays only if there is something to see."""
        found: list[str] = self.launcher.call(
            "invariants.check", folder=str(run.store), told=run.told
        )
        found += [f"the process beside it: {ended}" for ended in run.ended[1:] if ended.code]
        if not found:
            shutil.rmtree(run.folder)
        return found


def was_killed(run: Run) -> bool:
    """Whether it was; a scenario that varies may have ended well before it came to that."""
    ended = run.ended[0]
    assert ended.code in (0, KILLED), f"ended with {ended.code}: {ended.words}"
    return ended.code == KILLED


def _lines(folder: Path, part: str) -> list[str]:
    path = folder / f"told-{part}"
    return path.read_text().splitlines() if path.exists() else []
