import asyncio
import threading
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import HardsaveError, NotFound, Unavailable
from hardsave.server.errors import Refused
from hardsave.server.lanes import Lane
from hardsave.server.projects import Project
from hardsave.server.vaults import Vaults, open_existing
from hardsave.stores import store_files

LIMIT = 10  # seconds


def project(folder: Path, name: str = "store") -> Project:
    url = f"sqlite:///{folder}/{name}.db"
    hardsave.open(url).close()
    return Project(name, name, str(folder), url, is_here=False)


class Opened:
    """Opens stores, and notes which."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def __call__(self, project: Project) -> hardsave.Vault:
        self.ids.append(project.id)
        return open_existing(project)


def test_a_user_sees_its_own_vault_alone(tmp_path: Path) -> None:
    vaults, one = Vaults(), project(tmp_path)
    with vaults.of(one, "ada") as ada, vaults.of(one, None) as none:
        ada.timeline("secret").save({})
        assert [line.name for line in ada.timelines()] == ["secret"]
        assert list(none.timelines()) == []
    vaults.close()


def test_open_vaults_are_bounded_and_one_in_use_stays_open(tmp_path: Path) -> None:
    vaults, one = Vaults(most=2), project(tmp_path)
    with vaults.of(one, "a") as kept:
        made: list[hardsave.Vault] = []
        for user in ("b", "b", "c", "a", "b"):
            with vaults.of(one, user) as vault:
                made.append(vault)
        assert made[0] is made[1] is not made[4]
        assert made[3] is kept
        kept.timeline("still").save({})
        with vaults.of(one, "b"), pytest.raises(Unavailable), vaults.of(one, "d"):
            pass
    vaults.close()


def test_open_projects_are_bounded_and_one_in_use_stays_open(tmp_path: Path) -> None:
    opened = Opened()
    vaults = Vaults(opened, most_projects=2)
    a, b, c = (project(tmp_path, name) for name in "abc")
    with vaults.of(a, None) as kept:
        for each in (b, b, c, a, b):
            with vaults.of(each, None):
                pass
        assert opened.ids == ["a", "b", "c", "b"]
        kept.timeline("still").save({})
        with vaults.of(b, "x"), pytest.raises(Unavailable), vaults.of(c, None):
            pass
    vaults.close()


def test_a_project_that_made_room_is_closed(tmp_path: Path) -> None:
    vaults = Vaults(most_projects=1)
    for name in "ab":
        with vaults.of(project(tmp_path, name), "ada") as vault:
            list(vault.timelines())
    with store_files.alone_with(f"{tmp_path}/a.db", "looked at"):
        pass
    with pytest.raises(Unavailable), store_files.alone_with(f"{tmp_path}/b.db", "looked at"):
        pass
    vaults.close()


def test_a_store_that_is_not_there_is_not_made_and_others_are_served(tmp_path: Path) -> None:
    gone, here = project(tmp_path, "gone"), project(tmp_path, "here")
    for file in tmp_path.glob("gone.db*"):
        file.unlink()
    vaults = Vaults()
    with pytest.raises(NotFound, match="gone"), vaults.of(gone, None):
        pass
    assert list(tmp_path.glob("gone.db*")) == []
    with vaults.of(here, None) as vault:
        assert list(vault.timelines()) == []
    project(tmp_path, "gone")
    with vaults.of(gone, None) as vault:  # once it is there again
        assert list(vault.timelines()) == []
    vaults.close()


def test_a_store_that_cannot_be_opened_is_refused_alone(tmp_path: Path) -> None:
    broken, sound = project(tmp_path, "broken"), project(tmp_path, "sound")
    for file in tmp_path.glob("broken.db*"):
        file.write_bytes(b"no store" * 1_000)
    vaults = Vaults()
    with pytest.raises(HardsaveError), vaults.of(broken, None):
        pass
    with vaults.of(sound, None) as vault:
        vault.timeline("main").save({})
    vaults.close()


def test_a_slow_store_keeps_no_other_project_waiting(tmp_path: Path) -> None:
    gate, slow, quick = threading.Event(), project(tmp_path, "slow"), project(tmp_path, "quick")

    def open_store(one: Project) -> hardsave.Vault:
        assert one is quick or gate.wait(LIMIT)
        return open_existing(one)

    def call() -> None:
        with vaults.of(slow, None):
            pass

    vaults = Vaults(open_store)
    waiting = threading.Thread(target=call)
    waiting.start()
    with vaults.of(quick, None) as vault:
        vault.timeline("main").save({})
    assert waiting.is_alive()
    gate.set()
    waiting.join(LIMIT)
    vaults.close()


def test_a_store_whose_files_were_replaced_is_opened_again(tmp_path: Path) -> None:
    one, vaults = project(tmp_path), Vaults()
    with vaults.of(one, None) as vault:
        vault.timeline("old").save({})
    for file in tmp_path.glob("store.db*"):
        file.unlink()
    project(tmp_path)
    with pytest.raises(Unavailable), vaults.of(one, None) as vault:
        vault.timeline("new").save({})
    with vaults.of(one, None) as vault:
        vault.timeline("new").save({})
        assert [line.name for line in vault.timelines()] == ["new"]
    vaults.close()


def test_without_a_project_there_is_an_empty_vault(tmp_path: Path) -> None:
    vaults = Vaults()
    with vaults.of(None, None) as vault:
        assert list(vault.timelines()) == []
    assert list(tmp_path.iterdir()) == []
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
