"""Which process is the daemon of a workspace, and how hooks that were not told of it find it.

Of the processes that may become the daemon, the one that gets the lock beside the store does
(`DaemonLock`). `protocol.rendezvous` says where a hook looks; here the links are made and removed.
A link that leads nowhere costs a hook nothing, and is removed by the next daemon.
"""

import _socket
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave import config
from hardsave.daemon import protocol
from hardsave.errors import Misuse, NotFound
from hardsave.logs import log
from hardsave.stores.host import processes
from hardsave.stores.host.identity import host_id
from hardsave.stores.local import daemon_lock
from hardsave.stores.local.daemon_lock import DaemonLock
from hardsave.stores.registry import file_path, is_on_server, shown
from hardsave.tuples import NamedTuple
from hardsave.vault.workspaces import projects
from hardsave.vault.workspaces.places import files_of

PROCESS_NAME = "hardsave-daemon"  # in lists of processes, which show 15 letters
MOST_ZOMBIES = 32  # a process 1 that is slow to wait for its children has fewer of them
SOCKET_SUFFIX = ".sock"
_SERVERS = "servers"  # the folder of what belongs to stores on servers, among the user's data
TAKEOVER_SECONDS = 5.0  # that the next daemon waits for the end of the one before
_LOOK_SECONDS = 0.05
_BACKLOG = 64
_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too


def host_path(environment: Mapping[str, str], url: str) -> str:
    """What the paths of all begin with that a daemon keeps on this host for a store: its socket,
    its lock, its log. Of a store in a file, that is the file; `Misuse` if it is neither in a file
    nor on a server."""
    if not is_on_server(url):
        return os.path.realpath(file_path(url))
    from blake3 import blake3  # most stores are files

    name = blake3(str(shown(url)).encode()).hexdigest(8)
    return str(config.data_directory(environment, sys.platform) / _SERVERS / name / "store")


class Address(NamedTuple):
    """For which store and workspace a daemon works, and where hooks find it."""

    url: str
    store: str  # its file, or the path that stands for it on this host: see `host_path`
    workspace: str
    lock: str
    socket: str
    link: str = ""  # by which hooks find it that were not told of it, if they may

    def remove(self) -> None:
        """Hooks find no daemon here any more."""
        with suppress(OSError):
            os.unlink(self.socket)
        if self.link:
            unpublish(os.path.dirname(self.link), self.socket)


def address_for(environment: Mapping[str, str], directory: Path, project: Path) -> Address | None:
    """Where hooks that are called like this one would find a daemon; None if there shall be none.

    The hooks of a `hardsave run` are told of its daemon, and a store that is named by a relative
    path is another one in every directory.
    """
    link = protocol.rendezvous(environment, os.fspath(directory))
    if _SYSTEM != "linux" or link is None or environment.get(protocol.SOCKET_VARIABLE):
        return None
    try:
        if not config.leaves_daemon(environment, project):
            return None
        url = projects.store_url(environment, project)
        store = host_path(environment, url)
    except (Misuse, NotFound):
        return None
    named = environment.get(config.STORE_VARIABLE) or "/"
    if not (is_on_server(url) or os.path.isabs(file_path(url))):
        return None
    if not ("://" in named or os.path.isabs(named)):
        return None
    config.make_folder(Path(store).parent)
    return address_of(url, store, os.path.realpath(project), new_socket_path(store), link)


def address_of(url: str, store: str, workspace: str, socket: str, link: str = "") -> Address:
    """Of a daemon that listens at a socket."""
    return Address(url, store, workspace, lock_path(store, workspace), socket, link)


def are_too_many_zombies() -> bool:
    """Whether earlier daemons stay zombies: process 1 of a container may wait for no child, and
    there shall be an end to them."""
    return len(processes.zombies(PROCESS_NAME)) >= MOST_ZOMBIES


def lock_path(store: str, workspace: str) -> str:
    """The lock of the daemon that answers hooks which save a workspace in the store at a path."""
    of_host = host_id().encode() + b"\0" + os.fsencode(os.path.realpath(workspace))
    return f"{os.path.realpath(store)}-{files_of(of_host)}{daemon_lock.SUFFIX}"


@contextmanager
def elected(address: Address) -> Iterator[None]:
    """Hold the lock, so that hooks which were not told of this daemon find it; unless a daemon
    that must not be evicted holds it."""
    lock, path = None, address.lock
    try:
        lock = DaemonLock.take(path, address.socket, is_evictable=False)
        if lock is None:
            daemon_lock.evict_from(path)
            lock = DaemonLock.take(path, address.socket, is_evictable=False)
    except OSError as error:
        log(__name__).warning("%s cannot be locked, so other agents save alone: %s", path, error)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def candidate(address: Address, let_go: Callable[[], None]) -> DaemonLock | None:
    """The lock for a process that may stay as the daemon; None if there is a daemon, which hooks
    then find by the link.

    A daemon that is about to end, because a hook of another version has called, is waited for: the
    agent does not wait any more then (`let_go`).
    """
    end = time.monotonic() + TAKEOVER_SECONDS
    while (lock := DaemonLock.take(address.lock, address.socket, is_evictable=True)) is None:
        found = daemon_lock.holder(address.lock)
        is_ending = found is not None and found.is_evictable and not os.path.exists(found.socket)
        if not is_ending or time.monotonic() >= end:
            if found is not None:
                publish(address.link, found.socket)
            return None
        let_go()
        time.sleep(_LOOK_SECONDS)
    return lock


# The socket. A hook that may stay as the daemon makes it while its agent still waits: only then is
# it known whether it can stay at all. So `_socket` is used, which takes no time to load.


def new_socket_path(store: str) -> str:
    """A path of a socket, beside its store, that no other daemon has."""
    return f"{store}{protocol.SOCKET_INFIX}{os.urandom(4).hex()}{SOCKET_SUFFIX}"


def listen(path: str) -> int:
    """A descriptor of a socket at a path, which only this user can connect to."""
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        short, descriptor = protocol.short_path(os.fsencode(path))
        try:
            listening.bind(short)
            os.chmod(path, 0o600)  # before it listens: until then, every client is refused
        finally:
            if descriptor is not None:
                os.close(descriptor)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening.detach()


# The links


def publish(link: str, socket: str) -> None:
    """Let a link lead to a socket, wherever it led before."""
    with suppress(OSError):
        if os.readlink(link) == socket:
            return
    config.make_folder(Path(link).parent)
    new = f"{link}.{os.urandom(4).hex()}"
    os.symlink(socket, new)
    try:
        os.replace(new, link)
    except BaseException:
        os.unlink(new)
        raise


def unpublish(folder: str, socket: str) -> None:
    """Remove the links to a socket, and all that lead nowhere."""
    try:
        links = [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return
    for link in links:
        with suppress(OSError):
            if os.readlink(link) == socket or not os.path.exists(link):
                os.unlink(link)
