"""What the driver raises, in errors of ours.

A message of the server is told; one of libpq, too: it names host and user, and no password.
"""

from typing import NoReturn

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from hardsave.errors import Conflict, Corrupt, HardsaveError, Misuse, Unavailable

# After these the same statement may well succeed: on another connection, or a moment later.
PASSING = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
    errors.ReadOnlySqlTransaction,  # a replica that is about to take over
)
_SLOW = (errors.QueryCanceled, errors.LockNotAvailable)
_DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources)


def is_passing(error: BaseException) -> bool:
    """Whether to repeat: the connection is lost, or the server is about to come back. A batch is
    recognised by its event, so it may be repeated even if the first was written."""
    if isinstance(error, PASSING):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def raise_ours(error: BaseException, where: str) -> NoReturn:
    """Raise what the caller can do something about. The driver's error is the cause."""
    raise ours(error, where) from error


def ours(error: BaseException, where: str) -> HardsaveError:
    said = _said(error)
    if isinstance(error, PoolClosed):
        return Misuse("this store is closed; open it again")
    if isinstance(error, _DAMAGED):
        return Corrupt(f"{where} is damaged: {said}; see to the server's disk, then run verify")
    if isinstance(error, _SLOW):
        return Unavailable(f"{where} took too long: {said}; repeat it, or allow it more time")
    if isinstance(error, _FULL):
        return Unavailable(f"{where} has no room: {said}; make some on the server, then repeat")
    if isinstance(error, errors.UniqueViolation):
        return Conflict(f"a batch adds something twice: {said}; add it once")
    if isinstance(error, errors.InsufficientPrivilege):
        return Misuse(f"{where}: {said}; let its owner grant what is missing")
    if isinstance(error, psycopg.DataError):
        return Misuse(f"{where} cannot keep a value: {said}; leave NUL and such out of texts")
    if isinstance(error, PoolTimeout | TooManyRequests):
        return Unavailable(f"{where} gave no connection in time ({said}); see to it, then repeat")
    return Unavailable(f"{where} cannot be used: {said}; see to the server, then repeat")


def _said(error: BaseException) -> str:
    """The first line of what the driver says."""
    text = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (text or str(error) or type(error).__name__).strip().splitlines()[0]
