"""Every decision is one page: numbered, with its context, its choice and its price."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

DECISIONS = sorted((DOCS / "decisions").glob("*.md"))


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [path.name[:4] for path in DECISIONS]
    assert numbers == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_context_choice_and_price(path: Path) -> None:
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    assert headings[0].startswith(f"{path.name[:4]}: ")
    assert headings[1:] == ["Context", "Choice", "Price"]
