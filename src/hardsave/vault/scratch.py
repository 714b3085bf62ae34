"""Room for more than memory should hold: a nameless SQLite file, gone with its process.

All that a transfer has to remember of every object or checkpoint lies here, so that its
memory does not grow with the store. SQLite opens and unlinks the file (in SQLITE_TMPDIR,
TMPDIR or /var/tmp): a process that is killed leaves nothing behind.
"""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import apsw

from hardsave.stores.local.database import translated

_CACHE_KIB = 16 * 1024
_WHERE = "a temporary file (TMPDIR says where)"


class Scratch:
    """Tables that no other process sees. Errors are of our own tree."""

    def __init__(self, tables: str) -> None:
        try:
            self._connection = apsw.Connection("")
            self._connection.pragma("journal_mode", "OFF")  # it is not needed after a crash
            self._connection.pragma("cache_size", -_CACHE_KIB)
            self._connection.execute(tables)
            self._connection.execute("BEGIN")
        except apsw.Error as error:
            raise translated(error, _WHERE) from error

    def rows(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, as they are asked for."""
        try:
            yield from self._connection.execute(sql, values)
        except apsw.Error as error:
            raise translated(error, _WHERE) from error

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        return next(self.rows(sql, *values), None)

    def one(self, sql: str, *values: Any) -> Any:
        """The first column of the first row; None if there is none."""
        found = self.row(sql, *values)
        return None if found is None else found[0]

    def do(self, sql: str, *values: Any) -> int:
        """Change something; how many rows were."""
        try:
            self._connection.execute(sql, values)
            return self._connection.changes()
        except apsw.Error as error:
            raise translated(error, _WHERE) from error

    def many(self, sql: str, values: Iterable[tuple[Any, ...]]) -> int:
        """Change something many times; how many rows were."""
        before = self._connection.total_changes()
        try:
            self._connection.executemany(sql, values)
            return self._connection.total_changes() - before
        except apsw.Error as error:
            raise translated(error, _WHERE) from error

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close(True)
