"""What happened, page by page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave import Vault
from hardsave.errors import Misuse
from hardsave.server.live import ids
from hardsave.server.live.happened import page


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    with hardsave.open(f"sqlite:///{tmp_path / 's.db'}", user="kim") as made:
        yield made


def save(vault: Vault, first: int, last: int) -> None:
    line = vault.timeline("main")
    for number in range(first, last + 1):
        line.save(number, name=f"n{number}")


def names(vault: Vault, cursor: str, limit: int) -> tuple[list[str | None], str]:
    events, following = page(vault, "p", "kim", cursor, limit)
    assert len(events) <= limit
    return [event.checkpoint.name for event in events if event.checkpoint], following


def test_an_empty_cursor_is_now(vault: Vault) -> None:
    save(vault, 1, 3)
    found, now = names(vault, "", 10)
    assert found == []
    save(vault, 4, 5)
    assert names(vault, now, 10)[0] == ["n4", "n5"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 199, 1_000])
def test_pages_have_every_event_once_and_in_order(vault: Vault, limit: int) -> None:
    _, cursor = names(vault, "", limit)
    save(vault, 1, 210)
    with vault.as_user("lee", create=True) as other:
        save(other, 1, 3)
    found: list[str | None] = []
    while more := names(vault, cursor, limit)[0]:
        assert len(more) == min(limit, 210 - len(found))
        found += more
        cursor = names(vault, cursor, limit)[1]
    assert found == [f"n{number}" for number in range(1, 211)]
    assert ids.decode("p", "kim", cursor) == vault.follow().after  # not at the last event alone
    assert names(vault, cursor, limit) == ([], cursor)


@pytest.mark.parametrize(
    "cursor",
    ["garbage", ids.encode("q", "kim", 1), ids.encode("p", None, 1), ids.encode("p", "kim", 3)],
)
def test_a_cursor_that_is_none_of_these_events_is_misuse(vault: Vault, cursor: str) -> None:
    save(vault, 1, 2)
    with pytest.raises(Misuse, match="begin with an empty one"):
        page(vault, "p", "kim", cursor, 10)
