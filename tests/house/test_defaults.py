"""Defaults and limits have one obvious place."""

import ast
import re
from pathlib import Path

from tests.house.test_layers import modules

SOURCE = Path(__file__).parents[2] / "src/hardsave/defaults.py"


def constants(source: str) -> dict[str, str]:
    """What a module defines in capitals at its top, and the line that does."""
    lines = source.splitlines()
    return {
        target.id: lines[node.lineno - 1]
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper() and target.id[0] != "_"
    }


DEFAULTS = constants(SOURCE.read_text())


def test_the_defaults_import_nothing() -> None:
    nodes = ast.walk(ast.parse(SOURCE.read_text()))
    assert [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)] == []


def test_every_default_says_what_it_is_about() -> None:
    plain = {name for name, line in DEFAULTS.items() if "#" not in line}
    assert plain <= {"JOB_TURNS", "CALLBACK_TRIES"}  # their names do


def test_every_default_is_taken_from_there_and_said_nowhere_else() -> None:
    sources = {path: path.read_text() for path in modules().values() if path != SOURCE}
    used = set(re.findall(r"\b[A-Z_]+\b", "\n".join(sources.values())))
    assert DEFAULTS.keys() - used == set()
    defined = re.compile(rf"^({'|'.join(DEFAULTS)})(:.*)? = ", re.MULTILINE)
    assert [path for path, text in sources.items() if defined.search(text)] == []
