"""Rows of a store by the pages that they lie on, when the way to them is gone.

SQLite finds a row by the header and the schema on the first page, the root of its table and the
pages between. One of them damaged hides every row below it. But a row lies on its own page,
which has its own checksum: each page of the main file and of its WAL is looked at here by itself,
and a row is known by its columns. What is found goes into a file with the store's tables, as a
source like any other.

Pages that are free may have rows that were removed. Where the map of pages (SQLite keeps one, as
the file can shrink) can be read, it says which; rows of checkpoints that a tombstone
speaks of are left out in any case.
"""

# ruff: noqa: S608 # names of tables and columns are our own

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any, BinaryIO

import apsw

from hardsave.stores.local.database import CHECKSUM_BYTES
from hardsave.stores.sqlite.backup import row_feed
from hardsave.stores.sqlite.backup.backup_file import KEYS
from hardsave.stores.sqlite.backup.durable_files import create, discard
from hardsave.stores.sqlite.connection import PAGE_BYTES
from hardsave.stores.sqlite.salvage import wal_reader
from hardsave.tuples import NamedTuple

Value = int | bytes | str | None
Row = tuple[Value, ...]

_USABLE = PAGE_BYTES - CHECKSUM_BYTES
_MOST_LOCAL = _USABLE - 35  # bytes of a row that lie on its page, if all of them do
_LEAST_LOCAL = (_USABLE - 12) * 32 // 255 - 23
_OVERFLOW_BYTES = _USABLE - 4
_LEAF_OF_A_TABLE = 13
_HEADER_BYTES = 8  # of a leaf
_MAPPED = _USABLE // 5  # pages that one page of the map speaks of
_IN_USE = (1, 5)  # in the map: a root, and any other page of a tree
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes, by the type in a row's header


class Garbled(Exception):
    """Bytes that are no row."""


def gather(path: str, target: str) -> bool:
    """Put the rows that can be read of a store into a new file; False if there are none."""
    connection = create(target)
    try:
        row_feed.make_tables(connection)
        tables = [_Table.of(connection, name) for name in KEYS]
        with ExitStack() as files:
            found = _Pages.of(path, files, connection)
            count = 0
            connection.execute("BEGIN")
            for table, row in _rows(found, tables):
                connection.execute(table.insert(len(row)), row)
                count += 1
            # Of a page that is free, if the map could not say so.
            connection.execute(
                "DELETE FROM checkpoints WHERE number IN (SELECT number FROM tombstones)"
            )
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        discard(target)
        raise
    connection.close()
    return count > 0


class _Pages(NamedTuple):
    """Of a store: as its WAL has them, else as its main file has them, if they are sound."""

    in_wal: dict[int, int]  # where in it they lie
    length: int  # of the store, in pages
    read_wal: Callable[[int], bytes]
    read_main: Callable[[int], bytes | None]

    @classmethod
    def of(cls, path: str, files: ExitStack, connection: apsw.Connection) -> "_Pages":
        main, log = (_opened(name, files) for name in (path, path + "-wal"))
        found = wal_reader.Pages({}, 0) if log is None else wal_reader.pages(log)
        length = 0 if main is None else os.fstat(main.fileno()).st_size // PAGE_BYTES
        return cls(
            found.places,
            found.file_pages or length,
            lambda place: _at(log, place),
            lambda number: _sound(connection, _at(main, (number - 1) * PAGE_BYTES)),
        )

    def get(self, number: int) -> bytes | None:
        """The bytes of a page that can be relied on."""
        place = self.in_wal.get(number)
        if place is not None:
            return self.read_wal(place)
        return self.read_main(number) if 0 < number <= self.length else None

    def used(self) -> Iterator[bytes]:
        """All that are not known to be free; the WAL's first, which are the newer ones.

        Of these only the WAL itself can say: the main file may be another's by now.
        """
        in_main = (number for number in range(2, self.length + 1) if number not in self.in_wal)
        for numbers, maps in ((self.in_wal, self.in_wal), (in_main, None)):
            get_map = cache(self.get)
            for number in numbers:
                at = _map_of(number)
                known = get_map(at) if maps is None or at in maps else None
                if number > 1 and _is_used(number, at, known) and (page := self.get(number)):
                    yield page


def _opened(path: str, files: ExitStack) -> BinaryIO | None:
    return files.enter_context(open(path, "rb")) if os.path.exists(path) else None


def _at(file: BinaryIO | None, place: int) -> bytes:
    if file is None:
        return b""
    file.seek(place)
    return file.read(PAGE_BYTES)


def _sound(connection: apsw.Connection, page: bytes) -> bytes | None:
    is_sound = connection.execute("SELECT verify_checksum(?)", (page,)).get
    return page if len(page) == PAGE_BYTES and is_sound else None


