"""What an export says of timelines and checkpoints: records as bytes, and back.

A file that is read may come from any program, so each field is checked as if a caller had
handed it in: the rules for names are those of `timeline.names`. Numbers of commits and the
time of the export are not written: they would differ from store to store. Nor are tasks: they
are the ledger's, and work that two ledgers know would be done twice.
"""

from collections.abc import Sequence
from typing import Any

from hardsave.defaults import MAX_LABELS, MAX_METADATA_BYTES, MAX_NOTE_BYTES
from hardsave.errors import Corrupt, Misuse
from hardsave.objects.codec import Codec
from hardsave.objects.frames import Section
from hardsave.objects.hashing import HASH_BYTES
from hardsave.objects.records import (
    ID_BYTES,
    CheckpointRecord,
    Labels,
    Note,
    TimelineRecord,
    Tombstone,
)
from hardsave.objects.sound import Sound
from hardsave.objects.types import Types
from hardsave.timeline import names, step_summary
from hardsave.timeline.step_summary import TITLE
from hardsave.tuples import NamedTuple

MAX_SEQ = 1 << 62
MAX_PATH = 1 << 16
RECORD_BYTES = 1 << 20  # the longest record that is no object
# The years 2 to 9998: moments that can be told in every time zone.
_TIMES = range(-62_104_060_800_000_000, 253_370_764_800_000_000)

_OWN = CheckpointRecord._fields.index("task")  # from there on most is about one store alone
_SUMMARY_FIELDS = _OWN + 1  # of a checkpoint's record, which has its summary before the last
_ATTACHED_FIELDS = _SUMMARY_FIELDS + 2  # of one that has labels or notes, before the last as well
_NO_FILES = (None, None)

_codec = Codec(Types())
_sound = Sound()


class Past(NamedTuple):
    """A checkpoint or a tombstone, as a file holds it."""

    record: CheckpointRecord | Tombstone
    is_hidden: bool = False  # deleted where it came from, and still the history of a fork
    path: bytes | None = None  # where its workspace was, if it has files
    labels: Labels = ()
    notes: tuple[Note, ...] = ()


def longest(max_value_bytes: int) -> dict[Section, int]:
    """How long a record may be: an object may hold one value of the longest, and its coat."""
    return {
        Section.OBJECTS: max_value_bytes + RECORD_BYTES,
        Section.TIMELINES: RECORD_BYTES,
        Section.HISTORY: max_value_bytes + RECORD_BYTES,  # with its notes
    }


def from_timeline(line: TimelineRecord) -> bytes:
    return _codec.encode(list(line))


def to_timeline(data: bytes) -> TimelineRecord:
    """`Corrupt` if it is not what `from_timeline` makes."""
    fields = _fields(data)
    if len(fields) == len(TimelineRecord._fields) - 1:  # made before timelines had titles
        fields.append("")
    if len(fields) != len(TimelineRecord._fields):
        raise Corrupt("a timeline's record is malformed")
    name, head, last_seq, created_at, origin, is_deleted, title = fields
    _check(names.check_timeline, name)
    _check_id(head, optional=True)
    _check_number(last_seq, range(MAX_SEQ + 1), "a timeline's last number")
    _check_number(created_at, _TIMES, "a time")
    _check_id(origin, optional=True)
    if type(is_deleted) is not bool or type(title) is not str or len(title) > TITLE:
        raise Corrupt("a timeline's record is malformed")
    return TimelineRecord(name, head, last_seq, created_at, origin, is_deleted, title)


def from_past(past: Past) -> bytes:
    if isinstance(past.record, Tombstone):
        return _codec.encode(list(past.record))
    *about, workspace = past.record[1:_OWN]
    where = workspace if past.path in (None, workspace) else [workspace, past.path]
    return _codec.encode([*about, where, past.record.summary, past.is_hidden])


def with_attached(data: bytes, labels: Labels, notes: Sequence[Note]) -> bytes:
    """The record of a checkpoint, as `from_past` makes it, with labels and notes."""
    *about, is_hidden = _codec.decode(data)
    beside = [[list(each) for each in labels], [list(each) for each in notes]]
    return _codec.encode([*about, *beside, is_hidden])


def to_past(data: bytes) -> Past:
    """`Corrupt` if it is not what `from_past` makes, or made before checkpoints had files, or
    summaries."""
    fields = _fields(data)
    if len(fields) == len(Tombstone._fields):
        _check_place(*fields)
        return Past(Tombstone(*fields))
    beside = _attached(fields.pop(-3), fields.pop(-2)) if len(fields) == _ATTACHED_FIELDS else ()
    if len(fields) not in (_SUMMARY_FIELDS, _OWN, _OWN - len(_NO_FILES)):
        raise Corrupt("a checkpoint's record is malformed")
    *about, is_hidden = fields
    summary = about.pop() if len(fields) == _SUMMARY_FIELDS else None
    if len(about) < _OWN - 1:
        about += _NO_FILES
    _check_place(*about[:4])
    _check_about(*about[4:])
    about[-1], path = _workspace(about[-1])
    if type(is_hidden) is not bool:
        raise Corrupt("a checkpoint's record is malformed")
    if summary is not None:
        _check_summary(summary)
    record = CheckpointRecord(0, *about)
    if summary is not None:
        record = record._replace(summary=summary)
    return Past(record, is_hidden, path, *beside)


