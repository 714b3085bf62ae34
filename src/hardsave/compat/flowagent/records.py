"""What a checkpoint of an agent holds, and how two of them differ. Plain data."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import UnionType
from typing import Any

from hardsave.compat import foreign
from hardsave.errors import Misuse, Unstorable
from hardsave.objects.codec import Codec
from hardsave.objects.types import DEFAULT_TYPES

VERSION = 1
LIGHT = (
    "id",
    "agent_id",
    "agent_type",
    "user_id",
    "status",
    "parent_checkpoint_id",
    "timestamp",
    "branch_label",
    "version",
)
"""What a listing shows; the rest is read with the whole checkpoint."""


@dataclass
class Checkpoint:
    """An agent as it was at one moment. A time without a zone is taken as local."""

    id: str
    agent_id: str
    agent_type: str
    user_id: str
    status: str
    collected_fields: dict[str, Any] = field(default_factory=dict)
    required_fields: list[Any] = field(default_factory=list)
    context_summary: str = ""
    parent_checkpoint_id: str | None = None
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    metadata: dict[str, Any] = field(default_factory=dict)
    execution_state: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    message: Any = None
    result: Any = None
    message_history: list[Any] = field(default_factory=list)
    branch_label: str | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        self.timestamp = foreign.moment(self.timestamp, "the timestamp of a checkpoint")

    def check(self) -> None:
        """`Misuse` that names the field if one is not what it should be."""
        for kind, names in _KINDS:
            for name in names:
                foreign.check(getattr(self, name), kind, f"the {name} of a checkpoint")

    def to_dict(self) -> dict[str, Any]:
        """A copy as plain data; the time as text."""
        copied = {one.name: deepcopy(getattr(self, one.name)) for one in fields(self)}
        return {**copied, "timestamp": self.timestamp.isoformat()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Checkpoint":
        """What `to_dict` made, and what older versions left out. Other keys are ignored."""
        foreign.check(data, Mapping, "a checkpoint")
        try:
            made = cls.of({key: deepcopy(value) for key, value in data.items()})
        except RecursionError as error:
            raise Misuse("this checkpoint is nested too deep to be copied") from error
        made.check()
        return made

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Checkpoint":
        """The same of values that only the caller has, as they are."""
        try:
            return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})
        except TypeError as error:
            raise Misuse(f"this is not a whole checkpoint: {error}") from error

    def light(self) -> "Checkpoint":
        """The same without what a listing does not need."""
        return LightCheckpoint(**{name: getattr(self, name) for name in LIGHT})


class LightCheckpoint(Checkpoint):
    """What a listing shows of a checkpoint. The rest was not read, and to touch it is `Misuse`: an
    empty value would be taken for what was saved."""

    def __init__(self, **shown: Any) -> None:
        for name in LIGHT:
            setattr(self, name, shown[name])
        self.__post_init__()

    def __eq__(self, other: object) -> bool:
        """Two of a listing are equal if what they show is; of a whole one that is not known."""
        if isinstance(other, LightCheckpoint):
            return _shown(self) == _shown(other)
        if isinstance(other, Checkpoint):
            raise _not_read(self, "to compare it with a whole one, all")
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as of any record that can be changed

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in LIGHT)
        return f"{type(self).__name__}({shown}; the rest was not read: full=True)"


class _NotRead:
    """Stands where a field would be."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, light: LightCheckpoint | None, cls: type) -> Any:
        if light is None:
            return self
        raise _not_read(light, self._name)

    def __set__(self, light: LightCheckpoint, value: object) -> None:
        raise _not_read(light, self._name)


for _field in fields(Checkpoint):
    if _field.name not in LIGHT:
        setattr(LightCheckpoint, _field.name, _NotRead(_field.name))


def _shown(light: LightCheckpoint) -> list[Any]:
    return [getattr(light, name) for name in LIGHT]


def _not_read(light: LightCheckpoint, what: str) -> Misuse:
    return Misuse(
        f"{what} of checkpoint {light.id!r} was not read: list with full=True, or load it by its id"
    )


_KINDS: tuple[tuple[type | UnionType, tuple[str, ...]], ...] = (
    (str, ("id", "agent_id", "agent_type", "user_id", "status", "context_summary")),
    (str | None, ("parent_checkpoint_id", "branch_label")),
    (dict, ("collected_fields", "metadata", "execution_state", "context")),
    (list, ("required_fields", "message_history")),
    (int, ("version",)),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed in the collected fields from one checkpoint to another, and its status."""

    old_status: str
    new_status: str
    added: dict[str, Any]
    removed: dict[str, Any]
    modified: dict[str, tuple[Any, Any]]
    """Old and new value."""

    @property
    def changed_fields(self) -> list[str]:
        return sorted({*self.added, *self.removed, *self.modified})

    @property
    def status_changed(self) -> bool:
        return self.old_status != self.new_status


def compare(old: Checkpoint, new: Checkpoint) -> Comparison:
    before, after = old.collected_fields, new.collected_fields
    return Comparison(
        old_status=old.status,
        new_status=new.status,
        added={name: value for name, value in after.items() if name not in before},
        removed={name: value for name, value in before.items() if name not in after},
        modified={
            name: (value, after[name])
            for name, value in before.items()
            if name in after and not _same(value, after[name])
        },
    )


_CODEC = Codec(DEFAULT_TYPES)


def _same(one: Any, other: Any) -> bool:
    """Equal in value and in type all the way down: `1 == True` is not enough."""
    try:
        return _CODEC.encode(one) == _CODEC.encode(other)
    except Unstorable:  # a storage of one's own may hold what ours refuses
        return bool(one == other)
