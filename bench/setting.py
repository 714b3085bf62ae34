"""How large a run is, and what its sections share."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.turns import Session, play


@dataclass
class Setting:
    """`quick` shortens everything: its figures show that nothing is broken, and a tendency."""

    place: Path
    quick: bool
    tree: Path | None = None  # to snapshot copies of; else packages of this environment

    @property
    def turns(self) -> int:
        return 400 if self.quick else 500

    def choose(self, whole: int, quick: int) -> int:
        return quick if self.quick else whole

    @cached_property
    def session(self) -> Session:
        """The conversation saved by everybody: played once, whoever asks first."""
        return play(self.place / "session", self.turns, rounds=self.choose(3, 1))
