"""A checkpoint as Breakpilot's users know it, and the JSON of an export. Pure.

An export may come from any program: what is not as `export` writes it is `Misuse` that names the
place, before anything of it is stored.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hardsave.compat import foreign
from hardsave.errors import Misuse
from hardsave.objects import depth

LONGEST = 30_000  # bytes of an id or a name: both are kept beside the data
_HIGHEST = (1 << 63) - 1


@dataclass
class Checkpoint:
    """A point that a session can go back to."""

    id: str
    name: str
    timestamp: datetime
    data: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "timestamp": self.timestamp.isoformat(),
            "data": self.data,
            "metadata": self.metadata,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Checkpoint":
        """A time without a zone is taken as local; all times become UTC."""
        return _checkpoint(data, "this checkpoint")


def exported(checkpoints: Iterable[Checkpoint]) -> str:
    """As JSON; `Misuse` if that cannot hold it, or `imported` could not read it."""
    try:
        text = json.dumps([checkpoint.to_dict() for checkpoint in checkpoints], indent=2)
        depth.check(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misuse(f"not everything here can be written as JSON: {error}") from error
    return text


def imported(json_data: str | bytes) -> list[Checkpoint]:
    """What `exported` wrote."""
    foreign.check(json_data, str | bytes, "an export")
    try:
        found = depth.loads(json_data)
    except ValueError as error:
        raise Misuse(f"this is not what export() wrote: {error}") from error
    foreign.check(found, list, "an export")
    return [_checkpoint(one, f"checkpoint {at} of this export") for at, one in enumerate(found, 1)]


def number(id: str, session_id: str) -> int:
    """The number in an id of this session; 0 in any other."""
    session, _, digits = id.rpartition(":")
    if session != session_id or not (digits.isascii() and digits.isdigit()):
        return 0
    if len(digits) > len(str(_HIGHEST)) or int(digits) > _HIGHEST:
        raise Misuse(f"the number of checkpoint {id[:40]!r} is above {_HIGHEST}")
    return int(digits)


def check_name(text: Any, what: str = "a name") -> None:
    foreign.check(text, str, what)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LONGEST:
        raise Misuse(f"{what} has at most {LONGEST} bytes, not {size}")


def _checkpoint(given: Any, which: str) -> Checkpoint:
    foreign.check(given, Mapping, which)
    for key in ("id", "name"):
        check_name(given.get(key), f"the {key} of {which}")
    if "data" not in given:
        raise Misuse(f"{which} has no data")
    moment = foreign.moment(given.get("timestamp"), f"the timestamp of {which}")
    # What `create` was given, as it is: what was exported can be imported.
    metadata = given.get("metadata") or {}
    return Checkpoint(given["id"], given["name"], moment, given["data"], metadata)
