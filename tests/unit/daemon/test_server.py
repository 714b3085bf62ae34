"""Both sides of the protocol, over real sockets, with a handler that does what a test says."""

import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from hardsave.daemon import client, election, protocol, server
from hardsave.daemon.server import Request, Server

ID = "chk_" + "0" * 24
OURS = b"hardsave %d" % protocol.PROTOCOL


class Handler:
    """Says yes, unless told otherwise."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.why: str | None = None
        self.is_outdated = False
        self.says: bytes | None = None
        self.before: Callable[[], object] = lambda: None

    def objection(self, request: Request) -> str | None:
        return self.why

    def outdated(self) -> None:
        self.is_outdated = True

    def save(self, request: Request) -> bytes | None:
        self.before()
        self.requests.append(request)
        return self.says


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Handler:
    """Behind the server of a test, however slow the machine is."""
    monkeypatch.setattr(client, "TAKEN_SECONDS", 60.0)
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 60.0)
    return Handler()


@pytest.fixture
def path(tmp_path: Path, handler: Handler) -> Iterator[Path]:
    path = Path(election.new_socket_path(str(tmp_path / "store.db")))
    here = Server(path, handler)
    yield path
    here.close()


def asked(
    path: Path, data: bytes = b"{}", *, seconds: float = 30.0, words: Sequence[str] = ()
) -> bytes | None:
    message = protocol.request(ID, 7, list(words), data)
    return client.ask(str(path), message, seconds=seconds)


def said(path: Path, message: bytes) -> bytes:
    """What is answered to these bytes, with nothing after them."""
    with socket.socket(socket.AF_UNIX) as talk:
        talk.settimeout(60)
        talk.connect(str(path))
        found = b""
        with suppress(ConnectionError):  # it was not even read to its end
            talk.sendall(message)
            talk.shutdown(socket.SHUT_WR)
            while more := talk.recv(1000):
                found += more
        return found


def test_a_request_arrives_as_it_was_sent(
    path: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    odd = tmp_path / "with = and \n and \udcff"
    odd.mkdir()
    monkeypatch.chdir(odd)
    monkeypatch.setenv("HARDSAVE_TIMELINE", "a=b\nc")
    monkeypatch.setenv("OTHER_SECRET", "stays here")
    data = bytes(range(256)) * 10_000
    assert asked(path, data, words=["codex", "a=b"]) == b""
    (request,) = handler.requests
    assert (request.id, request.at, request.data) == (ID, 7, data)
    assert request.directory == odd
    assert request.words == ("codex", "a=b")
    assert request.environment["HARDSAVE_TIMELINE"] == "a=b\nc"
    assert "OTHER_SECRET" not in request.environment


def test_what_could_not_be_saved_but_is_noted_is_seen_to(path: Path, handler: Handler) -> None:
    for says in (b"", b'{"what": "it says"}', "ä".encode() * 1_900):
        handler.says = says
        assert asked(path) == says


def test_what_the_desk_objects_to_is_the_hooks_own(path: Path, handler: Handler) -> None:
    handler.why = "another store"
    assert asked(path) is None
    assert said(path, protocol.request(ID, 7, [], b"")) == b"no another store\n"
    assert handler.requests == []


def test_a_desk_that_fails_leaves_it_to_the_hook(
    path: Path, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("no room for a note")

    handler.before = fail
    assert asked(path) is None
    handler.before = lambda: None
    assert asked(path) == b""
    end = time.monotonic() + 60
    while "a request failed" not in caplog.messages:  # its thread says so when all is over
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 5000,
        b"hardsave\n",
        OURS + b"\n",
        OURS + b" -5\n",
        OURS + b" 99999999999999\n",
        OURS + b" 10\nshort",
        OURS + b" 3\nabc",
        OURS + b" 1\n\0",
        OURS + b" 12\nid=a\0at=b\0\0\0",
    ],
)
def test_garbage_is_not_answered_and_harms_no_other_client(
    path: Path, handler: Handler, message: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert said(path, message) == b""
    assert asked(path) == b""
    assert len(handler.requests) == 1
    assert "a request failed" not in caplog.messages  # it is nothing that we have done wrong


def test_another_protocol_is_refused(path: Path, handler: Handler) -> None:
    message = protocol.request(ID, 7, [], b"{}").replace(OURS, b"hardsave 1", 1)
    assert not handler.is_outdated
    assert said(path, message) == b"no another protocol than %d\n" % protocol.PROTOCOL
    assert handler.requests == []
    assert handler.is_outdated


def test_a_client_that_never_finishes_is_not_waited_for(
    path: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(str(path))
        talk.sendall(OURS + b" 100\nbut no more")
        assert asked(path) == b""  # others are heard meanwhile
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.1)
    with socket.socket(socket.AF_UNIX) as talk:
        talk.settimeout(60)
        talk.connect(str(path))
        talk.sendall(OURS + b" 100\nbut no more")
        assert talk.recv(10) == b""


def test_what_was_taken_is_done_even_if_the_hook_is_gone(path: Path, handler: Handler) -> None:
    go, gone = threading.Event(), threading.Event()
    handler.before = lambda: go.wait(60)

    def hook() -> None:
        assert asked(path, seconds=0.05) == b""  # its time is over, and the daemon is at it
        gone.set()

    threading.Thread(target=hook).start()
    assert gone.wait(60)
    assert handler.requests == []
    go.set()
    while not handler.requests:
        time.sleep(0.01)


def test_closing_waits_for_what_was_taken(tmp_path: Path, handler: Handler) -> None:
    path = tmp_path / "s.sock"
    here, taken, go = Server(path, handler), threading.Event(), threading.Event()

    def wait() -> None:
        taken.set()
        go.wait(60)

    handler.before = wait
    asking = threading.Thread(target=asked, args=(path,))
    asking.start()
    assert taken.wait(60)
    closing = threading.Thread(target=here.close)
    closing.start()
    while path.exists():
        time.sleep(0.01)
    assert closing.is_alive()
    go.set()
    closing.join(60)
    asking.join(60)
    assert len(handler.requests) == 1
    assert asked(path) is None


def test_without_a_daemon_or_with_a_stale_socket_the_hook_saves_itself(tmp_path: Path) -> None:
    assert asked(tmp_path / "nothing.sock") is None
    stale = tmp_path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    assert asked(stale) is None


@pytest.mark.parametrize("answer", [b"", b"taken\n", b"taken", b"\0\xff" * 3000, b"what?\n"])
def test_a_daemon_that_does_not_keep_to_it_is_not_relied_on(tmp_path: Path, answer: bytes) -> None:
    path = tmp_path / "odd.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def answers() -> None:
            talk, _ = listening.accept()
            with talk:
                talk.recv(1000)
                talk.sendall(answer)

        threading.Thread(target=answers).start()
        assert asked(path) is None


def test_one_that_never_answers_is_waited_for_half_a_second(tmp_path: Path) -> None:
    """As if stopped: the kernel still takes connections for it, and some of what is sent."""
    path = tmp_path / "stopped.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert asked(path) is None
        assert asked(path, b"x" * 5_000_000) is None


def test_a_path_that_is_too_long_for_a_socket_is_reached(tmp_path: Path, handler: Handler) -> None:
    folder = tmp_path / ("deep" * 30) / ("down" * 30)
    folder.mkdir(parents=True)
    path = Path(election.new_socket_path(str(folder / "store.db")))
    here = Server(path, handler)
    try:
        assert asked(path) == b""
    finally:
        here.close()
    assert list(folder.iterdir()) == []


def test_no_other_user_may_use_it(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_not_heard(path: Path, handler: Handler) -> None:
    for folder in (path.parent, *path.parents[1:4]):
        folder.chmod(0o755)
    path.chmod(0o777)
    script = (
        "import os, socket, sys\n"
        "os.setuid(65534)\n"
        "talk = socket.socket(socket.AF_UNIX); talk.connect(sys.argv[1])\n"
        "try: talk.sendall(sys.stdin.buffer.read()); print(talk.recv(100))\n"
        "except ConnectionError: print(b'')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        input=protocol.request(ID, 7, [], b"{}"),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == b"b''\n"
    assert handler.requests == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_another_user_serves_is_not_relied_on() -> None:
    """A user who can put a socket where ours was gets no transcript."""
    script = (
        "import os, socket, sys, tempfile\n"
        "os.setuid(65534)\n"
        "path = tempfile.mkdtemp() + '/s.sock'\n"
        "listening = socket.socket(socket.AF_UNIX); listening.bind(path); listening.listen()\n"
        "os.chmod(path, 0o777); print(path, flush=True)\n"
        "talk, _ = listening.accept(); print(talk.recv(100), flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd="/"
    ) as other:
        assert other.stdout is not None
        path = Path(other.stdout.readline().strip())
        assert asked(path) is None
        assert other.stdout.readline() == "b''\n"
    shutil.rmtree(path.parent)


def test_sockets_of_residents_that_are_gone_are_removed(tmp_path: Path, handler: Handler) -> None:
    beside = tmp_path / "store.db-run-"
    store = str(tmp_path / "store.db")
    stale, alive, other = (Path(election.new_socket_path(store)) for _ in range(3))
    other = other.with_name("store.db-run-log")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    other.touch()
    here = Server(alive, handler)
    try:
        server.remove_stale_sockets(beside)
        assert sorted(tmp_path.iterdir()) == sorted([alive, other])
        assert asked(alive) == b""
    finally:
        here.close()


def test_a_hook_that_hands_over_loads_next_to_nothing() -> None:
    script = "import sys; before = set(sys.modules); import hardsave.daemon.hook; "
    script += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], check=True, capture_output=True, text=True
    )
    ours = "hardsave hardsave.daemon hardsave.daemon.hook hardsave.daemon.client"
    loaded = set(done.stdout.split())
    assert loaded - {"select"} == {*ours.split(), "hardsave.daemon.protocol", "hardsave.defaults"}


def test_where_no_client_can_be_heard_any_more_no_hook_waits(
    tmp_path: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with no descriptor left: the socket would take calls that are never answered."""

    def fails(_: socket.socket) -> tuple[socket.socket, object]:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(socket.socket, "accept", fails)
    path = Path(election.new_socket_path(str(tmp_path / "store.db")))
    here = Server(path, handler)
    while path.exists():
        time.sleep(0.01)
    assert asked(path) is None
    here.close()
