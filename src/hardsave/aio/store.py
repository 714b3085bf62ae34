"""The awaited `vault.store` and `vault.retention`."""

from typing import TYPE_CHECKING

from hardsave.aio.checkpoint import Ref, plain
from hardsave.aio.pool import Pool
from hardsave.stores.base import Survives
from hardsave.stores.results import Collected, Report, Stats
from hardsave.vault import store as sync_store

if TYPE_CHECKING:
    from hardsave.timeline.policy import Policy
    from hardsave.timeline.retention import RetentionPlan
    from hardsave.vault.purge.purge import Purged
    from hardsave.vault.retention.retain import Retained
    from hardsave.vault.retention.upkeep import Upkept
    from hardsave.vault.verify.verify import Verification


class VaultStore:
    """See `hardsave.VaultStore`."""

    def __init__(self, sync: sync_store.VaultStore, pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    async def stats(self) -> Stats:
        return await self._pool.run(self._sync.stats)

    async def saves(self) -> int:
        return await self._pool.run(self._sync.saves)

    async def check_usable(self) -> None:
        await self._pool.run(self._sync.check_usable)

    async def durability(self) -> Survives:
        return await self._pool.run(self._sync.durability)

    async def failover(self) -> str:
        return await self._pool.run(self._sync.failover)

    async def verify(self, ref: Ref | None = None) -> "Verification":
        return await self._pool.run(self._sync.verify, None if ref is None else plain(ref))

    async def repair(self) -> Report:
        return await self._pool.run(self._sync.repair)

    async def gc(self) -> Collected:
        done = await self._pool.run(self._sync.gc)
        await self._pool.tell("collected", done)
        return done

    async def compact(self) -> None:
        await self._pool.run(self._sync.compact)

    async def upkeep(self) -> "Upkept | None":
        done = await self._pool.run(self._sync.upkeep)
        if done is not None:
            await self._pool.tell("retained", done.retained)
            await self._pool.tell("collected", done.collected)
        return done

    async def update_search(self, *, seconds: float) -> bool:
        return await self._pool.run(self._sync.update_search, seconds=seconds)

    async def purge(
        self, ref: Ref | None = None, *, timeline: str | None = None, text: str | None = None
    ) -> "Purged":
        done = await self._pool.run(
            self._sync.purge, None if ref is None else plain(ref), timeline=timeline, text=text
        )
        await self._pool.tell("purged", done)
        return done


class Retention:
    """See `hardsave.Retention`."""

    def __init__(self, sync: sync_store.Retention, pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    async def plan(self, policy: "Policy | None" = None, *, own: bool = False) -> "RetentionPlan":
        return await self._pool.run(self._sync.plan, policy, own=own)

    async def apply(self, plan: "RetentionPlan") -> "Retained":
        done = await self._pool.run(self._sync.apply, plan)
        await self._pool.tell("retained", done)
        return done
