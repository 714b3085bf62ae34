"""Missed saves that no note could be written about: counted in room that was set aside.

A note is a new file, and a full disk has no room for one. So beside their folder lies a file of one
block, made while there was room: to write over it takes none, on most file systems. Where there
is none, a file in the user's runtime directory takes its place, which is in memory mostly, and
gone with the machine.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_SUFFIX = ".reserve"
_SIZE = 4096
_LONGEST = 500  # characters of a reason
_RUNTIME = "XDG_RUNTIME_DIR"


def path_of(place: Path) -> Path:
    """The one for the notes at `place`."""
    return place.with_name(place.name + _SUFFIX)


def keep(place: Path) -> None:
    """Have one. Not worth failing for."""
    path = path_of(place)
    with suppress(OSError):
        if path.exists():
            return
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(b" " * _SIZE)
            file.flush()
            os.fsync(file.fileno())  # until then it has no room of its own


def count(place: Path, at: float, why: str) -> bool:
    """One more was missed, at this moment; whether that could be noted. Two may have tried the
    same call: a resident, and the hook itself."""
    for path, is_made in ((path_of(place), False), (_elsewhere(place), True)):
        with suppress(OSError), _opened(path, create=is_made) as file:
            known = _read(file)
            more = known.get("at") != at
            told = {"count": known.get("count", 0) + more, "at": at, "why": why[:_LONGEST]}
            _write(file, {"since": known.get("since", at), **told})
            return True
    return False


def missed(place: Path) -> dict[str, Any] | None:
    """What was counted, as a note would say it; None if nothing was."""
    found: dict[str, Any] | None = None
    for path in (path_of(place), _elsewhere(place)):
        with suppress(OSError), _opened(path) as file:
            known = _read(file)
            if known and found is None:
                found = known
            elif known and found is not None:
                found["count"] += known["count"]
    return found


def clear(place: Path) -> None:
    """It is told: count from the beginning. The room stays."""
    with suppress(OSError), _opened(path_of(place)) as file:
        _write(file, {})
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


def _read(file: int) -> dict[str, Any]:
    try:
        known = json.loads(os.pread(file, _SIZE, 0))
    except (ValueError, RecursionError):
        return {}
    is_ours = isinstance(known, dict) and isinstance(known.get("count"), int)
    return known if is_ours and known["count"] > 0 else {}


def _write(file: int, told: Mapping[str, Any]) -> None:
    data = json.dumps(told).encode() if told else b""
    os.pwrite(file, data.ljust(_SIZE), 0)
