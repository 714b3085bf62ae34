"""What the page about agents shows happens: its program runs, without a key."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, blocks


def test_its_program_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    (program,) = blocks(DOCS / "howto" / "agents.md", "python")
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        check=False,
        env={**os.environ, "HARDSAVE_STORE": str(tmp_path / "store.db")},
        capture_output=True,
        text=True,
        timeout=300,  # clients of models take long to import
    )
    assert ended.returncode == 0, ended.stderr
    promised = re.findall(r"# prints: (.*)", program)
    assert promised == ["Written."]
    assert [line for line in promised if line not in ended.stdout.splitlines()] == []
