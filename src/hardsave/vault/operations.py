"""Operations: what the log says of them, which one comes next, and how each is turned around.

An operation moves timelines, hides or shows checkpoints and rolls tasks back; a save is none.
Its log entry says where each timeline stood before and after, and which tasks, so taking it back
needs no knowledge of its kind. Nothing here reads or writes.

    undo   turns around the latest operation that stands
    redo   turns around the latest undo, if no other operation came after it

Both are entries of their own, with the operation they speak of as `subject`. Turning an
entry around moves each timeline back to where it stood, with its numbers going on; what was
saved since stays reachable.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from hardsave.actor import signed
from hardsave.errors import Conflict, Corrupt
from hardsave.objects.codec import Codec
from hardsave.objects.records import (
    ID_BYTES,
    CheckpointRecord,
    Id,
    LogRecord,
    TimelineRecord,
)
from hardsave.stores.base import Changes, Move
from hardsave.tuples import NamedTuple

KINDS = ("rewind", "restore", "guard", "fork", "delete", "clear", "import")
STEPS = ("undo", "redo")
_PLAIN = ("hid", "shown", "hidden_again", "added", "subject", "turned", "on_any", "asked")
_codec = Codec()  # entries are plain data


class FilesMove(NamedTuple):
    """The files of a workspace went from what one checkpoint holds to what another one does."""

    workspace: bytes  # its id
    before: Id
    after: Id
    paths: tuple[bytes, ...] | None = None  # only these, and what lies in them
    git: bool = False  # and the repository's position too
    only: tuple[bytes, ...] | None = None  # exactly these
    like: tuple[Id, Id] | None = None  # exactly what differs between these two checkpoints
    made: bool = False  # whether `before` was saved for this operation alone
    # Although rules ignore them, and so `before` has none of them (see `vault.ignored`):
    brought: tuple[bytes, ...] = ()  # checkpoints and paths, by turns
    took: tuple[bytes, ...] = ()

    @property
    def checkpoints(self) -> set[Id]:
        """Those that turning it around needs."""
        ignored = {*self.brought[::2], *self.took[::2]}
        return {self.before, self.after, *(self.like or ()), *ignored}


class TaskMark(NamedTuple):
    """A task that an operation rolled back, in the generation that it was in."""

    task: str
    generation: int


class Lost(NamedTuple):
    """A store knows of a checkpoint by which commit it was hidden last, not by which before."""

    number: int  # the commit that had hidden it before, and whose hiding may be done again
    checkpoint: Id


class Effects(NamedTuple):
    """What an operation did, as its log entry keeps it."""

    moves: tuple[Move, ...] = ()
    hid: bool = False  # checkpoints, under the entry's own number
    shown: tuple[int, ...] = ()  # again: what these commits had hidden
    hidden_again: tuple[int, ...] = ()
    lost: tuple[Lost, ...] = ()  # by what it has hidden; of a step: or those that it passed over
    added: int = 0  # so many numbers right before the entry's are checkpoints that it added
    subject: Id | None = None  # of undo and redo: the operation that they speak of
    turned: int = 0  # and the number of the entry that they turn around
    on_any: bool = False  # which was the latest to stand on any timeline, not just on its own
    files: FilesMove | None = None
    tasks: tuple[TaskMark, ...] = ()  # rolled back; of an undo: brought back
    about: Mapping[str, Any] = {}  # for people  # never changed
    asked: bytes = b""  # digest of what was asked for; only if the caller gave a key


class Entry(NamedTuple):
    """An operation in the log."""

    number: int
    id: Id
    kind: str
    timeline: str | None
    created_at: int
    effects: Effects

    @property
    def subject(self) -> Id:
        return self.effects.subject or self.id

    @property
    def timelines(self) -> set[str]:
        """Those that it did something to."""
        own = () if self.timeline is None else (self.timeline,)
        return {*own, *(move.become.name for move in self.effects.moves)}

    def settles_from(self, timeline: str | None) -> int:
        """From here on up to this entry nothing is left of a timeline to undo or redo. An undo
        takes back the latest that stands: what came after that was taken back before."""
        turned = self.effects.turned
        return turned if turned and (timeline is not None or self.effects.on_any) else self.number

    @property
    def is_silent(self) -> bool:
        """Whether it has turned around an entry and does not say which: earlier versions do not."""
        return self.kind in STEPS and not self.effects.turned

    def touches(self, timeline: str | None) -> bool:
        """Whether it did something to a timeline; None stands for any."""
        return timeline is None or timeline in self.timelines


# The log


def encode(effects: Effects) -> bytes:
    """The data of an operation's log entry. Nothing is redacted: it holds timelines' names."""
    data: dict[str, Any] = {
        "moves": [[m.become.name, _where(m.expect), _where(m.become)] for m in effects.moves]
    }
    for name in _PLAIN:
        if value := getattr(effects, name):
            data[name] = list(value) if isinstance(value, tuple) else value
    if effects.files is not None:
        data["files"] = [list(x) if isinstance(x, tuple) else x for x in effects.files]
    if effects.lost:
        data["lost"] = [list(mark) for mark in effects.lost]
    if effects.tasks:
        data["tasks"] = [list(mark) for mark in effects.tasks]
    return note({**data, **effects.about})


def note(about: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """The data of any entry in the log, with who did it, if that is known."""
    return _codec.encode(dict(signed(about)))


def decode(record: LogRecord) -> Entry | None:
    """The operation that a log entry speaks of; None if it is about something else."""
    return read(record) if record.kind in KINDS + STEPS else None


def read(record: LogRecord) -> Entry:
    """What an entry says that was written by `encode`."""
    try:
        effects = _effects(dict(_codec.decode(record.data)))
        _check(effects)
    except (TypeError, ValueError) as error:
        raise Corrupt(
            f"entry {record.number} of the log, {record.kind!r}, is malformed: neither it nor what "
            "came before it can be undone"
        ) from error
    return Entry(record.number, record.id, record.kind, record.timeline, record.created_at, effects)


def _effects(data: dict[str, Any]) -> Effects:
    return Effects(
        moves=tuple(
            Move(_standing(name, before), _stood(name, after))
            for name, before, after in data.pop("moves", ())
        ),
        hid=data.pop("hid", False),
        shown=tuple(data.pop("shown", ())),
        hidden_again=tuple(data.pop("hidden_again", ())),
        lost=tuple(Lost(*mark) for mark in data.pop("lost", ())),
        added=data.pop("added", 0),
        subject=data.pop("subject", None),
        turned=data.pop("turned", 0),
        on_any=data.pop("on_any", False),
        files=_files_move(data.pop("files", None)),
        tasks=tuple(TaskMark(*mark) for mark in data.pop("tasks", ())),
        asked=data.pop("asked", b""),
        about=data,
    )


def _check(effects: Effects) -> None:
    """An entry that no operation has written must not be half turned around. `ValueError`."""
    stood = [each for move in effects.moves for each in move if each is not None]
    numbers = [effects.added, effects.turned, *effects.shown, *effects.hidden_again]
    ids: list[Any] = [effects.subject, *(mark.checkpoint for mark in effects.lost)]
    for line in stood:
        _check_all(str, [line.name])
        numbers += [line.last_seq, line.created_at]
        ids += [line.head, line.origin]
    for mark in effects.tasks:
        _check_all(str, [mark.task])
        numbers.append(mark.generation)
    if effects.files is not None:
        ids += effects.files.checkpoints
        _check_files(effects.files)
    _check_all(int, [*numbers, *(mark.number for mark in effects.lost)])
    for id in ids:
        if id is not None and not (isinstance(id, bytes) and len(id) == ID_BYTES):
            raise ValueError(f"{id!r} is no checkpoint")


def _check_files(files: FilesMove) -> None:
    _check_all(bytes, [files.workspace, *(files.paths or ()), *(files.only or ())])
    _check_all(bytes, [*files.brought, *files.took])
    if len(files.brought) % 2 or len(files.took) % 2 or len(files.like or (0, 0)) != 2:
        raise ValueError("checkpoints and paths do not come in pairs")


def _check_all(kind: type, values: Iterable[Any]) -> None:
    for value in values:
        if not isinstance(value, kind):
            raise ValueError(f"{value!r} is not what an operation writes")


def _files_move(plain: list[Any] | None) -> FilesMove | None:
    if plain is None:
        return None
    fields: list[Any] = [tuple(each) if isinstance(each, list) else each for each in plain]
    return FilesMove(*fields)  # earlier versions wrote fewer of them


def _where(standing: TimelineRecord | None) -> list[Any] | None:
    return None if standing is None else list(standing[1:6])  # a title is not undone


def _standing(name: str, where: list[Any] | None) -> TimelineRecord | None:
    return None if where is None else _stood(name, where)


def _stood(name: str, where: list[Any]) -> TimelineRecord:
    return TimelineRecord(name, *where)


# Which comes next


def next_undo(newest_first: Iterable[Entry], timeline: str | None) -> Entry | None:
    """The entry to turn around: the latest that stands, an operation or its redo."""
    settled: set[Id] = set()
    for entry in newest_first:
        if not entry.touches(timeline) or entry.subject in settled:
            continue
        settled.add(entry.subject)
        if entry.kind != "undo":
            return entry
    return None


def next_redo(newest_first: Iterable[Entry], timeline: str | None) -> Entry | None:
    """The undo to turn around: the latest that stands, unless an operation came after it."""
    settled: set[Id] = set()
    for entry in newest_first:
        if not entry.touches(timeline):
            continue
        if entry.kind not in STEPS:
            return None
        if entry.subject in settled:
            continue
        settled.add(entry.subject)
        if entry.kind == "undo":
            return entry
    return None


def is_all_within(met: Iterable[Entry], entry: Entry) -> bool:
    """Whether what was met on the way to an entry turned around nothing that lies before it: an
    undo on one timeline may have, while the entry is about another; and one of an earlier version
    does not say."""
    later = (each for each in met if each.number > entry.number and each.kind in STEPS)
    return all(each.effects.turned >= entry.number for each in later)


# Turning around


class Turn(NamedTuple):
    """How to turn an entry around."""

    changes: Changes
    effects: Effects


def turn(
    entry: Entry,
    standing: Mapping[str, TimelineRecord],
    *,
    newest: Mapping[str, int],
    hide: Iterable[CheckpointRecord],
    latest: int,
    files: FilesMove | None = None,
) -> Turn:
    """What takes an entry back, given where its timelines stand, the `newest` numbers that are to
    be seen of those that were given out since, and what it has added: that is to `hide`, and so is
    what it would hide again and no store knows any more.

    `files` is what turns its files around. `Conflict` if something was saved that would be
    lost from sight.
    """
    effects = entry.effects
    moves = tuple(
        Move(now, _back(entry, move, now, newest.get(now.name, 0)))
        for move, now in ((move, standing[move.become.name]) for move in effects.moves)
    )
    hide = tuple(hide)
    shown = effects.hidden_again + ((entry.number,) if effects.hid else ())
    changes = Changes(
        moves=moves,
        hide=[record.id for record in hide],
        show=shown,
        hide_again=effects.shown,
        keeps=[move.become.head for move in moves if move.become.head is not None],
        latest=latest,
    )
    turned = Effects(
        moves=moves,
        hid=bool(hide),
        shown=shown,
        hidden_again=effects.shown,
        lost=tuple(Lost(-each.hidden, each.id) for each in hide if each.hidden < 0),
        subject=entry.subject,
        turned=entry.number,
        files=files,
        tasks=effects.tasks,
    )
    return Turn(changes, turned)


def _back(entry: Entry, move: Move, now: TimelineRecord, newest: int) -> TimelineRecord:
    """Where a timeline goes; its numbers only rise, so none is given out twice. `newest` is the
    last of them that is to be seen: what an import brought that was taken back is not."""
    before = move.expect
    if before is None:  # the operation made it
        before = now._replace(head=None, is_deleted=True)
    if before.is_deleted and newest > move.become.last_seq:
        raise Conflict(
            f"timeline {now.name!r} was saved on since the {entry.kind} that this would take back: "
            f"see {now.name}:{newest}; delete the whole timeline if none of it is wanted"
        )
    return before._replace(last_seq=now.last_seq, title=now.title)


def aside(standing: TimelineRecord, files: FilesMove, safety: CheckpointRecord) -> TimelineRecord:
    """Where a timeline stands after an operation about files alone. What was saved for it is
    kept, and is not what `@` should mean after it."""
    if not files.made or standing.head != files.before:
        return standing
    return standing._replace(head=safety.parent or safety.id)
