"""What the pages about frameworks show happens: their programs run, without a key."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks

PROGRAMS = [
    (name, at)
    for name in ("agent-framework", "google-adk", "openai-agents", "pydantic-ai")
    for at in range(len(blocks(DOCS / "howto" / f"{name}.md", "python")))
]


@pytest.mark.parametrize(("name", "at"), PROGRAMS)
def test_a_program_prints_what_its_page_says(tmp_path: Path, name: str, at: int) -> None:
    program = blocks(DOCS / "howto" / f"{name}.md", "python")[at]
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        check=False,
        env={**os.environ, "HARDSAVE_STORE": str(tmp_path / "store.db")},
        capture_output=True,
        text=True,
        timeout=300,  # frameworks take long to import
    )
    assert ended.returncode == 0, ended.stderr
    promised = re.findall(r"# prints: (.*)", program)
    assert promised
    assert [line for line in ended.stdout.splitlines() if line in promised] == promised
