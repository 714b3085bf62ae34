"""The captured files of a checkpoint, as people look at them. Read when they are touched."""

import difflib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hardsave.defaults import MAX_DIFF_BYTES
from hardsave.errors import Misuse, NotFound
from hardsave.objects.hashing import Hash
from hardsave.page import Page, cursor_of
from hardsave.progress import within_deadline
from hardsave.record import Record
from hardsave.timeline.diff import FileDiff
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import check_limit, not_a_cursor, place
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry, NotCaptured, joined
from hardsave.workspace.git import unfinished
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.snapshot import capture, compare, content, directory
from hardsave.workspace.snapshot.content import Fetch

if TYPE_CHECKING:
    from hardsave.vault.workspaces.places import Shown

DIFF_SECONDS = 30.0  # that the comparison of one file may take, if the caller's deadline lets it
EFFORT_A_SECOND = 3_000_000  # lines that `difflib` looks at; it cannot be ended before it is done
_NO_NEWLINE = "\n\\ No newline at end of file\n"
_KINDS = {FILE: "file", SYMLINK: "symlink", DIRECTORY: "directory"}


class File(Record):
    """A file, symlink or directory that a checkpoint has."""

    path: str
    kind: str
    """`file`, `symlink` or `directory`."""
    mode: int
    size: int
    target: str
    """Of a symlink."""


class LeftOut(Record):
    """A path that was not captured, or is not as it was then, and why."""

    path: str
    """`.` for the workspace itself: a new ignore rule has left out more than half of the files that
    the last checkpoint had."""
    reason: str

    @property
    def is_loss(self) -> bool:
        """Whether it is about the workspace itself."""
        return self.path == "."


class GitState(Record):
    """Where the repository around a workspace stood."""

    commit: str | None
    """None: there was no commit yet."""
    branch: str | None
    """None: HEAD was detached."""
    ref: str | None
    in_progress: str | None
    """`merge`, `rebase`, `cherry-pick`, `revert`, `am` or `bisect`."""


class Files:
    """The files of a workspace at a checkpoint."""

    def __init__(
        self,
        address: Hash,
        where: "Shown",
        fetch: Fetch,
        near: Mapping[Hash, bytes] | None = None,
    ) -> None:
        self._address = address
        self._where = where
        self._fetch: Fetch = content.overlay(near, fetch) if near else fetch
        self._capture: capture.Capture | None = None
        self._finder: Callable[[bytes], Entry | None] | None = None

    @property
    def id(self) -> str:
        """The same for the same files, wherever and whenever they were captured."""
        return self._read().snapshot.hex()

    @property
    def workspace(self) -> str:
        """The directory that was captured: the path that it has now."""
        return os.fsdecode(self._where.path)

    @property
    def host(self) -> str | None:
        """The host that has this directory; None: this one. Empty if it is not known, as after an
        import."""
        return self._where.host

    @property
    def not_captured(self) -> tuple[LeftOut, ...]:
        """What was left out for any reason but ignore rules; and that a new rule has left out most
        of the files, if it has."""
        return left_out_of(self._read().not_captured)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Ignored files that nothing else has: secrets, local settings and databases, by their
        names; a hundred at most. They are not saved, and no rewind brings them back."""
        return tuple(
            os.fsdecode(each.path) for each in self._read().not_captured if each.is_ignored
        )

    @property
    def git(self) -> GitState | None:
        """Where git stood; None without a repository."""
        git = self._read().git
        return None if git is None else git_state(git)

    def list(self, path: str = "") -> Iterator[File]:
        """Everything in it, or in one of its directories, by path; directories before their
        files."""
        start = self._entry(path)
        if start.type != DIRECTORY:
            yield _shown(os.fsencode(path), start)
            return
        stack = [(os.fsencode(path.strip("/")), start)]
        while stack:
            at, entry = stack.pop()
            if at:
                yield _shown(at, entry)
            if entry.type == DIRECTORY and entry.hash is not None:
                below = directory.read_apart([(None, entry.hash)], self._fetch)[0][1]
                stack += [(joined(at, name), each) for name, each in reversed(below)]

    def directory(
        self, path: str = "", *, limit: int = 1_000, after: str | None = None
    ) -> Page[File]:
        """What lies right in it, or in one of its directories, by name; nothing further down.
        `after` is the `next` of the page before."""
        check_limit(limit)
        start = self._entry(path)
        if start.type != DIRECTORY or start.hash is None:
            raise Misuse(f"{path!r} is a {_KINDS[start.type]}, not a directory")
        listing = f"directory {start.hash.hex()}"
        last = _name_of(after, listing)
        found = directory.read_level(start.hash, last, limit + 1, self._fetch)
        at, shown = os.fsencode(path.strip("/")), found[:limit]
        following = cursor_of(listing, shown[-1][0].hex()) if len(found) > limit else None
        return Page([_shown(joined(at, name), each) for name, each in shown], following)

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or so many bytes of it from `start` on: fewer at its end, none
        beyond. Of a long file only the parts are read that are asked for."""
        entry = self._entry(path)
        if entry.type != FILE or entry.hash is None:
            raise Misuse(f"{path!r} is a {_KINDS[entry.type]}, not a file")
        _check_range(start, length)
        if start == 0 and (length is None or length >= entry.size):
            return b"".join(content.read(entry.hash, entry.size, self._fetch))
        first = min(start, entry.size)
        end = entry.size if length is None else min(entry.size, first + length)
        return content.read_range(entry.hash, first, end, self._fetch) if end > first else b""

    def __contains__(self, path: str) -> bool:
        return self._find(path) is not None

    def __repr__(self) -> str:
        return f"<files {self.id[:12]} of {self.workspace!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Files) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def _read(self) -> capture.Capture:
        if self._capture is None:
            self._capture = capture.read(self._address, self._fetch)
        return self._capture

    def _entry(self, path: str) -> Entry:
        found = self._find(path)
        if found is None:
            raise NotFound(f"{path!r} was not captured; list() lists what was")
        return found

    def _find(self, path: str) -> Entry | None:
        if not isinstance(path, str):
            raise Misuse(f"a path of a checkpoint's files is text, not {type(path).__name__}")
        inside = os.fsencode(path.strip("/"))
        if not inside:
            return Entry(DIRECTORY, 0, 0, self._top())
        if self._finder is None:  # a diff looks up thousands of paths: directories are read once
            self._finder = compare.finder(self._top(), self._fetch)
        return self._finder(inside)

    def _top(self) -> Hash:
        return directory.read_snapshot(self._read().snapshot, self._fetch).top


