"""Where a checkpoint says that its transcript is: it may come from a stranger."""

from pathlib import Path

import pytest

from hardsave.agents import conversation
from hardsave.agents.conversation import Place
from hardsave.agents.transcripts import EMPTY


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize("path", ["a\0b", "/x/\ud800", "/etc/passwd", "~/x", "../x"])
def test_a_transcript_elsewhere_is_not_written_and_that_is_said(
    tmp_path: Path, agent: str, path: str
) -> None:
    told = {"agent": agent, "session": "abc", "path": path, **EMPTY.told()}
    state = {"transcript": told, "lines": []}
    found = conversation.resume(state, {}, {"HOME": str(tmp_path)}, Place("main"))
    assert found is not None
    assert found.command is None
    assert found.why
    assert not list(tmp_path.iterdir())
