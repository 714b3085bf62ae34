"""Between a store and its server: counts round trips, and loses requests or replies if told to."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self


class Proxy:
    """Listens on a socket of its own, in the folder `host`, and forwards to the server's."""

    def __init__(self, socket_of_server: Path) -> None:
        self._upstream = socket_of_server
        self._folder = tempfile.TemporaryDirectory(prefix="hardsave-proxy-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self.host}/{socket_of_server.name}")
        self._listener.listen(64)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.round_trips = 0
        self.last_request = b""  # as much as came at once
        self.lost = 0
        self.loses: str = ""  # "request" or "reply": the next one
        self.spares = 0  # so many of these before that
        self.is_silent = False  # nothing goes through, and nothing is closed
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        return self._folder.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._listener.close()
        for pair in self._pairs:
            _end(*pair)
        self._folder.cleanup()

    @contextlib.contextmanager
    def counting(self, expected: int) -> Iterator[None]:
        """What is done in the block takes so many round trips."""
        before = self.round_trips
        yield
        taken = self.round_trips - before
        assert taken == expected, f"{taken} round trips"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(str(self._upstream))
            self._pairs.append((client, upstream))
            turn = _Turn()
            for source, target, is_reply in ((client, upstream, False), (upstream, client, True)):
                threading.Thread(
                    target=self._pump, args=(source, target, turn, is_reply), daemon=True
                ).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, turn: "_Turn", is_reply: bool
    ) -> None:
        while True:
            try:
                data = source.recv(1 << 16)
                if not data or self._is_lost(turn, is_reply):
                    break
                if not is_reply:
                    self.last_request = data
                if not self.is_silent:
                    target.sendall(data)
            except OSError:
                break
        _end(source, target)

    def _is_lost(self, turn: "_Turn", is_reply: bool) -> bool:
        if not is_reply and turn.is_servers:
            self.round_trips += 1
        turn.is_servers = is_reply
        if self.loses != ("reply" if is_reply else "request"):
            return False
        if self.spares:
            self.spares -= 1
            return False
        self.loses = ""
        self.lost += 1
        return True


class _Turn:
    """Who has spoken last on a connection."""

    is_servers = True


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
