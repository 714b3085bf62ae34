"""What the server's function answers to a batch, as a number or an error of ours."""

from collections.abc import Callable, Mapping
from typing import Any

from hardsave.errors import Conflict, HardsaveError, LeaseLost, NotFound
from hardsave.objects.records import TimelineRecord, WorkspaceRecord
from hardsave.stores.base import Batch, CheckpointGone, ObjectsGone, conflict_message
from hardsave.stores.ledger import OVERTAKEN, RECLAIMED, lost_message
from hardsave.stores.workspaces import check_workspace

Answer = Mapping[str, Any]


def number_in(batch: Batch, answer: Answer) -> int:
    """The number of a batch. Its refusal is raised."""
    if "refused" not in answer:
        return int(answer["number"])
    if answer["refused"] == "workspace":
        _raise_workspace(batch, answer)
    raise _ERRORS[answer["refused"]](answer)


def _raise_workspace(batch: Batch, answer: Answer) -> None:
    move = batch.workspaces[answer["at"]]
    check_workspace(move, _workspace(answer["standing"]), _workspace(answer["there"]))


def _workspace(found: Answer | None) -> WorkspaceRecord | None:
    if found is None:
        return None
    id, path = (bytes.fromhex(found[name][2:]) for name in ("id", "path"))
    return WorkspaceRecord(id, found["host"], path, found["epoch"])


def _moved(answer: Answer) -> HardsaveError:
    name, last_seq = answer["name"], answer["last_seq"]
    some = TimelineRecord(name, None, last_seq or 0, 0, None)
    standing = None if last_seq is None else some
    return Conflict(conflict_message(name, standing, some if answer["expected"] else None))


_ERRORS: Mapping[str, Callable[[Answer], HardsaveError]] = {
    "epoch": lambda a: LeaseLost(lost_message(a["task"], a["standing"], a["epoch"])),
    "overtaken": lambda a: Conflict(OVERTAKEN.format(a["kind"])),
    "added": lambda a: Conflict(f"task {a['task']!r} exists already, or one with its key"),
    "reclaimed": lambda a: LeaseLost(RECLAIMED),
    "alive": lambda a: Conflict(f"session {a['session']!r} is alive: it has renewed its lease"),
    "latest": lambda a: Conflict("another operation has been logged meanwhile"),
    "moved": _moved,
    "head": lambda a: Conflict(
        f"checkpoint {a['id']} is the head of timeline {a['name']!r} by now"
    ),
    "dropped": lambda a: CheckpointGone(f"checkpoint {a['id']} was dropped meanwhile"),
    "objects": lambda a: ObjectsGone(
        f"{a['count']} objects are no longer stored, {a['first']} among them"
    ),
    "no task": lambda a: NotFound(f"task {a['task']!r} does not exist"),
}
