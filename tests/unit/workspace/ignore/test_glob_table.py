"""Many globs, one question: the expression and what stands in for it agree."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.workspace.ignore import glob_table
from hardsave.workspace.ignore.glob_table import Table, fits
from hardsave.workspace.ignore.globs import of_name
from hardsave.workspace.ignore.patterns import Layer, parse

names = st.text("ab.", min_size=1, max_size=8).map(str.encode)
patterns = st.text("ab.*?[]", min_size=1, max_size=8).map(str.encode)


@given(patterns, names)
def test_a_glob_fits_where_its_expression_matches(pattern: bytes, name: bytes) -> None:
    glob = of_name(pattern)
    if glob is not None:
        expected = re.fullmatch(glob.source, name, re.DOTALL) is not None
        assert fits(glob, name) == expected


@given(st.lists(patterns, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=12))
def test_a_table_finds_the_same_before_and_after_it_is_compiled(
    lines: list[bytes], asked: list[bytes]
) -> None:
    globs = [(rank, glob) for rank, line in enumerate(lines) if (glob := of_name(line))]
    table = Table(globs)
    for name in asked * 2:
        expected = max((rank for rank, glob in globs if fits(glob, name)), default=-1)
        assert table.find(name) == expected


@pytest.mark.parametrize("line", ["*x%d*y", "*x%d*y/z", "*[xy]*q%d", "a/*x%d*y"])
def test_a_long_ignore_file_of_a_directory_with_few_names_is_not_compiled(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[tuple[bytes, ...]] = []
    monkeypatch.setattr(glob_table, "matcher", compiled.append)
    layer = Layer(parse("\n".join(line % each for each in range(300)).encode()))
    state = layer.opening().enter(b"a")
    for name in (b"one.txt", b"two.txt", b"xy"):
        assert state.find(name, is_dir=False) == -1
        assert state.enter(name).find(b"z", is_dir=False) == -1
    assert compiled == []
