"""A batch as the server's function takes it: a document, and its objects as arrays.

The keys are the columns of the tables. Bytes are spelt as the type bytea reads them. What a batch
does not have is left out: a plain save is short.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from hardsave.errors import Misuse
from hardsave.objects.hashing import Hash
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    LogRecord,
    Note,
    TaskRecord,
)
from hardsave.stores import packs
from hardsave.stores.base import NO_CHANGES, Batch, Changes, Move
from hardsave.stores.ledger import NO_WORK, Work

_KINDS = {CheckpointRecord: "checkpoint", LogRecord: "log", EntryRecord: "entry"}


def written(value: Any) -> str:
    """A document as text. PostgreSQL has no NUL in texts: it is refused by name."""
    text = json.dumps(value, default=_spelt, ensure_ascii=False, separators=(",", ":"))
    if "\\u0000" in text:
        raise Misuse("a text with a NUL character cannot be kept by PostgreSQL; leave it out")
    return text


def _spelt(value: Any) -> Any:
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return list(value)  # a set or another collection


def document(batch: Batch) -> str:
    """All of a batch but its objects."""
    doc: dict[str, Any] = {
        "user": batch.user,
        "kind": _KINDS[type(batch.event)],
        "event": _row(batch.event),
    }
    moves = [*([] if batch.move is None else [batch.move]), *batch.changes.moves]
    if moves:
        doc["moves"] = [_move(move) for move in moves]
    if batch.workspaces:
        doc["workspaces"] = [
            {**move.become._asdict(), "expect": move.expect} for move in batch.workspaces
        ]
    if batch.changes != NO_CHANGES:
        doc["changes"] = _changes(batch.changes)
    if batch.work != NO_WORK:
        doc["work"] = _work(batch.work)
    if batch.labels or batch.notes:
        doc["labels"] = [{"id": id, "labels": some} for id, some in batch.labels.items()]
        doc["notes"] = [{"id": id, "notes": rows(some)} for id, some in batch.notes.items()]
    return written(doc)


def rows(notes: Collection[Note]) -> list[dict[str, Any]]:
    return [note._asdict() for note in notes]


def _row(record: Any) -> dict[str, Any]:
    """A record by its columns. Long texts are bytes there, and may hold any character."""
    row: dict[str, Any] = record._asdict()
    if isinstance(record, CheckpointRecord):
        row["description"] = record.description.encode()
    elif isinstance(record, TaskRecord):
        row["text"] = record.text.encode()
        row["error"] = None if record.error is None else record.error.encode()
    return row


def _move(move: Move) -> dict[str, Any]:
    expect, become = move
    row: dict[str, Any] = become._asdict()
    row["retitles"] = expect is None or expect.title != become.title
    if expect is not None:
        row["expect"] = {"head": expect.head, "last_seq": expect.last_seq}
        row["created_before"] = expect.created_at
    return row


def _changes(changes: Changes) -> dict[str, Any]:
    found: dict[str, Any] = {
        "checkpoints": [_row(each) for each in changes.checkpoints],
        "tombstones": [_row(each) for each in changes.tombstones],
        "hide": list(changes.hide),
        "show": list(changes.show),
        "hide_again": list(changes.hide_again),
        "drop": list(changes.drop),
        "replace": [_row(each) for each in changes.replace],
        "forget_log": changes.forget_log,
        "forget_workspaces": list(changes.forget_workspaces),
        "keeps": list(changes.keeps),
        "purges": changes.purges,
    }
    found = {key: value for key, value in found.items() if value}
    return found if changes.latest is None else {**found, "latest": changes.latest}


def _work(work: Work) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fences": [each._asdict() for each in work.fences],
        "moves": [{**_row(move.become), "expect": move.expect} for move in work.moves],
        "entries": [_row(each) for each in work.entries],
        "alive": list(work.alive),
        "reclaim": [_row(each) for each in work.reclaim],
        "forget": list(work.forget),
    }
    found = {key: value for key, value in found.items() if value}
    if work.latest is not None:
        found["latest"] = work.latest._asdict()
    return found if work.keep_itself is None else {**found, "keep_itself": work.keep_itself}


def arrays(
    objects: Mapping[Hash, bytes], compress: Callable[[], bool]
) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any], list[Any]]:
    """Bodies, directories and sizes of packs; hashes and lengths of objects, and which of these
    packs, from 1, each lies in."""
    made = list(packs.pack(objects.items(), compress=compress)) if objects else []
    hashes: list[Hash] = []
    lengths: list[int] = []
    pack_of: list[int] = []
    for at, each in enumerate(made, 1):
        inside = packs.hashes(each.directory)
        hashes += inside
        lengths += packs.lengths(each.directory)
        pack_of += [at] * len(inside)
    bodies, directories = [each.body for each in made], [each.directory for each in made]
    return bodies, directories, [each.size for each in made], hashes, lengths, pack_of
