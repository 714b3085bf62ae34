"""What the page about agents shows happens: its programs run, without a key."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks


@pytest.mark.parametrize(("at", "prints"), [(0, "Written."), (1, "succeeded 100 Fixed.")])
def test_its_programs_run_and_print_what_they_say(tmp_path: Path, at: int, prints: str) -> None:
    programs = blocks(DOCS / "howto" / "agents.md", "python")
    assert len(programs) == 2
    program = programs[at]
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
    assert promised == [prints]
    assert prints in ended.stdout.splitlines()
