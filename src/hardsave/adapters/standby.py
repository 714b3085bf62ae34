"""The resident that a hook leaves behind: `runtime.standby`, with what hooks ask for.

The process that has done a hook's work alone has everything loaded that the next ones need, and
nobody waits for it any more: so it simply stays. If anything speaks against it, it ends as ever.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import hardsave
from hardsave import config
from hardsave.adapters import events
from hardsave.adapters.desk import HookDesk
from hardsave.adapters.events import Event
from hardsave.errors import HardsaveError, Misuse, NotFound, Unavailable
from hardsave.logs import log
from hardsave.runtime import handover, meetings, parentage, reception
from hardsave.runtime.parentage import Process
from hardsave.runtime.reception import Reception, Request
from hardsave.runtime.standby import Ground, Standby
from hardsave.stores.registry import sqlite_path
from hardsave.stores.sqlite import seats
from hardsave.stores.sqlite.seats import Seat
from hardsave.vault import projects

if TYPE_CHECKING:
    from socket import socket

NAME = "hardsave-hooks"  # as lists of processes show it
_LARGEST_LOG = 1 << 20


class Post(NamedTuple):
    """Where one stands by: for which store and workspace, and where hooks find it."""

    url: str
    store: str  # its file
    workspace: str
    seat: str
    socket: str
    link: str


class StandbyDesk(HookDesk):
    """Does what hooks ask for, and keeps count of who they are."""

    def __init__(self, vault: hardsave.Vault, post: Post, standby: Standby) -> None:
        super().__init__(vault, post.url, post.workspace)
        self._standby = standby
        self.has_seen_an_end = False

    def objection(self, request: Request) -> str | None:
        if unfit := self._standby.why_unfit():
            self._standby.nudge()
            return unfit
        if foreign := super().objection(request):
            return foreign
        agent = parentage.agent_of(request.caller)
        if agent is None:
            return "nobody knows who has called"
        self._standby.asked(agent, events.parse(request.data).session)
        return None

    def save(self, request: Request) -> bool:
        """One that could not save leaves, so that its hook can be alone with the store."""
        try:
            return super().save(request)
        except Unavailable:
            self._standby.failed()
            raise

    def afterwards(self, event: Event, project: Path, is_saved: bool) -> None:
        if event.status == "ended" and is_saved:
            self.has_seen_an_end = True
            self._standby.company.part(event.session)


def leave(
    session: str, directory: Path, project: Path, parent: int, let_go: Callable[[], None]
) -> None:
    """Stay as the resident of a workspace, if nobody is and nothing speaks against it.

    A hook of a session was called in `directory` by `parent`, and its work is done. Nobody waits
    any more once `let_go` was called; before that, there is next to nothing to wait for.
    """
    post = post_for(os.environ, directory, project)
    agent = None if post is None else parentage.agent_of(os.getpid(), parent)
    if post is None or agent is None:
        return
    with suppress(OSError):  # a disk or a sandbox that does not want us: then it is as it was
        seat = Seat.take(post.seat, post.socket, is_guest=True)
        if seat is None:
            if (found := seats.sitter(post.seat)) is not None:
                meetings.arrange(post.link, found.socket)
            return
        try:
            reception.clear(Path(f"{post.store}{handover.BESIDE}"))
            listening = reception.listen(Path(post.socket))
            let_go()
            _reside(post, seat, listening, agent, session)
        finally:
            _vanish(post)
            seat.close()


def post_for(environment: Mapping[str, str], directory: Path, project: Path) -> Post | None:
    """Where hooks like this one would be answered; None if they shall not be.

    The hooks of a `hardsave run` have a resident of their own, and a store that is named by a
    relative path is another one in every directory.
    """
    link = handover.meeting(environment, os.fspath(directory))
    if sys.platform != "linux" or link is None or environment.get(handover.VARIABLE):
        return None
    try:
        if not config.leaves_resident(environment, project):
            return None
        url = projects.store_url(environment, project)
        path = sqlite_path(url)
    except (Misuse, NotFound):
        return None
    named = environment.get(config.STORE_VARIABLE) or "/"
    if not os.path.isabs(path) or not ("://" in named or os.path.isabs(named)):
        return None
    store, workspace = os.path.realpath(path), os.path.realpath(project)
    seat = meetings.seat_of(store, workspace)
    socket = os.fspath(reception.new_path(Path(f"{store}{handover.BESIDE}")))
    return Post(url, store, workspace, seat, socket, link)


def _reside(post: Post, seat: Seat, listening: "socket", agent: Process, session: str) -> None:
    """In nobody's way: no directory is held, and whoever sends a signal sees us go at once."""
    signal.signal(signal.SIGTERM, lambda *_: _go_at_once(post))
    _call_ourselves(NAME)
    _log_to(f"{post.store}-hooks.log")
    ground, code = Ground((post.store, post.workspace)), Ground((handover.__file__,), by_time=True)
    standby = Standby(
        is_in_place=lambda: ground.is_as_it_was() and seat.is_in_place(),
        is_current=code.is_as_it_was,
        is_wanted=lambda: _is_wanted(post),
    )
    standby.asked(agent, session)
    log(__name__).info("standing by for %s, called by %s", post.workspace, agent.words[:1])
    try:
        with hardsave.open(post.url) as vault:
            os.chdir("/")
            desk = StandbyDesk(vault, post, standby)
            why = _answer(vault, post, desk, standby, listening)
            log(__name__).info("%d calls; it ends, because %s", standby.calls, why)
            seat.close()
            if desk.has_seen_an_end:
                vault.upkeep()
    except Exception:  # noqa: BLE001 # nobody else will hear of it
        log(__name__).exception("the resident of hooks in %s gives up", post.workspace)


def _answer(
    vault: hardsave.Vault, post: Post, desk: StandbyDesk, standby: Standby, listening: "socket"
) -> str:
    workspace = vault.workspace(post.workspace)
    with workspace.watch():
        here = Reception(Path(post.socket), desk, listening=listening)
        try:
            meetings.arrange(post.link, post.socket)
            workspace.status()  # from here on it is known what changes
            return standby.stay()
        finally:
            here.close()


def _is_wanted(post: Post) -> bool:
    try:
        return config.leaves_resident(os.environ, Path(post.workspace))
    except HardsaveError:
        return False


def _vanish(post: Post) -> None:
    """Nobody looks for us any more."""
    with suppress(OSError):
        os.unlink(post.socket)
    meetings.clear(os.path.dirname(post.link), post.socket)


def _go_at_once(post: Post) -> None:
    """Whoever waits for an answer does the work himself; what is half done, the store forgets."""
    try:
        _vanish(post)
    finally:
        os._exit(0)


def _call_ourselves(name: str) -> None:
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def _log_to(path: str) -> None:
    import logging

    with suppress(FileNotFoundError):
        if os.path.getsize(path) > _LARGEST_LOG:
            os.truncate(path, 0)
    logging.basicConfig(
        filename=path,
        level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(message)s",
    )
