"""The files of a checkpoint, read over HTTP: directories by the page, contents in parts."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hardsave.client import reading
from hardsave.client.calls import Calls
from hardsave.client.problems import RangeEmpty
from hardsave.page import Page, every

if TYPE_CHECKING:
    from hardsave.vault.files import File, GitState, LeftOut

_PART = 4 << 20  # bytes of a file that one request asks for
_PAGE = 1_000


class RemoteFiles:
    """The files of a workspace at a checkpoint, with the names of `Files`."""

    def __init__(self, ref: str, field: Callable[[str], Any], calls: Calls) -> None:
        self._ref = ref
        self._field = field
        self._calls = calls

    @property
    def id(self) -> str:
        """The same for the same files, wherever and whenever they were captured."""
        return str(self._field("files_id"))

    @property
    def workspace(self) -> str:
        """The directory that was captured."""
        return str(reading.plain(self._field("workspace")))

    @property
    def host(self) -> str | None:
        """The host that has this directory; None: that of the server."""
        found: str | None = self._field("host")
        return found

    @property
    def not_captured(self) -> "tuple[LeftOut, ...]":
        """What was left out for any reason but ignore rules."""
        from hardsave.vault.files import LeftOut  # few programs look at files

        return tuple([reading.record(LeftOut, each) for each in self._field("not_captured")])

    @property
    def ignored(self) -> tuple[str, ...]:
        """Ignored files that nothing else has, by their names; a hundred at most."""
        return tuple([reading.plain(each) for each in self._field("ignored")])

    @property
    def git(self) -> "GitState | None":
        """Where git stood; None without a repository."""
        from hardsave.vault.files import GitState

        told = self._field("git")
        return None if told is None else reading.record(GitState, told)

    def list(self, path: str = "") -> "Iterator[File]":
        """Everything in it, or in one of its directories; directories before their files. Asks the
        server once for each directory."""
        for each in every(lambda after: self.directory(path, limit=_PAGE, after=after)):
            yield each
            if each.kind == "directory":
                yield from self.list(each.path)

    def directory(
        self, path: str = "", *, limit: int = 1_000, after: str | None = None
    ) -> "Page[File]":
        """What lies right in it, or in one of its directories, by name; nothing further down.
        `after` is the `next` of the page before."""
        from hardsave.vault.files import File

        found = self._calls.read(
            "/files", ref=self._ref, path=path or None, limit=limit, cursor=after
        )
        return reading.page(found, lambda each: reading.record(File, each))

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or so many bytes of it from `start` on: fewer at its end, none
        beyond."""
        return b"".join(self._parts(path, start, length))

    def _parts(self, path: str, start: int, length: int | None) -> Iterator[bytes]:
        left = length
        while left is None or left > 0:
            wanted = _PART if left is None else min(_PART, left)
            try:
                part = self._calls.read_bytes(
                    "/file", part=f"bytes={start}-{start + wanted - 1}", ref=self._ref, path=path
                )
            except RangeEmpty:  # its end; also of one that is empty
                return
            yield part
            if len(part) < wanted:
                return
            start, left = start + wanted, None if left is None else left - wanted
