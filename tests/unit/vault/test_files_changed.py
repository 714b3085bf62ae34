"""How many files a timeline has changed since it began."""

import asyncio
from pathlib import Path

import pytest

import hardsave
from hardsave import FileCounts, aio


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    for name in ("changes", "stays", "goes"):
        (made / name).write_text(name)
    return made


def change(work: Path) -> None:
    (work / "changes").write_text("changed")
    (work / "goes").unlink()
    (work / "folder").mkdir()  # one that has files in it is told by these
    for name in ("new", "folder/newer"):
        (work / name).write_text(name)


def test_files_are_counted_from_the_first_checkpoint_to_the_head(url: str, work: Path) -> None:
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        line.save({"turn": 1}, workspace=work)
        assert line.files_changed() == FileCounts(total=3)
        (work / "passing").write_text("goes again")
        line.save({"turn": 2}, workspace=work)
        (work / "passing").unlink()
        change(work)
        line.save({"turn": 3}, workspace=work)
        assert line.files_changed() == FileCounts(added=2, changed=1, removed=1, total=4)
        line.rewind(":1")
        assert line.files_changed() == FileCounts(total=3)


def test_a_fork_has_changed_what_it_has_not_from_where_it_began(url: str, work: Path) -> None:
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        line.save({"turn": 1}, workspace=work)
        change(work)
        line.save({"turn": 2}, workspace=work)
        fork = line.fork(":1", name="fork")
        assert fork.files_changed() == FileCounts(total=3)
        (work / "more").write_text("more")
        fork.save({"turn": 3}, workspace=work)
        assert fork.files_changed() == FileCounts(added=3, changed=1, removed=1, total=5)


def test_it_is_not_known_where_no_files_are(url: str, work: Path) -> None:
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        assert line.files_changed() is None
        line.save({"turn": 1})
        assert line.files_changed() is None
        line.save({"turn": 2}, workspace=work)
        assert line.files_changed() is None  # the first has none to compare with


def test_coroutines_are_told_the_same(url: str, work: Path) -> None:
    async def told() -> FileCounts | None:
        async with aio.open(url) as vault:
            line = await vault.timeline("main")
            await line.save({"turn": 1}, workspace=work)
            change(work)
            await line.save({"turn": 2}, workspace=work)
            return await line.files_changed()

    assert asyncio.run(told()) == FileCounts(added=2, changed=1, removed=1, total=4)
