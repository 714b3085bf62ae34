import os
from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import HardsaveError, Misuse
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.registry import file_path, open_store, repair_store
from hardsave.stores.sqlite import SqliteStore


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///runs.db", "runs.db"),
        ("sqlite:///a/b/runs.db", "a/b/runs.db"),
        ("sqlite:///./runs.db", "./runs.db"),
        ("sqlite:////tmp/runs.db", "/tmp/runs.db"),  # noqa: S108 # nothing is written there
        ("sqlite:///with space.db", "with space.db"),
        ("sqlite:///100%.db", "100%.db"),
        ("sqlite:///a%20b.db", "a%20b.db"),
        ("sqlite:///what?#ever.db", "what?#ever.db"),
        ("sqlite:///ünï.db", "ünï.db"),
    ],
)
def test_what_follows_three_slashes_is_the_path(url: str, path: str) -> None:
    assert file_path(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "",
        "runs.db",
        "/absolute/runs.db",
        "sqlite",
        "sqlite:",
        "sqlite:runs.db",
        "sqlite:/runs.db",
        "sqlite://",
        "sqlite://runs.db",
        "sqlite:///",
        "sqlite:///a\0b",
        "sqlite://[bad/x",
        "memory",
        "memory:",
        "memory://name",
        "memory:///name",
        "http://example.com/x",
        "mysql:///x",
        "://",
        " sqlite:///x",
        "\n",
    ],
)
def test_a_url_that_names_no_store_is_misuse(url: str, here: Path) -> None:
    with pytest.raises(Misuse) as caught:
        open_store(url)
    assert repr(url) in str(caught.value)
    assert list(here.iterdir()) == []


def test_a_url_that_is_no_text_is_misuse(here: Path) -> None:
    wrong: tuple[Any, ...] = (b"sqlite:///x", 5, None, Path("x"))
    for odd in wrong:
        with pytest.raises(HardsaveError):
            open_store(odd)


def test_a_relative_path_starts_where_the_process_is(here: Path) -> None:
    store = open_store("sqlite:///sub/runs.db")
    assert isinstance(store, SqliteStore)
    assert store.path == str(here / "sub" / "runs.db")
    store.close()
    assert (here / "sub" / "runs.db").is_file()


def test_an_absolute_path_has_four_slashes(here: Path) -> None:
    store = open_store(f"sqlite:///{here / 'runs.db'}")
    store.close()
    assert (here / "runs.db").is_file()


def test_every_store_in_memory_is_another_one() -> None:
    one, two = open_store("memory://"), open_store("memory://")
    assert isinstance(one, MemoryStore)
    assert one is not two


def test_durability_is_one_of_two_words(here: Path) -> None:
    for url in ("memory://", "sqlite:///x.db"):
        with pytest.raises(Misuse, match="durability"):
            open_store(url, durability="forever")  # type: ignore[arg-type] # wrong on purpose
    assert list(here.iterdir()) == []
    store = open_store("sqlite:///x.db", durability="process")
    assert isinstance(store, SqliteStore)
    assert store._writer._connection.pragma("synchronous") == 1
    store.close()


@pytest.mark.parametrize("path", ["x\ud800.db", os.fsdecode(b"x\xff.db"), "a\ud800/x.db", "x\0.db"])
def test_a_name_that_no_file_of_sqlite_can_have_is_misuse(here: Path, path: str) -> None:
    for call in (open_store, repair_store):
        with pytest.raises(Misuse, match=r"choose another path|names no file"):
            call(f"sqlite:///{path}")
    with pytest.raises(Misuse, match="choose another path"):
        SqliteStore(path)
    assert list(here.iterdir()) == []
