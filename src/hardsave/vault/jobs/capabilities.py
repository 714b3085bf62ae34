"""Which jobs a worker can take, and whether any that runs can. Pure.

A job names its agent, and may name its model; a worker knows those that it was given. One that
it cannot take is left to another, for as long as that takes: it has not failed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hardsave.vault.jobs.spec import OWN_PROGRAM, JobSpec


@dataclass(frozen=True)
class Capabilities:
    """The agents and models that one worker was given."""

    agents: Collection[str]
    models: Collection[str]

    def lacks(self, spec: JobSpec) -> str | None:
        """What it would need for a job, in words; None if it can take it."""
        if spec.agent not in self.agents:
            return f"agent {spec.agent!r}"
        if spec.model is not None and spec.model not in self.models:
            return f"model {spec.model!r}"
        return None

    def lanes(self) -> list[str]:
        """The lanes of all jobs that it can take."""
        return [_lane(agent, model) for agent in self.agents for model in (None, *self.models)]

    def to_plain(self) -> dict[str, list[str]]:
        """As other processes read it."""
        return {"agents": sorted(self.agents), "models": sorted(self.models)}


def lane(spec: JobSpec) -> str | None:
    """Where a job waits for a worker that has what it needs; None: for its own program."""
    return None if spec.agent == OWN_PROGRAM else _lane(spec.agent, spec.model)


def _lane(agent: str, model: str | None) -> str:
    return f"job {agent}" if model is None else f"job {agent} {model}"


def offered_by_workers(offered: Iterable[Any]) -> list[Capabilities]:
    """What workers can take, among all that sessions offer."""
    return [
        Capabilities(each["agents"], each["models"])
        for each in offered
        if isinstance(each, Mapping) and {"agents", "models"} <= each.keys()
    ]


def is_unserved(spec: JobSpec, workers: Collection[Capabilities]) -> bool:
    """Whether a job that is queued waits for a worker that does not run."""
    return spec.agent != OWN_PROGRAM and all(each.lacks(spec) is not None for each in workers)


def waits(spec: JobSpec, workers: Collection[Capabilities]) -> str:
    """What a queued job waits for."""
    if spec.agent == OWN_PROGRAM:
        return "it waits for its own program, which loads it by this id"
    if not is_unserved(spec, workers):
        return "it waits for a worker"
    needed = f"agent {spec.agent!r}"
    if spec.model is not None:
        needed += f" and model {spec.model!r}"
    if not workers:
        return f"it waits for a worker that has {needed}, and none runs now"
    known = ", ".join(sorted({name for each in workers for name in each.agents})) or "none"
    return (
        f"it waits for a worker that has {needed}, and none that runs now has "
        f"(agents of those that run: {known})"
    )
