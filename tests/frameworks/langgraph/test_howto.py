"""The code of the page about LangGraph, block after block."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/howto/langgraph.md"


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    program: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), program)  # noqa: S102 # our own page
    said = capsys.readouterr().out
    assert "['asked', 'step 1', 'asked again', 'step 3']" in said
    assert "['asked', 'step 1']" in said
    assert "<p>0</p> {'done': ['page 0']}" in said
