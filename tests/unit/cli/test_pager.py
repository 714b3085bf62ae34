"""Long answers through a pager: one that can be interrupted, or none at all."""

import io
from pathlib import Path

import pytest
from rich.text import Text

from hardsave.cli.render import pager
from hardsave.cli.render.console import console

LINES = [Text(f"line {number}") for number in range(100)]


def shown() -> str:
    screen = io.StringIO()
    drawn = console(screen, width=80, terminal=True)
    drawn.height = 10
    pager.show(drawn, LINES)
    return screen.getvalue()


def test_ctrl_c_ends_a_pager_that_wants_to_be_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    monkeypatch.setenv("PAGER", f"sh -c 'cat > {seen}; kill -INT $$; echo ignored > {seen}'")
    assert shown() == ""
    assert seen.read_text().endswith("line 99\n")


@pytest.mark.parametrize("wrong", ["no-such-pager", "less '", "/"])
def test_a_pager_that_cannot_be_run_does_not_hide_the_answer(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("PAGER", wrong)
    assert "line 99" in shown()
