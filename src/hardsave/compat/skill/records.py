"""A checkpoint as the skill's own documents describe it: plain data, to and from JSON."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from hardsave.errors import Misuse

Type = Literal["automatic", "manual", "feature", "session"]
KEPT: Mapping[str, int] = {"automatic": 5, "session": 3}
"""How many of a type stay; of the others all do."""


@dataclass(frozen=True)
class GitState:
    commit_hash: str | None = None
    branch: str | None = None
    dirty_files: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FeatureState:
    current: str | None = None
    completed: list[str] = field(default_factory=list)
    snapshot_path: str | None = None


@dataclass(frozen=True)
class Context:
    session_number: int | None = None
    token_usage: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    """One point that a project can be rolled back to."""

    id: str
    name: str
    description: str
    type: str
    timestamp: str
    git_state: GitState = GitState()
    feature_state: FeatureState = FeatureState()
    context: Context = Context()
    ref: str = ""
    """The checkpoint in the vault."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Checkpoint":
        return cls(
            id=data["id"],
            name=data["name"],
            description=data.get("description", ""),
            type=data.get("type", "manual"),
            timestamp=data["timestamp"],
            git_state=GitState(**data.get("git_state", {})),
            feature_state=FeatureState(**data.get("feature_state", {})),
            context=Context(**data.get("context", {})),
            ref=data.get("ref", ""),
        )


def check_type(given: object) -> None:
    if given not in get_args(Type):
        raise Misuse(f"a checkpoint's type is one of {', '.join(get_args(Type))}, not {given!r}")


def id_for(moment: datetime, taken: Collection[str]) -> str:
    """`checkpoint-YYYYMMDD-HHMMSS`, in UTC; with a number after it if that is taken."""
    plain = f"checkpoint-{moment.astimezone(UTC):%Y%m%d-%H%M%S}"
    if plain not in taken:
        return plain
    number = 2
    while f"{plain}-{number}" in taken:
        number += 1
    return f"{plain}-{number}"


_DONE = ("completed", "complete", "done", "passed", "passing", "finished")
_NOW = ("in_progress", "in-progress", "current", "active", "working")


def features(listed: Any) -> FeatureState:
    """What a feature list says. Lists come in several shapes; another one says nothing."""
    items = listed.get("features", []) if isinstance(listed, Mapping) else listed
    found = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    named = [(_name(item), item) for item in found]
    completed = [name for name, item in named if name and _is_done(item)]
    open_ones = [(name, item) for name, item in named if name and not _is_done(item)]
    working = [name for name, item in open_ones if item.get("status") in _NOW]
    current = next(iter(working), next((name for name, _ in open_ones), None))
    return FeatureState(current, completed)


def _name(item: Mapping[str, Any]) -> str:
    found = item.get("id", item.get("name", item.get("description", "")))
    return str(found)


def _is_done(item: Mapping[str, Any]) -> bool:
    done = item.get("passes", item.get("completed"))
    return done is True or item.get("status") in _DONE