def _check_range(start: Any, length: Any) -> None:
    for what, given in (("start", start), ("length", 0 if length is None else length)):
        if not isinstance(given, int) or given < 0:
            raise Misuse(f"{what} is a number of bytes from 0 on, not {given!r}")


def _name_of(after: Any, listing: str) -> bytes | None:
    """The name that a page of a directory ended with."""
    found = place(after, listing)
    try:
        return None if found is None else bytes.fromhex(found)
    except ValueError:
        raise not_a_cursor(after) from None


def left_out_of(found: Iterable[NotCaptured]) -> tuple[LeftOut, ...]:
    """What was left out for any reason but ignore rules."""
    told = [each for each in found if not each.is_ignored]
    return tuple(LeftOut(os.fsdecode(path), why) for path, why in told)


def difference(old: Files | None, new: Files | None) -> FileDiff:
    """What changed from one to the other; nothing is known of a checkpoint without files."""
    if old is None or new is None or old.id == new.id:
        return FileDiff()
    fetch = new._fetch
    found = compare.diff(old._read().snapshot, new._read().snapshot, fetch)
    return FileDiff(*(tuple(os.fsdecode(path) for path in paths) for paths in found))


_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\x7f": "\\177"}
_UNUSUAL = {*_ESCAPED}
_BEGIN_A_PATCH = ("@@ ", "diff ", "--- ", "+++ ")
_PLAIN = "100644"
_NOTHING = "/dev/null"  # as every tool that applies patches understands it


def unified(old: Files | None, new: Files | None, path: str) -> str:
    """A file's change as lines, as `diff -u` shows it; one sentence if it is no text, and one
    about what lines do not tell: that it is a symlink, or may be run by now."""
    return compared(path, held(old, path), held(new, path))


def compared(path: str, old: "Held | None", new: "Held | None") -> str:
    """The same for what a path holds, wherever that is from."""
    told = _told(old, new)
    above = f"{_named(path)}: {told}\n" if told else ""
    if old is not None and new is not None and old.kind != new.kind:
        return above + _patch(path, old, None) + _patch(path, None, new)
    return above + _patch(path, old, new)


def _patch(path: str, old: "Held | None", new: "Held | None") -> str:
    before, after = _lines(old), _lines(new)
    if isinstance(before, str) or isinstance(after, str):
        return f"{_named(path)}: {before if isinstance(before, str) else after}\n"
    if _effort(before, after) > EFFORT_A_SECOND * within_deadline(DIFF_SECONDS):
        return f"{_named(path)}: too much of it has changed to compare by lines\n"
    a, b = _named(f"a/{path}"), _named(f"b/{path}")
    modes = _modes(old, new)
    header = f"diff --git {a} {b}\n{modes}" if modes else ""
    ends = _NOTHING if old is None else a, _NOTHING if new is None else b
    lines = difflib.unified_diff(before, after, *ends, n=3)
    return header + "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)


