"""A vault of another process, over HTTP: the client of `hardsave serve`.

    with hardsave.client.connect("http://localhost:8765", token="hs_…") as vault:
        line = vault.timeline("session-1")
        line.append({"messages": [message]})
        for event in vault.follow():
            print(event.kind, event.timeline)

The names are those of the library, and so are the errors. What differs: a state is read as a whole
or by a path, never lazily; directories are those of the server's host. Every act has a key, and is
sent again when its answer was lost: it is done once. Nothing here opens a store.
"""

import os
from typing import Any

from hardsave.client.address import parse
from hardsave.client.calls import Calls
from hardsave.client.checkpoint import RemoteCheckpoint
from hardsave.client.files import RemoteFiles
from hardsave.client.follow import RemoteFollowing
from hardsave.client.jobs import RemoteJobs
from hardsave.client.line import RemoteTimeline
from hardsave.client.records import (
    RemoteApproval,
    RemoteDiff,
    RemoteEvent,
    RemoteHealth,
    RemoteMessage,
    RemoteMessages,
    RemoteProject,
    RemoteRewind,
    RemoteServer,
    ToolCall,
)
from hardsave.client.tasks import RemoteTasks
from hardsave.client.vault import RemoteVault
from hardsave.defaults import CLIENT_SECONDS
from hardsave.errors import Misuse

__all__ = [
    "RemoteApproval",
    "RemoteCheckpoint",
    "RemoteDiff",
    "RemoteEvent",
    "RemoteFiles",
    "RemoteFollowing",
    "RemoteHealth",
    "RemoteJobs",
    "RemoteMessage",
    "RemoteMessages",
    "RemoteProject",
    "RemoteRewind",
    "RemoteServer",
    "RemoteTasks",
    "RemoteTimeline",
    "RemoteVault",
    "ToolCall",
    "connect",
]

TOKEN_VARIABLE = "HARDSAVE_TOKEN"  # noqa: S105 # the name of a variable


def connect(
    url: str,
    *,
    token: str | None = None,
    project: str | None = None,
    timeout_seconds: float = CLIENT_SECONDS,
) -> RemoteVault:
    """Connect to `hardsave serve`. The token is the one given, or that of HARDSAVE_TOKEN.

    `project` is the id of one of `vault.projects()`, where the server has several. A call waits for
    the server for `timeout_seconds`, all its tries included. Certificates of https are checked
    against those that the system trusts; SSL_CERT_FILE names others.
    """
    address = parse(url)
    known = os.environ.get(TOKEN_VARIABLE) if token is None else token
    calls = Calls(address, _token(known), project, _seconds(timeout_seconds))
    try:
        return RemoteVault(calls)
    except BaseException:
        calls.close()
        raise


def _seconds(given: Any) -> float:
    if not isinstance(given, int | float) or not 0 < given <= 3600:
        raise Misuse(f"timeout_seconds is above 0, up to 3600, not {given!r}")
    return given


def _token(given: Any) -> str | None:
    """A token that a header may hold. The message does not tell it."""
    if not given:
        return None
    if not isinstance(given, str) or not (given.isascii() and given.isprintable()) or " " in given:
        raise Misuse("this is no token; 'hardsave token add' makes one")
    return given