def _map_of(number: int) -> int:
    """The page that says what a page is."""
    return (number - 2) // (_MAPPED + 1) * (_MAPPED + 1) + 2


def _is_used(number: int, at: int, page: bytes | None) -> bool:
    if number == at:
        return False
    return page is None or page[(number - at - 1) * 5] in _IN_USE


# Rows


class _Table(NamedTuple):
    """What its rows look like."""

    name: str
    columns: list[str]
    kinds: list[tuple[type, ...]]  # of values, column by column
    least: int  # columns: a row from before others were added has fewer

    @classmethod
    def of(cls, connection: apsw.Connection, name: str) -> "_Table":
        sql = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)'
        found: list[Any] = connection.execute(sql, (name,)).fetchall()
        is_optional = [not needed or default is not None for _, _, needed, default, _ in found]
        least = len(found) - [*is_optional[::-1], False].index(False)
        kinds = [_kinds(kind, bool(needed), bool(key)) for _, kind, needed, _, key in found]
        return cls(name, [column for column, *_ in found], kinds, least)

    def fits(self, row: Row) -> bool:
        if not self.least <= len(row) <= len(self.columns):
            return False
        return all(isinstance(value, kinds) for value, kinds in zip(row, self.kinds, strict=False))

    def insert(self, count: int) -> str:
        columns, marks = ", ".join(self.columns[:count]), ", ".join("?" * count)
        return f"INSERT OR IGNORE INTO {self.name} ({columns}) VALUES ({marks})"


def _kinds(declared: str, is_needed: bool, is_key: bool) -> tuple[type, ...]:
    if is_key:
        return (type(None),)  # SQLite keeps it beside the row
    kind = {"INTEGER": int, "TEXT": str, "BLOB": bytes}[declared]
    return (kind,) if is_needed else (kind, type(None))


def _rows(pages: _Pages, tables: list[_Table]) -> Iterator[tuple[_Table, Row]]:
    """Of all pages, with their tables."""
    for page in pages.used():
        found = list(_cells(page, pages))
        rows = [row for _, row in found]
        if not rows or all(map(_is_change, rows)):
            continue
        table = next((each for each in tables if all(map(each.fits, rows))), None)
        if table is not None:
            yield from ((table, (key, *row[1:])) for key, row in found)


def _is_change(row: Row) -> bool:
    """Rows of `changes` look like those of `users`, and tell nothing once the file is another."""
    return len(row) == 4 and row[1] in row_feed.CHANGED


def _cells(page: bytes, pages: _Pages) -> Iterator[tuple[int, Row]]:
    """The rows of a page with their keys, if it is of a table; those that can be read whole."""
    if page[0] != _LEAF_OF_A_TABLE:
        return
    end = _HEADER_BYTES + 2 * _number(page[3:5])
    for at in range(_HEADER_BYTES, end, 2):
        with suppress(Garbled, IndexError, ValueError):
            yield _cell(page, _number(page[at : at + 2]), pages)


def _cell(page: bytes, at: int, pages: _Pages) -> tuple[int, Row]:
    size, at = _varint(page, at)
    key, at = _varint(page, at)
    return key, _row(_payload(page, at, size, pages))


def _payload(page: bytes, at: int, size: int, pages: _Pages) -> bytes:
    """The bytes of a row, of which many may lie on pages of their own."""
    if not 0 < size <= pages.length * PAGE_BYTES:
        raise Garbled
    local = size
    if size > _MOST_LOCAL:
        local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % _OVERFLOW_BYTES
        local = local if local <= _MOST_LOCAL else _LEAST_LOCAL
    parts = [page[at : at + local]]
    following = _number(page[at + local : at + local + 4])
    for left in range(size - local, 0, -_OVERFLOW_BYTES):
        more = pages.get(following)
        if more is None:
            raise Garbled
        following = _number(more[:4])
        parts.append(more[4 : 4 + min(left, _OVERFLOW_BYTES)])
    return b"".join(parts)


def _row(data: bytes) -> Row:
    end, at = _varint(data, 0)
    place = end
    values: list[Value] = []
    while at < end:
        kind, at = _varint(data, at)
        value, place = _value(kind, data, place)
        values.append(value)
    if place != len(data):
        raise Garbled
    return tuple(values)


def _value(kind: int, data: bytes, at: int) -> tuple[Value, int]:
    """A value, and where the next one begins."""
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in _INTEGERS:
        end = at + _INTEGERS[kind]
        return int.from_bytes(data[at:end], signed=True), end
    if kind < 12:
        raise Garbled  # no table of ours has any
    end = at + (kind - 12) // 2
    found = data[at:end]
    return (found.decode() if kind % 2 else found), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's integers of one to nine bytes, and where the next one begins."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (value >> 63 << 64), at + 9


def _number(data: bytes) -> int:
    return int.from_bytes(data)
