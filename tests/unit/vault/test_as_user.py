"""Many users of one store, in one process: each has a vault of its own, and they share the rest."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Misuse, NotFound, Vault, aio
from hardsave.tasks.attempt import working


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store/runs.db"
    with hardsave.open(url, redact=True) as opened:
        yield opened


def names(vault: Vault) -> list[str]:
    return [line.name for line in vault.timelines()]


def test_each_user_sees_their_own(vault: Vault) -> None:
    vault.timeline("mine").save({})
    ada = vault.as_user("ada", create=True)
    assert ada.user == "ada"
    ada.timeline("hers").save({"key": "sk-ant-api03-" + "a" * 95})
    assert (names(vault), names(ada)) == (["mine"], ["hers"])
    assert "redacted" in ada.timeline("hers").load()["key"]
    assert names(vault.as_user("ada")) == ["hers"]
    assert names(ada.as_user(None)) == ["mine"]


def test_a_user_that_does_not_exist_is_told_from_one_that_begins(vault: Vault) -> None:
    with pytest.raises(NotFound, match=r"nothing is stored of user 'bob'.*create=True"):
        vault.as_user("bob")
    vault.as_user("bob", create=True).tasks.add("t")
    assert [task.id for task in vault.as_user("bob").tasks.find()] == ["t"]
    wrong: Any
    for wrong in ("", 3, "a\0b"):
        with pytest.raises(Misuse):
            vault.as_user(wrong, create=True)


def test_a_vault_of_a_user_is_closed_alone_or_with_the_store(vault: Vault) -> None:
    ada, bob = (vault.as_user(user, create=True) for user in ("ada", "bob"))
    line = bob.timeline("main")
    ada.close()
    ada.close()
    with pytest.raises(Misuse, match="closed"):
        ada.as_user("bob", create=True)
    line.save({"turn": 1})
    with bob.tasks.runner("held"):
        pass
    vault.close()
    for call in (lambda: line.save({"turn": 2}), lambda: vault.as_user("bob")):
        with pytest.raises(Misuse):
            call()
    assert [*bob.follow(0)] == []


def test_a_vault_of_a_user_that_is_closed_writes_nothing(vault: Vault) -> None:
    ada = vault.as_user("ada", create=True)
    line, task = ada.timeline("main"), ada.tasks
    line.save({"turn": 1})
    task.add("t")
    ada.close()
    calls: list[Callable[[], object]] = [
        lambda: line.save({"turn": 2}),
        lambda: ada.timeline("other").save({}),
        line.load,
        lambda: ada.tasks.add("u"),
        ada.store.gc,
    ]
    for call in calls:
        with pytest.raises(Misuse, match="closed; open it again"):
            call()
    again = vault.as_user("ada")
    assert (len(again.timeline("main")), [each.id for each in again.tasks.find()]) == (1, ["t"])


def test_what_a_user_saves_in_an_attempt_belongs_to_it_in_another_vault_too(vault: Vault) -> None:
    ada, same = (vault.as_user("ada", create=True) for _ in range(2))
    ada.tasks.add("t")
    attempt = ada.tasks.claim("t")
    with working(attempt):
        made = same.timeline("main").save({})
    assert made.task == "t"


def test_a_task_that_a_user_holds_is_given_back_before_the_store_is_closed(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    vault = hardsave.open(url)
    ada = vault.as_user("ada", create=True)
    ada.tasks.add("t")
    ada.tasks.claim("t").complete()
    assert vault._context.store.owners("ada")
    vault.close()
    with hardsave.open(url, user="ada") as again:
        assert not again._context.store.owners("ada")


def test_a_hundred_users_share_what_is_open(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/runs.db") as vault:
        vault.timeline("main").save({})
        before = len(os.listdir("/proc/self/fd"))
        many = [vault.as_user(f"user {number}", create=True) for number in range(100)]
        for each in many:
            each.timeline("main").save({"of": each.user})
        assert len(os.listdir("/proc/self/fd")) <= before + 20  # each of its own would have 6
        assert {each.timeline("main").load()["of"] for each in many} == {each.user for each in many}


def test_coroutines_share_a_store_and_have_handlers_of_their_own() -> None:
    async def scene() -> None:
        async with aio.open("memory://") as vault:
            ada = await vault.as_user("ada", create=True)
            told: list[object] = []

            async def note(about: object) -> None:
                told.append(about)

            ada.on("checkpoint_saved", note)
            await (await vault.timeline("main")).save({})
            assert not told
            await (await ada.timeline("main")).save({})
            assert len(told) == 1
            with pytest.raises(NotFound):
                await vault.as_user("bob")
            await ada.close()
            with pytest.raises(Misuse, match="closed"):
                await ada.timeline("main")
            assert await (await vault.timeline("main")).count() == 1
            other = await vault.as_user("ada")
        with pytest.raises(Misuse):
            await other.timeline("main")

    asyncio.run(scene())
