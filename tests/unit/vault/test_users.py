"""A vault shows one user's things, and nothing of anybody else's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Corrupt, HardsaveError, Misuse, NotFound
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import messages


@pytest.fixture(params=["memory", "sqlite"])
def vaults(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Vault, ...]]:
    """(ada's, bob's, nobody's) on one store."""
    users = ("ada", "bob", None)
    if request.param == "memory":
        store = MemoryStore()
        made = tuple(Vault(store, user=user) for user in users)
    else:
        url = f"sqlite:///{tmp_path / 'store.db'}"
        made = tuple(hardsave.open(url, user=user) for user in users)
    yield made
    for vault in made:
        vault.close()


def test_nobody_sees_anothers_timelines(vaults: tuple[Vault, Vault, Vault]) -> None:
    ada, *others = vaults
    ada.timeline("main").save({"secret": messages(50)}, name="plan")
    for other in others:
        line = other.timeline("main")
        assert list(other.timelines()) == []
        assert line.head is None
        assert len(line) == 0
        assert not line.checkpoints()
        for ref in ("@", "plan", "main:1"):
            with pytest.raises(NotFound):
                line.load(ref)
        assert other.store.stats().checkpoints == 0
        assert other.store.stats().objects == 0
        assert other.store.verify().checkpoints == 0


def test_an_id_does_not_open_anothers_checkpoint(vaults: tuple[Vault, Vault, Vault]) -> None:
    ada, *others = vaults
    secret = ada.timeline("main").save({"secret": messages(50)})
    for other in others:
        line = other.timeline("main")
        line.save({})
        for ref in (secret.id, secret.id[:20]):
            for call in (other.get, line.load, line.get, other.store.verify):
                with pytest.raises(NotFound):
                    call(ref)
            with pytest.raises(NotFound):
                other.diff("main:1", ref)
            with pytest.raises(NotFound):
                line.fork(ref, name="stolen")
        assert [known.name for known in other.timelines()] == ["main"]


def test_a_checkpoint_in_hand_does_not_open_anothers_state(
    vaults: tuple[Vault, Vault, Vault],
) -> None:
    ada, *others = vaults
    first = ada.timeline("main").save({"secret": messages(50)})
    second = ada.timeline("main").save({"secret": messages(60)}, expect=hardsave.ANY_HEAD)
    for other in others:
        own = other.timeline("main").save({"secret": messages(3)})
        for pair in ((first, second), (first, own), (own, first)):
            with pytest.raises((NotFound, Corrupt, Misuse)):
                other.diff(*pair)


def test_each_user_has_a_timeline_of_the_same_name(vaults: tuple[Vault, Vault, Vault]) -> None:
    lines = [vault.timeline("main") for vault in vaults]
    for number, line in enumerate(lines):
        for _ in range(number + 1):
            line.append({"messages": messages(5), "whose": number})
    for number, (vault, line) in enumerate(zip(vaults, lines, strict=True)):
        assert len(line) == number + 1
        assert line.load()["whose"] == number
        assert line.head is not None
        assert line.head.user == vault.user
        assert vault.store.verify().ok


def test_equal_states_of_two_users_are_stored_for_each(vaults: tuple[Vault, Vault, Vault]) -> None:
    state = {"messages": messages(100)}
    for vault in vaults:
        vault.timeline("main").save(state)
    counts = {vault.store.stats().objects for vault in vaults}
    assert len(counts) == 1
    assert counts.pop() > 100
    for vault in vaults:
        assert vault.timeline("main").load() == state
        assert vault.store.verify().ok


@pytest.mark.parametrize("user", ["", " ", "a\nb", "\ud800", "a\0b", 3, b"ada", "x" * 201])
def test_a_user_with_a_wrong_name_is_misuse(user: Any) -> None:
    with pytest.raises(Misuse, match="user"):
        hardsave.open("memory://", user=user)


def test_no_user_is_a_user_of_its_own(vaults: tuple[Vault, Vault, Vault]) -> None:
    *_, nobody = vaults
    assert nobody.user is None
    saved = nobody.timeline("main").save(1)
    assert saved.user is None
    for other in vaults[:2]:
        with pytest.raises(HardsaveError):
            other.get(saved.id)
