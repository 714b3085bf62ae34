"""Which checkpoints did something to a file."""

from pathlib import Path

import pytest

import hardsave
from hardsave.page import every


@pytest.fixture
def vault(tmp_path: Path) -> "hardsave.Vault":
    return hardsave.open(f"sqlite:///{tmp_path / 'store.db'}")


def told(vault: "hardsave.Vault", ref: str, path: str, limit: int = 50) -> list[tuple[int, str]]:
    pages = every(lambda after: vault.file_history(ref, path, limit=limit, after=after))
    return [(each.checkpoint.seq, each.change) for each in pages]


def make(vault: "hardsave.Vault", work: Path) -> None:
    """Six checkpoints: a.txt comes, stays, changes, goes, comes again; one has no files."""
    line = vault.timeline("main")
    file = work / "a.txt"
    work.mkdir()
    for content in ("one", "one", "two", None):
        if content is None:
            file.unlink()
        else:
            file.write_text(content)
        line.save({"turn": content}, workspace=work)
    line.save({"turn": "without files"})
    file.write_text("three")
    line.save({"turn": "three"}, workspace=work)


EXPECTED = [(6, "added"), (4, "removed"), (3, "changed"), (1, "added")]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 50])
def test_a_file_has_the_checkpoints_that_did_something_to_it(
    vault: "hardsave.Vault", tmp_path: Path, limit: int
) -> None:
    make(vault, tmp_path / "work")
    assert told(vault, "main:6", "a.txt", limit) == EXPECTED
    assert told(vault, "main:5", "a.txt", limit) == EXPECTED[1:]  # which has no files itself
    assert told(vault, "main:3", "a.txt", limit) == EXPECTED[2:]
    assert told(vault, "main:6", "never.txt", limit) == []


def test_a_cursor_of_another_file_is_refused(vault: "hardsave.Vault", tmp_path: Path) -> None:
    make(vault, tmp_path / "work")
    page = vault.file_history("main:6", "a.txt", limit=1)
    with pytest.raises(hardsave.Misuse):
        vault.file_history("main:6", "b.txt", after=page.next)
    with pytest.raises(hardsave.Misuse):
        vault.file_history("main:6", "")
