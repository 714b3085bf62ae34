import asyncio
import threading
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Unavailable
from hardsave.server.errors import Refused
from hardsave.server.lanes import Lane
from hardsave.server.vaults import Vaults

LIMIT = 10  # seconds


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def test_a_user_sees_its_own_vault_alone(url: str) -> None:
    vaults = Vaults(lambda user: hardsave.open(url, user=user))
    with vaults.of("ada") as ada, vaults.of(None) as none:
        ada.timeline("secret").save({})
        assert [line.name for line in ada.timelines()] == ["secret"]
        assert list(none.timelines()) == []
    vaults.close()


def test_open_vaults_are_bounded_and_one_in_use_stays_open(url: str) -> None:
    opened: list[str | None] = []

    def open_for(user: str | None) -> hardsave.Vault:
        opened.append(user)
        return hardsave.open(url, user=user)

    vaults = Vaults(open_for, most=2)
    with vaults.of("a") as kept:
        for user in ("b", "c", "a", "b"):
            with vaults.of(user):
                pass
        assert opened == ["a", "b", "c", "b"]
        kept.timeline("still").save({})
        with vaults.of("b"), pytest.raises(Unavailable), vaults.of("d"):
            pass
    vaults.close()


def test_a_lane_that_is_full_refuses_and_goes_on_later() -> None:
    async def scene() -> None:
        lane, gate = Lane("test", threads=1, waiting=1), threading.Event()
        first, second = (
            asyncio.ensure_future(lane.run(lambda: gate.wait(LIMIT))) for _ in range(2)
        )
        await asyncio.sleep(0)
        with pytest.raises(Refused) as caught:
            await lane.run(lambda: gate.wait(LIMIT))
        assert (caught.value.status, caught.value.headers) == (503, (("Retry-After", "1"),))
        gate.set()
        assert [await first, await second] == [True, True]
        assert await lane.run(lambda: 7) == 7

    asyncio.run(scene())


def test_a_caller_that_goes_away_keeps_its_place_until_the_call_has_ended() -> None:
    async def scene() -> None:
        lane, gate = Lane("test", threads=1, waiting=0), threading.Event()
        gone = asyncio.ensure_future(lane.run(lambda: gate.wait(LIMIT)))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        with pytest.raises(Refused):
            await lane.run(lambda: 7)
        gate.set()
        async with asyncio.timeout(LIMIT):
            assert await _free(lane) == 7

    asyncio.run(scene())


async def _free(lane: Lane) -> int:
    try:
        return await lane.run(lambda: 7)
    except Refused:
        await asyncio.sleep(0.01)
        return await _free(lane)
