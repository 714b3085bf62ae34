"""Which jobs a worker can take, and whether any that runs can. Pure.

A job names its agent, and may name its model; a worker knows those that it was given. One that
it cannot take is left to another, for as long as that takes: it has not failed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hardsave.runtime.jobs.spec import Spec


@dataclass(frozen=True)
class Hand:
    """What one worker was given."""

    agents: Collection[str]
    models: Collection[str]

    def lacks(self, spec: Spec) -> str | None:
        """What it would need for a job, in words; None if it can take it."""
        if spec.agent not in self.agents:
            return f"agent {spec.agent!r}"
        if spec.model is not None and spec.model not in self.models:
            return f"model {spec.model!r}"
        return None

    def to_plain(self) -> dict[str, list[str]]:
        """As it is told others."""
        return {"agents": sorted(self.agents), "models": sorted(self.models)}


def hands(offered: Iterable[Any]) -> list[Hand]:
    """The workers among those who offer something."""
    return [
        Hand(each["agents"], each["models"])
        for each in offered
        if isinstance(each, Mapping) and {"agents", "models"} <= each.keys()
    ]


def is_unserved(spec: Spec, crew: Collection[Hand]) -> bool:
    """Whether a job that is queued waits for a worker that nobody runs."""
    return all(hand.lacks(spec) is not None for hand in crew)


def waits(spec: Spec, crew: Collection[Hand]) -> str:
    """What a queued job waits for."""
    if not is_unserved(spec, crew):
        return "it waits for a worker"
    needed = f"agent {spec.agent!r}"
    if spec.model is not None:
        needed += f" and model {spec.model!r}"
    if not crew:
        return f"it waits for a worker that has {needed}, and none runs now"
    known = ", ".join(sorted({name for hand in crew for name in hand.agents})) or "none"
    return (
        f"it waits for a worker that has {needed}, and none that runs now has "
        f"(agents of those that run: {known})"
    )
