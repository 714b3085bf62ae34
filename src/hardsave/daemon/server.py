"""The daemon's side of the protocol: a socket beside the store, and which requests are heard.

`protocol` has the contract. Each client is heard in a thread of its own, eight at once; a client
that does not finish its request is not waited for. What a request asks for is done by a
`RequestHandler`.
"""

import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from hardsave.daemon.election import SOCKET_SUFFIX, listen
from hardsave.daemon.protocol import (
    GREETING,
    LARGEST_INPUT,
    NO,
    NOTED,
    PROTOCOL,
    SAVED,
    TAKEN,
    is_same_user,
    peer_pid,
    short_path,
)
from hardsave.logs import log
from hardsave.tuples import NamedTuple

_AT_ONCE = 8
_REQUEST_SECONDS = 5.0
_LONGEST_GREETING = 100
_LARGEST_REQUEST = LARGEST_INPUT + 1024 * 1024


class Request(NamedTuple):
    """One call of a hook, as it was handed over."""

    id: str  # of the checkpoint to be made
    at: int  # when, in nanoseconds since 1970
    directory: Path  # where the hook was called
    environment: Mapping[str, str]
    words: tuple[str, ...]  # the hook's arguments
    data: bytes  # the hook's input
    code: str = ""  # the file of the hook's `protocol` module: its installation
    caller: int = 0  # the hook's process; 0: unknown


class RequestHandler(Protocol):
    """Does what is asked for."""

    def objection(self, request: Request) -> str | None:
        """Why this daemon refuses it."""

    def outdated(self) -> None:
        """A client of another protocol has called."""

    def save(self, request: Request) -> bytes | None:
        """Do it: None if the checkpoint is there; what the hook prints, perhaps nothing, if a
        note says why not.

        What it raises is logged, and the hook does the work itself.
        """


class _NothingSaidError(Exception):
    """A client that has gone without a word."""


def decoded(body: bytes) -> Request:
    """What a request says; ValueError if it makes no sense."""
    fields: dict[str, str] = {}
    environment: dict[str, str] = {}
    words: list[str] = []
    rest = body
    while True:
        field, found, rest = rest.partition(b"\0")
        if not found:
            raise ValueError("a request ends before its fields do")
        if not field:
            break
        key, _, value = os.fsdecode(field).partition("=")
        if key == "env":
            name, _, value = value.partition("=")
            environment[name] = value
        elif key == "word":
            words.append(value)
        else:
            fields[key] = value
    try:
        where = Path(fields["cwd"])
        about = fields["id"], int(fields["at"]), where, environment, tuple(words), rest
        return Request(*about, code=fields.get("code", ""))
    except KeyError as error:
        raise ValueError(f"a request says nothing about {error}") from error


class Server:
    """Listens at a path as long as it is open. Only one may have that path."""

    def __init__(
        self, path: Path, handler: RequestHandler, *, listening: int | None = None
    ) -> None:
        """`listening`: a descriptor of a socket that listens there already."""
        self._path = path
        self._handler = handler
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._is_closing = False
        found = listen(os.fspath(path)) if listening is None else listening
        self._listening = socket.socket(fileno=found)
        self._thread = threading.Thread(target=self._accept, name="server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear no client any more; return when everything that was taken is done."""
        self._is_closing = True
        with suppress(OSError):  # its folder may be out of reach by now: no hook finds it there
            self._path.unlink()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._thread.join()
        self._listening.close()
        for _ in range(_AT_ONCE):
            self._free.acquire()

    def _accept(self) -> None:
        while not self._is_closing:
            self._free.acquire()
            try:
                talk, _ = self._listening.accept()
            except OSError:
                self._free.release()
                if not self._is_closing:
                    log(__name__).exception("no hook is heard any more: each saves by itself")
                    self._path.unlink(missing_ok=True)  # so that no hook waits for an answer
                    self._listening.close()
                return
            threading.Thread(target=self._hear, args=(talk,), daemon=True).start()

    def _hear(self, talk: socket.socket) -> None:
        try:
            with talk:
                request = self._understood(talk)
                if request is not None:
                    self._serve(talk, request)
        except Exception:  # noqa: BLE001 # ours; the daemon goes on, and the hook saves by itself
            log(__name__).exception("a request failed")
        finally:
            self._free.release()

    def _understood(self, talk: socket.socket) -> Request | None:
        """What a client asks for; None if that is nothing, or unreadable: then its hook saves by
        itself."""
        try:
            if not is_same_user(talk):
                raise PermissionError("another user has asked")
            body = _received(talk, time.monotonic() + _REQUEST_SECONDS)
            if body is None:
                self._handler.outdated()
                talk.sendall(NO + b" another protocol than %d\n" % PROTOCOL)
                return None
            return decoded(body)._replace(caller=peer_pid(talk))
        except _NothingSaidError:
            return None  # the client has only looked whether a daemon is here
        except (OSError, ValueError) as error:
            log(__name__).warning("a request was not understood: %s", error)
            return None

    def _serve(self, talk: socket.socket, request: Request) -> None:
        if why := self._handler.objection(request):
            with suppress(OSError):
                talk.sendall(NO + b" " + why.encode() + b"\n")
            return
        with suppress(OSError):  # the hook may be gone by now: its request is still done
            talk.sendall(TAKEN + b"\n")
        said = self._handler.save(request)
        with suppress(OSError):
            talk.sendall((SAVED if said is None else b"%s %s" % (NOTED, said)) + b"\n")


def remove_stale_sockets(prefix: Path) -> None:
    """Those of daemons that are gone; `prefix` is what their names begin with."""
    for path in prefix.parent.glob(f"{prefix.name}*{SOCKET_SUFFIX}"):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as talk:
            talk.setblocking(False)
            if _is_refused(talk, path):
                path.unlink()


def _is_refused(talk: socket.socket, path: Path) -> bool:
    short, descriptor = short_path(os.fsencode(path))
    try:
        talk.connect(short)
    except ConnectionRefusedError:
        return True
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return False


def _received(talk: socket.socket, end: float) -> bytes | None:
    """A whole request; None if it is of another protocol. ValueError if it is none."""
    head = b""
    while b"\n" not in head:
        if len(head) > _LONGEST_GREETING:
            raise ValueError("no greeting")
        try:
            head += _some(talk, _LONGEST_GREETING, end)
        except ValueError as error:
            raise error if head else _NothingSaidError from error
    line, _, start = head.partition(b"\n")
    words = line.split(b" ")
    if words[0] != GREETING or len(words) < 2:
        raise ValueError("no greeting of ours")
    if words[1] != b"%d" % PROTOCOL:
        return None
    length = int(words[2]) if len(words) == 3 and words[2].isdigit() else -1
    if not 0 <= length <= _LARGEST_REQUEST:
        raise ValueError("a length that cannot be")
    body = bytearray(start)
    while len(body) < length:
        body += _some(talk, length - len(body), end)
    return bytes(body)


def _some(talk: socket.socket, most: int, end: float) -> bytes:
    talk.settimeout(max(end - time.monotonic(), 0.001))
    found = talk.recv(min(most, 1 << 20))
    if not found:
        raise ValueError("it ended before its request did")
    return found
