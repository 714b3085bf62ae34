"""An awaited guard around risky work."""

from types import TracebackType
from typing import TYPE_CHECKING

from hardsave.aio.pool import Pool

if TYPE_CHECKING:
    from hardsave.vault.restore import guard as sync_guard


class Guard:
    """See `hardsave.Timeline.guard`."""

    def __init__(self, sync: "sync_guard.Guard", pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def sync(self) -> "sync_guard.Guard":
        """What it saved and took back."""
        return self._sync

    async def __aenter__(self) -> "Guard":
        await self._pool.run(self._sync.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Also when it is cancelled again: what failed is taken back before anything goes on.
        await self._pool.run_to_the_end(self._sync.__exit__, kind, error, trace)
