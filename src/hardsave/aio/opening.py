"""Opening an awaited vault."""

from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any

from hardsave.aio.pool import Pool
from hardsave.aio.vault import Vault
from hardsave.defaults import MAX_VALUE_BYTES
from hardsave.stores.base import Durability
from hardsave.vault import vault as sync_vault
from hardsave.vault.arguments import Redact
from hardsave.vault.opening import open_vault


class Opening:
    """What `open` returns: to be awaited, or entered with `async with`."""

    def __init__(self, open_sync: Callable[[], sync_vault.Vault]) -> None:
        self._open_sync = open_sync
        self._vault: Vault | None = None

    def __await__(self) -> Generator[Any, None, Vault]:
        return self._open().__await__()

    async def __aenter__(self) -> Vault:
        self._vault = await self._open()
        return self._vault

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._vault is not None:
            await self._vault.close()

    async def _open(self) -> Vault:
        pool = Pool()
        opened: list[sync_vault.Vault] = []
        try:
            await pool.run(lambda: opened.append(self._open_sync()))
        except BaseException:
            await pool.close()  # waits for the thread, which may have opened it all the same
            for vault in opened:
                vault.close()
            raise
        return Vault(opened[0], pool)


def open(
    url: str | None = None,
    *,
    user: str | None = None,
    durability: Durability = "power",
    max_value_bytes: int = MAX_VALUE_BYTES,
    redact: Redact = False,
    compress: bool | None = None,
    strict: bool | None = None,
    read_only: bool = False,
) -> Opening:
    """See `hardsave.open`."""
    return Opening(
        lambda: open_vault(
            url,
            user=user,
            durability=durability,
            max_value_bytes=max_value_bytes,
            redact=redact,
            compress=compress,
            strict=strict,
            read_only=read_only,
        )
    )
