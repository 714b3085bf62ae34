"""What hooks have begun and not ended, as small files that outlive the death of a hook.

A request is noted before anything is tried, and the note is removed when the checkpoint is
there. So a hook that is killed, or runs out of time, leaves a trace without having to do anything
for it. The notes lie in the user's data directory and not in the store's: a folder made for
them there would look like a store. Where no note can be written, as on a full disk, what was missed
is counted at least, in a file that was set aside (the reserve).
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hardsave import config
from hardsave.errors import Unavailable
from hardsave.stores.host.processes import UNKNOWN, is_there, started
from hardsave.tuples import NamedTuple

RUN = "run"  # in the place of a hook's name: the daemon of a `hardsave run`
_SUFFIX = ".json"
_LARGEST = 64 * 1024
_MANY = 20  # missed saves that one checkpoint names
_CROWD = 60  # notes that are too many to be read by every hook of an outage
_RESERVE_SUFFIX = ".reserve"
_RESERVE_SIZE = 4096
_LONGEST_REASON = 500  # characters, in the reserve
_RUNTIME = "XDG_RUNTIME_DIR"


class Note(NamedTuple):
    """One request of a hook."""

    path: Path
    about: Mapping[str, Any]

    @property
    def why(self) -> str:
        """Why it was not done, as far as is known."""
        died = "the process beside the agent" if self.about.get("hook") == RUN else "the hook"
        return str(self.about.get("why") or f"{died} was killed")

    @property
    def is_under_way(self) -> bool:
        """Whether the process that took it up still works at it."""
        return self.about.get("why") is None and self._is_held

    @property
    def left_alone(self) -> int | None:
        """The agent that goes on without its daemon, by its process; None if there is none."""
        told = self.about.get("agent_process")
        if self._is_held or not isinstance(told, list) or len(told) != 2:
            return None
        pid, began = told
        return pid if _lives(pid, began) else None

    @property
    def _is_held(self) -> bool:
        """Whether the process that has written it is still there, and may see to it."""
        return _lives(self.about.get("pid"), self.about.get("began"))


def folder(environment: Mapping[str, str], project: Path) -> Path:
    """Where the notes about a project lie."""
    return _folders(environment) / config.project_key(project)


def _folders(environment: Mapping[str, str]) -> Path:
    return config.data_directory(environment, sys.platform) / "hooks"


def place_of(environment: Mapping[str, str], project: Path) -> Path:
    """The same for a process that goes on without notes: a user without a home has none."""
    try:
        return folder(environment, project)
    except Unavailable:
        return Path(os.devnull) / "hooks"  # where nothing can be


def begin(place: Path, name: str, about: Mapping[str, Any]) -> Note:
    """Note a request that this process takes up now. A note that cannot be written is no reason not
    to save: the store may lie elsewhere."""
    own = {**about, "pid": os.getpid(), "began": started(os.getpid())}
    note = Note(place / (name + _SUFFIX), own)
    with suppress(OSError):  # `fail` counts it
        config.make_folder(place)
        _write(note)
        keep_reserve(place)
    return note


def fail(note: Note, why: str) -> None:
    """Say why it could not be done."""
    try:
        _write(note._replace(about={**note.about, "why": why}))
        _gather(note.path.parent)
    except OSError:
        if count_in_reserve(note.path.parent, note.about.get("at", 0.0), why):
            with suppress(OSError):
                note.path.unlink()  # which says only that a process is at it


def end(note: Note) -> None:
    """It is done, or reported: nothing is left to tell."""
    if note.path.suffix != _SUFFIX:  # what could only be counted
        clear_reserve(note.path)
    else:
        note.path.unlink(missing_ok=True)


def missed(place: Path) -> list[Note]:
    """What no process works at any more, oldest first; at the end what could only be counted."""
    notes = map(_read, _paths(place))
    found = [note for note in notes if note is not None and not note.is_under_way]
    counted = missed_in_reserve(place)
    return found if counted is None else [*found, Note(place, counted)]


def missed_anywhere(environment: Mapping[str, str]) -> int:
    """How many saves were missed that no checkpoint lists yet, in all projects of this account."""
    try:
        places = [place for place in _folders(environment).iterdir() if place.is_dir()]
    except (OSError, Unavailable):
        return 0  # without a home, or the right to read it, there are no notes
    return sum(count(missed(place)) for place in places)


def to_tell(place: Path, timeline: str | None = None) -> list[Note]:
    """What a checkpoint tells, after which it is done with. Of an agent that goes on without its
    daemon, only a hook of its own can say that it is saved again: one on its timeline."""
    return [
        note
        for note in missed(place)
        if note.left_alone is None or (timeline and note.about.get("timeline") == timeline)
    ]


def listed(notes: Sequence[Note]) -> dict[str, Any]:
    """What the metadata of the next checkpoint says about them; nothing about none."""
    if not notes:
        return {}
    return {"missed": [_told(note) for note in notes[-_MANY:]], "missed_count": count(notes)}


def count(notes: Sequence[Note]) -> int:
    """How many saves they are about. A run has one note for all that it has tried in vain."""
    return sum(_tries(note.about) for note in notes)


def _paths(place: Path) -> list[Path]:
    """All notes, oldest first."""
    try:
        here = [path for path in place.iterdir() if path.suffix == _SUFFIX]
        return sorted(path for path in here if path.is_file())
    except FileNotFoundError:
        return []


def _gather(place: Path) -> None:
    """One note in the place of many that no checkpoint will name, however long nothing is saved.

    It is a new file each time, and there before the others go: a process that has just told some of
    them and removes them takes none along that was not told. At worst they are told twice.
    """
    with suppress(OSError), _alone_at(place):
        paths = _paths(place)
        if len(paths) <= _CROWD:
            return
        notes = [note for note in map(_read, paths[:-_MANY]) if note and _is_one_of_many(note)]
        if not notes:
            return
        first, last = notes[0], notes[-1]
        since = first.about.get("since", first.about.get("at"))
        about = {key: last.about[key] for key in ("hook", "at", "why") if key in last.about}
        about |= {"count": count(notes), "since": since}
        stem = first.path.stem.partition("-")[0]
        _write(Note(place / f"{stem}-{time.time_ns()}{_SUFFIX}", about))
        for note in notes:
            end(note)


def _is_one_of_many(note: Note) -> bool:
    """Whether it says only that a hook has failed. One of a run is written again and again; and
    whether one that was killed had saved is to be looked up by its checkpoint."""
    return note.about.get("hook") != RUN and note.about.get("why") is not None


@contextmanager
def _alone_at(place: Path) -> Iterator[None]:
    """Not if another process is: hooks come in crowds."""
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(folder)


def _lives(pid: object, began: object) -> bool:
    if not isinstance(pid, int):
        return False
    return started(pid) in (began, UNKNOWN) if began else is_there(pid)


def _tries(about: Mapping[str, Any]) -> int:
    found = about.get("count")
    return found if isinstance(found, int) and found > 0 else 1


def _told(note: Note) -> dict[str, Any]:
    keys = ("hook", "tool", "tool_use_id", "at", "count", "since")
    return {**{key: note.about[key] for key in keys if key in note.about}, "why": note.why}


def _read(path: Path) -> Note | None:
    try:
        with path.open("rb") as file:
            about = json.loads(file.read(_LARGEST))
    except FileNotFoundError:
        return None  # another hook has just ended it
    except (OSError, ValueError, RecursionError):
        about = None
    return Note(path, about if isinstance(about, dict) else {"why": "its note is unreadable"})


def _ours_alone(path: str, flags: int) -> int:
    """What was called and why it failed is for this user alone."""
    return os.open(path, flags, 0o600)


def _write(note: Note) -> None:
    # Two may take up one call: a daemon that has stopped answering, and the hook itself.
    new = note.path.with_suffix(f".{os.getpid()}.new")
    try:
        with open(new, "w", encoding="utf-8", opener=_ours_alone) as file:
            json.dump(dict(note.about), file)
        new.replace(note.path)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()


# The reserve. A note is a new file, and a full disk has no room for one. So beside their folder
# lies a file of one block, made while there was room: to write over it takes none, on most file
# systems. Where there is none, a file in the user's runtime directory takes its place, which is in
# memory mostly, and gone with the machine.


def reserve_path(place: Path) -> Path:
    """The one for the notes at `place`."""
    return place.with_name(place.name + _RESERVE_SUFFIX)


def keep_reserve(place: Path) -> None:
    """Have one. Not worth failing for."""
    path = reserve_path(place)
    with suppress(OSError):
        if path.exists():
            return
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(b" " * _RESERVE_SIZE)
            file.flush()
            os.fsync(file.fileno())  # until then it has no room of its own


def count_in_reserve(place: Path, at: float, why: str) -> bool:
    """One more was missed, at this moment; whether that could be noted. Two may have tried the
    same call: the daemon, and the hook itself."""
    for path, is_made in ((reserve_path(place), False), (_elsewhere(place), True)):
        with suppress(OSError), _opened(path, create=is_made) as file:
            known = _read_reserve(file)
            more = known.get("at") != at
            told = {"count": known.get("count", 0) + more, "at": at, "why": why[:_LONGEST_REASON]}
            _write_reserve(file, {"since": known.get("since", at), **told})
            return True
    return False


def missed_in_reserve(place: Path) -> dict[str, Any] | None:
    """What was counted, as a note would say it; None if nothing was."""
    found: dict[str, Any] | None = None
    for path in (reserve_path(place), _elsewhere(place)):
        with suppress(OSError), _opened(path) as file:
            known = _read_reserve(file)
            if known and found is None:
                found = known
            elif known and found is not None:
                found["count"] += known["count"]
    return found


def clear_reserve(place: Path) -> None:
    """It is told: count from the beginning. The room stays."""
    with suppress(OSError), _opened(reserve_path(place)) as file:
        _write_reserve(file, {})
    with suppress(OSError):
        _elsewhere(place).unlink()


def _elsewhere(place: Path) -> Path:
    folder = os.environ.get(_RUNTIME, "")
    return Path(folder if os.path.isabs(folder) else os.devnull) / f"hardsave-{place.name}-missed"


@contextmanager
def _opened(path: Path, *, create: bool = False) -> Iterator[int]:
    """Alone with it: hooks come in crowds."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    file = os.open(path, flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _read_reserve(file: int) -> dict[str, Any]:
    try:
        known = json.loads(os.pread(file, _RESERVE_SIZE, 0))
    except (ValueError, RecursionError):
        return {}
    is_ours = isinstance(known, dict) and isinstance(known.get("count"), int)
    return known if is_ours and known["count"] > 0 else {}


def _write_reserve(file: int, told: Mapping[str, Any]) -> None:
    data = json.dumps(told).encode() if told else b""
    os.pwrite(file, data.ljust(_RESERVE_SIZE), 0)
