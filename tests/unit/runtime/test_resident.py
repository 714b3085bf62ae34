"""What a resident takes for a burst that is worth a checkpoint."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.runtime.resident import Resident


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    (tmp_path / "work").mkdir()
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


def looks(vault: hardsave.Vault, name: str, work: Path) -> int:
    """A resident looks as it does after a burst; how many checkpoints its timeline has then."""
    line = vault.timeline(name)
    Resident(line, vault.workspace(work), ["agent"])._save_changes("running")
    return len(line)


def test_what_has_not_changed_is_not_saved_again(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "f").write_text("one")
    assert [looks(vault, "a", work), looks(vault, "a", work)] == [1, 1]
    (work / "f").write_text("two")
    assert looks(vault, "a", work) == 2


def test_each_timeline_has_every_burst(vault: hardsave.Vault, tmp_path: Path) -> None:
    """Also those that somebody else has saved on his."""
    work = tmp_path / "work"
    (work / "f").write_text("one")
    assert [looks(vault, "a", work), looks(vault, "b", work)] == [1, 1]
    (work / "f").write_text("two")
    assert [looks(vault, "a", work), looks(vault, "b", work)] == [2, 2]


def test_a_rewind_is_not_saved_again(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for text in ("one", "two"):
        (work / "f").write_text(text)
        looks(vault, "a", work)
    vault.timeline("a").rewind("a:1")
    assert (work / "f").read_text() == "one"
    assert looks(vault, "a", work) == 2
