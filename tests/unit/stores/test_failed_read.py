"""A disk that fails to answer once: SQLite calls the file malformed, and it is not."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from hardsave.errors import Corrupt
from hardsave.stores.sqlite import SqliteStore


def io_error(code: int) -> apsw.Error:
    error = apsw.IOError("disk I/O error")
    error.__dict__["extendedresult"] = code  # as apsw sets it
    return error


def corrupt_fs() -> apsw.Error:
    return io_error(apsw.SQLITE_IOERR_CORRUPTFS)


def failing(store: SqliteStore, errors: list[apsw.Error], patch: pytest.MonkeyPatch) -> None:
    """Let the next looks for objects fail, each with one of these."""
    real = store._objects.missing

    def missing(*given: Any) -> set[bytes]:
        if errors:
            raise errors.pop(0)
        return real(*given)

    patch.setattr(store._objects, "missing", missing)


@pytest.mark.parametrize("made", [lambda: apsw.CorruptError("malformed"), corrupt_fs])
def test_what_seems_malformed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[], apsw.Error]
) -> None:
    with contextlib.closing(SqliteStore(tmp_path / "store.db")) as store:
        failing(store, [made()], monkeypatch)
        assert store.missing(None, [bytes(20)]) == {bytes(20)}
        failing(store, [made(), made()], monkeypatch)
        with pytest.raises(Corrupt):
            store.missing(None, [bytes(20)])


def test_a_page_with_a_wrong_checksum_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(SqliteStore(tmp_path / "store.db")) as store:
        failing(store, [io_error(apsw.SQLITE_IOERR_DATA)], monkeypatch)
        with pytest.raises(Corrupt):
            store.missing(None, [bytes(20)])
