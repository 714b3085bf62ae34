"""What the kernel's events mean for a workspace, decided over plain data. Pure.

`Watches` knows which number stands for which directory, `Pending` what may have changed and
since when, and `meaning` says what kind of change an event is. Nothing here calls the kernel.
"""

import errno
from enum import Enum, auto

from hardsave.workspace.entries import joined, parent
from hardsave.workspace.scan.changed_paths import Names
from hardsave.workspace.watch import inotify

MASK = (
    inotify.MODIFY
    | inotify.ATTRIB
    | inotify.CLOSE_WRITE  # the only event for what was written through a mapping
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.CREATE
    | inotify.DELETE
    | inotify.DELETE_SELF
    | inotify.MOVE_SELF
    | inotify.ONLY_DIR
    | inotify.DONT_FOLLOW
    | inotify.EXCL_UNLINK
)
COOKIES_MASK = inotify.CREATE | inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.ONLY_DIR

_COMES_OR_GOES = inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO
_ENDS = inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.IGNORED


class Meaning(Enum):
    """What an event means for the directory that it came from."""

    CONTENT = auto()  # one name in it may hold something else, or have another mode
    NAMES = auto()  # its list of names changed, or its own mode
    TREE = auto()  # a directory in it came or went, with all that is beneath
    ENDED = auto()  # it was moved or removed: its watch gets no more events
    UNMOUNTED = auto()
    OVERFLOW = auto()  # events were lost, and it is unknown of which directories


def meaning(mask: int, name: bytes) -> Meaning:
    if mask & inotify.Q_OVERFLOW:
        return Meaning.OVERFLOW
    if mask & inotify.UNMOUNT:
        return Meaning.UNMOUNTED
    if mask & _ENDS:
        return Meaning.ENDED
    if mask & _COMES_OR_GOES:
        return Meaning.TREE if mask & inotify.IS_DIR else Meaning.NAMES
    return Meaning.CONTENT if name else Meaning.NAMES


class Watches:
    """Which directory each watch is for. A directory moves, and its watch moves with it: so a
    path is forgotten, with everything beneath, as soon as it may be another directory."""

    def __init__(self) -> None:
        self._paths: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] = {}
        self._below: dict[bytes, set[bytes]] = {}

    def __contains__(self, path: bytes) -> bool:
        return path in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def path(self, number: int) -> bytes | None:
        return self._paths.get(number)

    def add(self, path: bytes, number: int) -> bytes | None:
        """Note a watch. Returns the other path that it was for, if there was one."""
        displaced = self._paths.get(number)
        if displaced is not None:
            del self._numbers[displaced]
        self._paths[number] = path
        self._numbers[path] = number
        if path:
            self._below.setdefault(parent(path), set()).add(path)
        return displaced if displaced != path else None

    def drop(self, path: bytes) -> dict[bytes, int]:
        """Forget a directory and all beneath it. Returns their paths and numbers."""
        dropped: dict[bytes, int] = {}
        todo = [path]
        self._below.get(parent(path), set()).discard(path)
        while todo:
            here = todo.pop()
            todo += self._below.pop(here, ())
            number = self._numbers.pop(here, None)
            if number is not None:
                del self._paths[number]
                dropped[here] = number
        return dropped


class Pending:
    """What may have changed, by the moment of the event."""

    def __init__(self) -> None:
        self._directories: dict[int, dict[bytes, set[bytes] | None]] = {}
        self._trees: dict[int, set[bytes]] = {}

    def content(self, path: bytes, name: bytes, moment: int) -> None:
        names = self._directories.setdefault(moment, {}).setdefault(path, set())
        if names is not None:
            names.add(name)

    def names(self, path: bytes, moment: int) -> None:
        self._directories.setdefault(moment, {})[path] = None

    def tree(self, path: bytes, moment: int) -> None:
        """Everything beneath a path, and the list of names of the directory above it."""
        self._trees.setdefault(moment, set()).add(path)
        self.names(parent(path), moment)

    def since(self, moment: int) -> tuple[dict[bytes, Names | None], Names]:
        """What was noted after a moment."""
        directories: dict[bytes, Names | None] = {}
        for told in [each for at, each in self._directories.items() if at > moment]:
            for path, names in told.items():
                before = directories.get(path, frozenset())
                directories[path] = None if names is None or before is None else before | names
        trees = [each for at, each in self._trees.items() if at > moment]
        return directories, frozenset().union(*trees)

    def forget(self, moment: int) -> None:
        """Drop what was noted up to a moment: no scan that is older will be asked about."""
        for told in (self._directories, self._trees):
            for at in [at for at in told if at <= moment]:
                del told[at]


def note(pending: Pending, path: bytes, name: bytes, what: Meaning, moment: int) -> None:
    """Note what an event means for the directory that it came from."""
    match what:
        case Meaning.CONTENT:
            pending.content(path, name, moment)
        case Meaning.NAMES:
            pending.names(path, moment)
        case Meaning.TREE:
            pending.names(path, moment)
            pending.tree(joined(path, name), moment)
        case _:  # it was moved or removed: what is there now is seen in the directory above
            pending.tree(path, moment)


def refusal(error: OSError) -> str:
    """Why the kernel will not watch, and what to do about it."""
    match error.errno:
        case errno.ENOSPC:
            return "the limit of inotify watches is reached; raise fs.inotify.max_user_watches"
        case errno.EMFILE | errno.ENFILE:
            return (
                "no further inotify instance can be opened; "
                "raise fs.inotify.max_user_instances, or the limit of open files"
            )
        case errno.ENOENT | errno.ENOTDIR | errno.EACCES:
            return f"the directory for cookies cannot be watched: {error.strerror}"
        case _:
            return f"it cannot be watched: {error.strerror}"
