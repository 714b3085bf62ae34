"""A save that is asked for twice, because nobody knows whether the first came through."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hardsave

ID = "chk_" + "0123456789ab" * 2
Save = Callable[[hardsave.Timeline], hardsave.Checkpoint]


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[hardsave.Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as made:
        yield made


@pytest.mark.parametrize(
    "save",
    [
        lambda line: line.save({"turn": 2}, status="second"),
        lambda line: line.append({"messages": ["again"]}, status="second"),
    ],
    ids=["save", "append"],
)
def test_the_second_time_nothing_is_written(vault: hardsave.Vault, save: Save) -> None:
    first = vault.timeline("a", once=ID).save({"messages": ["hi"]}, status="first")
    vault.timeline("a").append({"messages": ["later"]})
    second = save(vault.timeline("a", once=ID))
    assert first.id == second.id == ID
    assert (second.seq, second.status, second.state["messages"][:]) == (1, "first", ["hi"])
    assert vault.timeline("a").load() == {"messages": ["hi", "later"]}


def test_two_who_race_write_one_checkpoint(vault: hardsave.Vault) -> None:
    """Both have looked, and neither saw the other's."""
    one, other = (vault.timeline("a", once=ID) for _ in range(2))
    assert one.head is None
    assert other.head is None
    one.append({"messages": ["hi"]})
    assert other.append({"messages": ["hi"]}).id == ID
    assert vault.timeline("a").load() == {"messages": ["hi"]}
    assert len(vault.timeline("a")) == 1


def test_files_are_taken_under_that_id(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("one")
    vault.timeline("a", once=ID).save_files(work)
    (work / "f").write_text("two")
    again = vault.timeline("a", once=ID).save_files(work)
    assert again.files is not None
    assert again.files.read("f") == b"one"
    assert len(vault.timeline("a")) == 1


def test_the_id_is_a_whole_one(vault: hardsave.Vault) -> None:
    with pytest.raises(hardsave.Misuse, match="once is a whole id, not 'chk_12'"):
        vault.timeline("a", once="chk_12")
