"""Bytes on the disk: compressed or not, as it is asked for, and read either way."""

from pathlib import Path
from typing import Any, cast

import apsw
import pytest

import hardsave
from hardsave import config
from hardsave.errors import Misuse

WORDS = [f"turn {number}: the same words again and again " * 40 for number in range(400)]


def sizes(path: Path) -> tuple[int, int]:
    """How long the objects are together, and how long what is stored of them is."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        sql = "SELECT sum(size), sum(length(body)) FROM packs"
        size, stored = cast(Any, connection.execute(sql).fetchall()[0])
        return int(size), int(stored)
    finally:
        connection.close()


def save(path: Path, name: str, *, compress: bool | None) -> None:
    with hardsave.open(f"sqlite:///{path}", compress=compress) as vault:
        for turn in range(0, len(WORDS), 20):
            vault.timeline(name).append({"messages": [name, *WORDS[turn : turn + 20]]})


def loads(path: Path, *names: str) -> bool:
    with hardsave.open(f"sqlite:///{path}") as vault:
        found = [vault.timeline(name).load()["messages"] for name in names]
        assert vault.store.verify().ok
    return all([each for each in one if each in WORDS] == WORDS for one in found)


def test_without_compression_bytes_are_stored_as_they_are_also_by_housekeeping(
    tmp_path: Path,
) -> None:
    plain, dense = tmp_path / "plain.db", tmp_path / "dense.db"
    save(plain, "a", compress=False)
    save(dense, "a", compress=True)
    assert sizes(plain)[0] == sizes(plain)[1] > 5 * sizes(dense)[1]
    with hardsave.open(f"sqlite:///{plain}", compress=False) as vault:
        vault.store.gc()
        vault.store.compact()
    assert sizes(plain)[0] == sizes(plain)[1]
    assert loads(plain, "a")
    assert loads(dense, "a")


def test_old_and_new_are_read_from_one_store_in_either_order(tmp_path: Path) -> None:
    for first in (False, True):
        mixed = tmp_path / f"{first}.db"
        save(mixed, "a", compress=first)
        save(mixed, "b", compress=not first)
        assert loads(mixed, "a", "b")
        with hardsave.open(f"sqlite:///{mixed}", compress=first) as vault:
            vault.store.compact()
        assert loads(mixed, "a", "b")


def test_the_file_of_a_project_says_it_for_every_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / config.PROJECT_FILE).write_text("compress: false\n")
    store = tmp_path / "store.db"
    save(store, "a", compress=None)
    assert sizes(store)[0] == sizes(store)[1]
    with pytest.raises(Misuse, match="compress is True or False"):
        hardsave.open("memory://", compress="zstd")  # type: ignore[arg-type] # as a user may
