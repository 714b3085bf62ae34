"""What is remembered of files from outside, to see that they are as they were."""

import os
from pathlib import Path

from hardsave.workspace.filesystem import stamps

LATER = 1 << 62  # a clock that takes nothing for young


def test_each_path_is_looked_at_once(tmp_path: Path) -> None:
    here = os.fsencode(tmp_path)
    assert len(stamps.taken([here, here], LATER)) == 1


def test_what_is_not_there_is_found_by_its_directory_once_it_comes(tmp_path: Path) -> None:
    here = os.fsencode(tmp_path)
    names = [here, here + b"/none", here + b"/below/none"]
    taken = stamps.taken(names, LATER)
    assert [each.path for each in taken] == [here, here + b"/below/none"]
    assert stamps.are_same(taken)
    (tmp_path / "none").touch()
    os.utime(tmp_path, ns=(0, 0))  # its time is set back, but that of its inode is not
    assert not stamps.are_same(taken)


def test_a_link_to_a_directory_answers_for_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    link = os.fsencode(tmp_path / "link")
    taken = stamps.taken([link, link + b"/none"], LATER)
    assert stamps.are_same(taken)
    (tmp_path / "real/none").touch()
    assert not stamps.are_same(taken)