def _modes(old: "Held | None", new: "Held | None") -> str:
    """What git writes above lines that do not tell all: to apply them alone would make a program
    that cannot be run, a file in the place of a symlink, and no empty file."""
    was, now = (None if each is None else each.git_mode for each in (old, new))
    if was == now:
        return ""
    if was is not None and now is not None:
        return f"old mode {was}\nnew mode {now}\n"
    only = new or old
    if only is None or (now or was) is None or (only.content and (now or was) == _PLAIN):
        return ""
    return f"new file mode {now}\n" if now else f"deleted file mode {was}\n"


def _told(old: "Held | None", new: "Held | None") -> str:
    """What became of it that its lines do not tell."""
    kinds = [each.kind for each in (old, new) if each is not None]
    if len({*kinds}) > 1:
        return f"was a {kinds[0]}, is a {kinds[1]} now"
    if "symlink" in kinds:
        return "a symlink"
    if old is None or new is None:
        return _told_alone(old, new)
    return f"mode {old.mode:04o} before, {new.mode:04o} now" if old.mode != new.mode else ""


def _told_alone(old: "Held | None", new: "Held | None") -> str:
    """The same for what has come or gone."""
    if new is not None and new.can_run:
        return f"mode {new.mode:04o}"
    only = new or old
    return "empty" if only is not None and only.kind == "file" and not only.content else ""


def _named(path: str) -> str:
    """A path on one line, in quotes if it needs some, as git writes it and patch reads it: else a
    newline in a name would begin a line of the diff, which could say anything, and so would a name
    that is like one."""
    is_usual = not _UNUSUAL & {*path} and path.isprintable()
    if is_usual and not path.startswith(_BEGIN_A_PATCH):
        return path
    return f'"{"".join(map(_escaped, path))}"'


def _escaped(character: str) -> str:
    """What cannot be seen, and bytes that are no UTF-8, by their numbers."""
    if character.isprintable():
        return _ESCAPED.get(character, character)
    return _ESCAPED.get(character) or "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def _effort(before: list[str], after: list[str]) -> int:
    """About how many lines `difflib` would look at: all that may fit, for each stretch that does
    not. If that is every other line of a file of megabytes, it takes hours."""
    had, has = Counter(before), Counter(after)
    often = len(after) // 100 + 1  # what is there more often than that, difflib leaves out
    fitting = sum(min(has[line], often) for line in before)
    return (_stretches(before, has) + _stretches(after, had)) * fitting


def _stretches(lines: list[str], others: Counter[str]) -> int:
    """How many stretches of lines there are that the other side does not have."""
    return sum(not is_known for is_known, _ in groupby(lines, others.__contains__))


Content = bytes | str
"""What a file holds, for a comparison; a text says why that cannot be told."""


class Held(NamedTuple):
    """What lies at a path, for a comparison."""

    content: Content
    kind: str = "file"
    mode: int = 0

    @property
    def can_run(self) -> bool:
        return self.kind == "file" and bool(self.mode & 0o111)

    @property
    def git_mode(self) -> str | None:
        """As git knows it; None for a directory, which it does not know."""
        return {"file": "100755" if self.can_run else _PLAIN, "symlink": "120000"}.get(self.kind)


def held(files: Files | None, path: str) -> Held | None:
    """What the files of a checkpoint have at a path."""
    entry = None if files is None else files._find(path)
    if files is None or entry is None:
        return None
    if entry.type == SYMLINK:
        return Held(entry.target, "symlink")
    if entry.type == DIRECTORY:
        return Held(b"", "directory", entry.mode)
    is_long = entry.size > MAX_DIFF_BYTES
    return Held(too_long(entry.size) if is_long else files.read(path), mode=entry.mode)


def too_long(size: int) -> str:
    return f"{size} bytes, too long to compare by lines"


def _lines(found: Held | None) -> list[str] | str:
    """The lines of a file; or why it has none."""
    if found is None or not found.content:
        return []
    if isinstance(found.content, str):
        return found.content
    if b"\0" in found.content:
        return "not a text"
    # Nothing but a newline ends a line: form feeds and the like are part of it.
    lines = found.content.decode("utf-8", "surrogateescape").split("\n")
    return [line + "\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]


def _shown(path: bytes, entry: Entry) -> File:
    return File(
        os.fsdecode(path), _KINDS[entry.type], entry.mode, entry.size, os.fsdecode(entry.target)
    )


def git_state(git: capture.Git | GitPosition) -> GitState:
    return GitState(
        git.commit, git.branch, git.ref, unfinished.operation(f.path for f in git.files)
    )
