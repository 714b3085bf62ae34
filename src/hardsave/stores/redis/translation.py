"""What the client raises, in errors of ours."""

from typing import NoReturn

from redis import exceptions

from hardsave.errors import HardsaveError, Misuse, Unavailable

_REFUSED = (exceptions.AuthenticationError, exceptions.NoPermissionError)


def is_passing(error: BaseException) -> bool:
    """Whether to repeat: the connection is lost, or the server is about to come back. A change is
    recognised by its id, so it may be repeated even if the first was written."""
    if isinstance(error, (*_REFUSED, exceptions.MaxConnectionsError)):
        return False
    return isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError)


def raise_ours(error: BaseException, where: str) -> NoReturn:
    """Raise what the caller can do something about. The client's error is the cause."""
    raise _ours(error, where) from error


def _ours(error: BaseException, where: str) -> HardsaveError:
    said = (str(error) or type(error).__name__).strip().splitlines()[0]
    if isinstance(error, _REFUSED):
        return Misuse(f"{where} lets this user not in: {said}; see to name, password and rights")
    if isinstance(error, exceptions.OutOfMemoryError):
        return Unavailable(
            f"{where} has no room: {said}; raise maxmemory on the server, or let old "
            "checkpoints go, then repeat"
        )
    if isinstance(error, exceptions.ReadOnlyError):
        return Unavailable(f"{where} is a replica and takes no writes: name its primary")
    if "MOVED" in said or "CLUSTERDOWN" in said:
        return Misuse(f"{where} is one of several nodes of a cluster: name a server that has all")
    if "MISCONF" in said:
        return Unavailable(f"{where} cannot write its disk: {said}; see to that, then repeat")
    return Unavailable(f"{where} cannot be used: {said}; see to the server, then repeat")
