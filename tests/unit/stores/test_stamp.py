"""Whether a store was written, by its files alone."""

import os
import time
from pathlib import Path

import pytest

import hardsave
from hardsave.stores import store_files


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def aged(path: str, seconds: int = 10) -> None:
    """Let the files of a store be older than they are."""
    for file in (Path(path), *store_files.beside(path)):
        then = file.stat().st_mtime_ns - seconds * 1_000_000_000
        os.utime(file, ns=(then, then))


def test_a_store_that_is_not_there_has_no_stamp_and_is_not_made(path: str) -> None:
    assert store_files.stamp(path) is None
    assert not os.path.exists(path)


def test_every_commit_leaves_another_stamp(path: str) -> None:
    with hardsave.open(f"sqlite:///{path}") as vault:
        seen = [store_files.stamp(path)]
        for number in range(20):
            vault.timeline("main").save({"n": number})
            seen.append(store_files.stamp(path))
            aged(path)
            seen.append(store_files.stamp(path))
    assert len(set(seen)) == len(seen)


def test_a_look_leaves_the_stamp_as_it_is(path: str) -> None:
    with hardsave.open(f"sqlite:///{path}") as vault:
        vault.timeline("main").save({"n": 1})
    aged(path)
    before = store_files.stamp(path)
    with hardsave.open(f"sqlite:///{path}") as vault:
        assert [line.name for line in vault.timelines()] == ["main"]
        assert vault.jobs.every() == []
        assert store_files.stamp(path) == before
    assert store_files.stamp(path) == before


def test_a_write_that_leaves_the_same_time_and_sizes_is_seen_later(path: str) -> None:
    """On a file system whose clock ticks slowly, two writes may look alike."""
    hardsave.open(f"sqlite:///{path}").close()
    before = store_files.stamp(path)
    assert before is not None
    assert not before.is_settled
    aged(path)
    os.utime(path, ns=(0, 1_000_000_000 * (time.time_ns() // 1_000_000_000 - 1)))
    in_whole_seconds = store_files.stamp(path)
    assert in_whole_seconds is not None
    assert not in_whole_seconds.is_settled
    aged(path)
    later = store_files.stamp(path)
    assert later is not None
    assert later.is_settled


def test_the_stamp_tells_when_the_last_commit_was_made(path: str) -> None:
    began = time.time_ns() - 1_000_000_000
    with hardsave.open(f"sqlite:///{path}") as vault:
        vault.timeline("main").save({"n": 1})
        saved = store_files.stamp(path)
    closed = store_files.stamp(path)  # the main file was written meanwhile
    assert saved is not None
    assert closed is not None
    assert began <= saved.written_at == closed.written_at <= time.time_ns()
