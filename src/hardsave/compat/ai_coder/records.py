"""What a checkpoint of a job holds, as its users know it and as it is stored. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any

from hardsave.compat import foreign
from hardsave.compat.ai_coder import history
from hardsave.errors import Misuse
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.spec import JobId, JobResumption, JobSpec

VERSION = 1

_KEY = "ai_coder"
_UNSAID = "(no description)"

_SPELT = {
    "job_id": "jobId",
    "workspace_id": "workspaceId",
    "task_description": "taskDescription",
    "messages": "messages",
    "turns": "turns",
    "max_turns": "maxTurns",
    "selected_model": "selectedModel",
    "workspace_config": "workspaceConfig",
    "last_updated": "lastUpdated",
    "version": "version",
}

_KINDS: Mapping[str, type | UnionType] = {
    "job_id": str,
    "workspace_id": str,
    "task_description": str,
    "messages": list,
    "turns": int,
    "max_turns": int,
    "selected_model": str | None,
    "workspace_config": dict,
    "last_updated": str,
    "version": int,
}


@dataclass
class AgentCheckpoint:
    """Where an agent's loop stands. `last_updated` and `version` are set when it is saved."""

    job_id: str
    workspace_id: str
    task_description: str
    messages: list[dict[str, Any]]
    turns: int
    max_turns: int
    selected_model: str | None = None
    workspace_config: dict[str, str] = field(default_factory=dict)
    """`owner`, `repo`, `defaultBranch`."""
    last_updated: str = ""
    version: int = VERSION

    def ready_messages(self) -> list[dict[str, Any]]:
        """The messages, with every tool call answered: what a model can be sent.

        A call whose result was not saved is answered with that; its agent may run it instead, see
        `unanswered`.
        """
        return history.answered(self.messages)

    @property
    def unanswered(self) -> list[str]:
        """The ids of calls whose results were not saved: they may have run or not."""
        return history.unanswered(self.messages)

    def to_dict(self) -> dict[str, Any]:
        """As the original keeps it in JSON."""
        return {theirs: getattr(self, ours) for ours, theirs in _SPELT.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AgentCheckpoint":
        """What `to_dict` made; `Misuse` names what is not."""
        foreign.check(data, Mapping, "a checkpoint")
        unknown = data.keys() - {*_SPELT.values()}
        if unknown:
            raise Misuse(f"a checkpoint has no {', '.join(sorted(map(repr, unknown)))}")
        for ours, kind in _KINDS.items():
            if _SPELT[ours] in data:
                foreign.check(data[_SPELT[ours]], kind, f"{_SPELT[ours]} of a checkpoint")
        try:
            return cls(**{ours: data[theirs] for ours, theirs in _SPELT.items() if theirs in data})
        except TypeError as error:
            raise Misuse(f"this is not a whole checkpoint: {error}") from error


@dataclass(frozen=True)
class CheckpointMetadata:
    """What lists show."""

    total_checkpoints: int
    """How many were saved of this job."""
    last_checkpoint_at: str
    can_resume: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "totalCheckpoints": self.total_checkpoints,
            "lastCheckpointAt": self.last_checkpoint_at,
            "canResume": self.can_resume,
        }


# As a job: what `vault.jobs` reads of any job, and the rest of the record beside it


def to_state(record: AgentCheckpoint, spec: JobSpec, id: JobId) -> dict[str, Any]:
    """What is saved: the conversation of a job, which this record describes."""
    rest = record.to_dict()
    messages = rest.pop("messages")
    return {
        "messages": messages,
        "turn": record.turns,
        "status": "running",
        "model": record.selected_model,
        "error": None,
        "output": {"content": None},
        "data": {"content": {specs.KEY: specs.to_plain(spec, id), _KEY: rest}},
    }


def from_state(state: Any) -> dict[str, Any] | None:
    """The record in what was saved, spelt as in `to_dict`; None if it is another program's."""
    try:
        rest = state["data"]["content"][_KEY]
        return {**rest, "messages": state["messages"]}
    except (LookupError, TypeError):
        return None


def to_spec(record: AgentCheckpoint, lineage: str, before: JobSpec | None) -> JobSpec:
    """The job that a record is of. Where it was resumed from, and whom it calls back, is known from
    `before`."""
    turns = min(max(1, record.max_turns), specs.MOST_TURNS)
    config = record.workspace_config
    named = "/".join(str(config[key]) for key in ("owner", "repo") if config.get(key))
    return JobSpec(
        lineage=lineage,
        prompt=record.task_description if record.task_description.strip() else _UNSAID,
        agent=specs.OWN_PROGRAM,
        max_turns=turns,
        turns_given=turns if before is None else before.turns_given,
        callback=None if before is None else before.callback,
        about={specs.WORKSPACE: named or record.workspace_id},
        resumed=None if before is None else before.resumed,
    )


def resumed(spec: JobSpec, from_job: str, at: str) -> JobSpec:
    return replace(spec, resumed=JobResumption(from_job=from_job, at=at))
