"""A store built to be damaged, and read again after each damage."""

from pathlib import Path

from tests.crash.damage import Damage, Reading
from tests.crash.rig import Rig
from tests.crash.scenarios import STORE

BATCH = 20  # damages that one process looks at


class Specimen:
    """One shape of store: its folder, and what was saved in it."""

    def __init__(self, rig: Rig, shape: str, bugs: list[str] | None = None) -> None:
        self._rig = rig
        self.folder = rig.folder()
        self.folder.mkdir()
        self.told: list[str] = rig.launcher.call(
            "damage.build", folder=str(self.folder), shape=shape, bugs=bugs
        )

    def file(self, suffix: str) -> Path:
        return self.folder / (STORE + suffix)

    def read(self, bugs: list[str] | None = None) -> Reading:
        """Read it as it is."""
        answer = self._rig.launcher.call(
            "damage.read", folder=str(self.folder), told=self.told, bugs=bugs
        )
        return Reading(*answer)

    def damaged(self, damages: list[Damage]) -> list[Reading]:
        """Read copies of it, each with one damage."""
        found: list[Reading] = []
        for start in range(0, len(damages), BATCH):
            answer = self._rig.launcher.call(
                "damage.read_damaged",
                folder=str(self.folder),
                told=self.told,
                damages=damages[start : start + BATCH],
            )
            found += [Reading(*each) for each in answer]
        return found

    def wrong(self, damages: list[Damage]) -> list[str]:
        """What was read in the copies and is not so."""
        return [
            f"{damage}: {wrong}"
            for damage, reading in zip(damages, self.damaged(damages), strict=True)
            for wrong in reading.wrong
        ]

    def forge(self) -> None:
        """Change what packs hold, beneath valid page checksums."""
        self._rig.launcher.call("damage.forge", folder=str(self.folder))
