"""What the page about agents shows happens: its programs run, without a key."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks

PRINTED = ["Written.", "succeeded 100 Fixed.", "Greeter hello, world"]


@pytest.mark.parametrize(("at", "prints"), list(enumerate(PRINTED)))
def test_its_programs_run_and_print_what_they_say(tmp_path: Path, at: int, prints: str) -> None:
    programs = blocks(DOCS / "howto" / "agents.md", "python")
    assert len(programs) == len(PRINTED)
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
