"""The resident that a hook leaves behind: `daemon.standby`, with what hooks ask for."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import hardsave
from hardsave import config
from hardsave.agents import registry
from hardsave.daemon import handover, meetings, parentage, reception
from hardsave.daemon.desk import HookDesk
from hardsave.daemon.hook import Outcome
from hardsave.daemon.meetings import Post
from hardsave.daemon.reception import Reception, Request
from hardsave.daemon.standby import Ground, Standby
from hardsave.errors import HardsaveError, Unavailable
from hardsave.logs import log
from hardsave.stores.processes import Process
from hardsave.stores.sqlite.seats import Seat

_LARGEST_LOG = 1 << 20


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
        spec = registry.of_hook(request.words)
        agent = parentage.agent_of(request.caller, spec.program)
        if agent is None:
            return "nobody knows who has called"
        self._standby.asked(agent, spec.event(request.data).session)
        return None

    def save(self, request: Request) -> bytes | None:
        """One that could not save leaves, so that its hook can be alone with the store."""
        try:
            return super().save(request)
        except Unavailable:
            self._standby.failed()
            raise

    def afterwards(self, done: Outcome) -> None:
        if done.event.status == "ended" and done.is_saved:
            self.has_seen_an_end = True
            self._standby.callers.part(done.event.session)


def reside(post: Post, seat: Seat, listening: int, agent: Process, session: str) -> None:
    """In nobody's way: no directory is held, and whoever sends a signal sees us go at once."""
    reception.clear(Path(f"{post.store}{handover.BESIDE}"))
    signal.signal(signal.SIGTERM, lambda *_: _go_at_once(post))
    _call_ourselves(meetings.NAME)
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
                vault.store.upkeep()
    except Exception:  # noqa: BLE001 # nobody else will hear of it
        log(__name__).exception("the resident of hooks in %s gives up", post.workspace)


def _answer(
    vault: hardsave.Vault, post: Post, desk: StandbyDesk, standby: Standby, listening: int
) -> str:
    workspace = vault.workspace(post.workspace)
    with workspace.watch():
        here = Reception(Path(post.socket), desk, listening=listening)
        try:
            meetings.arrange(post.link, post.socket)
            workspace.status()  # from here on it is known what changes
            log(__name__).info("%s is known", post.workspace)
            return standby.stay()
        finally:
            here.close()


def _is_wanted(post: Post) -> bool:
    try:
        return config.leaves_resident(os.environ, Path(post.workspace))
    except HardsaveError:
        return False


def _go_at_once(post: Post) -> None:
    """Whoever waits for an answer does the work himself; what is half done, the store forgets."""
    try:
        post.vanish()
    finally:
        os._exit(0)


def _call_ourselves(name: str) -> None:
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def _log_to(path: str) -> None:
    import logging

    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        if os.path.getsize(path) > _LARGEST_LOG:
            file.truncate(0)
    logging.basicConfig(
        filename=path,
        level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(message)s",
    )
