"""Databases of this host: page checksums, and SQLite's errors in our words.

A store in a file is one, and so is what is derived from a store of any kind and kept here, as the
search index. Every page carries a checksum, kept by SQLite's own checksum VFS, which comes with
apsw.
"""

import contextlib
import os
import threading
from collections.abc import Iterator

import apsw

from hardsave.errors import Corrupt, HardsaveError, Misuse, Unavailable

CHECKSUM_VFS = "cksmvfs"
CHECKSUM_BYTES = 8
_INDEX_BYTES = 32 * 1024  # one part of the index of a WAL

_loading = threading.Lock()


def load_checksums() -> None:
    """Register the checksum VFS with SQLite, once per process, and change no default."""
    with _loading:
        names = apsw.vfs_names()
        if CHECKSUM_VFS in names:
            return
        library = _checksum_library()
        default = names[0]
        connection = apsw.Connection(":memory:")
        try:
            connection.enable_load_extension(True)
            connection.load_extension(library)
        except apsw.Error as error:
            raise Unavailable(f"SQLite's checksum VFS at {library} cannot be loaded") from error
        finally:
            connection.close()
        apsw.set_default_vfs(default)


def _checksum_library() -> str:
    folder = os.path.join(os.path.dirname(apsw.__file__), "sqlite_extra_binaries")
    for suffix in (".so", ".dylib", ".dll"):
        library = os.path.join(folder, f"cksumvfs{suffix}")
        if os.path.exists(library):
            return library
    raise Unavailable(
        f"this apsw ({apsw.apsw_version()}) comes without SQLite's checksum VFS; "
        "install the apsw wheel from the package index"
    )


def free_bytes(path: str) -> int:
    """How much may still be written to the disk that a file lies on."""
    found = os.statvfs(os.path.dirname(path))
    return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def in_our_words(path: str) -> Iterator[None]:
    """Translate SQLite's errors."""
    try:
        yield
    except apsw.Error as error:
        raise translated(error, path) from error


OPEN_AGAIN = "; close it everywhere and open it again, which takes over from its backup"


def translated(error: apsw.Error, path: str) -> HardsaveError:
    """An error of our own tree for one of SQLite's."""
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) or _is_damage(error):
        return Corrupt(f"{path} is damaged ({error}){OPEN_AGAIN}")
    if isinstance(error, apsw.FullError):
        return Unavailable(f"no space left for {path}; free some and repeat")
    if isinstance(error, apsw.BusyError):
        return Unavailable(f"{path} is locked by another program ({error}); close it and repeat")
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
        return Unavailable(f"{path} cannot be opened for writing ({error}); free it, then repeat")
    if isinstance(error, apsw.IOError) and _is_full(path):
        return Unavailable(f"no space left for {path} ({error}); free some and repeat")
    if isinstance(error, apsw.IOError):
        return Unavailable(f"the disk fails under {path} ({error}); see to it, then repeat")
    if isinstance(error, apsw.ConnectionClosedError):
        return Misuse("this store is closed; open it again")
    return Unavailable(f"SQLite cannot use {path}: {error}")


def _is_full(path: str) -> bool:
    """Whether the disk is too full for the index of a WAL: SQLite calls that an I/O error."""
    try:
        return free_bytes(path) < _INDEX_BYTES
    except OSError:  # no file, or none that can be looked at
        return False


def is_failing(error: Exception) -> bool:
    """Whether the disk has failed to answer, so that nothing is known of what lies there."""
    return isinstance(error, apsw.IOError | apsw.CantOpenError) and not _is_damage(error)


def may_be_passing(error: Corrupt) -> bool:
    """Whether the disk may have failed to answer once: SQLite calls that malformed, too. A page
    with a wrong checksum it calls otherwise, and that stays wrong."""
    cause = error.__cause__
    code = getattr(cause, "extendedresult", 0)
    return isinstance(cause, apsw.CorruptError) or code == apsw.SQLITE_IOERR_CORRUPTFS


def _is_damage(error: apsw.Error) -> bool:
    """A bad checksum, or a WAL that ends before a frame that it should have."""
    code = getattr(error, "extendedresult", 0)
    damage = (apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_SHORT_READ)
    return code in damage
