"""Where hooks that were told of nobody find a resident: links among the user's data.

`handover.meeting` says where a hook looks; here the links are made and removed. One that leads to
nobody any more costs a hook nothing, and is removed by the next resident.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave import config
from hardsave.logs import log
from hardsave.stores.sqlite import seats
from hardsave.stores.sqlite.seats import Seat
from hardsave.tuples import NamedTuple
from hardsave.vault.places import files_of

NAME = "hardsave-hooks"  # of a resident that hooks leave behind, as lists of processes show it


class Post(NamedTuple):
    """Where one stands by: for which store and workspace, and where hooks find it."""

    url: str
    store: str  # its file
    workspace: str
    seat: str
    socket: str
    link: str

    def vanish(self) -> None:
        """Nobody looks here any more."""
        with suppress(OSError):
            os.unlink(self.socket)
        clear(os.path.dirname(self.link), self.socket)


def seat_of(store: str, workspace: str) -> str:
    """The seat of whoever answers the hooks that save a workspace in the store at a path."""
    root = os.fsencode(os.path.realpath(workspace))
    return f"{os.path.realpath(store)}-{files_of(root)}{seats.ENDING}"


@contextmanager
def seated(path: str, socket: str) -> Iterator[None]:
    """Be found by hooks that were told of nobody, unless somebody sits there who is no guest."""
    seat = None
    try:
        seat = Seat.take(path, socket, is_guest=False)
        if seat is None:
            seats.dismiss_from(path)
            seat = Seat.take(path, socket, is_guest=False)
    except OSError as error:
        log(__name__).warning("%s cannot be taken, so other agents save alone: %s", path, error)
    try:
        yield
    finally:
        if seat is not None:
            seat.close()


def arrange(link: str, socket: str) -> None:
    """Let a link lead to a socket, whoever it led to before."""
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


def clear(folder: str, socket: str) -> None:
    """Remove the links to a socket, and all that lead nowhere."""
    try:
        links = [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return
    for link in links:
        with suppress(OSError):
            if os.readlink(link) == socket or not os.path.exists(link):
                os.unlink(link)
