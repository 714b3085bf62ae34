"""What the page about agents shows happens: its program runs, without a key."""

import re
from pathlib import Path

from tests.docs.pages import DOCS, blocks
from tests.docs.test_readme import run


def test_its_program_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    (program,) = blocks(DOCS / "howto" / "agents.md", "python")
    ended = run(program, tmp_path)
    assert ended.returncode == 0, ended.stderr
    promised = re.findall(r"# prints: (.*)", program)
    assert promised == ["Written."]
    assert [line for line in promised if line not in ended.stdout.splitlines()] == []
