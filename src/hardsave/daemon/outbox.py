"""The outbox: what hooks and daemons save on this host while the server of their store is away.

It is a store in a file, one for each project and server, in the user's data directory: a save there
is complete, with files and conversation as they were at that moment, and needs no network. When the
server answers again its checkpoints are delivered, once, in their order, by the first process that
comes by: the daemon, the next hook, or any command. Then the outbox is removed. As long as
something waits in it, saves go there too, so that none overtakes another.

Two locks: `use` is shared by those that save, so that the outbox is not removed under them;
`delivery` lets one process at a time deliver.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import hardsave
from hardsave import config
from hardsave.daemon.election import host_path
from hardsave.errors import HardsaveError, NotFound, Unavailable
from hardsave.logs import log
from hardsave.stores import registry
from hardsave.vault.transfer import delivery
from hardsave.vault.transfer.delivery import Delivered, Left

_LATELY_SECONDS = 5.0  # for which a server that did not answer is not asked again
_STORE = "waiting.db"
_ARRIVED = "arrived"  # up to which commit of the outbox all was delivered
_ROUNDS = 10  # of a delivery during which something is saved again and again
_NOTHING = Left(0, None, ())


class Outbox:
    """That of one project, for one store on a server."""

    def __init__(self, environment: Mapping[str, str], project: Path, url: str) -> None:
        self.store_url = url
        beside = f"{host_path(environment, url)}-{config.project_key(project)}"
        self._folder = Path(f"{beside}-outbox")
        self._use = Path(f"{beside}-outbox-use")
        self._delivery = Path(f"{beside}-outbox-delivery")
        self._asked = Path(f"{beside}-away")  # why the server did not answer, and when

    @property
    def url(self) -> str:
        """The store that the outbox is: every command can look at it."""
        return config.file_url(self._folder / _STORE)

    @property
    def is_empty(self) -> bool:
        """Also while the first process is about to make it."""
        try:
            return (self._folder / _STORE).stat().st_size == 0
        except OSError:
            return True

    # Whether the server answers

    def why_away(self, *, is_patient: bool = False) -> str:
        """Why the server takes nothing now; empty if it does. One that did not answer a moment ago
        is not asked again, unless the caller `is_patient`: no agent waits for it."""
        if not is_patient and (known := self._known_to_be_away()):
            return known
        try:
            registry.check_reachable(self.store_url)
        except Unavailable as error:
            self._note_away(str(error))
            return str(error)
        self._asked.unlink(missing_ok=True)
        return ""

    def _known_to_be_away(self) -> str:
        try:
            if time.time() - self._asked.stat().st_mtime > _LATELY_SECONDS:
                return ""
            return self._asked.read_text(encoding="utf-8")
        except OSError:
            return ""

    def _note_away(self, why: str) -> None:
        with suppress(OSError):  # then it is asked once more each time
            config.make_folder(self._asked.parent)
            self._asked.write_text(why, encoding="utf-8")

    # Saving

    def store(self) -> hardsave.Vault | None:
        """The store itself, opened, with nothing left to be delivered; None: saves go into the
        outbox, because the server is away, or what waits could not be delivered."""
        if self.why_away() or not self.settle():
            return None
        try:
            return hardsave.open(self.store_url)
        except Unavailable as error:
            self._note_away(str(error))
            return None

    @contextmanager
    def opened(self) -> Iterator[hardsave.Vault]:
        """The outbox, to save there."""
        config.make_folder(self._folder.parent)
        with _locked(self._use, fcntl.LOCK_SH):
            config.make_folder(self._folder)
            with hardsave.open(self.url) as vault:
                yield vault

    # Delivering

    def settle(self) -> bool:
        """Deliver what waits; whether nothing waits any more. What fails is logged."""
        try:
            self.deliver()
        except (HardsaveError, OSError) as error:
            where = registry.shown(self.store_url)
            log(__name__).warning("what waits for %s stays on this host: %s", where, error)
        return self.is_empty

    def deliver(self) -> Delivered | None:
        """Bring what waits into the store of the server. None: nothing waits, or another process
        delivers it just now."""
        if self.is_empty:
            return None
        with suppress(BlockingIOError), _locked(self._delivery, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return self._delivered()
        return None

    def _delivered(self) -> Delivered:
        done = Delivered(0, {})
        with hardsave.open(self.store_url) as target:
            for _ in range(_ROUNDS):
                with self.opened() as source:
                    more = delivery.deliver(source, target, self._arrived(), self._note_arrived)
                count = done.checkpoints + more.checkpoints
                done = Delivered(count, {**done.beside, **more.beside})
                if self._is_removed():
                    break
        if done.checkpoints:
            where = registry.shown(self.store_url)
            log(__name__).info("%d saves that waited are in %s now", done.checkpoints, where)
        return done

    def _is_removed(self) -> bool:
        """Remove the outbox, if all of it was delivered and no process saves there. It goes by one
        rename: half of a store would be taken for a damaged one."""
        with suppress(BlockingIOError), _locked(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if self.left().checkpoints == 0:
                gone = self._folder.with_name(f"{self._folder.name}-{os.urandom(4).hex()}")
                self._folder.rename(gone)
                shutil.rmtree(gone)
                return True
        return False

    def _arrived(self) -> int:
        try:
            return int((self._folder / _ARRIVED).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0  # what is there already is recognised

    def _note_arrived(self, number: int) -> None:
        (self._folder / _ARRIVED).write_text(f"{number}\n", encoding="ascii")

    def left(self) -> Left:
        """What waits."""
        if self.is_empty:
            return _NOTHING
        try:
            with hardsave.open(self.url, read_only=True) as vault:
                return delivery.left(vault, self._arrived())
        except NotFound:  # delivered just now
            return _NOTHING


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    config.make_folder(path.parent)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, how)
        yield
    finally:
        os.close(file)
