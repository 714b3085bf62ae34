"""Where hooks and the daemon save: in their store, or in the outbox while its server is away."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import hardsave
from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.stores import registry

if TYPE_CHECKING:
    from hardsave.daemon.outbox import Outbox

RETRY_SECONDS = 5.0  # between two questions whether a server answers again


class Access:
    """To one store, for one project."""

    def __init__(
        self,
        environment: Mapping[str, str],
        project: Path,
        url: str,
        open_file: Callable[[], hardsave.Vault] | None = None,
    ) -> None:
        """`open_file` opens a store that is a file."""
        self._url = url
        self._open_file = open_file or partial(hardsave.open, url)
        self._outbox = _outbox(environment, project, url) if registry.is_on_server(url) else None
        self.is_away = False
        """Whether what is open is the outbox."""

    @contextmanager
    def opened(self) -> Iterator[hardsave.Vault]:
        """What to save in. A store that is lost, or out of reach, may not even be closed in order:
        that is no reason to end."""
        store = self._open_file() if self._outbox is None else self._outbox.store()
        self.is_away = store is None
        if store is None:
            assert self._outbox is not None
            with self._outbox.opened() as vault:
                yield vault
            return
        try:
            yield store
        finally:
            try:
                store.close()
            except (HardsaveError, OSError):
                where = registry.shown(self._url)
                log(__name__).warning("%s could not be closed in order", where, exc_info=True)

    def why_lost(self) -> str:
        """Why nothing can be saved in what is open, because its server is away; else empty."""
        return "" if self._outbox is None or self.is_away else self._outbox.why_away()

    @contextmanager
    def looking(self, answers: Callable[[], None]) -> Iterator[None]:
        """While the outbox is open: call `answers` once the server answers again."""
        ended = threading.Event()
        outbox = self._outbox

        def look() -> None:
            while outbox is not None and not ended.wait(RETRY_SECONDS):
                if not outbox.why_away(is_patient=True):
                    answers()
                    return

        looks = threading.Thread(target=look, name="server", daemon=True)
        if self.is_away:
            looks.start()
        try:
            yield
        finally:
            ended.set()

    def settle(self) -> None:
        """Deliver what waits, if the server answers."""
        if self._outbox is not None and not self._outbox.is_empty and not self._outbox.why_away():
            self._outbox.settle()


def _outbox(environment: Mapping[str, str], project: Path, url: str) -> "Outbox":
    from hardsave.daemon.outbox import Outbox  # most stores are files

    return Outbox(environment, project, url)