def _attached(labels: Any, notes: Any) -> tuple[Labels, tuple[Note, ...]]:
    """Labels and notes of a record, checked."""
    for pairs, limit in ((labels, MAX_LABELS), (notes, None)):
        if type(pairs) is not list or not all(_is_pair(each) for each in pairs):
            raise Corrupt("a checkpoint's labels or notes are malformed")
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys) or (limit is not None and len(keys) > limit):
            raise Corrupt("a checkpoint's labels or notes are too many, or come twice")
    for key, value in labels:
        _check(names.check_label, key)
        _check(names.check_label_value, value)
    for key, data in notes:
        _check(names.check_note, key)
        if type(data) is not bytes or not 0 < len(data) <= MAX_NOTE_BYTES:
            raise Corrupt("a checkpoint's note is malformed or too long")
        _sound.value(data)
    found = tuple(Note(key, data) for key, data in notes)
    return tuple(sorted((key, value) for key, value in labels)), found


def _is_pair(each: Any) -> bool:
    return type(each) is list and len(each) == 2 and type(each[0]) is str


def _check_summary(summary: Any) -> None:
    if type(summary) is not bytes:
        raise Corrupt("a checkpoint's summary is malformed")
    step_summary.decode(summary)


def _fields(data: bytes) -> list[Any]:
    fields = _sound.value(data)
    if type(fields) is not list:
        raise Corrupt("a record is malformed")
    return fields


def _check_place(id: Any, timeline: Any, seq: Any, parent: Any) -> None:
    _check_id(id)
    _check(names.check_timeline, timeline)
    _check_number(seq, range(1, MAX_SEQ + 1), "a checkpoint's number")
    _check_id(parent, optional=True)


def _check_about(
    created_at: Any,
    name: Any,
    kind: Any,
    status: Any,
    description: Any,
    metadata: Any,
    root: Any,
    snapshot: Any,
    workspace: Any,
) -> None:
    _check_number(created_at, _TIMES, "a time")
    if name is not None:
        _check(names.check_checkpoint, name)
    if type(kind) is not str:
        raise Corrupt("a checkpoint's kind is no text")
    _check(names.check_kind, kind)
    _check(names.check_status, status)
    _check(names.check_description, description)
    if type(metadata) is not bytes or len(metadata) > MAX_METADATA_BYTES:
        raise Corrupt("a checkpoint's metadata is malformed or too long")
    if type(_sound.value(metadata)) is not dict:
        raise Corrupt("a checkpoint's metadata is no dict")
    if type(root) is not bytes or len(root) != HASH_BYTES:
        raise Corrupt("a checkpoint's root is no address")
    _check_files(snapshot, workspace)


def _check_files(snapshot: Any, workspace: Any) -> None:
    if snapshot is None and workspace is None:
        return
    if type(snapshot) is not bytes or len(snapshot) != HASH_BYTES:
        raise Corrupt("a checkpoint's snapshot is no address")
    if type(workspace) is list:
        if len(workspace) != 2:
            raise Corrupt("a checkpoint's workspace is malformed")
        id, workspace = workspace
        if type(id) is not bytes or len(id) != ID_BYTES or id.startswith(b"/"):
            raise Corrupt("the id of a checkpoint's workspace is malformed")
    if type(workspace) is not bytes or not 0 < len(workspace) <= MAX_PATH or 0 in workspace:
        raise Corrupt("a checkpoint's workspace is no path")
    if not workspace.startswith(b"/") or b".." in workspace.split(b"/"):
        raise Corrupt("a checkpoint's workspace is no whole path")


def _workspace(told: Any) -> tuple[bytes | None, bytes | None]:
    """The id and the path of a checkpoint's workspace; in exports from before ids, the path is
    both."""
    id, path = told if type(told) is list else (told, told)
    return id, path


def _check(rule: Any, value: Any) -> None:
    try:
        rule(value)
    except Misuse as error:
        raise Corrupt(f"a name or text in it cannot be one ({error})") from error


def _check_id(id: Any, *, optional: bool = False) -> None:
    if (id is None and optional) or (type(id) is bytes and len(id) == ID_BYTES):
        return
    raise Corrupt("a checkpoint's id is malformed")


def _check_number(number: Any, allowed: range, what: str) -> None:
    if type(number) is not int or number not in allowed:
        raise Corrupt(f"{what} cannot be {number!r}"[:200])
