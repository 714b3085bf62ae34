"""Where a checkpoint says that its transcript is: it may come from anybody."""

from pathlib import Path

import pytest

from hardsave.agents import rewinding
from hardsave.agents import spec as agents
from hardsave.agents.transcripts import EMPTY


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize("path", ["a\0b", "/x/\ud800", "/etc/passwd", "~/x", "../x"])
def test_a_transcript_elsewhere_is_not_written_and_that_is_said(
    tmp_path: Path, agent: str, path: str
) -> None:
    told = {"session": "abc", "path": path, **EMPTY.told()}
    known = agents.named(agent)
    assert known is not None
    found = rewinding.resume(
        known, {"transcript": told, "lines": []}, {"HOME": str(tmp_path)}, "main"
    )
    assert found.command is None
    assert found.why
    assert not list(tmp_path.iterdir())
